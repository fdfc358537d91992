import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.report.text import brief, clean, clipped, fit, log_excerpt, name_from, one_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("bell\x07", "bell\\x07"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("tab\tstays\n", "tab\tstays\n"),
        ("lone \ud800 surrogate", "lone \\ud800 surrogate"),
        ("turned \u202e round", "turned \\u202e round"),
        ("\ufffe\uffff", "\\ufffe\\uffff"),
        ("del\x7f c1\x9b", "del\\x7f c1\\x9b"),
        ("Grüße 世界 ]]>", "Grüße 世界 ]]>"),
    ],
)
def test_clean_unsafe_characters_become_visible(text, expected):
    assert clean(text) == expected


@given(st.text(alphabet=st.characters()))
def test_clean_any_text_is_legal_in_xml_and_cleaning_again_changes_nothing(text):
    cleaned = clean(text)

    assert clean(cleaned) == cleaned
    assert all(
        char in "\t\n" or " " <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" or char > "\uffff"
        for char in cleaned
    )


def test_one_line_newlines_and_runs_of_blanks_become_one_blank():
    assert one_line(" a\n  b\u2028c\td ") == "a b\\u2028c d"


def test_brief_and_fit_cut_with_points():
    assert fit("abcdef", 6) == "abcdef"
    assert fit("abcdefg", 6) == "abc..."
    assert len(brief("x" * 10_000_000)) == 1000


def test_name_from_any_text_is_made_of_the_allowed_alphabet():
    assert name_from("Site Power\x00/kW") == "site-power-kw"
    assert name_from("") == name_from("\x00\x00") == "unnamed"


def test_log_excerpt_short_log_is_whole():
    assert log_excerpt(b"one\ntwo") == "one\ntwo"


def test_log_excerpt_long_log_keeps_begin_and_end_by_lines_and_says_what_is_missing():
    lines = [f"line {number}" for number in range(100_000)]
    data = "\n".join(lines).encode()

    text = log_excerpt(data)
    shown = text.split("\n")
    note = next(line for line in shown if line.startswith("[... "))

    assert len(text.encode()) <= 32 * 1024
    assert shown[0] == "line 0"
    assert shown[-1] == "line 99999"
    assert all(line in (note, *lines) for line in shown[:5] + shown[-5:])
    assert note == f"[... {len(data) - len(text) + len(note) + 1} bytes left out ...]"


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" * 200_000,
        b"\xff" * 200_000,
        b"x" * 10_000_000,
        "世".encode() * 30_000,
        b"\n" * 99_999,
    ],
    ids=["nul", "not-utf8", "one-line", "wide", "empty-lines"],
)
def test_log_excerpt_hostile_log_stays_within_its_size(data):
    text = log_excerpt(data)

    assert len(text.encode()) <= 32 * 1024
    assert " bytes left out ...]" in text


@given(st.binary(max_size=300), st.integers(1, 60), st.integers(100, 160))
def test_log_excerpt_any_bytes_fit_into_any_size(data, head_bytes, tail_bytes):
    text = log_excerpt(data, head_bytes, tail_bytes)

    assert len(text.encode()) <= head_bytes + tail_bytes
    assert clean(text) == text


def test_clipped_text_with_surrogates_is_cut_like_a_log():
    assert clipped("short \ud800") == "short \\ud800"
    assert len(clipped("\ud800" * 50_000).encode()) <= 32 * 1024

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.report.text import brief, clean, clipped, fit, log_end, name_from, one_line


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


CUT = {"head_bytes": 8 * 1024, "tail_bytes": 24 * 1024}
HOSTILE = pytest.mark.parametrize(
    "data",
    [
        b"\x00" * 200_000,
        b"\xff" * 200_000,
        b"x" * 10_000_000,
        "世".encode() * 30_000,
        b"\n" * 99_999,
        b"password=" * 20_000,
    ],
    ids=["nul", "not-utf8", "one-line", "wide", "empty-lines", "credentials"],
)


def test_clipped_short_text_is_whole():
    assert clipped("one\ntwo", **CUT) == "one\ntwo"


def test_clipped_long_text_keeps_begin_and_end_by_lines_and_says_what_is_missing():
    lines = [f"line {number}" for number in range(100_000)]
    whole = "\n".join(lines)

    text = clipped(whole, **CUT)
    shown = text.split("\n")
    note = next(line for line in shown if line.startswith("[... "))

    assert len(text.encode()) <= 32 * 1024
    assert shown[0] == "line 0"
    assert shown[-1] == "line 99999"
    assert all(line in (note, *lines) for line in shown[:5] + shown[-5:])
    assert note == f"[... {len(whole) - len(text) + len(note) + 1} bytes left out ...]"


@given(st.text(max_size=300), st.integers(1, 60), st.integers(100, 160))
def test_clipped_any_text_fits_into_any_size(given_text, head_bytes, tail_bytes):
    text = clipped(given_text, head_bytes=head_bytes, tail_bytes=tail_bytes)

    assert len(text.encode()) <= head_bytes + tail_bytes
    assert clean(text) == text


def test_clipped_text_with_surrogates_is_clean():
    assert clipped("short \ud800", **CUT) == "short \\ud800"
    assert len(clipped("\ud800" * 50_000, **CUT).encode()) <= 32 * 1024


def test_log_end_short_log_is_whole():
    assert log_end(b"one\ntwo") == "one\ntwo"


def test_log_end_long_log_is_its_last_whole_lines():
    lines = [f"line {number}" for number in range(100_000)]

    text = log_end("\n".join(lines).encode())

    assert 32 * 1024 - len("line 99999\n") <= len(text.encode()) <= 32 * 1024
    assert text.split("\n") == lines[-len(text.split("\n")) :]


@HOSTILE
def test_log_end_hostile_log_stays_within_its_size(data):
    text = log_end(data)

    assert 0 < len(text.encode()) <= 32 * 1024
    assert clean(text) == text


@given(st.binary(max_size=300), st.integers(1, 160))
def test_log_end_any_bytes_fit_into_any_size(data, size):
    text = log_end(data, size)

    assert len(text.encode()) <= size
    assert clean(text) == text


def test_log_end_shows_no_credential():
    data = b"2026-01-01T00:00:00.5Z export HF_TOKEN=hf_abcdefghijklmnopqrstuvwx\ntokens: 4096\n"
    assert log_end(data) == "2026-01-01T00:00:00.5Z export HF_TOKEN=(not kept)\ntokens: 4096\n"

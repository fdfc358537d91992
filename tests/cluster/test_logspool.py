from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.cluster.logspool import LogSpool, join_lines, split_lines

BASE = 1_767_225_600  # 2026-01-01T00:00:00Z


def stamped(offset_ms, text):
    moment = datetime.fromtimestamp(BASE + offset_ms // 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S").encode() + b".%03d000000Z %s\n" % (
        offset_ms % 1000,
        text,
    )


def spooled(*lines):
    spool = LogSpool()
    for line in lines:
        spool.append(line)
    return spool


def test_spool_of_nothing_asks_from_the_start():
    assert spooled().resume_point() == (None, 0)


def test_resume_asks_for_the_second_of_the_last_line_and_knows_what_must_come():
    lines = [stamped(ms, b"x") for ms in (0, 500, 999, 1000, 1000, 1999)]
    spool = spooled(*lines)
    assert spool.resume_point() == ("2026-01-01T00:00:01Z", sum(map(len, lines[:3])))
    assert spool.line_before(sum(map(len, lines[:3]))) == lines[2]


def test_resume_after_a_clock_that_was_set_back_expects_all_later_times_too():
    lines = [stamped(ms, b"x") for ms in (0, 9000, 9500, 3000, 3100)]
    assert spooled(*lines).resume_point() == ("2026-01-01T00:00:03Z", len(lines[0]))


def test_a_fragment_is_kept_but_is_not_a_line():
    spool = spooled(stamped(0, b"a"), b"2026-01-01T00:00:05.0Z RESULT 480")
    assert spool.resume_point() == ("2026-01-01T00:00:00Z", 0)
    assert spool.read().endswith(b"RESULT 480")
    assert spool.whole_bytes == len(stamped(0, b"a"))
    assert spool.replace_fragment(b"2026-01-01T00:00:05.0Z RESULT 480.1") is True
    assert spool.replace_fragment(b"2026-01-01T00:00:05.0Z RESULT 480.1") is False
    assert spool.read() == stamped(0, b"a") + b"2026-01-01T00:00:05.0Z RESULT 480.1"


def test_a_line_longer_than_any_block_is_found_again():
    huge = stamped(1000, b"x" * 300_000)
    lines = [stamped(0, b"a"), huge, stamped(1001, b"b" * 100_000)]
    assert spooled(*lines).resume_point() == ("2026-01-01T00:00:01Z", len(lines[0]))


@given(
    st.lists(
        st.tuples(st.integers(0, 4000), st.binary(max_size=3).map(lambda b: b.replace(b"\n", b"")))
    ),
    st.integers(1, 50),
)
def test_resume_point_is_where_the_last_seconds_lines_begin(entries, piece):
    lines = [stamped(ms, text) for ms, text in sorted(entries)]
    data = b"".join(lines)
    spool = spooled(*[data[at : at + piece] for at in range(0, len(data), piece)])
    since, start = spool.resume_point()
    if not lines:
        assert (since, start) == (None, 0)
        return
    last_s = max(entries)[0] // 1000
    assert since == datetime.fromtimestamp(BASE + last_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    earlier = [
        line for line, (ms, _) in zip(lines, sorted(entries), strict=True) if ms // 1000 < last_s
    ]
    assert start == len(b"".join(earlier))


def lines_of(text):
    return [bytes([letter]) for letter in text]


@pytest.mark.parametrize(
    ("known", "answer", "new", "is_short", "has_gap"),
    [
        (b"", b"abc", b"abc", False, False),
        (b"abc", b"abc", b"", False, False),
        (b"abc", b"abcde", b"de", False, False),
        (b"abc", b"ab", b"", True, False),
        (b"abc", b"", b"", True, False),
        (b"abc", b"bcd", b"d", False, False),
        (b"abc", b"cd", b"d", False, False),
        (b"abc", b"de", b"de", False, True),
        (b"xxxx", b"xxxxxx", b"xx", False, False),
        (b"xxxx", b"xxy", b"y", False, True),
        (b"xxxx", b"xx", b"", True, False),
        (b"abab", b"b", b"", False, True),
        (b"abc", b"b", b"", True, False),
        (b"abc", b"zcd", b"d", False, True),
    ],
)
def test_join_adds_what_is_new_and_never_doubts_too_little(known, answer, new, is_short, has_gap):
    joined = join_lines(lines_of(known), lines_of(answer))
    assert b"".join(joined.lines) == new
    assert (joined.is_short, joined.has_gap) == (is_short, has_gap)


def test_join_takes_the_later_half_of_a_long_line_for_what_it_is():
    before = b"2026-01-01T00:00:00.9Z AAAA2026-01-01T00:00:01.0Z BBBB\n"
    known = [b"2026-01-01T00:00:01.1Z c\n"]
    answer = [b"2026-01-01T00:00:01.0Z BBBB\n", known[0], b"2026-01-01T00:00:01.2Z d\n"]
    joined = join_lines(known, answer, before)
    assert joined.lines == (answer[2],)
    assert not joined.has_gap


@given(
    st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=12),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(0, 12),
)
def test_join_is_the_source_or_says_that_it_may_not_be(source, known_end, lost, kept_end):
    # The source in the second asked for; an answer that lost its first lines and its last ones.
    known, answer = source[:known_end], source[lost : max(kept_end, lost)]
    joined = join_lines(known, answer)
    merged = known + list(joined.lines)
    if not joined.is_short and not joined.has_gap and known:
        is_unlike = len(set(source)) == len(source)
        if is_unlike or not lost:
            assert merged == source[: max(known_end, kept_end)]


def test_split_keeps_what_is_no_newline():
    assert split_lines(b"a\rb\x0b\xe2\x80\xa8\nc") == [b"a\rb\x0b\xe2\x80\xa8\n", b"c"]
    assert split_lines(b"") == []

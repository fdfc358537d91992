"""Bytes to clean lines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cre.evidence.model import LogStream
from pytest_cre.measure.blocks import MAX_LINE_BYTES, BlockCutter, long_lines
from pytest_cre.measure.instants import (
    instant_ns,
    layout_reader,
    parse_rfc3339,
    rfc3339,
    split_kubelet_time,
)
from pytest_cre.measure.logtext import LogText, clean_line, join_records
from pytest_cre.measure.measurement import measure_streams

SECOND = 10**9
FIVE_PAST = 1_770_307_432 * SECOND  # 2026-02-05T16:03:52Z


class Everything:
    """A reader that wants every line and keeps it."""

    wants_all = True

    def __init__(self):
        self.lines = []

    def line(self, line):
        self.lines.append(line)
        return True

    def places(self, _block):
        return ()

    def row(self, _block, at):
        return at

    def fast(self, _block, at):
        return at, 0


def lines_of(*chunks):
    reader = Everything()
    text = LogText(reader)
    for chunk in chunks:
        text.feed(chunk)
    text.close()
    return reader.lines, text


def texts_of(*chunks):
    return [line.text for line in lines_of(*chunks)[0]]


@pytest.mark.parametrize(
    ("line", "utc"),
    [
        (b"2026-02-05T16:03:52.889599000Z text", "2026-02-05T16:03:52.889599Z"),
        (b"2026-02-05T09:03:52.889599000-07:00 text", "2026-02-05T16:03:52.889599Z"),
        (b"2026-02-05T16:03:52Z text", "2026-02-05T16:03:52Z"),
        (b"plain text", None),
        (b"2026-02-05T16:03:52Z", None),
        (b" 2026-02-05T16:03:52Z text", None),
        (b"2026-02-05T16:03:52 text", None),
        (b"2026-02-30T16:03:52Z text", None),
    ],
)
def test_kubelet_time_is_split_off_only_where_it_is_one(line, utc):
    at_ns, rest = split_kubelet_time(line)
    assert (None if at_ns is None else rfc3339(at_ns)) == utc
    assert rest == (b"text" if utc else line)


@pytest.mark.parametrize(
    "written",
    [
        b"2026-02-05T16:03:52Z",
        b"2026-02-05T16:03:52.0Z",
        b"2026-02-05T16:03:52,000Z",
        b"2026-02-05T16:03:52.000000000Z",
        b"2026-02-05 16:03:52",
        b"2026-02-05T17:03:52+01:00",
        b"2026-02-05T21:33:52+0530",
        b"2026-02-05T15:03:52.000-01:00",
    ],
)
def test_instant_in_any_dialect_is_the_same(written):
    assert instant_ns(written) == FIVE_PAST


@given(st.integers(min_value=0, max_value=4_000_000_000 * SECOND))
def test_instant_written_as_rfc3339_reads_back_to_the_nanosecond(t_ns):
    assert parse_rfc3339(rfc3339(t_ns)) == t_ns


@pytest.mark.parametrize(
    "text", ["2026-02-05", "16:03:52", "2026-02-05T16:03:52", "soon", "2026-13-05T16:03:52Z"]
)
def test_rfc3339_without_date_time_or_zone_is_refused(text):
    with pytest.raises(ValueError, match="RFC 3339"):
        parse_rfc3339(text)


@pytest.mark.parametrize(
    ("layout", "written"),
    [
        ("2006-01-02 15:04:05.999999", "2026-02-05 16:03:52"),
        ("2006-01-02 15:04:05.999999", "2026-02-05 16:03:52.000000"),
        ("2006-01-02 15:04:05,999", "2026-02-05 16:03:52,000"),
        ("2006-01-02T15:04:05.999999999Z07:00", "2026-02-05T17:03:52+01:00"),
        ("Jan _2 15:04:05 2006", "Feb  5 16:03:52 2026"),
        ("02/01/06 15:04:05", "05/02/26 16:03:52"),
    ],
)
def test_go_layout_reads_what_it_describes(layout, written):
    assert layout_reader(layout)(written) == FIVE_PAST
    assert layout_reader(layout)("elsewhere " + written) is None


@pytest.mark.parametrize(
    ("raw", "text", "tag"),
    [
        (b"plain", b"plain", b""),
        (b"[1,0]<stdout>:    8   2", b"    8   2", b"0"),
        (b"[1,13]<stderr>:x", b"x", b"13"),
        (b"[prterun-host-7@1,2]<stdout>:x", b"x", b"2"),
        (b" 3: x", b"x", b"3"),
        (b"3:", b"", b"3"),
        (b"launcher-0: [1,0]<stdout>:  8", b"  8", b"0"),
        (b"[rank12]: x", b"x", b""),
        (b"[rank0]:[titan] x", b"[titan] x", b""),
        (b"[default3]:  x", b" x", b""),
        (b"[pod/job-abc/trainer] x", b"x", b""),
        (b"(Trainer pid=77, ip=10.0.0.3) x", b"x", b""),
        (b"ain_fp8/12 x", b"x", b""),
        (b"I0222 00:27:10.324101 1251089 train.py:181] x", b"x", b""),
        (b"rccl-tests: Version x", b"rccl-tests: Version x", b""),
        (b"node-0:1295:1295 [0] NCCL INFO x", b"node-0:1295:1295 [0] NCCL INFO x", b""),
        (b"2026-02-05T16:03:52Z stdout F [1,0]<stdout>:  8", b"  8", b"0"),
        (b"      2026-02-05T16:03:52Z x", b"x", b""),
    ],
)
def test_prefixes_are_stripped_however_deep(raw, text, tag):
    line = clean_line(raw)
    assert (line.text, line.tag) == (text, tag)


def test_prefix_times_of_kubelet_and_application_are_kept_apart():
    line = clean_line(b"2026-02-05T16:03:52.5Z  [2026-02-05 08:03:52] iteration")
    assert (line.kubelet_ns, line.app_ns) == (
        FIVE_PAST + SECOND // 2,
        FIVE_PAST - 8 * 3600 * SECOND,
    )
    assert not line.is_app_zoned
    assert line.printed == b" [2026-02-05 08:03:52] iteration"


def test_bracketed_time_with_zone_that_lost_its_bracket_is_read():
    assert clean_line(b"2026-02-06T00:03:52+08:00] x").kubelet_ns == FIVE_PAST


def test_colour_codes_go_and_crlf_is_a_line_end():
    assert texts_of(b"\x1b[1;31mred\x1b[0m\r\n\x1b]0;title\x07next\n") == [b"red", b"next"]


def test_progress_bar_is_one_line_per_refresh_and_only_the_last_has_its_time():
    lines, _ = lines_of(b"2026-02-05T16:03:52Z one\rtwo\rthree\n")
    assert [line.text for line in lines] == [b"one", b"two", b"three"]
    assert [line.kubelet_ns for line in lines] == [None, None, FIVE_PAST]


def test_last_line_without_newline_is_read():
    assert texts_of(b"one\ntwo") == [b"one", b"two"]


def test_cri_parts_are_one_line():
    parts = (
        b"2026-02-05T16:03:52Z stdout P first \n"
        b"2026-02-05T16:03:52Z stderr F other\n"
        b"2026-02-05T16:03:53Z stdout P half, \n"
        b"2026-02-05T16:03:54Z stdout F rest\n"
    )
    assert texts_of(parts) == [b"other", b"first half, rest"]


@pytest.mark.parametrize("record", [16384, 8192])
def test_line_longer_than_the_runtimes_record_is_joined_again(record):
    written = bytes(range(97, 123)) * 1700
    pieces = [written[at : at + record] for at in range(0, len(written), record)]
    raw = b"".join(b"2026-02-05T16:03:52.000000001Z " + piece for piece in pieces)
    assert join_records(raw) == b"2026-02-05T16:03:52.000000001Z " + written


@pytest.mark.parametrize("length", [16383, 16384, 16385, 40000])
def test_needle_across_a_records_edge_is_found(length):
    from tests.measure.reading import measured

    line = "# Avg bus bandwidth    : 12.5".rjust(length, ".")
    pieces = [line[at : at + 16384] for at in range(0, length, 16384)]
    raw = "".join(f"2026-02-05T16:03:52.000000001Z {piece}" for piece in pieces)
    assert measured(raw.encode() + b"\n").bandwidth is not None


def test_line_over_the_cap_is_dropped_and_counted_and_no_other():
    long = b"x" * (MAX_LINE_BYTES + 1)
    lines, text = lines_of(b"a\n" + long + b"\nb\n" + b"y" * MAX_LINE_BYTES + b"\nc\n" + long * 40)
    assert [line.text[:1] for line in lines] == [b"a", b"b", b"y", b"c"]
    assert text.lines_too_long == 2


@given(st.lists(st.integers(0, 30), max_size=20), st.integers(1, 12))
def test_long_lines_are_found_exactly(lengths, limit):
    block = b"".join(b"x" * length + b"\n" for length in lengths)
    found = [end - start for start, end in long_lines(block, limit)]
    assert found == [length for length in lengths if length > limit]


def test_undecodable_bytes_are_counted_and_replaced():
    lines, text = lines_of(b"caf\xe9 \xe2\x82\n", "né".encode() + b"\n")
    assert text.undecodable_bytes == 3
    assert [line.text.decode() for line in lines] == ["caf� �", "né"]


@settings(max_examples=60)
@given(st.binary(max_size=400), st.lists(st.integers(1, 60), min_size=1, max_size=30))
def test_any_chunks_give_the_same_lines(data, lengths):
    chunks, at = [], 0
    for length in lengths:
        chunks.append(data[at : at + length])
        at += length
    chunks.append(data[at:])
    whole, text = lines_of(data)
    parts, by_parts = lines_of(*chunks)
    assert parts == whole
    assert by_parts.undecodable_bytes == text.undecodable_bytes


def test_held_back_bytes_stay_bounded_while_a_line_has_no_end():
    cutter = BlockCutter()
    for _ in range(200):
        assert cutter.feed(b"x" * 65536) == b""
        assert cutter._pending_bytes <= MAX_LINE_BYTES
    assert cutter.close() == b""
    assert cutter.lines_too_long == 1


@pytest.mark.parametrize("year", [1, 1500, 1677, 1969, 2200, 2263, 9998])
def test_step_with_a_year_out_of_range_is_read_without_a_time(year):
    line = (
        f" [{year:04d}-01-05 00:00:00] iteration        5/     100 | consumed samples:         320 "
        "| elapsed time per iteration (ms): 235.9 | throughput per GPU (TFLOP/s/GPU): 82.4 "
        "| lm loss: 1.0E+00 |\n"
    )

    measured = measure_streams([LogStream(pod="a", data=line.encode())])

    assert measured.training is not None
    assert [(step.step, step.time_ns) for step in measured.training.steps] == [(5, None)]

"""Rows of benchmark tables: what is one, and what its cells mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.measure.instants import parse_rfc3339
from pytest_cre.measure.logtext import clean_line
from pytest_cre.measure.rows import layout_of, parse_row
from pytest_cre.measure.tablelines import TableReader

NEWEST = b"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
OLD = b"#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error"
GATHER = b"#       size         count      type    time   algbw   busbw  error     time   algbw   busbw  error"
ROOTED = b"#       size         count      type    root     time   algbw   busbw  error     time   algbw   busbw  error"
ONE_HALF = b"#       size         count      type   redop    root     time   algbw   busbw #wrong"
STRIPPED = b"        size         count      type   redop    root  cputime   algbw   busbw  wrong  cputime   algbw   busbw  wrong"
ITERATIONS = NEWEST.replace(b"#wrong", b"#wrong p50 p90 p99 max")


def halves(text, header=NEWEST):
    parsed = parse_row(text, layout_of(header) if header else None)
    if parsed is None:
        return None
    return [
        half and (half.time_us, half.algbw_gbs, half.busbw_gbs, half.wrong)
        for half in (parsed.row.out_of_place, parsed.row.in_place)
    ]


@pytest.mark.parametrize("header", [NEWEST, None])
def test_row_of_the_newest_layout_gives_both_halves(header):
    text = b"   1048576        262144     float     sum      -1    70.00   14.97   28.07       7    71.50   14.66   27.50     N/A"
    assert halves(text, header) == [(70.0, 14.97, 28.07, 7), (71.5, 14.66, 27.5, None)]
    row = parse_row(text, None).row
    assert (row.size_bytes, row.count, row.dtype, row.redop, row.root) == (
        1048576,
        262144,
        "float",
        "sum",
        -1,
    )


@pytest.mark.parametrize(
    ("header", "lead", "redop", "root"),
    [
        (OLD, b"sum", "sum", None),
        (ROOTED, b"0", None, 0),
        (GATHER, b"", None, None),
        (None, b"sum", "sum", None),
        (None, b"3", None, 3),
        (None, b"", None, None),
    ],
)
def test_row_of_older_layouts_has_a_difference_instead_of_a_count(header, lead, redop, root):
    text = b"   1048576  262144  float  %s  70.00 14.97 28.07 5e-07  70.00 14.97 28.07 2e-07" % lead
    assert halves(text, header) == [(70.0, 14.97, 28.07, None)] * 2
    parsed = parse_row(text, layout_of(header) if header else None)
    assert (parsed.row.redop, parsed.row.root) == (redop, root)


@pytest.mark.parametrize(
    ("text", "header", "expected"),
    [
        (b"8 2 float sum -1 1.0 0.0 0.0 0", ONE_HALF, [(1.0, 0.0, 0.0, 0), None]),
        (b"8 2 float sum -1 1.0 0.0 0.0 0", None, [(1.0, 0.0, 0.0, 0), None]),
        (
            b"8 2 float sum -1 1.0 0.0 0.0 0 1.5 0.0 0.0 0",
            STRIPPED,
            [(1.0, 0.0, 0.0, 0), (1.5, 0.0, 0.0, 0)],
        ),
        (
            b"8 2 float sum -1 1.0 .5 .5 0 1 2 3 4 1.5 .5 .5 0 1 2 3 4",
            ITERATIONS,
            [(1.0, 0.5, 0.5, 0), (1.5, 0.5, 0.5, 0)],
        ),
        (
            b"8 2 float sum -1 1.0 .5 .5 0 1 2 3 4 1.5 .5 .5 0 1 2 3 4",
            None,
            [(1.0, 0.5, 0.5, 0), (1.5, 0.5, 0.5, 0)],
        ),
        (
            b"8 2 float sum -1 1.0 .5 .5 0 1.5 .5 .5 0 2026-01-05 08:00:01",
            NEWEST,
            [(1.0, 0.5, 0.5, 0), (1.5, 0.5, 0.5, 0)],
        ),
        (
            b"8 2 float sum -1 1.0 0.0 0.0 1.04858e+06 1.0 0.0 0.0 1e+06",
            NEWEST,
            [(1.0, 0.0, 0.0, 1048580), (1.0, 0.0, 0.0, 1000000)],
        ),
        (
            b"1 2 float sum -1 1558.51 688.95 0.00 0 0.18 6e+06 0.00 0",
            NEWEST,
            [(1558.51, 688.95, 0.0, 0), (0.18, 6e6, 0.0, 0)],
        ),
        (
            b"1 2 float sum -1 1.2e+06 688.95 1777718.25 0 1 1 1 0",
            NEWEST,
            [(1.2e6, 688.95, 1777718.25, 0), (1.0, 1.0, 1.0, 0)],
        ),
        (
            b"0 0 int8 none -1 7.1 0.0 0.0 N/A 7.2 0.0 0.0 N/A",
            NEWEST,
            [(7.1, 0.0, 0.0, None), (7.2, 0.0, 0.0, None)],
        ),
        (
            b"8 2 float sum -1 nan inf -inf 0 1.0 0.0 0.0 0",
            NEWEST,
            [(None, None, None, 0), (1.0, 0.0, 0.0, 0)],
        ),
        (
            b"68719476736 17179869184 f8e4m3 sum -1 9.0 1.0 1.0 0 9.0 1.0 1.0 0",
            NEWEST,
            [(9.0, 1.0, 1.0, 0)] * 2,
        ),
    ],
)
def test_row_cells_in_all_forms(text, header, expected):
    assert halves(text, header) == expected


def test_blank_half_is_told_by_its_place_under_the_header():
    in_place = b"        1024           256     float     sum      -1                                    11.50    0.09    0.17      0"
    out_of_place = (
        b"        1024           256     float     sum      -1    11.50    0.09    0.17      0"
    )
    assert halves(in_place) == [None, (11.5, 0.09, 0.17, 0)]
    assert halves(out_of_place) == [(11.5, 0.09, 0.17, 0), None]


@pytest.mark.parametrize(
    "text",
    [
        b"#   8 2 float sum -1 1.0 0.0 0.0 0 1.0 0.0 0.0 0",
        b"8 2 float sum -1 1.0 1.4.9 0.0 0 1.0 0.0 0.0 0",
        b"8 2 float sum -1 1.0 0.0 0.0 0 1.0 0.0 0.0",
        b"8 2 float sum -1 70.00 14.97 28.0",
        b"8 2 float sum -1 1.0 0.0 0.0 0 1.0 0.0 0.0 0 extra",
        b"8 2 float sum -1 1.0 0.0 0.0 0 1.0 0.0 0.0 N",
        b"8 2 float sum -1 1_0 0.0 0.0 0 1.0 0.0 0.0 0",
        b"8 2 float sum x 1.0 0.0 0.0 0 1.0 0.0 0.0 0",
        b"8 2 floaty sum -1 1.0 0.0 0.0 0 1.0 0.0 0.0 0",
        b"8.5 2 float sum -1 1.0 0.0 0.0 0 1.0 0.0 0.0 0",
        b"-8 2 float sum -1 1.0 0.0 0.0 0 1.0 0.0 0.0 0",
        b"9999999999999999999 2 float sum -1 1.0 0.0 0.0 0 1.0 0.0 0.0 0",
        b"8 2 float sum -1 1.0 0.0 0.0 1e999 1.0 0.0 0.0 0",
        b"node-0:1:1 [0] NCCL INFO Bootstrap: Using eth0",
        b"",
    ],
)
@pytest.mark.parametrize("header", [NEWEST, None])
def test_torn_commented_and_foreign_lines_are_no_rows(text, header):
    assert halves(text, header) is None


@pytest.mark.parametrize(
    "text",
    [
        b"# size of the count",
        b"#  Rank  0",
        b"size count",
        b"size count type time busbw algbw",
        b"time size count",
    ],
)
def test_only_a_header_is_a_header(text):
    assert layout_of(text) is None


NUMBERS = st.one_of(
    st.floats(0, 1e6).map("{:.2f}".format),
    st.sampled_from(
        ["0", "7", "0.0000", "1e3", "3.", ".5", "nan", "inf", "N/A", "x", "1.5.2", "-1.0"]
    ),
)
ROWS = st.tuples(
    st.sampled_from(["8", "0", "17179869184"]),
    st.integers(0, 99).map(str),
    st.sampled_from(["float", "int", "bf16", "f8e4m3", "floaty"]),
    st.sampled_from(["sum", "none", "Sum", "7"]),
    st.sampled_from(["-1", "0", "12", "x"]),
    *[NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["0", "5", "N/A", "2e+05", "0e+00", "?"])] * 2,
)


@given(ROWS, st.sampled_from([NEWEST, OLD, ITERATIONS, STRIPPED, None]), st.integers(1, 9))
def test_row_with_a_time_stamp_behind_it_is_the_same_row(cells, header, width):
    text = " ".join(cell.rjust(width) for cell in cells).encode()
    layout = layout_of(header) if header else None
    assert parse_row(text, layout) == parse_row(text + b" 2026-01-05 08:00:00", layout)


NUMBERS = "{size} 2 {dtype} sum -1 8.10 0.01 0.02 0 7.90 0.01 0.02 N/A"


@given(
    st.sampled_from(["  8", "\t8", "2026:", "1:"]),
    st.sampled_from(["float", "f8e4m3", "flo"]),
    st.sampled_from(["", " ", "\r", "é", " 2026-02-16 10:00:00", "x" * 600]),
    st.sampled_from(["2026-02-16T10:00:00.123456789Z ", "2026-02-30T10:00:00.123456789Z ", ""]),
)
def test_row_taken_in_one_go_is_the_row_of_the_clean_line(size, dtype, end, stamp):
    line = f"{stamp}{NUMBERS.format(size=size, dtype=dtype)}{end}".encode()
    slow, fast = TableReader(), TableReader()
    slow.line(clean_line(line))
    after = fast.row(b"before\n" + line + b"\nafter", 7)
    assert after in (7, 7 + len(line) + 1)
    assert fast.lines == (slow.lines if after > 7 else [])


def test_row_after_a_kubelets_time_is_taken_in_one_go():
    block = f"2026-02-16T10:00:00.000000001Z {NUMBERS.format(size=8, dtype='float')}\n".encode()
    reader = TableReader()
    assert reader.row(block, 0) == len(block)
    assert reader.lines[0].t_ns == parse_rfc3339("2026-02-16T10:00:00Z") + 1

"""Tables of benchmarks: their rows and what is wrong with them."""

import json

import pytest

from pytest_cre.catalog.logprofile import EventPattern, LogProfile
from pytest_cre.measure.bandwidth import size_statistics
from pytest_cre.measure.table import collective_name, version_text
from tests.measure.reading import measured
from tests.measure.tables import (
    busbw,
    row,
    sizes,
    stamped,
    table,
    text,
)


def read(lines, **keywords):
    return measured(text(lines), **keywords)


def one(measurement):
    (found,) = measurement.bandwidth.tables
    return found


def test_whole_table_is_complete_with_every_figure():
    measurement = read(table(ranks=16))
    found = one(measurement)
    assert (measurement.kind, measurement.profile) == ("bandwidth", "nccl-bandwidth")
    assert (measurement.status, measurement.reasons) == ("complete", ())
    assert (found.test, found.ranks, found.is_complete) == ("all_reduce", 16, True)
    assert (found.tool_version, found.nccl_version) == ("2.17.6", "2.28.7")
    assert [each.size_bytes for each in found.rows] == sizes()
    assert found.rows[-1].in_place.busbw_gbs == busbw(65536, in_place=True)
    assert measurement.bandwidth.max_out_of_place_gbs == busbw(65536)
    assert measurement.bandwidth.max_in_place_gbs == busbw(65536, in_place=True)
    assert (found.out_of_bounds.count, found.out_of_bounds.is_ok) == (0, True)
    assert measurement.bandwidth.failure is None


CHANGES = {
    "kubelet": stamped,
    "mpirun": lambda lines: [f"[1,0]<stdout>:{line}" for line in lines],
    "stacked": lambda lines: stamped([f"launcher-0: [1,0]<stdout>:{line}" for line in lines]),
    "srun": lambda lines: [f" 0: {line}" for line in lines],
    "torchrun": lambda lines: [f"[rank0]:{line}" for line in lines],
    "kubectl": lambda lines: [f"[pod/job-x/main] {line}" for line in stamped(lines)],
    "cri": lambda lines: [line.replace("Z ", "Z stdout F ", 1) for line in stamped(lines)],
    "crlf": lambda lines: [f"{line}\r" for line in lines],
    "colour": lambda lines: [f"\x1b[32m{line}\x1b[0m" for line in lines],
    "offset": lambda lines: [line.replace("Z ", "+05:30 ", 1) for line in stamped(lines)],
    "noise": lambda lines: [
        each for line in lines for each in (line, "n:1:1 [0] NCCL INFO Ring 0")
    ],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_prefixes_and_noise_change_no_number(change):
    lines = table()
    changed = read(change(lines))
    assert changed.bandwidth.tables == read(lines).bandwidth.tables
    assert changed.status == "complete"


@pytest.mark.parametrize("cut", range(1, 20))
def test_table_split_over_two_files_is_one_table(cut):
    lines = stamped(table())
    whole = read(lines)
    for parts in (
        (lines[:cut], lines[cut:]),
        (lines[cut:], lines[:cut]),
        (lines[::2], lines[1::2]),
    ):
        split = measured(*(text(part) for part in parts))
        assert split.bandwidth.tables == whole.bandwidth.tables
        assert split.status == "complete"


def test_table_split_without_times_is_put_together_in_the_order_given():
    lines = table()
    assert (
        measured(text(lines[:12]), text(lines[12:])).bandwidth.tables
        == read(lines).bandwidth.tables
    )


def test_wrong_elements_fail_a_table_that_is_otherwise_complete():
    lines = table(rows=[row(size, wrong=(96, 32) if size == 8192 else (0, 0)) for size in sizes()])
    lines = [line.replace("values : 0 OK", "values : 4 FAILED") for line in lines]
    measurement = read([*lines, " .. node-1 pid 700: Test failure common.cu:1189"])
    assert measurement.status == "failed"
    assert measurement.reasons == ("out-of-bounds", "wrong-values")
    assert one(measurement).is_complete
    assert measurement.bandwidth.failure == (
        "wrong values: 96 out-of-place and 32 in-place at 8192 B; 4 values out of bounds"
    )


def test_one_wrong_element_fails_whatever_the_footer_says():
    rows = [row(size, wrong=(0, 1 if size == 1024 else 0)) for size in sizes()]
    measurement = read(table(rows=rows))
    assert (measurement.status, measurement.reasons) == ("failed", ("wrong-values",))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (table()[:-3], "no-footer"),
        ([line for line in table() if "Avg bus" not in line], "no-footer"),
        (table(rows=[row(size) for size in sizes()[:-2]]), "sizes-missing"),
        (table(rows=[row(size) for size in sizes() if size != 8192]), "sizes-missing"),
        (table(rows=[row(size, scale=1.05) for size in sizes()]), "average-mismatch"),
        (
            table(
                rows=[row(size).replace("float", "float torn") for size in sizes()[:1]]
                + [row(size) for size in sizes()[1:]]
            ),
            "torn-rows",
        ),
        (
            table(rows=[row(size, wrong=(0,)) if size == 8192 else row(size) for size in sizes()]),
            "torn-rows",
        ),
        (table(rows=[row(size).replace("65.79", "  nan") for size in sizes()]), "not-a-number"),
        (table() + table(), "several-tables"),
        (table()[:8] + table()[2:], "several-tables"),
    ],
)
def test_incomplete_table_carries_its_reason(lines, reason):
    measurement = read(lines)
    assert reason in measurement.reasons
    assert measurement.status == "incomplete"
    assert reason == "several-tables" or not one(measurement).is_complete


def test_row_cut_by_the_end_of_the_file_is_no_row():
    lines = table()
    last = next(at for at, line in enumerate(lines) if line.startswith("       65536"))
    measurement = measured(text(lines[:last]) + lines[last][:-9].encode())
    assert [each.size_bytes for each in one(measurement).rows] == sizes()[:-1]
    assert {"no-footer", "torn-rows", "sizes-missing"} <= set(measurement.reasons)


def test_header_without_rows_is_no_data():
    measurement = read(table()[:10])
    assert (measurement.kind, measurement.status) == ("bandwidth", "no-data")
    assert "no-rows" in measurement.reasons


def test_footers_own_verdict_on_the_average_fails():
    measurement = read([line + "FAILED" if "Avg bus" in line else line for line in table()])
    assert (measurement.status, measurement.reasons) == ("failed", ("below-minimum",))


@pytest.mark.parametrize("planned", [3, 4, 5])
def test_fewer_ranks_than_planned_are_told(planned):
    measurement = read(table(ranks=4), ranks_planned=planned)
    assert ("fewer-ranks" in measurement.reasons) == (planned > 4)
    assert measurement.status == ("incomplete" if planned > 4 else "complete")


def test_tables_of_different_tests_in_one_log_are_apart():
    measurement = read(table() + table(start="all_gather_perf"))
    assert [each.test for each in measurement.bandwidth.tables] == ["all_reduce", "all_gather"]
    assert measurement.status == "complete"
    assert (
        "several-tables"
        in read(table() + table(start="all_gather_perf"), tables_expected=1).reasons
    )


def test_ranks_of_a_launcher_that_each_print_a_table_are_several():
    lines = [
        each for line in table() for each in (f"[1,0]<stdout>:{line}", f"[1,1]<stdout>:{line}")
    ]
    measurement = read(lines)
    assert len(measurement.bandwidth.tables) == 2
    assert all(each.is_complete for each in measurement.bandwidth.tables)
    assert measurement.reasons == ("several-tables",)


def test_cycles_are_samples_of_each_size():
    measurement = read(table(cycles=3))
    assert measurement.status == "complete"
    (first, *_), *_ = [size_statistics(one(measurement))]
    assert (first.size_bytes, first.half, first.samples) == (1024, "out_of_place", 3)
    assert first.min_gbs == first.median_gbs == first.max_gbs == busbw(1024)


def test_statistics_of_cycles_are_minimum_median_and_maximum():
    rows = [row(size, scale=scale) for scale in (1.0, 1.5, 1.1) for size in sizes(65536, 65536)]
    found = one(read(table(sizes(65536, 65536), rows=rows)))
    out_of_place = size_statistics(found)[0]
    assert (out_of_place.min_gbs, out_of_place.median_gbs, out_of_place.max_gbs) == (
        65.54,
        72.09,
        98.31,
    )


@pytest.mark.parametrize("verdict", ["validation: 0", "N/A"])
def test_unchecked_values_are_absent_not_zero(verdict):
    if verdict == "N/A":
        lines = table(rows=[row(size, wrong=("N/A", "N/A")) for size in sizes()])
    else:
        lines = [line.replace("validation: 1", verdict) for line in table()]
    found = one(read(lines))
    assert {half.wrong for each in found.rows for half in (each.out_of_place, each.in_place)} == {
        None
    }
    assert found.is_complete


def test_average_of_wide_numbers_is_held_to_what_is_printed():
    rows = [
        f"{size:12d} {size // 4:13d}     float     sum      -1     0.18   6e+06   6e+06      0     0.18   6e+06   6e+06      0"
        for size in sizes()
    ]
    lines = table(rows=rows)
    lines = [
        line if "Avg bus" not in line else "# Avg bus bandwidth    : 6.12345e+06 " for line in lines
    ]
    assert read(lines).reasons == ()


@pytest.mark.parametrize(
    ("factor", "redop", "root", "marks", "ranks", "expected"),
    [
        (1.875, "sum", -1, (0, 0), 16, "all_reduce"),
        (1.0, "sum", -1, (0, 0), 2, "all_reduce"),
        (0.5, "sum", -1, (0, 0), 2, "reduce_scatter"),
        (0.9375, "sum", -1, (0, 0), 16, "reduce_scatter"),
        (1.0, "sum", 0, (0, 0), 16, "reduce"),
        (1.0, "none", 0, (0, 0), 16, "broadcast"),
        (1.0, "none", -1, (0, "N/A"), 16, "sendrecv"),
        (0.9375, "none", -1, (0, "N/A"), 16, "alltoall"),
        (0.9375, "none", -1, (0, 0), 16, "all_gather"),
        (0.9375, "none", -1, ("N/A", "N/A"), 16, None),
    ],
)
def test_test_that_the_log_does_not_name_is_told_by_columns_and_factor(
    factor, redop, root, marks, ranks, expected
):
    cells = "".join(f" 100.00 {200:8.2f} {200 * factor:8.2f} {mark!s:>6}" for mark in marks)
    rows = [f"    65536   16384   float  {redop}  {root}{cells}"]
    lines = table([65536], start=None, ranks=ranks, rows=rows)
    assert one(read(lines)).test == expected


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("all_reduce_perf", "all_reduce"),
        ("all_reduce_perf_mpi", "all_reduce"),
        ("/opt/bin/sendrecv_perf", "sendrecv"),
        ("alltoall", "alltoall"),
        ("7", None),
    ],
)
def test_test_names_lose_the_programs_endings(printed, name):
    assert collective_name(printed) == name


@pytest.mark.parametrize(("code", "version"), [(22907, "2.29.7"), (2804, "2.8.4"), (None, None)])
def test_library_codes_are_versions(code, version):
    assert version_text(code) == version


@pytest.mark.parametrize(
    ("line", "nccl", "tool"),
    [
        ("NCCL version 2.27.7+cuda12.8", "2.27.7", None),
        ("node-0:1:1 [0] NCCL INFO NCCL version 2.21.5+cuda12.4", "2.21.5", None),
        ("RCCL version : 2.22.3-HEAD:abc", "2.22.3", None),
        ("rccl-tests: Version develop:9ab01", None, "develop:9ab01"),
    ],
)
def test_versions_of_library_and_tool_are_read(line, nccl, tool):
    found = one(read([line, *table(start=None)]))
    assert (found.nccl_version, found.tool_version) == (nccl, tool)


def report(**changes):
    half = {"time": 10.0, "alg_bw": 100.0, "bus_bw": 187.5, "nwrong": 0}
    document = {
        "version": "2.17.6",
        "args": ["./all_reduce_perf", "-b", "8"],
        "nccl_version": 22807,
        "config": {"devices": [{"hostname": "node-0"}] * 16},
        "results": [
            {
                "size": 1024,
                "count": "256",
                "type": "float",
                "redop": "sum",
                "root": " -1",
                "out_of_place": half,
                "in_place": half,
            }
        ],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 187.5, "okay": "unchecked"},
        "errors": [],
    }
    return {**document, **changes}


@pytest.mark.parametrize("form", ["file", "one line", "in a log"])
def test_json_report_gives_the_same_table(form):
    document = json.dumps(report(), indent=None if form == "one line" else 2)
    lines = document.split("\n")
    lines = stamped(["# Writing JSON output to x", *lines, "done"]) if form == "in a log" else lines
    measurement = read(lines)
    found = one(measurement)
    assert (measurement.status, found.test, found.ranks, found.nccl_version) == (
        "complete",
        "all_reduce",
        16,
        "2.28.7",
    )
    assert found.rows[0].in_place.busbw_gbs == 187.5
    assert (found.rows[0].root, found.rows[0].count) == (-1, 256)


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"out_of_bounds": {"count": 3, "okay": "false"}}, "failed", "out-of-bounds"),
        ({"average_bus_bandwidth": None}, "incomplete", "no-footer"),
        ({"results": []}, "no-data", "no-rows"),
        (
            {
                "results": [
                    {"size": 8, "out_of_place": {"time": "nan", "bus_bw": "nan", "nwrong": None}}
                ]
            },
            "incomplete",
            "not-a-number",
        ),
        (
            {
                "results": [
                    None,
                    "x",
                    {"size": -1},
                    {"size": 8, "in_place": {"bus_bw": 1.0, "nwrong": 2}},
                ]
            },
            "failed",
            "wrong-values",
        ),
    ],
)
def test_json_report_carries_its_reason(changes, status, reason):
    measurement = read([json.dumps(report(**changes))])
    assert (measurement.status, reason in measurement.reasons) == (status, True)


def test_json_report_that_is_cut_is_no_table():
    assert read(json.dumps(report(), indent=2).split("\n")[:-2]).status == "no-data"


def test_row_pattern_of_a_users_profile_reads_a_tool_of_ones_own():
    profile = LogProfile(
        name="own",
        patterns={
            "bandwidthResult": EventPattern(
                regex=r"^RESULT (?P<size>\d+) (?P<algBW>\S+) (?P<busBW>\S+)"
            ),
            "networkTransport": EventPattern(regex=r"fabric=(?P<transport>\w+)"),
        },
    )
    lines = stamped(["fabric=IB", "RESULT 1024 10.5 20.25", "RESULT 2048 x 1", "noise"])
    measurement = read(lines, profile=profile)
    assert measurement.profile == "own"
    assert [(each.size_bytes, each.out_of_place.busbw_gbs) for each in one(measurement).rows] == [
        (1024, 20.25)
    ]
    assert measurement.bandwidth.transport == ("IB",)


def test_lines_of_a_table_are_found_in_noise_of_any_amount():
    noise = ["node-0:12:34 [5] NCCL INFO Channel 03/0 : 5[5] -> 6[6] via P2P/CUMEM/read"] * 900
    spread = [each for line in table() for each in (*noise, line)]
    measurement = read(stamped(spread))
    assert measurement.bandwidth.tables == read(table()).bandwidth.tables
    assert measurement.dropped.unmatched_lines == len(spread) - (len(table()) - 4) - 1

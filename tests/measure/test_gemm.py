import pytest

from pytest_cre.catalog.logprofile import EventPattern, LogProfile
from pytest_cre.evidence.model import LogStream
from pytest_cre.measure.document import to_document
from pytest_cre.measure.measurement import measure_streams
from pytest_cre.report.measurement import measurement_text

START = "# gemm starting: gpus=2 samples=2 dtype=bfloat16 m=8192 n=8192 k=8192 torch=2.9.1"
END = "# gemm concluded: gpus=2 of 2 OK"


def row(gpu, sample, tflops, *, wrong=0, dtype="bfloat16", m=8192):
    return (
        f"gemm gpu={gpu} sample={sample} dtype={dtype} m={m} n=8192 k=8192 products=4910 "
        f"seconds=10.0031 tflops={tflops} wrong={wrong}"
    )


HEALTHY = [
    START,
    "# gemm gpu=0 uuid=GPU-0a bus=0000:1b:00 name=NVIDIA H100 80GB HBM3",
    "# gemm gpu=1 uuid=GPU-0b bus=0000:43:00 name=NVIDIA H100 80GB HBM3",
    row(0, 1, 700.5),
    row(1, 1, 690.25),
    row(1, 2, 660.0),
    row(0, 2, 698.0),
    END,
]


def measured(lines, **around):
    data = "".join(f"2026-11-30T10:00:00.{i:09}Z {line}\n" for i, line in enumerate(lines))
    stream = LogStream(pod="job-0", data=data.encode(), is_complete=True)
    return measure_streams([stream], **around)


def test_burn_in_is_recognised_and_complete():
    found = measured(HEALTHY, ranks_planned=2)

    assert (found.kind, found.profile, found.status, found.reasons) == (
        "gemm",
        "gemm",
        "complete",
        (),
    )
    assert [(row.pod, row.gpu, row.sample, row.tflops) for row in found.gemm.rows] == [
        ("job-0", 0, 1, 700.5),
        ("job-0", 1, 1, 690.25),
        ("job-0", 1, 2, 660.0),
        ("job-0", 0, 2, 698.0),
    ]
    assert found.gemm.tool_version == "2.9.1"


def test_figure_of_a_gpu_is_its_slowest_sample_and_spread_is_below_the_median():
    found = measured(HEALTHY).gemm

    assert [(gpu.gpu, gpu.uuid, gpu.samples, gpu.tflops, gpu.wrong) for gpu in found.gpus] == [
        (0, "GPU-0a", 2, 698.0, 0),
        (1, "GPU-0b", 2, 660.0, 0),
    ]
    assert found.min_tflops == 660.0
    assert found.spread == pytest.approx(1 - 660 / 679)  # the median of 698 and 660


def test_document_and_text_of_a_burn_in_tell_each_gpu():
    found = measured(HEALTHY)
    document = to_document(found)["gemm"]

    assert document["gpus_planned"] == 2
    assert document["rows"][0] == {
        "pod": "job-0",
        "gpu": 0,
        "sample": 1,
        "dtype": "bfloat16",
        "m": 8192,
        "n": 8192,
        "k": 8192,
        "products": 4910,
        "seconds": 10.0031,
        "tflops": 700.5,
        "wrong": 0,
    }
    assert document["gpus"][1]["tflops"] == 660.0
    assert "slowest GPU 660 TFLOP/s" in measurement_text(found)


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (lambda lines: lines[:-1], "incomplete", "no-footer"),
        # Each GPU has the same number of rows, so nothing else tells that the first ones are lost.
        (lambda lines: lines[5:], "incomplete", "no-header"),
        (lambda lines: [*lines[:6], END], "incomplete", "rows-missing"),
        (lambda lines: [line for line in lines if "gpu=1" not in line], "incomplete", "fewer-gpus"),
        (lambda lines: [*lines[:6], lines[6][:60], END], "incomplete", "torn-rows"),
        (lambda lines: [*lines[:6], row(0, 2, "nan"), END], "incomplete", "not-a-number"),
        (lambda lines: [*lines[:6], row(0, 2, 1, m=64), END], "incomplete", "mixed-shapes"),
        (lambda lines: [*lines, *lines], "incomplete", "several-tables"),
        (lambda _: [START, END], "no-data", "no-rows"),
        (lambda lines: [*lines[:6], row(0, 2, 698, wrong=3), END], "failed", "wrong-values"),
        (
            lambda lines: [*lines[:-1], "# gemm concluded: gpus=1 of 2 FAILED"],
            "failed",
            "failure",
        ),
    ],
)
def test_burn_in_with_a_part_missing_or_wrong_is_never_complete(change, status, reason):
    found = measured(change(HEALTHY), ranks_planned=2)

    assert found.status == status
    assert reason in found.reasons


def test_seven_of_eight_gpus_are_incomplete_even_where_the_tool_is_content():
    found = measured(HEALTHY, ranks_planned=8)

    assert (found.status, found.reasons) == ("incomplete", ("fewer-gpus",))


def test_problem_line_is_the_failure():
    lines = [
        START,
        "# gemm problem: 0 of 2 GPUs are visible",
        "# gemm concluded: gpus=0 of 2 FAILED",
    ]
    found = measured(lines)

    assert (found.status, found.gemm.failure) == ("failed", "0 of 2 GPUs are visible")


def test_rows_of_several_shapes_have_no_common_figure():
    found = measured([*HEALTHY[:-1], row(0, 3, 1, m=64), row(1, 3, 1, m=64), END]).gemm

    assert (found.min_tflops, found.spread) == (None, None)


def test_rows_of_another_tool_are_read_through_a_profile():
    profile = LogProfile(
        name="fryer",
        patterns={"gemmResult": EventPattern(regex=r"^GPU #(?P<gpu>\d+): (?P<tflops>[\d.]+) TF")},
    )
    found = measured(["GPU #0: 700 TF", "GPU #1: 650.5 TF"], profile=profile, ranks_planned=2)

    assert (found.kind, found.status, found.reasons) == ("gemm", "complete", ())
    assert [(gpu.gpu, gpu.tflops) for gpu in found.gemm.gpus] == [(0, 700.0), (1, 650.5)]

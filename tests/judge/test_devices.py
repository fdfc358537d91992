import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_cre.catalog.logprofile import EventPattern, LogProfile
from pytest_cre.evidence.model import JobFacts, LogStream
from pytest_cre.judge.figures import figure_unit, figures_of
from pytest_cre.judge.group import judge_group
from pytest_cre.measure.measurement import measure_group

DATA = Path(__file__).parents[1] / "data" / "dcgm"
GEMM = LogProfile(
    name="gemm", patterns={"gemmResult": EventPattern(regex=r"(?P<gpu>\d) (?P<tflops>\d) never")}
)
DCGM = LogProfile(
    name="dcgm", patterns={"diagnosticReport": EventPattern(regex='"DCGM (GPU )?Diagnostic"')}
)
FAILED = JobFacts(kind="Job", name="cre-job", uid="u-1", terminal="failed", reason="BackoffLimit")


def burn_in(*tflops, gpus=None, wrong=None):
    """The log of a burn-in of one sample per GPU."""
    lines = [f"# gemm starting: gpus={gpus or len(tflops)} samples=1 dtype=bfloat16 torch=2.9.1"]
    for gpu, value in enumerate(tflops):
        count = 3 if gpu == wrong else 0
        lines += [
            f"# gemm gpu={gpu} uuid=GPU-{gpu} name=NVIDIA H100 80GB HBM3",
            f"gemm gpu={gpu} sample=1 dtype=bfloat16 m=8192 n=8192 k=8192 products=10 "
            f"seconds=1 tflops={value} wrong={count}",
        ]
    state = "FAILED" if wrong is not None or (gpus or len(tflops)) > len(tflops) else "OK"
    return "\n".join(
        [*lines, f"# gemm concluded: gpus={len(tflops)} of {gpus or len(tflops)} {state}\n"]
    )


@pytest.fixture
def judged(evidence, pod, limit, entry):
    """Judge the log of one node's pod with limits on the metrics that are given."""

    def judge(text, *, measures, gpus, limits=(), job=None):
        group = evidence(
            nodes=("node-0",),
            gpus_per_node=gpus,
            ranks_planned=gpus,
            pods=(pod(0) if job is None else pod(0, phase="Failed", exit_code=1),),
            logs=(LogStream(pod="cre-job-0", data=text.encode(), is_complete=True),),
        )
        group = replace(group, job=job) if job is not None else group
        measurement = measure_group(group, GEMM if measures == "gemm" else DCGM)
        return judge_group(
            group,
            measurement,
            [limit(metric, operator, value, entry="*") for metric, operator, value in limits],
            missing="skip",
            entry=entry(measures=measures, test=None),
        )

    return judge


def gemm(judged, text, gpus=2, **changes):
    given = {"limits": [("gemm_tflops", ">=", 600), ("gemm_spread", "<=", 0.05)], **changes}
    return judged(text, measures="gemm", gpus=gpus, **given)


def dcgm(judged, text, gpus=2, **changes):
    given = {"limits": [("dcgm_failed_tests", "<", 1)], **changes}
    return judged(text, measures="diagnostics", gpus=gpus, **given)


def test_burn_in_above_its_limits_passes_with_the_figure_of_each_gpu(judged):
    verdict = gemm(judged, burn_in(700, 690))

    assert (verdict.code, verdict.reasons) == ("pass", ())
    assert {check.metric: check.measured for check in verdict.checks} == {
        "gemm_tflops": 690,
        "gemm_spread": pytest.approx(1 - 690 / 695),
    }
    assert verdict.figures["gemm_tflops.gpu-0"] == 700
    assert verdict.figures["gemm_tflops.gpu-1"] == 690
    assert verdict.figures["gpus_measured"] == 2
    assert figure_unit("gemm_tflops.gpu-1") == "TFLOP/s"


def test_burn_in_by_its_spread_alone_never_passes(judged):
    # Eight GPUs that are alike can all be slow.
    verdict = gemm(judged, burn_in(7, 7), limits=[("gemm_spread", "<=", 0.05)])

    assert verdict.code == "no-limit"
    assert [(check.metric, check.code) for check in verdict.checks] == [
        ("gemm_spread", "pass"),
        ("gemm_tflops", "no-limit"),
        ("gemm_spread", "no-limit"),
    ]


def test_burn_in_below_a_ceiling_alone_never_passes(judged):
    assert gemm(judged, burn_in(7, 7), limits=[("gemm_tflops", "<=", 2000)]).code == "no-limit"


def test_one_slow_gpu_fails_by_minimum_and_by_spread(judged):
    verdict = gemm(judged, burn_in(700, 700, 590), gpus=3)

    assert verdict.code == "fail"
    assert [reason.partition(" is ")[0] for reason in verdict.reasons] == [
        "gemm_tflops 590 TFLOP/s",
        "gemm_spread 0.1571",
    ]


def test_seven_of_eight_gpus_never_pass(judged):
    verdict = gemm(judged, burn_in(*[700] * 7), gpus=8)

    assert verdict.code == "inconclusive"
    assert verdict.reasons == ("7 GPUs were measured (GPU 0, 1, 2, 3, 4, 5, 6), 8 were planned",)


def test_wrong_values_fail_and_name_the_gpu(judged):
    verdict = gemm(judged, burn_in(700, 700, wrong=1), job=FAILED)

    assert verdict.code == "fail"
    assert verdict.reasons[0] == "wrong values: 3 on GPU 1 (GPU-1)"


def test_burn_in_without_a_limit_is_no_pass(judged):
    assert gemm(judged, burn_in(700, 700), limits=()).code == "no-limit"


def test_diagnostics_without_a_failed_test_pass(judged):
    verdict = dcgm(judged, (DATA / "level2-v4.json").read_text())

    assert (verdict.code, verdict.reasons, verdict.warnings) == ("pass", (), ())
    assert verdict.figures == {
        "dcgm_failed_tests": 0,
        "dcgm_passed_tests": 4,
        "dcgm_skipped_tests": 0,
        "gpus_measured": 2,
    }


@pytest.mark.parametrize("job", [None, FAILED])
@pytest.mark.parametrize("limits", [(), [("dcgm_failed_tests", "<", 1)]])
def test_failed_test_fails_with_name_gpu_and_words_whatever_the_limits(judged, job, limits):
    verdict = dcgm(judged, (DATA / "level3-v3.json").read_text(), job=job, limits=limits)

    assert verdict.code == "fail"
    assert verdict.reasons[0] == "DCGM test GPU Memory failed on GPU 1: A DBE occurred on GPU 1."
    assert "DCGM skipped Pulse Test on GPU 0, 1" in verdict.warnings


def test_diagnostics_of_fewer_gpus_than_planned_never_pass(judged):
    verdict = dcgm(judged, (DATA / "level2-v4.json").read_text(), gpus=8)

    assert verdict.code == "inconclusive"
    assert verdict.reasons == ("2 GPUs were measured (GPU 0, 1), 8 were planned",)


def test_host_engine_that_does_not_answer_is_unmet_not_a_failure_of_the_hardware(judged):
    text = "Error: unable to establish a connection to the specified host: nvidia-dcgm:5555\n"
    verdict = dcgm(judged, text, job=FAILED)

    assert verdict.code == "unmet"
    assert verdict.reasons == (
        "no DCGM host engine answered: unable to establish a connection to the specified host: "
        "nvidia-dcgm:5555",
    )


def test_many_failed_tests_are_named_in_part_and_counted(judged):
    document = json.loads((DATA / "level2-v4.json").read_text())
    result = {"entity_group": "GPU", "entity_id": 0, "status": "Fail"}
    document["DCGM Diagnostic"]["test_categories"][1]["tests"] += [
        {"name": f"test-{number}", "results": [result]} for number in range(6)
    ]
    verdict = dcgm(judged, json.dumps(document))

    assert verdict.reasons[:4] == tuple(f"DCGM test test-{n} failed on GPU 0" for n in range(4))
    assert verdict.reasons[4] == "2 more DCGM tests failed"


def test_log_of_another_kind_is_inconclusive(judged, entry):
    verdict = judged(burn_in(700, 700), measures="diagnostics", gpus=2)

    assert verdict.code == "inconclusive"


def test_figures_of_several_nodes_tell_whose_gpu(evidence):
    group = evidence(
        gpus_per_node=1,
        ranks_planned=2,
        logs=tuple(
            LogStream(pod=f"cre-job-{n}", data=burn_in(700 - n).encode(), is_complete=True)
            for n in range(2)
        ),
    )
    figures = figures_of(measure_group(group, GEMM))

    assert figures["gemm_tflops.pod-0.gpu-0"] == 700
    assert figures["gemm_tflops.pod-1.gpu-0"] == 699

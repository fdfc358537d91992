from dataclasses import replace

import pytest

from pytest_cre.evidence.model import JobFacts, LogStream, Problem
from pytest_cre.judge.group import judge_group
from pytest_cre.judge.limits import Unused
from pytest_cre.measure.model import Measurement, OutOfBounds

GIB = 1 << 30
FAILED_JOB = JobFacts(
    kind="Job",
    name="cre-job",
    uid="u-1",
    terminal="failed",
    reason="BackoffLimitExceeded",
    message="Job has reached the specified backoff limit",
)


def judged(evidence, measurement, *limits, missing="skip", entry=None):
    return judge_group(evidence, measurement, limits, missing=missing, entry=entry)


def test_judge_group_whole_evidence_and_limit_met_is_a_pass(evidence, bandwidth, limit):
    verdict = judged(evidence(), bandwidth(), limit(value=300.0))

    assert (verdict.code, verdict.reasons, verdict.warnings) == ("pass", (), ())
    assert (verdict.group, verdict.nodes) == ("group-0", ("node-0", "node-1"))


def test_judge_group_number_equal_to_its_limit_passes(evidence, bandwidth, training, limit):
    floor = judged(evidence(), bandwidth(), limit(value=340.5))
    ceiling = judged(evidence(), training(), limit("step_time", "<=", 1.25))

    assert floor.code == ceiling.code == "pass"
    assert floor.checks[0].margin == ceiling.checks[0].margin == 0.0


def test_judge_group_max_is_the_best_row_by_its_worse_half(evidence, bandwidth, limit):
    # 8 GiB: min(338.82, 337.35); 16 GiB: min(340.5, 341.5); the larger of the two is judged.
    check = judged(evidence(), bandwidth(), limit(value=341.0)).checks[0]

    assert check.measured == 340.5
    assert (check.code, check.statistic) == ("fail", "max")


def test_judge_group_missed_limit_fails_with_margin_and_words(evidence, bandwidth, limit):
    verdict = judged(evidence(), bandwidth(), limit(value=400.0, architecture="h100"))

    assert verdict.code == "fail"
    assert verdict.checks[0].margin == pytest.approx(340.5 / 400 - 1)
    assert verdict.reasons == ("busbw 340.5 GB/s is 14.9 % below the h100 limit 400 GB/s",)


def test_judge_group_missed_ceiling_has_a_negative_margin(evidence, training, limit):
    verdict = judged(evidence(), training(), limit("step_time", "<=", 1.0))

    assert verdict.checks[0].margin == pytest.approx(-0.25)
    assert verdict.reasons == ("step_time 1.25 s is 25.0 % above the h100 limit 1 s",)


def test_judge_group_at_size_judges_that_row_alone(evidence, bandwidth, limit):
    at = limit(statistic="at-size", size_bytes=8 * GIB, value=338.0)
    verdict = judged(evidence(), bandwidth(), at)

    assert verdict.checks[0].measured == 337.35
    assert verdict.code == "fail"
    assert verdict.reasons[0].startswith("busbw at 8 GiB 337.4 GB/s is 0.2 % below")


def test_judge_group_size_measured_twice_counts_with_its_slowest_row(
    evidence, bandwidth, table, row, limit
):
    rows = (row(GIB, 500.0, 500.0), row(GIB, 400.0, 450.0))
    verdict = judged(evidence(), bandwidth(table(rows=rows)), limit(value=401.0))

    assert verdict.checks[0].measured == 400.0


def test_judge_group_row_with_one_half_is_judged_by_it(evidence, bandwidth, table, row, limit):
    rows = (row(GIB, None, 410.0),)
    verdict = judged(evidence(), bandwidth(table(rows=rows)), limit(value=400.0))

    assert verdict.checks[0].measured == 410.0


def test_judge_group_size_that_was_not_measured_is_inconclusive(evidence, bandwidth, limit):
    at = limit(statistic="at-size", size_bytes=32 * GIB)
    verdict = judged(evidence(), bandwidth(), limit(), at)

    assert verdict.code == "inconclusive"
    assert verdict.reasons == ("busbw at 32 GiB was not measured",)


def test_judge_group_worst_check_decides(evidence, training, limit):
    limits = (limit("goodput", value=0.8), limit("tflops_per_gpu", value=500.0))
    verdict = judged(evidence(), training(), *limits)

    assert [check.code for check in verdict.checks] == ["pass", "fail"]
    assert verdict.code == "fail"
    assert verdict.reasons == (
        "tflops_per_gpu 400 TFLOP/s is 20.0 % below the h100 limit 500 TFLOP/s",
    )


def test_judge_group_no_limit_names_where_none_was_found(evidence, bandwidth):
    verdict = judged(evidence(), bandwidth())

    assert verdict.code == "no-limit"
    assert verdict.checks[0].measured == 340.5
    assert verdict.reasons == (
        "busbw 340.5 GB/s has no limit for architecture h100, fabric infiniband, "
        "scale full-scale, 2 nodes",
    )


def test_judge_group_no_limit_tells_which_limits_would_judge_and_what_they_lack(
    evidence, bandwidth, limit
):
    site = limit(tier="site", place="prof/architectures/zephyr9.yaml:16:5")
    at_1_gib = limit(statistic="at-size", size_bytes=1 << 30, place="limits.yaml:4:5")
    unused = Unused(other_sizes=(at_1_gib,), of_real_nodes=(site, limit(metric="goodput")))
    verdict = judge_group(evidence(), bandwidth(), (), missing="skip", unused=unused)

    assert verdict.reasons == (
        "busbw 340.5 GB/s has no limit for architecture h100, fabric infiniband, "
        "scale full-scale, 2 nodes; the limit at 1 GiB (limits.yaml:4:5) needs a row of that size, "
        "the largest is 17179869184 B; simulated nodes take those of their scenario; 1 limit of tier "
        "site (prof/architectures/zephyr9.yaml:16:5) would judge it with "
        "--cre-simulated-by published",
    )


def test_judge_group_log_without_a_table_names_the_pattern_and_how_to_try_it(
    evidence, bandwidth, entry
):
    empty = bandwidth(status="no-data", reasons=("no-data",))
    empty = replace(empty, bandwidth=replace(empty.bandwidth, tables=()))
    logs = (LogStream(pod="cre-job-0", data=b"a\nb\nc\n", completion_index=0, is_complete=True),)
    verdict = judged(evidence(logs=logs), empty, entry=entry(log_profile="zephyr-ring"))

    assert verdict.reasons == (
        "the log holds no table: bandwidthResult of zephyr-ring matched no line of 3; "
        "try `pytest-cre measure --profile zephyr-ring LOG`",
    )


@pytest.mark.parametrize(
    ("missing", "code"), [("skip", "no-limit"), ("record", "no-limit"), ("fail", "fail")]
)
def test_judge_group_missing_limit_follows_the_policy(evidence, training, missing, code):
    verdict = judged(evidence(), training(), missing=missing)

    assert verdict.code == code
    assert {check.metric for check in verdict.checks} == {"goodput", "step_time", "tflops_per_gpu"}


@pytest.mark.parametrize(
    "problem",
    [
        "pod-evicted",
        "pod-deleted",
        "node-unreachable",
        "vanished",
        "interrupted",
        "log-gap",
        "log-incomplete",
        "log-unavailable",
        "a-kind-not-known-yet",
    ],
)
def test_judge_group_incomplete_evidence_is_inconclusive_whatever_the_numbers(
    evidence, bandwidth, limit, problem
):
    given = evidence(problems=(Problem(code=problem, message="what happened", pod="cre-job-0"),))
    met, missed = limit(value=1.0), limit(value=9999.0)

    for wanted in (met, missed):
        verdict = judged(given, bandwidth(), wanted)
        assert verdict.code == "inconclusive"
        assert verdict.reasons == ("pod cre-job-0: what happened",)
        assert [check.code for check in verdict.checks] == ["inconclusive"]


@pytest.mark.parametrize("changes", [{"is_complete": False}, {"has_gap": True}])
def test_judge_group_log_that_nobody_reported_as_incomplete_is_inconclusive(
    evidence, bandwidth, limit, changes
):
    log = replace(LogStream(pod="cre-job-0", data=b"x", is_complete=True), **changes)
    verdict = judged(evidence(logs=(log,)), bandwidth(), limit())

    assert verdict.code == "inconclusive"
    assert "the log of pod cre-job-0" in verdict.reasons[0]


def test_judge_group_no_log_at_all_is_inconclusive(evidence, bandwidth, limit):
    assert judged(evidence(logs=()), bandwidth(), limit()).code == "inconclusive"


@pytest.mark.parametrize("job", [None, replace(FAILED_JOB, terminal="none")])
def test_judge_group_job_without_an_end_is_inconclusive(evidence, bandwidth, limit, job):
    assert judged(evidence(job=job), bandwidth(), limit()).code == "inconclusive"


def test_judge_group_api_error_is_an_error_above_everything(evidence, bandwidth, limit):
    problems = (
        Problem(code="pod-evicted", message="evicted"),
        Problem(code="api-error", message="GET /apis/batch/v1: 500"),
    )
    verdict = judged(evidence(problems=problems), bandwidth(), limit())

    assert (verdict.code, verdict.reasons) == ("error", ("GET /apis/batch/v1: 500",))


@pytest.mark.parametrize("code", ["unschedulable", "image-pull", "config-error", "start-timeout"])
def test_judge_group_that_never_ran_is_unmet_in_the_scheduler_s_words(evidence, pod, code):
    waiting = {"phase": "Pending", "started_ns": None, "finished_ns": None, "exit_code": None}
    given = evidence(
        job=replace(FAILED_JOB, terminal="none"),
        pods=(pod(0, **waiting), pod(1, **waiting)),
        logs=(),
        problems=(Problem(code=code, message="0/8 nodes are available: 8 Insufficient gpu."),),
    )
    verdict = judged(given, Measurement(kind="none", profile=None, status="no-data"))

    assert verdict.code == "unmet"
    assert verdict.reasons == ("0/8 nodes are available: 8 Insufficient gpu.",)


def test_judge_group_start_timeout_tells_the_scheduler_s_words_first(evidence, pod):
    problems = (
        Problem(code="start-timeout", message="not every pod ran within 60 s"),
        Problem(code="unschedulable", message="0/8 nodes are available", pod="cre-job-1"),
    )
    waiting = {"phase": "Pending", "started_ns": None, "exit_code": None}
    given = evidence(job=None, pods=(pod(1, **waiting),), logs=(), problems=problems)

    assert judged(given, Measurement(kind="none", profile=None, status="no-data")).reasons == (
        "pod cre-job-1: 0/8 nodes are available",
        "not every pod ran within 60 s",
    )


def test_judge_group_of_which_a_part_ran_is_inconclusive_not_unmet(evidence, pod):
    waiting = {"phase": "Pending", "started_ns": None, "exit_code": None}
    given = evidence(
        job=None,
        pods=(pod(0, phase="Running", exit_code=None), pod(1, **waiting)),
        logs=(),
        problems=(Problem(code="start-timeout", message="not every pod ran within 60 s"),),
    )

    no_data = Measurement(kind="none", profile=None, status="no-data")
    assert judged(given, no_data).code == "inconclusive"


def test_judge_group_run_timeout_is_a_fail_in_its_words(evidence, bandwidth, limit):
    given = evidence(
        job=replace(FAILED_JOB, terminal="none"),
        problems=(Problem(code="run-timeout", message="not done within 600 s"),),
    )
    verdict = judged(given, bandwidth(), limit())

    assert (verdict.code, verdict.reasons[0]) == ("fail", "not done within 600 s")


def test_judge_group_failed_job_names_first_failed_pod_node_and_exit_code(
    evidence, pod, bandwidth, limit
):
    given = evidence(
        job=FAILED_JOB,
        pods=(
            pod(0, phase="Failed", exit_code=137, finished_ns=90, reason="Error"),
            pod(1, phase="Failed", exit_code=1, finished_ns=80),
        ),
        problems=(Problem(code="job-failed", message="BackoffLimitExceeded"),),
    )
    verdict = judged(given, bandwidth(), limit())

    assert verdict.code == "fail"
    assert verdict.reasons == (
        "pod cre-job-1 on node node-1 ended with exit code 1; 2 of 2 pods failed",
        "Job cre-job failed (BackoffLimitExceeded: Job has reached the specified backoff limit)",
    )


def test_judge_group_killed_pod_names_the_signal(evidence, pod, bandwidth, limit):
    killed = pod(0, phase="Failed", exit_code=137, reason="OOMKilled")
    verdict = judged(evidence(job=FAILED_JOB, pods=(killed,)), bandwidth(), limit())

    assert "exit code 137 (SIGKILL) (OOMKilled)" in verdict.reasons[0]


def test_judge_group_failed_job_is_a_fail_even_with_a_log_gap(evidence, bandwidth, limit):
    given = evidence(job=FAILED_JOB, problems=(Problem(code="log-gap", message="4 s are missing"),))
    verdict = judged(given, bandwidth(), limit())

    assert verdict.code == "fail"
    assert verdict.reasons[-1] == "4 s are missing"


def test_judge_group_lost_node_explains_a_failed_job(evidence, bandwidth, limit):
    given = evidence(
        job=FAILED_JOB,
        problems=(
            Problem(code="job-failed", message="BackoffLimitExceeded"),
            Problem(code="node-unreachable", message="node node-1 is NotReady", node="node-1"),
        ),
    )

    verdict = judged(given, bandwidth(), limit())
    assert (verdict.code, verdict.reasons) == ("inconclusive", ("node node-1 is NotReady",))


def test_judge_group_job_that_succeeded_at_a_second_try_passes_with_a_warning(
    evidence, pod, training, limit
):
    crashed = pod(1, name="cre-job-1-x", phase="Failed", exit_code=1)
    given = evidence(
        pods=(pod(0), crashed, pod(1, attempt=1)),
        problems=(Problem(code="pod-failed", message="exit code 1", pod="cre-job-1-x"),),
    )
    verdict = judged(given, training(), limit("goodput", value=0.8))

    assert verdict.code == "pass"
    assert "succeeded after a failure: pod cre-job-1-x on node node-1" in verdict.warnings[0]


def test_judge_group_trouble_before_a_success_is_a_warning(evidence, bandwidth, limit):
    given = evidence(problems=(Problem(code="image-pull", message="pull was tried twice"),))
    verdict = judged(given, bandwidth(), limit())

    assert (verdict.code, verdict.warnings) == ("pass", ("pull was tried twice",))


def test_judge_group_with_a_restarted_pod_passes_with_a_warning(evidence, pod, bandwidth, limit):
    verdict = judged(evidence(pods=(pod(0, restart_count=1), pod(1))), bandwidth(), limit())

    assert verdict.code == "pass"
    assert len(verdict.warnings) == 1


def test_judge_group_wrong_values_fail_and_name_the_sizes(evidence, bandwidth, table, row, limit):
    rows = (row(1 << 20, 2.2, 2.13, wrong=(96, 32)), row(GIB, 338.82, 337.35))
    measurement = bandwidth(table(rows=rows), status="failed", reasons=("wrong-values",))
    verdict = judged(evidence(), measurement, limit(value=1.0))

    assert verdict.code == "fail"
    assert verdict.reasons == ("wrong values: 96 out-of-place and 32 in-place at 1 MiB",)
    assert [check.code for check in verdict.checks] == ["fail"]


def test_judge_group_wrong_values_fail_though_the_measurement_says_complete(
    evidence, bandwidth, table, row, limit
):
    rows = (row(GIB, 338.82, 337.35, wrong=(0, 1)),)

    assert judged(evidence(), bandwidth(table(rows=rows)), limit(value=1.0)).code == "fail"


def test_judge_group_footer_out_of_bounds_fails(evidence, bandwidth, table, limit):
    bad = table(out_of_bounds=OutOfBounds(count=4, is_ok=False))
    verdict = judged(evidence(), bandwidth(bad), limit(value=1.0))

    assert verdict.code == "fail"
    assert verdict.reasons == ("values out of bounds: the footer counts 4",)


def test_judge_group_wrong_values_are_told_before_the_exit_code_they_caused(
    evidence, pod, bandwidth, table, row, limit
):
    rows = (row(GIB, 338.82, 337.35, wrong=(7, 0)),)
    given = evidence(job=FAILED_JOB, pods=(pod(0, phase="Failed", exit_code=1),))
    verdict = judged(given, bandwidth(table(rows=rows), status="failed"), limit())

    assert [reason.split()[0] for reason in verdict.reasons] == ["wrong", "pod", "Job"]


def test_judge_group_failure_told_by_the_log_fails(evidence, bandwidth, limit):
    measurement = bandwidth(status="failed", failure="NCCL WARN remote process exited")
    verdict = judged(evidence(), measurement, limit(value=1.0))

    assert verdict.code == "fail"
    assert verdict.reasons == ("the log tells a failure: NCCL WARN remote process exited",)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_complete": False}, "the table is not complete"),
        ({"ranks": 8}, "8 ranks took part, 16 were planned"),
        ({"ranks": 32}, "32 ranks took part, 16 were planned"),
        ({"ranks": None}, "the log does not tell the number of ranks; 16 were planned"),
        ({"rows": ()}, "the table is not complete"),
        ({"test": "all_gather"}, "the table is of all_gather, the entry runs all_reduce"),
    ],
)
def test_judge_group_table_that_is_not_the_planned_one_is_inconclusive(
    evidence, bandwidth, table, limit, entry, changes, words
):
    verdict = judged(evidence(), bandwidth(table(**changes)), limit(value=1.0), entry=entry())

    assert verdict.code == "inconclusive"
    assert words in verdict.reasons


def test_judge_group_two_tables_are_inconclusive(evidence, bandwidth, table, limit):
    verdict = judged(evidence(), bandwidth(table(), table()), limit(value=1.0))

    assert verdict.code == "inconclusive"
    assert verdict.reasons == ("2 tables where one was expected",)


@pytest.mark.parametrize("status", ["incomplete", "complete"])
def test_judge_group_any_reason_of_the_measurement_keeps_it_from_passing(
    evidence, bandwidth, limit, status
):
    measurement = bandwidth(status=status, reasons=("sizes-missing",))
    verdict = judged(evidence(), measurement, limit(value=1.0))

    assert verdict.code == "inconclusive"
    assert verdict.reasons == ("the table ends before its largest size",)


def test_judge_group_reason_of_an_unknown_kind_keeps_it_from_passing_too(
    evidence, bandwidth, limit
):
    verdict = judged(evidence(), bandwidth(reasons=("not-known-yet",)), limit(value=1.0))

    assert (verdict.code, verdict.reasons) == ("inconclusive", ("not known yet",))


def test_judge_group_fewer_ranks_are_told_once_with_both_numbers(evidence, bandwidth, table, limit):
    measurement = bandwidth(table(ranks=8), status="incomplete", reasons=("fewer-ranks",))
    verdict = judged(evidence(), measurement, limit(value=1.0))

    assert verdict.reasons == ("8 ranks took part, 16 were planned",)


def test_judge_group_fallback_to_sockets_fails_whatever_its_number(evidence, bandwidth, limit):
    measurement = bandwidth(reasons=("socket-fallback",), transport=("Socket",))
    verdict = judged(evidence(), measurement, limit(value=1.0))

    assert verdict.code == "fail"
    assert verdict.reasons == (
        "NCCL found no fast network and fell back to sockets; it reached busbw 340.5 GB/s",
    )
    assert verdict.checks[0].measured == 340.5


def test_judge_group_fallback_of_one_node_names_the_network_that_was_expected(
    evidence, bandwidth, limit
):
    measurement = bandwidth(reasons=("socket-fallback",), transport=("Socket",))
    alone = evidence(nodes=("node-0",), ranks_planned=16, fabrics=("infiniband",))

    assert judged(alone, measurement, limit(value=1.0)).reasons == (
        "NCCL found no fast network and fell back to sockets where InfiniBand is expected; "
        "it reached busbw 340.5 GB/s",
    )


def test_judge_group_fallback_to_sockets_is_a_warning_where_a_limit_is_for_sockets(
    evidence, bandwidth, limit
):
    measurement = bandwidth(reasons=("socket-fallback",), transport=("Socket",))
    judged_by = limit(value=1.0, fabric="socket")

    verdict = judged(evidence(), measurement, judged_by)
    assert verdict.code == "pass"
    assert verdict.warnings == (
        "NCCL found no fast network and fell back to sockets; it reached busbw 340.5 GB/s",
    )
    assert judged(evidence(), measurement).code == "no-limit"


def test_judge_group_table_of_a_profile_s_own_pattern_passes_without_ranks(
    evidence, bandwidth, table, limit
):
    own = table(ranks=None, avg_busbw_gbs=None, out_of_bounds=None, test=None)
    verdict = judged(evidence(), bandwidth(own), limit(value=300.0))

    assert verdict.code == "pass"
    assert verdict.warnings == ("the log does not tell the number of ranks; 16 were planned",)


def test_judge_group_failed_job_is_told_by_pod_not_by_the_measurement(
    evidence, pod, bandwidth, limit
):
    given = evidence(job=FAILED_JOB, pods=(pod(0, phase="Failed", exit_code=1),))
    measurement = bandwidth(status="failed", reasons=("job-failed",))

    reasons = judged(given, measurement, limit()).reasons
    assert reasons[0] == "pod cre-job-0 on node node-0 ended with exit code 1"
    assert len(reasons) == 2


def test_judge_group_pod_that_the_run_blames_is_named_first(evidence, pod, bandwidth, limit):
    given = evidence(
        job=FAILED_JOB,
        pods=(
            pod(0, phase="Failed", exit_code=143, finished_ns=5),
            pod(1, phase="Failed", exit_code=137, finished_ns=9, reason="OOMKilled"),
        ),
        problems=(Problem(code="job-failed", message="pod cre-job-1 ...", pod="cre-job-1"),),
    )

    assert judged(given, bandwidth(), limit()).reasons[0].startswith("pod cre-job-1 on node")


def test_judge_group_no_data_is_inconclusive_and_has_no_checks(evidence, limit):
    nothing = Measurement(kind="none", profile="nccl-bandwidth", status="no-data")
    verdict = judged(evidence(), nothing, limit())

    assert verdict.code == "inconclusive"
    assert verdict.checks == ()
    assert verdict.reasons == ("nothing in the log was recognised",)


def test_judge_group_bandwidth_where_training_was_run_is_inconclusive(
    evidence, bandwidth, limit, entry
):
    with_entry = judged(
        evidence(), bandwidth(), limit(value=1.0), entry=entry(measures="training", test=None)
    )
    by_limit = judged(evidence(), bandwidth(), limit("goodput", value=0.5))

    assert with_entry.code == by_limit.code == "inconclusive"
    assert with_entry.reasons == ("the entry measures training, the log holds bandwidth",)
    assert by_limit.reasons == ("goodput was not measured",)


@pytest.mark.parametrize("flag", ["no_timestamps", "log_gap", "exit_unknown", "start_unseen"])
@pytest.mark.parametrize("floor", [0.5, 0.99])
def test_judge_group_doubtful_ratio_is_inconclusive_on_both_sides_of_its_limit(
    evidence, training, limit, flag, floor
):
    verdict = judged(evidence(), training(flags=(flag,)), limit("goodput", value=floor))

    assert verdict.code == "inconclusive"
    assert verdict.reasons[0].startswith("goodput 0.9 is ")
    assert ", but " in verdict.reasons[0]


def test_judge_group_doubt_of_the_ratio_leaves_the_step_time_alone(evidence, training, limit):
    verdict = judged(evidence(), training(flags=("exit_unknown",)), limit("step_time", "<=", 2.0))

    assert verdict.code == "pass"
    assert verdict.warnings == ("the time of an exit is not known",)


def test_judge_group_harmless_flag_is_a_warning(evidence, training, limit):
    given = training(flags=("resume_inferred",))
    verdict = judged(evidence(), given, limit("goodput", value=0.5))

    assert verdict.code == "pass"
    assert len(verdict.warnings) == 1


def test_judge_group_ratio_that_is_not_defined_is_inconclusive(evidence, training, limit):
    for goodput in (None, float("nan")):
        verdict = judged(evidence(), training(goodput=goodput), limit("goodput", value=0.5))
        assert verdict.code == "inconclusive"
        assert "goodput" not in verdict.figures


def test_judge_group_values_without_validation_are_a_warning(
    evidence, bandwidth, table, row, limit
):
    rows = (row(GIB, 338.82, 337.35, wrong=(None, None)),)
    verdict = judged(evidence(), bandwidth(table(rows=rows)), limit(value=300.0))

    assert verdict.code == "pass"
    assert verdict.warnings == ("values were not checked: the benchmark ran without validation",)


def test_judge_group_figures_hold_every_number_by_name(evidence, bandwidth, training):
    of_bandwidth = judged(evidence(), bandwidth()).figures
    of_training = judged(evidence(), training()).figures

    assert of_bandwidth == {
        "busbw_max": 340.5,
        "busbw_max_out_of_place": 340.5,
        "busbw_max_in_place": 341.5,
        "busbw_average": 339.5425,
        "ranks": 16,
        "wrong_elements": 0,
    }
    assert of_training["goodput"] == 0.9
    assert of_training["ledger_rework"] == 100.0
    assert "throughput_fraction" not in of_training

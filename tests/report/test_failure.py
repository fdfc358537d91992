from dataclasses import replace

import pytest

from pytest_cre.evidence.model import LogStream
from pytest_cre.report.failure import failure_text, first_line, skip_text

BELOW = "busbw 371.4 GB/s is 7.2 % below the gb200 limit 400 GB/s"


def test_failure_text_first_line_names_metric_measured_limit_margin_and_entry(check, group, item):
    verdict = item(group(check(371.4), reasons=[BELOW]))

    assert failure_text(verdict).splitlines()[0] == (
        "busbw 371.4 GB/s is 7.2 % below the gb200 limit 400 GB/s "
        "(communication/nccl-all-reduce, 8 nodes: node-0..7)"
    )


def test_failure_text_one_group_of_several_is_named_with_its_node(check, group, item):
    verdict = item(
        group(check(478.9), name="group-0", nodes=1),
        group(check(371.4), name="group-1", nodes=1, reasons=[BELOW]),
        scale="intra-node",
    )

    assert first_line(verdict) == (
        f"{BELOW} (communication/nccl-all-reduce@intra-node, group-1 of 2 groups, node node-0)"
    )


def test_failure_text_worst_group_speaks_first(check, group, item):
    slow = group(check(371.4), name="group-0", reasons=["slow"])
    slower = group(check(200.0), name="group-1", reasons=["slower"])

    assert failure_text(item(slow, slower)).startswith("slower (")


def test_failure_text_verdict_outranks_margin(check, group, item):
    met = group(check(401.0), name="group-0")
    wrong = group(check(500.0, code="fail"), name="group-1", reasons=["wrong values"])

    assert failure_text(item(met, wrong)).startswith("wrong values (")


def test_failure_text_inconclusive_says_so_at_once(check, group, item):
    doubtful = group(check(500.0, code="inconclusive"), reasons=["the log of pod a-0 has a gap"])

    assert failure_text(item(doubtful)).startswith(
        "INCONCLUSIVE: the log of pod a-0 has a gap (communication/nccl-all-reduce, "
        "8 nodes: node-0..7)\n"
    )


def test_failure_text_item_s_own_reason_is_told_when_no_group_caused_it(check, group, item):
    verdict = item(group(check(500.0)), code="error", reasons=["objects were left behind: Job/x"])

    assert failure_text(verdict).startswith("ERROR: objects were left behind: Job/x (")


def test_failure_text_table_holds_each_check_with_signed_margin(check, group, item):
    verdict = item(
        group(
            check(371.4),
            check(1.3, metric="step_time", operator="<=", value=1.0, statistic=""),
            reasons=[BELOW, "step_time 1.3 s is 30.0 % above the gb200 limit 1 s"],
        )
    )
    lines = failure_text(verdict).splitlines()

    assert "group-0      8  busbw (GB/s)      371.4  >= 400   -7.2 %  fail" in lines
    assert "group-0      8  step_time (s)       1.3    <= 1  -30.0 %  fail" in lines
    assert max(map(len, lines[1:])) <= 100


def test_failure_text_tells_source_of_the_limit_and_place_of_the_logs(check, group, item, evidence):
    verdict = item(group(check(371.4), reasons=[BELOW]))
    text = failure_text(verdict, evidence=evidence(verdict), logs_place="evidence/all-reduce")

    assert (
        "limit of busbw: published, a publication (2026-09-01), "
        "profiles/architectures/gb200.yaml:12:5"
    ) in text.splitlines()
    assert "logs: evidence/all-reduce" in text.splitlines()
    assert text.endswith("log of pod cre-job-0 on node node-0:\nfirst line\nlast line\n")


def test_failure_text_shows_the_log_of_the_failed_pod(check, group, item, evidence, failed_pod):
    verdict = item(group(code="fail", reasons=["pod cre-job-3 ended with exit code 1"]))
    seen = evidence(verdict, pods=(failed_pod,))
    others = [
        LogStream(pod="cre-job-3", data=data, completion_index=3, restart_count=count)
        for count, data in ((1, b"NCCL WARN\n"), (0, b"before its restart\n"), (2, b""))
    ]
    with_log = replace(seen.groups[0], logs=(*seen.groups[0].logs, *others))

    text = failure_text(verdict, evidence=replace(seen, groups=(with_log,)))
    assert text.endswith("log of pod cre-job-3 on node node-3, exit code 1:\nNCCL WARN\n")


def test_failure_text_hostile_log_and_reasons_stay_short_and_clean(check, group, item, evidence):
    verdict = item(group(check(371.4), reasons=["\x1b[2J" + "x" * 10_000_000]))
    text = failure_text(verdict, evidence=evidence(verdict, data=b"\x1b[2J\x00\xff" * 2_000_000))

    assert len(text.encode()) < 40_000
    assert not any(char < " " and char != "\n" for char in text)


def test_failure_text_many_groups_are_counted_not_listed(check, group, item):
    groups = [
        group(check(399.0 - number / 2), name=f"group-{number}", nodes=1, reasons=["slow"])
        for number in range(500)
    ]
    text = failure_text(item(*groups, scale="intra-node"))

    assert "\ngroup-499 " in text
    assert "\ngroup-0 " not in text
    assert "480 more groups are not shown, none of them worse" in text
    assert "480 more reasons" in text
    assert len(text.splitlines()) < 60


def test_failure_text_simulated_nodes_say_so(check, group, item, evidence):
    verdict = item(group(check(371.4), reasons=[BELOW]))
    text = failure_text(verdict, evidence=evidence(verdict, is_simulated=True))

    assert "simulated hardware, not a certification" in text.splitlines()


@pytest.mark.parametrize("code", ["no-limit", "unmet", "not-applicable"])
def test_skip_text_is_one_line_with_reason_and_entry(group, item, code):
    verdict = item(group(code=code, reasons=["0/8 nodes are available:\n8 Insufficient gpu."]))

    assert skip_text(verdict) == (
        "0/8 nodes are available: 8 Insufficient gpu. "
        "(communication/nccl-all-reduce, 8 nodes: node-0..7)"
    )


def rows(count):
    return b"".join(b"row %d\n" % number for number in range(count))


def test_failure_text_of_a_missed_limit_shows_the_last_thirty_rows_of_the_log(
    check, group, item, evidence
):
    verdict = item(group(check(371.4), reasons=[BELOW]))
    text = failure_text(verdict, evidence=evidence(verdict, data=rows(100)))

    told = text.partition("log of pod cre-job-0 on node node-0:\n")[2].splitlines()
    assert told == ["[... 70 lines left out ...]", *(f"row {number}" for number in range(70, 100))]


@pytest.mark.parametrize("code", ["fail", "inconclusive"])
def test_failure_text_of_what_failed_otherwise_shows_the_log_as_it_is_kept(
    check, group, item, evidence, code
):
    verdict = item(group(check(500.0, code=code), reasons=["wrong values"]))
    text = failure_text(verdict, evidence=evidence(verdict, data=rows(100)))

    assert "\nrow 0\n" in text


def test_failure_text_of_a_failed_pod_shows_its_log_whole_beside_a_missed_limit(
    check, group, item, evidence, failed_pod
):
    verdict = item(group(check(371.4), reasons=["pod cre-job-3 ended with exit code 1"]))
    seen = evidence(verdict, pods=(failed_pod,)).groups[0]
    log = LogStream(pod="cre-job-3", data=rows(100), completion_index=3)
    whole = replace(evidence(verdict), groups=(replace(seen, logs=(log,)),))

    assert "\nrow 0\n" in failure_text(verdict, evidence=whole)


def test_failure_text_limit_without_a_date_is_told_without_one(check, group, item):
    given = check(371.4)
    undated = replace(given, limit=replace(given.limit, date="-"))
    lines = failure_text(item(group(undated, reasons=[BELOW]))).splitlines()

    assert (
        "limit of busbw: published, a publication, profiles/architectures/gb200.yaml:12:5" in lines
    )

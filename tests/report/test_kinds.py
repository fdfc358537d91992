"""Which workload kind an item ran as, and why, wherever a run is told."""

import json
from dataclasses import replace

from pytest_cre.evidence.model import LogStream
from pytest_cre.report.failurelog import failure_log
from pytest_cre.report.json import render_json
from pytest_cre.report.junit import case_properties
from pytest_cre.report.model import ItemReport, item_report
from pytest_cre.report.terminal import summary_lines


def of_kind(reported, verdict, kind, reason):
    return replace(reported(verdict), kind=kind, kind_reason=reason)


def test_summary_tells_each_kind_and_its_reason_in_one_line(check, group, item, reported, run):
    first = "the entry's first kind"
    items = [
        of_kind(reported, item(group(check(412.0)), entry=f"communication/{name}"), kind, reason)
        for name, kind, reason in (
            ("a", "indexedJob", "the cluster does not serve mpiJob"),
            ("b", "trainJob", first),
            ("c", "trainJob", first),
        )
    ]
    lines = [line for line, _ in summary_lines(run(*items))]
    assert "as indexedJob, the cluster does not serve mpiJob: a" in lines
    assert "as trainJob, the entry's first kind: b, c" in lines


def test_summary_of_a_run_that_planned_nothing_names_no_kind(check, group, item, reported, run):
    lines = [line for line, _ in summary_lines(run(reported(item(group(check(412.0))))))]
    assert not any(line.startswith("as ") for line in lines)


def test_item_takes_its_kind_from_the_evidence_and_survives_json(check, group, item, evidence, run):
    verdict = item(group(check(412.0)))
    seen = replace(evidence(verdict), kind="mpiJob", kind_reason="asked for")
    told = item_report(verdict, seen, node_id="x", duration_s=1.0)
    assert (told.kind, told.kind_reason) == ("mpiJob", "asked for")
    assert ItemReport.from_dict(told.to_dict()) == told
    (in_file,) = json.loads(render_json(run(told)))["items"]
    assert (in_file["kind"], in_file["kind_reason"]) == ("mpiJob", "asked for")


def test_kind_is_a_property_of_the_case(check, group, item, reported):
    verdict = item(group(check(412.0)))
    properties = dict(case_properties(of_kind(reported, verdict, "jobSet", "asked for")))
    assert properties["cre.kind"] == "jobSet"
    assert properties["cre.kind.reason"] == "asked for"
    assert "cre.kind" not in dict(case_properties(reported(verdict)))


def test_failure_log_is_the_launchers_before_any_workers(check, group, item, evidence):
    (seen,) = evidence(item(group(check(1.0)))).groups
    logs = (
        LogStream(pod="w-0", data=b"sshd\n", completion_index=0, role="worker"),
        LogStream(pod="l", data=b"table\n", role="launcher"),
    )
    assert failure_log(replace(seen, logs=logs)).pod == "l"

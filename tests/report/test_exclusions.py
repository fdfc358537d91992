"""Nodes that only some items could not use."""

from dataclasses import replace

from pytest_cre.evidence.model import Exclusion
from pytest_cre.report.model import RunReport, with_result

BUSY = Exclusion(node="n2", reason="busy", message="8 of 8 GPUs in use by team-a/train-0")


def test_node_that_one_item_could_not_use_is_excluded_from_the_run(
    run, reported, item, group, check
):
    passed = replace(reported(item(group(check(412.0)))), excluded=(BUSY,))
    report = with_result(replace(run(passed), excluded=()))

    assert report.result == "INCOMPLETE"
    (excluded,) = report.excluded
    assert (excluded.node, excluded.reason) == ("n2", "busy")
    assert excluded.message == f"{BUSY.message} (when {passed.title} was to run)"
    assert with_result(report) == report


def test_exclusion_that_the_run_knows_is_told_once_in_its_words(run, reported, item, group, check):
    passed = replace(reported(item(group(check(412.0)))), excluded=(BUSY,))
    report = with_result(replace(run(passed), excluded=(BUSY,)))

    assert report.excluded == (BUSY,)


def test_accepted_reason_counts_for_an_item_too(run, reported, item, group, check):
    passed = replace(reported(item(group(check(412.0)))), excluded=(BUSY,))
    given = replace(run(passed), excluded=(), settings={"accepted_exclusions": ["busy"]})

    assert with_result(given).result == "PASSED"


def test_item_keeps_its_exclusions_across_processes_but_not_in_the_report(
    run, reported, item, group, check
):
    passed = replace(reported(item(group(check(412.0)))), excluded=(BUSY,))
    report = with_result(run(passed))

    assert type(passed).from_dict(passed.to_dict()) == passed
    assert "excluded" not in report.to_dict()["items"][0]
    assert RunReport.from_dict(report.to_dict()) == report

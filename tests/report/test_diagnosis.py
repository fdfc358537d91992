"""What reports say of a diagnosis: stages, nodes, and nobody blamed who was only there."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from pytest_cre.evidence.model import DiagnosisSetup, WorkflowEvidence
from pytest_cre.judge.diagnose import judge_diagnosis
from pytest_cre.plan.diagnose.course import Diagnosis
from pytest_cre.report.failure import failure_text, skip_text
from pytest_cre.report.json import render_json
from pytest_cre.report.junit import case_properties
from pytest_cre.report.metrics_junit import render_metrics_junit
from pytest_cre.report.model import RunReport
from pytest_cre.report.terminal import summary_lines

SETUP = DiagnosisSetup(domains={f"r{rack}n{slot}": f"r{rack}" for rack in (1, 2) for slot in range(4)})  # fmt: skip
TITLE = "communication/nccl-all-reduce@diagnose"


@pytest.fixture
def diagnosed(group, check):
    """The verdict of a diagnosis whose tests come to what `outcome` says of them."""

    def build(outcome):
        diagnosis, outcomes, groups = Diagnosis(SETUP), {}, []
        while diagnosis.conclusion is None:
            for trial in diagnosis.current:
                found = outcomes[trial.name] = outcome(trial)
                code = {"passed": "pass", "unjudged": "no-limit"}.get(found, "fail")
                verdict = group(check(code=code), name=trial.name, code=code, reasons=["busbw is low"])  # fmt: skip
                groups.append(replace(verdict, nodes=trial.nodes))
                diagnosis.tell(trial.name, found)
        evidence = WorkflowEvidence(
            entry="communication/nccl-all-reduce", scale="diagnose", groups=(), diagnosis=SETUP
        )
        return judge_diagnosis(evidence, groups, outcomes, missing="skip")

    return build


@pytest.fixture
def slow(diagnosed):
    return diagnosed(lambda trial: "slow" if "r2n1" in trial.nodes else "passed")


def test_report_read_again_is_the_same(run, reported, slow):
    report = run(reported(slow), result="FAILED")
    again = RunReport.from_dict(json.loads(render_json(report)))

    assert render_json(again) == render_json(report)
    assert again.items[0].diagnosis == report.items[0].diagnosis


def test_only_the_faulty_node_is_among_the_failed_ones(reported, slow):
    item = reported(slow)

    assert [(each.node, each.reason) for each in item.failed_nodes] == [
        ("r2n1", "ThresholdViolation")
    ]
    assert item.diagnosis.count("healthy") == 7
    assert {each.group for each in item.diagnosis.tests} == {each.group for each in item.groups}


def test_summary_shows_stages_and_the_faulty_node(run, reported, slow):
    lines = [line for line, _ in summary_lines(run(reported(slow), result="FAILED"))]

    assert f"{TITLE}: 8 nodes: 7 healthy, 1 faulty, 0 infrastructure, 0 undetermined" in lines
    assert "stage            tests  passed  failed  without limit  no result" in lines
    assert "intra-screening      2       1       1              0          0" in lines
    assert any(line.startswith(f"{TITLE}: fail: faulty: r2n1 (workload") for line in lines)
    assert not any("busbw is low" in line for line in lines)


def test_failure_text_begins_with_the_faulty_node_and_holds_the_stages(slow):
    text = failure_text(slow)

    assert text.startswith("faulty: r2n1 (workload: fails whatever joins it to others; tests ")
    assert text.partition("\n")[0].endswith(f"({TITLE}, 8 nodes)")
    assert "intra-screening      2       1       1" in text


def test_diagnosis_without_limits_is_told_in_one_line(diagnosed):
    text = skip_text(diagnosed(lambda _: "unjudged"))

    assert text == (
        "no limit applies to 3 tests: intra-screening-r1-0, intra-screening-r1-1, "
        f"inter-screening-r2-0 ({TITLE}, 8 nodes)"
    )


def test_properties_name_states_and_nodes(reported, slow):
    found = dict(case_properties(reported(slow)))

    assert (found["cre.diagnosis.healthy"], found["cre.diagnosis.faulty"]) == ("7", "1")
    assert found["cre.diagnosis.tests"] == str(len(slow.groups))
    assert found["cre.diagnosis.node.r2n1"].startswith("faulty (workload: ")
    assert "cre.failed_node.r2n1.thresholdviolation" in found
    assert found["cre.reason"].startswith("faulty: r2n1")


@pytest.mark.parametrize(("outcome", "healthy"), [("passed", None), ("unjudged", "skipped")])
def test_metric_file_has_a_case_for_each_node(run, reported, diagnosed, outcome, healthy):
    item = reported(diagnosed(lambda _: outcome))
    cases = {each.get("name"): each for each in ET.fromstring(render_metrics_junit(run(item))).iter("testcase")}  # fmt: skip
    kinds = [each.tag for each in cases["node r1n0"] if each.tag != "system-out"]

    assert {f"node {name}" for name in SETUP.domains} <= set(cases)
    assert kinds == ([healthy] if healthy else [])


def test_metric_file_fails_the_case_of_the_faulty_node_alone(run, reported, slow):
    root = ET.fromstring(render_metrics_junit(run(reported(slow), result="FAILED")))
    failed = {
        each.get("name")
        for each in root.iter("testcase")
        if each.find("failure") is not None and str(each.get("name")).startswith("node ")
    }

    assert failed == {"node r2n1"}

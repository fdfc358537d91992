import json
from dataclasses import replace

import pytest
from junitparser import JUnitXml
from lxml import etree

from pytest_cre.report.json import render_json
from pytest_cre.report.metrics_junit import render_metrics_junit
from pytest_cre.report.model import ItemReport


def cases_of(report):
    """The cases by class and name, as lxml reads them."""
    root = etree.fromstring(render_metrics_junit(report).encode())
    return {(case.get("classname"), case.get("name")): case for case in root.iter("testcase")}


def facts_of(case):
    """The `name=value` lines of a case's text."""
    lines = (case.findtext("system-out") or "").splitlines()
    return dict(line.partition("=")[::2] for line in lines if "=" in line.split(" ")[0])


def test_render_metrics_junit_one_suite_per_entry_and_one_case_per_metric_and_group(mixed_run):
    root = etree.fromstring(render_metrics_junit(mixed_run).encode())

    assert [suite.get("name") for suite in root] == [
        "communication/nccl-all-reduce",
        "communication/nccl-alltoall",
        "communication/nccl-broadcast",
        "training/nemotron5-8b",
        "training/other",
        "certification",
    ]
    assert [(case.get("classname"), case.get("name")) for case in root[0].iter("testcase")] == [
        ("communication.nccl-all-reduce", "busbw group-0"),
        ("communication.nccl-all-reduce", "busbw.ceiling group-0"),
        ("communication.nccl-all-reduce", "busbw.at-8589934592 group-0"),
        ("communication.nccl-all-reduce", "recorded"),
        ("communication.nccl-all-reduce.intra-node", "busbw group-0"),
        ("communication.nccl-all-reduce.intra-node", "busbw group-1"),
    ]


def test_render_metrics_junit_codes_become_failures_errors_and_skips(mixed_run):
    cases = cases_of(mixed_run)
    kinds = {
        key: [child.tag for child in case if not child.tag.startswith("system-")]
        for key, case in cases.items()
    }

    assert kinds["communication.nccl-all-reduce", "busbw group-0"] == []
    assert kinds["communication.nccl-all-reduce.intra-node", "busbw group-1"] == ["failure"]
    assert kinds["training.nemotron5-8b", "goodput group-0"] == []
    assert kinds["training.nemotron5-8b", "step_time group-0"] == ["failure"]
    assert kinds["communication.nccl-alltoall", "verdict group-0"] == ["skipped"]
    assert kinds["training.other", "verdict"] == ["error"]
    assert kinds["communication.nccl-broadcast", "busbw group-0"] == ["failure"]
    assert kinds["certification", "excluded node-9"] == ["skipped"]
    doubtful = cases["communication.nccl-broadcast", "busbw group-0"].find("failure")
    assert doubtful.get("message") == "INCONCLUSIVE: the log of pod cre-job-0 has a gap"
    assert doubtful.text.startswith("INCONCLUSIVE: the log of pod cre-job-0 has a gap\nvalue=380.0")


def test_render_metrics_junit_failure_text_holds_the_numbers_itself(mixed_run):
    case = cases_of(mixed_run)["communication.nccl-all-reduce.intra-node", "busbw group-1"]
    failure = case.find("failure")

    assert failure.get("message") == "busbw 371.4 GB/s is 13.8 % below the gb200 limit 431 GB/s"
    for line in ("value=371.4", "unit=GB/s", "op=>=", "limit=431.0", "group=group-1"):
        assert line in failure.text.splitlines()


def test_render_metrics_junit_junitparser_counts_what_the_file_says(mixed_run):
    found = JUnitXml.fromstring(render_metrics_junit(mixed_run).encode())
    cases = [case for suite in found for case in suite]

    assert found.tests == len(cases) == 12
    assert (found.failures, found.errors, found.skipped) == (3, 1, 2)
    assert sum(suite.failures for suite in found) == 3


def test_render_metrics_junit_every_case_has_a_time_and_no_suite_says_disabled(mixed_run):
    root = etree.fromstring(render_metrics_junit(mixed_run).encode())

    assert all(float(case.get("time")) >= 0 for case in root.iter("testcase"))
    assert not root.xpath("//@disabled")
    # A group's 12.125 s stand at its first case only, though it has three.
    first = list(root[0].iter("testcase"))[:3]
    assert [float(case.get("time")) for case in first] == [12.125, 0, 0]


def test_render_metrics_junit_two_tests_of_one_entry_have_names_of_their_own(
    check, group, item, reported, run
):
    verdict = item(group(check(412.0)))
    one, other = (
        reported(verdict, node_id=f"{name}.py::test_x") for name in ("suites/a", "mine/b")
    )

    assert set(cases_of(run(one, other))) == {
        ("communication.nccl-all-reduce", "busbw group-0 (suites/a.py::test_x)"),
        ("communication.nccl-all-reduce", "busbw group-0 (mine/b.py::test_x)"),
    }
    assert cases_of(run(one)).keys() == {("communication.nccl-all-reduce", "busbw group-0")}


def test_render_metrics_junit_order_of_items_does_not_matter(mixed_run):
    turned = replace(mixed_run, items=tuple(reversed(mixed_run.items)))

    assert render_metrics_junit(turned) == render_metrics_junit(mixed_run)


def test_render_metrics_junit_incomplete_run_is_an_error_for_every_reader(
    check, group, item, reported, run
):
    report = run(reported(item(group(check(412.0)))), result="INCOMPLETE", planned=("a", "b"))
    cases = cases_of(report)

    assert cases["certification", "result"].find("error") is not None
    assert cases["certification", "not run: b"].find("error") is not None
    assert ("certification", "result") not in cases_of(replace(report, result="PASSED"))


def test_render_metrics_junit_objects_left_behind_are_an_error(check, group, item, reported, run):
    report = run(reported(item(group(check(412.0)))), result="ERROR", leftovers=("Job/gpu/cre-1",))
    error = cases_of(report)["certification", "clean-up"].find("error")

    assert error.get("message") == "1 objects were left behind in the cluster"
    assert "Job/gpu/cre-1" in error.text


def test_render_metrics_junit_run_of_nothing_is_an_error(run):
    assert cases_of(run(result="INCOMPLETE"))["certification", "result"].find("error") is not None


def test_render_metrics_junit_failed_assertion_of_a_test_is_a_case_of_its_own(
    check, group, item, reported, run
):
    passed = reported(item(group(check(412.0))))
    failed = replace(passed, code="fail", text="AssertionError: too hot\nmore")
    case = cases_of(run(failed, result="FAILED"))["communication.nccl-all-reduce", "verdict"]

    assert case.find("failure").get("message") == "AssertionError: too hot"


def test_render_metrics_junit_simulated_hardware_is_said_in_each_case_and_suite(
    check, group, item, reported, run
):
    report = run(reported(item(group(check(412.0))), is_simulated=True), is_simulated=True)
    text = render_metrics_junit(report)

    assert text.count("simulated hardware, not a certification") == 2
    assert 'name="cre.simulated" value="true"' in text


HOSTILE = "\x00\x1b[31m\ud800\udfff\ufffe ]]> <![CDATA[ & \" ' \u202e \r\n" + "x" * 10_000_000


@pytest.mark.parametrize("code", ["pass", "fail", "unmet", "error", "inconclusive"])
def test_render_metrics_junit_hostile_text_survives(check, group, item, reported, run, code):
    from pytest_cre.evidence.model import Exclusion

    verdict = item(
        group(code=code, reasons=[HOSTILE] * 3, warnings=(HOSTILE,), name=HOSTILE[:40]),
        code=code,
        reasons=[HOSTILE],
    )
    given = reported(
        verdict, node_id=HOSTILE[:60], text=HOSTILE, recorded=[(HOSTILE, 1.0, HOSTILE)]
    )
    excluded = (Exclusion(node=HOSTILE[:50], reason="tainted", message=HOSTILE),)
    text = render_metrics_junit(run(given, excluded=excluded))

    assert len(text) < 300_000
    etree.fromstring(text.encode())  # libxml2, as GitLab uses it, refuses huge text nodes
    assert JUnitXml.fromstring(text.encode()).tests == 3


def numbers_of_json(report):
    """(node id, group, metric, field) -> number."""
    found = {}
    for item in json.loads(render_json(report))["items"]:
        plain = ItemReport.from_dict(item)
        for group in plain.groups:
            for check in group.checks:
                for field, value in (
                    ("value", check.measured),
                    ("limit", check.limit),
                    ("margin", check.margin),
                ):
                    found[item["node_id"], group.group, check.key, field] = value
    return found


def test_three_files_agree_number_by_number(mixed_run, pytester):
    in_json = numbers_of_json(mixed_run)
    in_metrics = {}
    for (_, name), case in cases_of(mixed_run).items():
        facts = facts_of(case)
        key, _, group = name.partition(" ")
        for field in ("value", "limit", "margin"):
            if field in facts:
                in_metrics[facts["test"], group, key, field] = float(facts[field])
    pytester.makefile(".json", items=json.dumps([item.to_dict() for item in mixed_run.items]))
    pytester.makeconftest(
        """
        import json
        from pytest_cre.report.junit import case_properties
        from pytest_cre.report.model import ItemReport

        def pytest_collection_modifyitems(items):
            with open("items.json") as file:
                reports = [ItemReport.from_dict(each) for each in json.load(file)]
            for item, report in zip(items, reports, strict=True):
                item.user_properties.extend(case_properties(report))
        """
    )
    count = len(mixed_run.items)
    pytester.makepyfile(
        f"import pytest\n@pytest.mark.parametrize('i', range({count}))\ndef test_it(i): pass"
    )
    pytester.runpytest_inprocess("-p", "no:cre", "--junitxml=r.xml", "-o", "junit_family=xunit1")
    in_pytest = {}
    root = etree.parse(pytester.path / "r.xml").getroot()
    for item, case in zip(mixed_run.items, root.iter("testcase"), strict=True):
        properties = {each.get("name"): each.get("value") for each in case.iter("property")}
        several = properties.get("cre.groups") != "1"
        for group in item.groups:
            for check in group.checks:
                suffix = f".{group.group}" if several else ""
                for field in ("value", "limit", "margin"):
                    name = f"cre.metric.{check.key}{suffix}.{field}"
                    in_pytest[item.node_id, group.group, check.key, field] = float(properties[name])

    assert len(in_json) == 8 * 3
    assert in_json == in_metrics == in_pytest

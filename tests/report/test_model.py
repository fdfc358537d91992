import json
from dataclasses import replace

import pytest

from pytest_cre.report.json import render_json
from pytest_cre.report.model import ItemReport, PlatformReport, RunReport


def test_item_report_crosses_a_process_as_plain_json_types(mixed_run):
    for item in mixed_run.items:
        crossed = json.loads(json.dumps(item.to_dict()))

        assert ItemReport.from_dict(crossed) == item


def test_run_report_crosses_a_file_with_platform_and_warnings(mixed_run):
    platform = PlatformReport(name="aws", told_by="--cre-platform", settings="onprem")
    report = replace(mixed_run, platform=platform, warnings=("a", "b"))

    assert RunReport.from_dict(json.loads(render_json(report))) == report


def test_run_report_of_a_file_without_a_platform_has_none(mixed_run):
    told = json.loads(render_json(mixed_run))
    del told["platform"], told["warnings"]

    assert RunReport.from_dict(told) == mixed_run


def test_item_report_takes_clocks_nodes_and_gpus_from_the_evidence(mixed_run):
    item = mixed_run.items[0]

    assert (len(item.nodes), item.gpus, item.architecture) == (8, 64, "gb200")
    assert (item.groups[0].queue_s, item.groups[0].run_s) == (0.25, 12.125)
    assert item.options == {"maxBytes": "16G"}
    assert item.recorded["site.power"].value == 812.5


@pytest.mark.parametrize(
    ("metric", "operator", "size_bytes", "key"),
    [
        ("busbw", ">=", None, "busbw"),
        ("busbw", "<=", None, "busbw.ceiling"),
        ("busbw", ">=", 8589934592, "busbw.at-8589934592"),
        ("step_time", "<=", None, "step_time"),
        ("step_time", ">=", None, "step_time.floor"),
    ],
)
def test_check_report_key_does_not_depend_on_its_neighbours(
    check, group, item, reported, metric, operator, size_bytes, key
):
    statistic = "at-size" if size_bytes else "max"
    given = check(1.0, metric=metric, operator=operator, value=1.0)
    given = replace(given, limit=replace(given.limit, size_bytes=size_bytes, statistic=statistic))

    assert reported(item(group(given))).groups[0].checks[0].key == key


def test_run_report_names_planned_items_that_never_ran(mixed_run):
    planned = (*mixed_run.planned, "suites/test_x.py::test_bandwidth[zz]")
    report = replace(mixed_run, planned=planned)

    assert report.not_run == ("suites/test_x.py::test_bandwidth[zz]",)
    assert report.to_dict()["not_run"] == ["suites/test_x.py::test_bandwidth[zz]"]


def test_render_json_same_report_gives_the_same_bytes(mixed_run):
    other_order = json.loads(render_json(mixed_run))

    assert render_json(mixed_run) == render_json(mixed_run)
    assert list(other_order) == sorted(other_order)
    assert other_order["schema"] == "cre.report/1"
    assert other_order["exit_code"] == 1


def test_render_json_keeps_every_digit_and_has_no_nan(check, group, item, reported, run):
    value = 371.40000000000003
    figures = {"busbw_max": float("nan")}
    text = render_json(run(reported(item(group(check(value), figures=figures)))))
    found = json.loads(text, parse_constant=pytest.fail)

    group_found = found["items"][0]["groups"][0]
    assert group_found["checks"][0]["measured"] == value
    assert group_found["figures"]["busbw_max"]["value"] is None


def test_render_json_hostile_text_is_readable_utf8(group, item, reported, run):
    verdict = item(group(code="fail", reasons=["\ud800\x00 \x1b[31m世界"]))
    text = render_json(run(reported(verdict)))

    text.encode("utf-8")
    assert json.loads(text)["items"][0]["groups"][0]["reasons"] == ["\\ud800\\x00 世界"]


def test_render_json_simulated_run_says_so(mixed_run):
    simulated = json.loads(render_json(replace(mixed_run, is_simulated=True)))

    assert simulated["note"] == "simulated hardware, not a certification"
    assert json.loads(render_json(mixed_run))["note"] is None

import re
from dataclasses import replace

import pytest

from pytest_cre.report.junit import case_properties, suite_properties
from pytest_cre.report.model import PlatformReport


def test_case_properties_hold_entry_scale_verdict_and_size(mixed_run):
    found = dict(case_properties(mixed_run.items[0]))

    assert found["cre.entry"] == "communication/nccl-all-reduce"
    assert found["cre.scale"] == "full-scale"
    assert found["cre.verdict"] == "pass"
    assert found["cre.architecture"] == "gb200"
    assert (found["cre.nodes"], found["cre.gpus"], found["cre.simulated"]) == ("8", "64", "false")
    assert (found["cre.queue_s"], found["cre.run_s"]) == ("0.25", "12.125")
    assert found["cre.option.maxbytes"] == "16G"


def test_case_properties_metric_has_value_and_unit_apart(mixed_run):
    found = dict(case_properties(mixed_run.items[0]))

    assert found["cre.metric.busbw.value"] == "412.37"
    assert found["cre.metric.busbw.unit"] == "GB/s"
    assert found["cre.metric.busbw.op"] == ">="
    assert found["cre.metric.busbw.limit"] == "400.0"
    assert float(found["cre.metric.busbw.margin"]) == 412.37 / 400 - 1
    assert found["cre.metric.busbw.ceiling.limit"] == "900.0"
    assert found["cre.metric.busbw.at-8589934592.value"] == "408.1"
    assert found["cre.recorded.site.power.value"] == "812.5"
    assert found["cre.recorded.site.power.unit"] == "kW"
    assert found["cre.figure.busbw_average.value"] == "101.123456789"


def test_case_properties_several_groups_give_the_worst_one_and_each_by_its_name(mixed_run):
    found = dict(case_properties(mixed_run.items[1]))

    assert (found["cre.group"], found["cre.groups"]) == ("group-1", "2")
    assert found["cre.metric.busbw.value"] == "371.4"
    assert found["cre.metric.busbw.group-0.value"] == "478.9"
    assert found["cre.metric.busbw.group-1.value"] == "371.4"
    assert found["cre.group.group-0.verdict"] == "pass"


def test_case_properties_absent_numbers_have_no_property(mixed_run, check, group, item, reported):
    unmet = dict(case_properties(mixed_run.items[3]))
    nan = reported(item(group(check(412.0), figures={"busbw_max": float("nan")})))

    assert not any(name.startswith("cre.metric.") for name in unmet)
    assert unmet["cre.reason"].startswith("0/8 nodes are available")
    assert "cre.figure.busbw_max.value" not in dict(case_properties(nan))


def test_case_properties_every_name_is_unique_and_of_the_allowed_alphabet(mixed_run):
    for item in mixed_run.items:
        names = [name for name, _ in case_properties(item)]

        assert len(names) == len(set(names))
        assert all(re.fullmatch(r"[a-z0-9._-]+", name) for name in names)


def test_case_properties_hostile_names_and_values_are_made_safe(check, group, item, reported):
    verdict = item(group(check(371.4), name="GROUP \x00", reasons=["\x1b[2J\ud800"]))
    found = case_properties(reported(verdict, recorded=[("a\x00 ]]>", 1.0, "\x07")]))

    assert dict(found)["cre.recorded.a.value"] == "1.0"
    assert dict(found)["cre.recorded.a.unit"] == "\\x07"
    assert dict(found)["cre.reason"] == "\\ud800"


def test_case_properties_are_plain_text_that_crosses_xdist(mixed_run):
    for name, value in case_properties(mixed_run.items[0]):
        assert type(name) is str
        assert type(value) is str


def test_suite_properties_tell_run_cluster_and_excluded_nodes(mixed_run):
    found = dict(suite_properties(mixed_run))

    assert found["cre.schema"] == "cre.report/1"
    assert found["cre.result"] == "ERROR"
    assert found["cre.server.version"] == "v1.37.2"
    assert found["cre.excluded.node-9"] == "cordoned: spec.unschedulable"
    assert "cre.note" not in found


@pytest.mark.parametrize("is_simulated", [True, False])
def test_suite_properties_simulated_run_carries_the_note(mixed_run, is_simulated):
    found = dict(suite_properties(replace(mixed_run, is_simulated=is_simulated)))

    assert found["cre.simulated"] == str(is_simulated).lower()
    assert found.get("cre.note") == (
        "simulated hardware, not a certification" if is_simulated else None
    )


def test_suite_properties_hold_platform_and_warnings(run):
    platform = PlatformReport(name="aws", told_by="providerID aws://", settings="onprem")
    found = dict(suite_properties(replace(run(), platform=platform, warnings=("a", "b"))))

    assert found["cre.platform"] == "aws"
    assert found["cre.platform.told_by"] == "providerID aws://"
    assert found["cre.platform.settings"] == "onprem"
    assert (found["cre.warning.0"], found["cre.warning.1"]) == ("a", "b")
    assert "cre.platform" not in dict(suite_properties(run()))

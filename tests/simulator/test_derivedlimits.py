import json
from fnmatch import fnmatchcase

import pytest

from pytest_cre.simulator.scenario import load_scenario


def limits_of(name):
    return json.loads(load_scenario(str(name)).limits_json)


def value(limits, entry, **where):
    """Return the only limit's value on an entry's pattern, with exactly these conditions."""
    conditions = ("scale", "minNodes", "maxNodes", "fabric")
    (found,) = [
        each["value"]
        for each in limits
        if each["entry"] == entry
        and {name: each[name] for name in conditions if name in each} == where
    ]
    return found


ALL_REDUCE = "*/*all-reduce*"


def test_derived_limits_of_eight_h100_nodes_are_their_speed_less_the_margin():
    # 480 and 388.8 GB/s, 0.06 s, 540 and 702 TFLOP/s, each 6 % easier.
    limits = limits_of("h100-8")

    assert value(limits, ALL_REDUCE, maxNodes=1) == 450
    assert value(limits, ALL_REDUCE, minNodes=8) == 365
    assert value(limits, "*/*alltoall*", minNodes=2, maxNodes=3) == 58
    assert value(limits, "*/*sendrecv*", minNodes=8) == 40.5
    assert value(limits, "communication/nccl-loopback") == 47
    assert value(limits, "communication/nccl-loopback-nvswitch") == 450
    by_metric = {each["metric"]: each["value"] for each in limits if each["metric"] != "busbw"}
    assert by_metric == {
        "step_time": 0.064,
        "tflops_per_gpu": 505,
        "goodput": 0.3,
        "gemm_tflops": 655,
        "gemm_spread": 0.05,
        "dcgm_failed_tests": 1,
    }


def test_derived_limits_of_two_nodes_at_half_the_network_are_for_two():
    # 25 x 0.96 x 15 x 0.9 = 324 GB/s
    assert value(limits_of("h100-2"), ALL_REDUCE, minNodes=2) == 300


def test_derived_limits_of_racks_know_nvlink_between_nodes_and_the_whole_cluster():
    limits = limits_of("gb200-racks")

    for ends in ({"minNodes": 2, "maxNodes": 3}, {"minNodes": 4, "maxNodes": 7}, {"minNodes": 8}):
        assert value(limits, ALL_REDUCE, **ends, fabric="nvlink") == 870
    assert value(limits, ALL_REDUCE, scale="full-scale") == 785
    # Without NVLink between nodes: 48 x 31 / 7 x 0.9 = 191.3 GB/s of eight nodes.
    assert value(limits, ALL_REDUCE, minNodes=8) == 175


def test_derived_limits_follow_the_hardware_that_a_scenario_changes(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: h100-8\nhardware: {h100: {nvlinkBusbwGbs: 240}}\n")

    assert value(limits_of(path), ALL_REDUCE, maxNodes=1) == 225


def given(tmp_path, **limit):
    whole = {
        "metric": "busbw",
        "operator": ">=",
        "value": 100,
        "unit": "GB/s",
        "entry": "communication/nccl-*",
        "statistic": "max",
        "date": "d",
        **limit,
    }
    path = tmp_path / "mine.yaml"
    text = json.dumps([whole])
    path.write_text(f"extends: h100-8\nderivedLimits: {{margin: 0.06}}\nlimits: {text}\n")
    return limits_of(path)


def test_given_limit_stands_in_place_of_every_derived_one_that_it_covers(tmp_path):
    limits = given(tmp_path)

    bandwidths = [each for each in limits if each["metric"] == "busbw"]
    assert [each["value"] for each in bandwidths] == [100]
    assert len(limits) == 7


def test_given_limit_of_some_nodes_comes_before_the_derived_ones_and_leaves_the_others(tmp_path):
    limits = given(tmp_path, entry=ALL_REDUCE, minNodes=8)

    assert limits[0]["value"] == 100
    assert [each["value"] for each in limits if each["entry"] == ALL_REDUCE] == [100, 450, 405, 370]


def test_given_limit_at_a_size_leaves_those_on_the_maximum(tmp_path):
    limits = given(tmp_path, statistic="at-size", size="1G")

    assert value(limits, ALL_REDUCE, minNodes=8) == 365


def test_scenario_that_gives_limits_alone_has_none_of_its_base(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: h100-8\nlimits: []\n")

    assert limits_of(path) == []


def test_scenario_without_gpus_has_no_derived_limits(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "nodes: [{name: a, gpu: h100, gpusPerNode: 0}]\nderivedLimits: {margin: 0.06}\n"
    )

    assert limits_of(path) == []


@pytest.mark.parametrize("margin", ["0", "1", "-0.1", "x"])
def test_margin_that_is_no_part_is_refused_in_one_line(tmp_path, margin):
    path = tmp_path / "mine.yaml"
    path.write_text(f"extends: h100-8\nderivedLimits: {{margin: {margin}}}\n")

    with pytest.raises(ValueError, match=r"mine\.yaml:2:25: ") as problem:
        load_scenario(str(path))
    assert "\n" not in str(problem.value)


def test_derived_limits_cover_entries_of_any_domain_that_are_named_alike():
    patterns = {each["entry"] for each in limits_of("h100-8") if each.get("minNodes") == 8}

    assert {each for each in patterns if fnmatchcase("fabric/zephyr-all-reduce", each)} == {
        ALL_REDUCE
    }

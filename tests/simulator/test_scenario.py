import json

import pytest

from pytest_cre.simulator.scenario import load_scenario, shipped_scenarios


def load(tmp_path, text, name="mine.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return load_scenario(str(path))


def test_shipped_scenarios_are_those_documented():
    assert shipped_scenarios() == (
        *("a100-4", "b200-4", "b300-4", "crash-node", "gb200-racks", "gb300-racks", "h100-2"),
        *("h100-8", "h200-4", "l40-4", "l40s-4", "rtxpro6000-4", "slow-node"),
    )


@pytest.mark.parametrize("name", shipped_scenarios())
def test_shipped_scenario_has_nodes_and_limits_with_its_own_name(name):
    scenario = load_scenario(name)
    limits = json.loads(scenario.limits_json)
    assert scenario.name == name
    assert {limit["metric"] for limit in limits} == {
        "busbw",
        "goodput",
        "step_time",
        "tflops_per_gpu",
        "gemm_tflops",
        "gemm_spread",
        "dcgm_failed_tests",
    }
    assert {(limit["tier"], limit["source"]) for limit in limits} == {
        ("simulated", f"scenario {name}")
    }


@pytest.mark.parametrize(
    ("name", "nodes", "gpus"),
    [
        *[("h100-8", 8, 8), ("h100-2", 2, 8), ("gb200-racks", 8, 4), ("slow-node", 8, 8)],
        *[("gb300-racks", 8, 4), ("a100-4", 4, 8), ("rtxpro6000-4", 4, 8)],
    ],
)
def test_shipped_scenario_has_the_nodes_of_its_name(name, nodes, gpus):
    scenario = load_scenario(name)
    assert [node.gpus for node in scenario.nodes] == [gpus] * nodes


def test_racks_are_nvlink_domains_and_clique_labels():
    nodes = load_scenario("gb200-racks").nodes
    assert {node.domain for node in nodes} == {"rack-1", "rack-2"}
    assert all(node.labels["nvidia.com/gpu.clique"] == node.domain for node in nodes)


def test_unknown_scenario_names_the_choices_in_one_line():
    with pytest.raises(
        ValueError, match=r"'h200' is unknown; choices: .*h100-8.*YAML file"
    ) as problem:
        load_scenario("h200")
    assert "\n" not in str(problem.value)


def test_missing_scenario_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.yaml' does not exist"):
        load_scenario(str(tmp_path / "none.yaml"))


def test_scenario_of_a_few_lines_extends_a_shipped_one(tmp_path):
    scenario = load(tmp_path, "extends: h100-2\nfaults: [{action: hang, after: {step: 3}}]\n")
    assert (scenario.name, len(scenario.nodes)) == ("mine", 2)
    assert [fault.action for fault in scenario.faults] == ["hang"]


def test_scenario_adds_its_faults_to_those_of_its_base(tmp_path):
    scenario = load(tmp_path, "extends: slow-node\nfaults: [{action: hang}]\n")
    assert [fault.action for fault in scenario.faults] == ["hang", "slow-link"]


def test_scenario_changes_a_gpu_model_and_keeps_the_rest_of_it(tmp_path):
    text = "extends: h100-2\nhardware: {h100: {tflopsPerGpu: 600}}\n"
    model = load(tmp_path, text).nodes[0].model
    assert (model.tflops_per_gpu, model.network_gbs, model.nvlink_busbw_gbs) == (600, 25, 480)


def test_scenario_with_own_nodes_has_their_labels_and_taints(tmp_path):
    text = """
nodes:
- name: "n-{index}"
  count: 2
  gpu: h100
  gpusPerNode: 7
  labels: {zone: a}
  taints: [{key: k, value: v, effect: NoExecute}]
  unschedulable: true
"""
    node = load(tmp_path, text).nodes[1]
    assert (node.name, node.gpus, node.is_unschedulable) == ("n-1", 7, True)
    assert node.labels["zone"] == "a"
    assert node.taints == ({"key": "k", "value": "v", "effect": "NoExecute"},)


def test_scenario_extends_a_file_beside_it(tmp_path):
    (tmp_path / "base.yaml").write_text("extends: h100-2\nseed: 5\n")
    assert load(tmp_path, "extends: ./base.yaml\n").seed == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nodes: [", "malformed YAML"),
        ("[]", "must be a mapping"),
        ("{}", "nodes are missing"),
        ("node: []", "mine.yaml:1:1: node is an unknown key"),
        ("extends: h100", "scenario 'h100' is unknown; choices"),
        ("extends: h100-2\nfaults: [{action: explode}]", "mine.yaml:2:19: "),
        ("extends: h100-2\nfaults: [{action: hang, factor: 2}]", "hang does not take factor"),
        ("extends: h100-2\nfaults: [{action: slow-link}]", "slow-link needs factor"),
        (
            "extends: h100-2\nlinks: [{match: {}, to: {}, link: nvlink, factor: 0.5}]",
            "no meaning beside to",
        ),
        ("extends: h100-2\nfaults: [{action: slow-link, factor: 2}]", "at most 1"),
        ("extends: h100-2\nfaults: [{action: straggler, factor: 0.5}]", "at least 1"),
        ("extends: h100-2\nfaults: [{action: straggler, factor: 2, after: {step: 1}}]", "seconds"),
        ("extends: h100-2\nfaults: [{action: hang, after: {step: 1, size: 8}}]", "exactly one"),
        ("extends: h100-2\nfaults: [{action: hang, after: {size: 8X}}]", "must be a size"),
        (
            "nodes: [{name: a, gpu: h300}]",
            "mine.yaml:1:24: GPU model 'h300' is unknown; choices: a100, b200, b300, gb200, gb300, h100",
        ),
        ("nodes: [{name: A_b, gpu: h100}]", "must be a node name"),
        ("nodes: [{name: a, count: 2, gpu: h100}]", "must hold {index}"),
        ("nodes: [{name: a, gpu: h100}, {name: a, gpu: h100}]", "node 'a' is there twice"),
        (
            "nodes: [{name: a, gpu: x}]\nhardware: {x: {product: X}}",
            "new GPU model 'x' needs device",
        ),
        ("extends: h100-2\nhardware: {h100: {networkGbs: -1}}", "mine.yaml:2:31: "),
        ("extends: h100-2\nrecordings: [{match: {}, file: none.log}]", "cannot be read"),
        (
            "extends: h100-2\nlimits: [{metric: busbw, operator: '>=', value: 1, unit: GB, entry: a, "
            "statistic: max, date: d}]",
            "unit of busbw must be GB/s",
        ),
    ],
)
def test_scenario_with_a_mistake_is_refused_in_one_line(tmp_path, text, words):
    with pytest.raises(ValueError) as problem:  # noqa: PT011 - the text is what matters
        load(tmp_path, text)
    assert words in str(problem.value)
    assert "\n" not in str(problem.value)


def test_scenarios_that_extend_each_other_are_refused(tmp_path):
    (tmp_path / "other.yaml").write_text("extends: mine.yaml\n")
    with pytest.raises(ValueError, match="circle"):
        load(tmp_path, "extends: other.yaml\n")


def test_scenario_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "mine.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not UTF-8"):
        load_scenario(str(tmp_path / "mine.yaml"))

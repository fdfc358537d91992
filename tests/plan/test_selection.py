from dataclasses import replace

import pytest

from pytest_cre.errors import UsageProblem
from pytest_cre.evidence.model import GpuHolder
from pytest_cre.plan.selection import select_nodes
from pytest_cre.plan.tenants import without_busy

NVIDIA_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TEAM_TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def used(selection):
    return [each.name for each in selection.nodes]


def reasons(selection):
    return {each.node: each.reason for each in selection.excluded}


def test_select_takes_gpu_nodes_sorted_by_name_and_never_reports_others(
    node, cpu_node, architectures
):
    selection = select_nodes([node("n2"), cpu_node("cpu"), node("n1")], architectures)

    assert used(selection) == ["n1", "n2"]
    assert selection.excluded == ()
    assert selection.architecture == "h100"
    assert not selection.is_simulated


@pytest.mark.parametrize(
    "labels",
    [{"nvidia.com/gpu.present": "true"}, {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}],
)
def test_select_node_that_only_a_label_calls_a_gpu_node_is_reported(
    node, cpu_node, architectures, labels
):
    labelled = replace(cpu_node("n1"), labels=labels)

    selection = select_nodes([labelled, node("n2")], architectures)

    assert reasons(selection) == {"n1": "no-gpu"}


def test_select_names_every_excluded_node_with_reason_and_message(node, architectures):
    nodes = [
        node("a-ok"),
        node("b-cordoned", cordoned=True, taints=[UNSCHEDULABLE]),
        node("c-lost", ready=False, taints=[UNREACHABLE]),
        node("d-tainted", taints=[TEAM_TAINT]),
        node("e-seven", gpus=7),
        node("f-minority", product="NVIDIA-GB200", gpus=4),
        node("g-none", gpus=0),
        node("h-ok", taints=[NVIDIA_TAINT]),
        node("i-over"),
        node("z-unselected", labels={"pool": "other"}),
    ]

    selection = select_nodes(nodes, architectures, selector="pool!=other", max_nodes=2)

    assert used(selection) == ["a-ok", "h-ok"]
    assert {each.node: (each.reason, each.message) for each in selection.excluded} == {
        "b-cordoned": ("cordoned", "spec.unschedulable is true"),
        "c-lost": ("not-ready", "the condition Ready is not True"),
        "d-tainted": ("tainted", "taint not tolerated: team=a:NoSchedule"),
        "e-seven": ("few-gpus", "7 of 8 GPUs allocatable"),
        "f-minority": ("minority-architecture", "gb200; the run uses h100"),
        "g-none": ("no-gpu", "no nvidia.com/gpu is allocatable"),
        "i-over": ("over-max-nodes", "more than 2 nodes"),
        "z-unselected": ("unselected", "not in 'pool!=other'"),
    }


def test_select_gives_the_first_reason_in_upstreams_order(node, architectures):
    everything = {"cordoned": True, "ready": False, "gpus": 0, "product": "NVIDIA-GB200"}

    selection = select_nodes(
        [
            node("n1"),
            node("n2"),
            node("n3", taints=[TEAM_TAINT], **everything),
            node("n4", **everything),
        ],
        architectures,
    )

    assert reasons(selection) == {"n3": "tainted", "n4": "cordoned"}


def test_select_soft_taint_does_not_exclude(node, architectures):
    soft = TEAM_TAINT | {"effect": "PreferNoSchedule"}

    assert used(select_nodes([node("n1", taints=[soft])], architectures)) == ["n1"]


def test_select_majority_counts_only_nodes_that_could_be_used(node, architectures):
    nodes = [node(f"h{i}", cordoned=True) for i in range(3)] + [
        node("g1", product="NVIDIA-GB200", gpus=4)
    ]

    selection = select_nodes(nodes, architectures)

    assert selection.architecture == "gb200"
    assert used(selection) == ["g1"]


def test_select_tie_goes_to_the_architecture_of_the_earliest_name(node, architectures):
    nodes = [node("b"), node("a", product="NVIDIA-GB200", gpus=4)]

    for order in (nodes, nodes[::-1]):
        selection = select_nodes(order, architectures)
        assert selection.architecture == "gb200"
        assert reasons(selection) == {"b": "minority-architecture"}


def test_select_unlabelled_nodes_do_not_vote_and_are_not_taken(node, architectures):
    nodes = [node("a", product=None), node("b", product=None), node("c")]

    selection = select_nodes(nodes, architectures)

    assert used(selection) == ["c"]
    assert selection.excluded[0].message == "no product label; the run uses h100"


def test_select_without_a_known_product_has_no_architecture(node, architectures):
    nodes = [
        node("a", product=None, gpus=4),
        node("b", product=None, gpus=4),
        node("c", product=None, gpus=2),
    ]

    selection = select_nodes(nodes, architectures)

    assert selection.architecture is None
    assert used(selection) == ["a", "b"]
    assert selection.excluded[0].message == "2 of 4 GPUs allocatable"


def test_select_never_mixes_unknown_products(node, architectures):
    nodes = [node("a", product="X-1"), node("b", product="X-2"), node("c", product="X-2")]

    selection = select_nodes(nodes, architectures)

    assert used(selection) == ["b", "c"]
    assert selection.excluded[0].message == "X-1; the run uses X-2"


def test_select_asked_architecture_overrules_the_majority(node, architectures):
    nodes = [
        node("a"),
        node("b"),
        node("c", product="NVIDIA-GB200", gpus=4),
        node("d", product=None, gpus=4),
    ]

    selection = select_nodes(nodes, architectures, architecture="gb200")

    assert selection.architecture == "gb200"
    assert used(selection) == ["c", "d"]


def test_select_names_restrict_and_combine_with_the_selector(node, architectures):
    nodes = [node("a"), node("b", labels={"pool": "x"}), node("c", labels={"pool": "x"})]

    selection = select_nodes(nodes, architectures, names=["a", "b"], selector="pool=x")

    assert used(selection) == ["b"]
    assert reasons(selection) == {"a": "unselected", "c": "unselected"}


def test_select_gpus_per_node_of_the_caller_wins(node, architectures):
    selection = select_nodes([node("a", gpus=4), node("b", gpus=8)], architectures, gpus_per_node=4)

    assert used(selection) == ["a", "b"]


def test_select_every_gpu_node_excluded_gives_no_node_but_all_reasons(node, architectures):
    selection = select_nodes([node("a", cordoned=True), node("b", ready=False)], architectures)

    assert selection.nodes == ()
    assert selection.architecture is None
    assert reasons(selection) == {"a": "cordoned", "b": "not-ready"}


def test_select_simulated_nodes_are_told(node, architectures):
    simulated = {"cre.pytest.org/simulated": "true"}
    taint = {"key": "cre.pytest.org/simulated", "value": "true", "effect": "NoSchedule"}

    selection = select_nodes([node("a", labels=simulated, taints=[taint])], architectures)

    assert selection.is_simulated
    assert used(selection) == ["a"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"names": ["n1", "n7"]}, "node 'n7' does not exist; GPU nodes: n1, n2"),
        ({"names": ["cpu"]}, "node 'cpu' has no GPU; GPU nodes: n1, n2"),
        ({"selector": "pool=z"}, "node selector 'pool=z' matches none of 2 GPU nodes"),
        ({"selector": "a b"}, "nodes: label selector 'a b'"),
        ({"architecture": "h900"}, "unknown GPU architecture 'h900'; choices: gb200, h100"),
        ({"architecture": "gb200"}, "no node is of architecture 'gb200'; products: NVIDIA-H100-80GB-HBM3"),
    ],
)  # fmt: skip
def test_select_mistake_in_the_arguments_is_one_line_with_choices(
    node, cpu_node, architectures, arguments, words
):
    with pytest.raises(UsageProblem) as caught:
        select_nodes([node("n1"), node("n2"), cpu_node("cpu")], architectures, **arguments)

    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


def test_select_cluster_without_gpu_nodes_is_refused(cpu_node, architectures):
    with pytest.raises(UsageProblem, match="no GPU node in the cluster: none of its 2 nodes"):
        select_nodes([cpu_node("a"), cpu_node("b")], architectures)


def test_select_cluster_of_simulated_and_real_nodes_is_refused(node, architectures):
    simulated = node("sim", labels={"cre.pytest.org/simulated": "true"})

    with pytest.raises(
        UsageProblem, match=r"mixes simulated GPU nodes \(sim\) with real ones \(n1\)"
    ):
        select_nodes([simulated, node("n1", cordoned=True)], architectures, names=["sim"])


# GPUs of other tenants

TRAIN = GpuHolder(pod="team-a/train-0", gpus=6)


def test_select_leaves_out_nodes_whose_gpus_somebody_holds_and_names_the_holder(
    node, architectures
):
    selection = select_nodes([node("n1"), node("n2")], architectures, held={"n2": (TRAIN,)})

    assert used(selection) == ["n1"]
    (excluded,) = selection.excluded
    assert excluded.reason == "busy"
    assert excluded.message == "6 of 8 GPUs in use by team-a/train-0"


def test_select_names_the_first_holder_and_counts_the_others(node, architectures):
    others = [GpuHolder(pod=f"team-b/x-{number}", gpus=1) for number in range(2)]

    def message(*holders):
        return (
            select_nodes([node("n1"), node("n2")], architectures, held={"n2": holders})
            .excluded[0]
            .message
        )

    assert message(others[0], TRAIN) == "7 of 8 GPUs in use by team-a/train-0 and 1 other pod"
    assert message(*others, TRAIN) == "8 of 8 GPUs in use by team-a/train-0 and 2 other pods"


def test_select_says_how_to_clean_up_what_an_earlier_run_left(node, architectures):
    left = GpuHolder(pod="default/cre-0", gpus=8, run_id="k3f2a")

    selection = select_nodes([node("n1"), node("n2")], architectures, held={"n2": (left,)})

    assert selection.excluded[0].message == (
        "8 of 8 GPUs in use by default/cre-0; left by run k3f2a, if that has ended: "
        "pytest-cre cleanup --run k3f2a"
    )


def test_select_busy_comes_after_few_gpus_and_before_the_greatest_number(node, architectures):
    nodes = [node("a", gpus=7), node("b"), node("c"), node("d")]
    held = {"a": (TRAIN,), "b": (TRAIN,)}

    selection = select_nodes(nodes, architectures, held=held, max_nodes=1)

    assert used(selection) == ["c"]
    assert reasons(selection) == {"a": "few-gpus", "b": "busy", "d": "over-max-nodes"}


def test_without_busy_leaves_out_what_is_held_now(node, architectures):
    selection = select_nodes([node("n1"), node("n2"), node("n3", cordoned=True)], architectures)

    assert without_busy(selection, {}) == selection
    now = without_busy(selection, {"n1": (TRAIN,)})
    assert used(now) == ["n2"]
    assert reasons(now) == {"n1": "busy", "n3": "cordoned"}

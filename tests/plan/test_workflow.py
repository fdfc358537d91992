import dataclasses

import pytest

from pytest_cre.catalog.entry import Needs
from pytest_cre.catalog.limit import Limit
from pytest_cre.catalog.override import Override, When
from pytest_cre.plan.diagnose.model import Trial
from pytest_cre.plan.model import NodeGroup
from pytest_cre.plan.platform import NO_GROUND
from pytest_cre.plan.podsites import rank_variables
from pytest_cre.plan.selection import select_nodes
from pytest_cre.plan.workflow import disjoint, plan_workflow


@pytest.fixture
def plan(entry, node, architectures):
    def plan_it(nodes=None, scale="full-scale", entry=entry, served=("indexedJob",), **changes):
        selection = select_nodes(nodes or [node("n1"), node("n2"), node("n3")], architectures)
        arguments = {
            "served": served, "run_id": "k3f2a", "owner": ("cre-k3f2a", "uid-1"), "namespace": "default",
            "options": {"maxBytes": "16G"}, "scripts": {"collective.py": "pass\n"},
        }  # fmt: skip
        architecture = architectures.get(selection.architecture or "")
        return plan_workflow(entry, scale, selection, architecture, **(arguments | changes))

    return plan_it


def test_plan_groups_every_selected_node_at_the_scale(plan):
    planned = plan(scale="intra-node")

    assert [group.group.nodes for group in planned.groups] == [("n1",), ("n2",), ("n3",)]
    assert {group.gpus_per_node for group in planned.groups} == {8}
    assert len({group.job_name for group in planned.groups}) == 3
    assert planned.problems == ()


def test_plan_takes_the_entrys_first_kind_that_the_cluster_serves(plan):
    assert plan(served=("jobSet", "indexedJob")).kind == "indexedJob"


def test_plan_kind_that_the_cluster_does_not_serve_is_unmet(plan):
    planned = plan(served=("jobSet",))

    assert planned.groups == ()
    [problem] = planned.problems
    assert problem.code == "unschedulable"
    assert problem.message == (
        "communication/nccl-all-reduce runs as mpiJob, indexedJob; the cluster serves jobSet; "
        "mpiJob needs the MPI operator: --cre-cluster controlplane rehearses with it"
    )


def test_plan_entry_with_more_gpus_than_a_node_has_excludes_that_node(plan, entry, node):
    nodes = [node("n1", gpus=8), node("n2", gpus=16)]

    planned = plan(nodes, entry=dataclasses.replace(entry, gpus_per_node=16))

    assert [group.group.nodes for group in planned.groups] == [("n2",)]
    assert [(each.node, each.reason) for each in planned.excluded] == [("n1", "few-gpus")]


def test_plan_without_a_usable_node_names_each_reason(plan, node):
    planned = plan([node("n1", cordoned=True), node("n2", ready=False)])

    assert planned.groups == ()
    assert planned.problems[0].message == (
        "no node can be used: n1 cordoned (spec.unschedulable is true), "
        "n2 not-ready (the condition Ready is not True)"
    )


def test_plan_scale_that_the_nodes_cannot_form_is_unmet(plan, node):
    label = {"nvidia.com/gpu.clique": "r0"}
    planned = plan([node("n1", labels=label), node("n2")], scale="intra-rack")

    assert planned.groups == ()
    [problem] = planned.problems
    assert problem.code == "unschedulable"
    assert problem.message == (
        "intra-rack needs the node label nvidia.com/gpu.clique, missing on n2"
    )


def test_plan_unknown_architecture_asks_for_what_every_node_has(plan, node):
    planned = plan([node("n1", product=None, gpus=6), node("n2", product=None, gpus=6)])

    assert planned.architecture is None
    assert planned.groups[0].gpus_per_node == 6


def test_overflow_group_is_not_disjoint_from_the_last_full_one(plan, node):
    planned = plan([node(f"n{index}") for index in range(5)], scale="2")
    first, last_full, overflow = (group.group for group in planned.groups)

    assert disjoint(first, last_full)
    assert disjoint(first, overflow)
    assert not disjoint(last_full, overflow)
    assert not disjoint(NodeGroup(name="x", nodes=("a",)), NodeGroup(name="y", nodes=("a", "b")))


@pytest.fixture
def racks(node):
    def build(count, *, racks=2, **changes):
        return [
            node(
                f"n{rack}{slot}",
                gpus=4,
                product="NVIDIA-GB200",
                labels={"nvidia.com/gpu.clique": f"r{rack}"},
                **changes,
            )
            for rack in range(racks)
            for slot in range(count)
        ]

    return build


def nvlink(**changes):
    return dataclasses.replace(NO_GROUND, has_rack_nvlink=True, network=("infiniband",), **changes)


def test_diagnosis_begins_with_one_group_for_each_rack(plan, racks):
    planned = plan(racks(3), scale="diagnose", ground=nvlink(), min_group_size=5)

    assert {group.group.name: group.group.nodes for group in planned.groups} == {
        "intra-screening-r1-0": ("n00", "n01", "n02"),
        "intra-screening-r1-1": ("n10", "n11", "n12"),
    }
    assert [group.fabrics for group in planned.groups] == [("nvlink",), ("nvlink",)]
    assert planned.diagnosis.domains["n11"] == "r1"
    assert planned.diagnosis.nvlink_domains == ("r0", "r1")
    assert (planned.diagnosis.can_switch_nvlink, planned.diagnosis.may_run_alone) == (True, True)
    assert planned.diagnosis.min_group_size == 5


def test_test_without_nvlink_switches_it_off_last_and_expects_the_network(plan, racks, entry):
    on = Override(name="on", when=When(), env={"NCCL_MNNVL_ENABLE": "1"})
    trial = Trial(
        name="intra-screening-no-nvl-r2-0",
        stage="intra-screening-no-nvl",
        round=2,
        nodes=("n00", "n01"),
        without_nvlink=True,
    )
    planned = plan(
        racks(3),
        scale="diagnose",
        entry=dataclasses.replace(entry, overrides=(on,)),
        ground=nvlink(),
        trials=[trial],
        attempt=1,
    )

    (group,) = planned.groups
    assert rank_variables(group.manifests)["NCCL_MNNVL_ENABLE"] == "0"
    assert (group.group.name, group.attempt, group.fabrics) == (trial.name, 1, ("infiniband",))
    assert planned.diagnosis.can_switch_nvlink


@pytest.mark.parametrize(
    ("env", "tier", "domains", "can_switch"),
    [
        ({}, "published", ("r0", "r1"), True),
        ({}, "given", ("r0", "r1"), False),  # one number cannot judge both
        ({"NCCL_MNNVL_ENABLE": "0"}, "published", (), False),
    ],
)
def test_nvlink_is_switched_off_only_where_it_is_on_and_no_limit_was_given(
    plan, racks, entry, env, tier, domains, can_switch
):
    limit = Limit(
        metric="busbw", operator=">=", value=1.0, unit="GB/s", entry=entry.name, statistic="max",
        tier=tier, source="test", date="2026-11-30",
    )  # fmt: skip
    entry = dataclasses.replace(entry, env=env, limits=(limit,))
    diagnosis = plan(racks(3), scale="diagnose", entry=entry, ground=nvlink()).diagnosis

    assert (diagnosis.nvlink_domains, diagnosis.can_switch_nvlink) == (domains, can_switch)


def test_diagnosis_of_one_node_is_unmet(plan, node):
    planned = plan([node("n1")], scale="diagnose")

    assert planned.groups == ()
    assert "compares nodes and needs 2 at least, there is 1" in planned.problems[0].message


def test_diagnosis_of_an_entry_that_needs_more_than_pairs_is_unmet(plan, entry):
    planned = plan(scale="diagnose", entry=dataclasses.replace(entry, needs=Needs(nodes=3)))

    assert "tests pairs of nodes, but communication/nccl-all-reduce needs groups of at least 3" in (
        planned.problems[0].message
    )

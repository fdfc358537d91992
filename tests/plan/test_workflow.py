import dataclasses

import pytest

from pytest_cre.plan.model import NodeGroup
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
        "communication/nccl-all-reduce runs as mpiJob, indexedJob; the cluster serves jobSet"
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
        "no node can be used: n1 cordoned (cordoned: spec.unschedulable is true), "
        "n2 not-ready (the condition Ready is not True)"
    )


def test_plan_scale_that_the_nodes_cannot_form_is_unmet(plan):
    planned = plan(scale="intra-rack")

    assert planned.groups == ()
    assert planned.problems[0].message.startswith("intra-rack needs the node label")


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

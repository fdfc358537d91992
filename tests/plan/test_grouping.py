import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.errors import UnmetNeed, UsageProblem
from pytest_cre.evidence.model import NodeFacts
from pytest_cre.plan.grouping import group_nodes

CLIQUE = "nvidia.com/gpu.clique"


def make(name, clique=None):
    return NodeFacts(
        name=name, uid=name, labels={CLIQUE: clique} if clique else {}, gpus_allocatable=8,
        is_ready=True, is_cordoned=False,
    )  # fmt: skip


def nodes_named(count):
    return [make(f"n{index:04}") for index in range(count)]


def shape(groups):
    return {group.name: list(group.nodes) for group in groups}


def test_full_scale_is_one_group_of_all_nodes():
    assert shape(group_nodes(nodes_named(3)[::-1], "full-scale")) == {
        "group-0": ["n0000", "n0001", "n0002"]
    }


def test_intra_node_is_one_group_per_node():
    assert shape(group_nodes(nodes_named(2), "intra-node")) == {
        "group-0": ["n0000"],
        "group-1": ["n0001"],
    }


def test_intra_rack_is_one_group_per_clique_largest_first():
    nodes = [make("a", "r2"), make("b", "r1"), make("c", "r3"), make("d", "r3")]

    assert shape(group_nodes(nodes, "intra-rack")) == {
        "group-0": ["c", "d"], "group-1": ["b"], "group-2": ["a"],
    }  # fmt: skip


def test_intra_rack_without_the_label_names_label_and_nodes():
    with pytest.raises(
        UnmetNeed, match=r"needs the node label nvidia.com/gpu.clique, missing on b, c$"
    ):
        group_nodes([make("a", "r1"), make("c"), make("b")], "intra-rack")


def test_exact_number_remainder_borrows_from_the_end_of_the_last_full_group():
    assert shape(group_nodes(nodes_named(10), "4")) == {
        "group-0": ["n0000", "n0001", "n0002", "n0003"],
        "group-1": ["n0004", "n0005", "n0006", "n0007"],
        "group-2-overflow": ["n0006", "n0007", "n0008", "n0009"],
    }


def test_exact_number_that_fits_has_no_overflow():
    assert list(shape(group_nodes(nodes_named(8), "full-scale", nodes_per_group=4))) == [
        "group-0",
        "group-1",
    ]


def test_exact_number_above_the_nodes_there_are_is_unmet():
    with pytest.raises(
        UnmetNeed, match="a group needs 4 nodes, 3 can be used: n0000, n0001, n0002"
    ):
        group_nodes(nodes_named(3), "4")


def test_groups_of_a_diagnosis_are_not_known_beforehand():
    with pytest.raises(UsageProblem, match="a diagnosis plans its own groups"):
        group_nodes(nodes_named(2), "diagnose")


def test_no_nodes_give_no_groups():
    assert group_nodes([], "intra-rack") == ()


@pytest.mark.parametrize("scale", ["", "0", "-1", "rack", "\u0661", "9" * 5000, "2.5"])
def test_unknown_scale_names_the_choices(scale):
    with pytest.raises(
        UsageProblem, match="choices: full-scale, intra-node, intra-rack, diagnose, or a number"
    ):
        group_nodes(nodes_named(2), scale)


def test_group_size_below_one_is_refused():
    with pytest.raises(UsageProblem, match="at least 1, got 0"):
        group_nodes(nodes_named(2), "full-scale", nodes_per_group=0)


@given(count=st.integers(1, 60), size=st.integers(1, 60), seed=st.integers(0, 99))
def test_exact_groups_cover_all_nodes_have_the_size_and_ignore_input_order(count, size, seed):
    nodes = nodes_named(count)
    if size > count:
        with pytest.raises(UnmetNeed):
            group_nodes(nodes, str(size))
        return
    groups = group_nodes(nodes, str(size))
    random.Random(seed).shuffle(nodes)

    assert group_nodes(nodes, str(size)) == groups
    assert all(len(set(group.nodes)) == size for group in groups)
    assert {name for group in groups for name in group.nodes} == {each.name for each in nodes}
    assert len(groups) == -(-count // size)  # no more than needed
    full = [group for group in groups if not group.name.endswith("-overflow")]
    assert sum(len(group.nodes) for group in full) == len(
        {n for group in full for n in group.nodes}
    )
    assert len({group.name for group in groups}) == len(groups)


@given(
    cliques=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40), seed=st.integers(0, 99)
)
def test_rack_groups_partition_the_nodes_and_ignore_input_order(cliques, seed):
    nodes = [make(f"n{index}", clique) for index, clique in enumerate(cliques)]
    groups = group_nodes(nodes, "intra-rack")
    of = {each.name: each.labels[CLIQUE] for each in nodes}
    random.Random(seed).shuffle(nodes)

    assert group_nodes(nodes, "intra-rack") == groups
    assert sorted(name for group in groups for name in group.nodes) == sorted(of)
    assert all(len({of[name] for name in group.nodes}) == 1 for group in groups)
    assert len(groups) == len(set(cliques))
    sizes = [len(group.nodes) for group in groups]
    assert sizes == sorted(sizes, reverse=True)

from dataclasses import replace

import pytest

from pytest_cre.catalog.entry import Needs
from pytest_cre.errors import UnmetNeed, UsageProblem
from pytest_cre.plan.needs import fitting_groups, largest_group, unmet_words

SIZES = {"tensorParallel": "8", "pipelineParallel": "1", "expertParallel": "1"}
TRAINING = Needs(
    gpus=32,
    model_parallel=("tensorParallel", "pipelineParallel"),
    expert_parallel="expertParallel",
)


@pytest.fixture
def training(entry):
    return replace(entry, name="training/big", needs=TRAINING)


def words(entry, nodes, gpus_per_node=8, **sizes):
    options = {**SIZES, **{name: str(size) for name, size in sizes.items()}}
    return unmet_words(entry, nodes=nodes, gpus_per_node=gpus_per_node, options=options)


def test_enough_gpus_that_divide_are_no_unmet_need(training):
    assert words(training, 4) is None
    assert words(training, 8, gpus_per_node=4) is None


@pytest.mark.parametrize(
    ("nodes", "gpus_per_node", "told"),
    [
        (2, 8, "needs at least 32 GPUs, 4 nodes with 8; a group has 2 x 8 GPUs"),
        (7, 4, "needs at least 32 GPUs, 8 nodes with 4; a group has 7 x 4 GPUs"),
        (
            9,
            4,
            "needs a multiple of 8 GPUs (tensorParallel 8 x pipelineParallel 1); "
            "a group has 9 x 4 GPUs",
        ),
    ],
)
def test_what_is_missing_is_told_with_the_numbers(training, nodes, gpus_per_node, told):
    assert words(training, nodes, gpus_per_node) == f"training/big {told}"


def test_data_parallel_size_must_hold_the_experts(training):
    told = words(training, 5, tensorParallel=4, expertParallel=4)

    assert told == (
        "training/big needs a data-parallel size that is a multiple of expertParallel 4; "
        "5 x 8 GPUs give 10"
    )
    assert words(training, 6, tensorParallel=4, expertParallel=4) is None


def test_least_number_of_nodes_is_told(entry):
    pair = replace(entry, name="communication/pair", needs=Needs(nodes=2))

    assert words(pair, 1) == "communication/pair needs groups of at least 2 nodes, this one has 1"
    assert words(pair, 2) is None


def test_largest_group_is_the_most_nodes_that_divide(training):
    # 36 GPUs are no multiple of 8, 32 are.
    assert largest_group(training, nodes=9, gpus_per_node=4, options=SIZES) == 8


def test_no_number_of_nodes_that_fits_is_unmet(training):
    with pytest.raises(UnmetNeed, match="needs at least 32 GPUs"):
        largest_group(training, nodes=3, gpus_per_node=8, options=SIZES)


def groups(entry, nodes, scale, gpus_per_node=4):
    return fitting_groups(
        entry, nodes, scale, nodes_per_group=None, gpus_per_node=gpus_per_node, options=SIZES
    )


def test_nodes_that_do_not_divide_are_covered_by_an_overflow_group(training, node):
    nodes = [node(f"n-{number}", gpus=4) for number in range(9)]
    found = groups(training, nodes, "full-scale")

    assert [len(group.nodes) for group in found] == [8, 8]
    assert {name for group in found for name in group.nodes} == {each.name for each in nodes}


def test_all_nodes_form_one_group_where_they_divide(training, node):
    nodes = [node(f"n-{number}", gpus=4) for number in range(8)]

    assert [group.name for group in groups(training, nodes, "full-scale")] == ["group-0"]


def test_scale_that_gives_too_small_groups_is_unmet(training, node):
    nodes = [node(f"n-{number}", gpus=4) for number in range(8)]

    with pytest.raises(UnmetNeed, match="8 nodes with 4; a group has 1 x 4 GPUs"):
        groups(training, nodes, "intra-node")


@pytest.mark.parametrize("value", ["0", "two", "-1", "²", "9" * 20])
def test_size_that_is_no_number_is_a_usage_problem(training, value):
    with pytest.raises(UsageProblem, match="option 'tensorParallel' of training/big must be"):
        words(training, 4, tensorParallel=value)

from dataclasses import replace

import pytest

from pytest_cre.catalog.entry import Needs
from pytest_cre.errors import NotApplicable, UnmetNeed
from pytest_cre.evidence.model import Exclusion
from pytest_cre.plan.applies import check_applies

CLIQUE = "nvidia.com/gpu.clique"


@pytest.fixture
def check(entry, node, architectures):
    pcie = replace(architectures["h100"], name="l40s", domain_gpus=1)
    known = {
        "h100": replace(architectures["h100"], domain_gpus=8),
        "gb200": replace(architectures["gb200"], domain_gpus=72),
        "l40s": pcie,
    }

    def run(name="h100", scale="full-scale", *, count=2, excluded=(), labels=None, **changes):
        check_applies(
            replace(entry, **changes),
            scale,
            known[name] if name else None,
            nodes=[node(f"n{index}", labels=labels) for index in range(count)],
            excluded=[
                Exclusion(node=f"x{index}", reason=reason, message="")
                for index, reason in enumerate(excluded)
            ],
            gpus_per_node=8,
            options={},
            rack_label=CLIQUE,
        )

    return run


def told(check, *arguments, error=NotApplicable, **changes):
    with pytest.raises(error) as problem:
        check(*arguments, **changes)
    return str(problem.value)


def test_entry_without_conditions_is_for_any_hardware(check):
    for name in ("h100", "gb200", "l40s", None):
        check(name)


def test_entry_of_other_architectures_is_not_applicable(check):
    assert told(check, architectures=("gb200", "gb300")) == (
        "communication/nccl-all-reduce is for gb200, gb300; these nodes are h100"
    )
    check("gb200", architectures=("gb200", "gb300"))


def test_entry_of_an_architecture_on_nodes_that_tell_none_is_unmet(check):
    assert told(check, None, error=UnmetNeed, architectures=("gb200",)) == (
        "communication/nccl-all-reduce is for gb200, and nothing tells what these nodes are; "
        "name it with --cre-arch"
    )


def test_entry_that_needs_nvlink_is_not_applicable_to_pcie_cards(check):
    needs = Needs(has_nvlink=True)

    assert told(check, "l40s", needs=needs) == (
        "communication/nccl-all-reduce needs NVLink between the GPUs of a node, which l40s has not"
    )
    check("h100", needs=needs)


def test_intra_rack_is_not_applicable_where_nothing_makes_racks(check):
    assert told(check, scale="intra-rack") == (
        "scale intra-rack needs nodes that NVLink joins, which h100 has not, or the node label "
        f"{CLIQUE}, which none has"
    )


@pytest.mark.parametrize(
    ("name", "labels"), [("gb200", None), ("h100", {CLIQUE: "r0"})], ids=["unlabelled", "labelled"]
)
def test_intra_rack_applies_where_hardware_or_labels_make_racks(check, name, labels):
    check(name, "intra-rack", labels=labels)


def test_too_few_gpus_in_the_whole_cluster_are_no_unmet_need(check):
    assert told(check, name="h100", needs=Needs(gpus=32)) == (
        "communication/nccl-all-reduce needs at least 32 GPUs, 4 nodes with 8; a group has "
        "2 x 8 GPUs, which is all there are"
    )


@pytest.mark.parametrize("reason", ["not-ready", "cordoned", "busy", "few-gpus", "over-max-nodes"])
def test_gpus_that_are_only_out_of_use_may_come_back(check, reason):
    check(needs=Needs(gpus=32), excluded=[reason] * 2)


@pytest.mark.parametrize("reason", ["unselected", "minority-architecture"])
def test_gpus_that_the_run_was_never_to_use_do_not_count(check, reason):
    told(check, needs=Needs(gpus=32), excluded=[reason] * 2)

from dataclasses import replace

import pytest

from pytest_cre.catalog.architecture import Architecture, Peak
from pytest_cre.judge.group import judge_group
from pytest_cre.judge.wire import physics_limits

H100 = Architecture(
    name="h100",
    product_labels=("H",),
    gpus_per_node=8,
    nics_per_node=8,
    domain_gpus=8,
    link_gbs=450.0,
    network_gbs=50.0,
    rates_source="data sheet",
    peaks={"bf16": Peak(tflops=989.4, source="s"), "fp8": Peak(tflops=1978.9, source="s")},
)
GB200 = replace(H100, name="gb200", gpus_per_node=4, domain_gpus=72, link_gbs=900.0)


def bound(architecture, evidence, measurement):
    (limit,) = [
        each
        for each in physics_limits(architecture, evidence, measurement)
        if each.metric == "busbw"
    ]
    assert (limit.operator, limit.tier, limit.is_guard) == ("<=", "physics", True)
    return limit.value


def measured(bandwidth, table, *, test="all_reduce", paths=()):
    whole = bandwidth(table(test=test))
    return replace(whole, bandwidth=replace(whole.bandwidth, paths=paths))


def group(evidence, nodes, gpus=8, fabrics=()):
    names = tuple(f"node-{index}" for index in range(nodes))
    return evidence(nodes=names, gpus_per_node=gpus, ranks_planned=nodes * gpus, fabrics=fabrics)


@pytest.mark.parametrize(
    ("test", "paths", "nodes", "value"),
    [
        # One node: NVLS moves a message once, so 2 x 7/8 of the link can show.
        ("all_reduce", ("NVLS",), 1, 450 * 1.75 * 1.02),
        ("all_reduce", (), 1, 450 * 1.75 * 1.02),
        ("all_reduce", ("P2P",), 1, 450 * 1.02),
        ("all_gather", ("NVLS",), 1, 450 * 1.02),
        # Eight nodes of eight: 63/7 of each GPU's 50 GB/s, 2 x 63/64 x 8 of them with SHARP.
        ("all_reduce", ("GDRDMA",), 8, 50 * 9 * 1.02),
        ("all_gather", (), 8, 450 * 1.02),
        ("alltoall", (), 8, 50 * 63 / 56 * 1.02),
        ("sendrecv", (), 8, 400 * 1.02),
    ],
)
def test_bound_is_what_links_and_network_allow(
    evidence, bandwidth, table, test, paths, nodes, value
):
    measurement = measured(bandwidth, table, test=test, paths=paths)
    assert bound(H100, group(evidence, nodes), measurement) == pytest.approx(value, abs=0.06)


def test_in_network_reduction_is_allowed_where_the_log_does_not_rule_it_out(
    evidence, bandwidth, table
):
    slow = replace(H100, network_gbs=10.0)
    tight = bound(slow, group(evidence, 8), measured(bandwidth, table, paths=("GDRDMA",)))
    sharp = bound(slow, group(evidence, 8), measured(bandwidth, table, paths=("COLLNET",)))
    assert tight == pytest.approx(10 * 9 * 1.02, abs=0.06)
    assert sharp == pytest.approx(2 * 63 / 64 * 80 * 1.02, abs=0.06)


@pytest.mark.parametrize(
    ("nodes", "fabrics", "value"),
    [
        (18, (), 900 * 2 * 71 / 72 * 1.02),
        (36, ("infiniband",), 900 * 2 * 143 / 144 * 1.02),  # the network's 7,150 is no bound
        (4, ("nvlink",), 900 * 2 * 15 / 16 * 1.02),
    ],
)
def test_bound_inside_a_rack_is_that_of_nvlink(evidence, bandwidth, table, nodes, fabrics, value):
    found = bound(GB200, group(evidence, nodes, 4, fabrics), measured(bandwidth, table))
    assert found == pytest.approx(value, abs=0.06)


# Everything that is published for more than one node, and one node, of these two.
@pytest.mark.parametrize(
    ("architecture", "nodes", "gpus", "published"),
    [(H100, 1, 8, 480.2), (H100, 2, 8, 487.87), (H100, 8, 8, 386.6),
     (GB200, 4, 4, 882.51), (GB200, 18, 4, 846.8), (GB200, 360, 4, 404.8)],
)  # fmt: skip
def test_no_published_figure_is_above_its_bound(
    evidence, bandwidth, table, architecture, nodes, gpus, published
):
    assert published < bound(architecture, group(evidence, nodes, gpus), measured(bandwidth, table))


def test_figure_above_the_wire_is_inconclusive_and_never_a_pass(
    evidence, bandwidth, table, row, limit
):
    fast = bandwidth(table(rows=(row(1 << 34, 5000.0, 5000.0),)))
    limits = [limit(), *physics_limits(H100, evidence(), fast)]
    verdict = judge_group(evidence(), fast, limits, missing="skip")
    assert verdict.code == "inconclusive"
    assert verdict.reasons == (
        "busbw 5000 GB/s is 553.6 % above the h100 limit 765 GB/s, more than the hardware can do, "
        "so the figure is not to be trusted",
    )


def test_bound_that_is_kept_leaves_the_verdict_to_the_limits(evidence, bandwidth, limit):
    bounds = physics_limits(H100, evidence(), bandwidth())
    assert judge_group(evidence(), bandwidth(), [limit(), *bounds], missing="skip").code == "pass"
    assert judge_group(evidence(), bandwidth(), bounds, missing="skip").code == "no-limit"


def test_training_faster_than_the_peak_is_not_trusted(evidence, training, limit):
    (bound_limit,) = physics_limits(H100, evidence(), training())
    assert (bound_limit.metric, bound_limit.value) == ("tflops_per_gpu", 1978.9)
    slow = replace(bound_limit, value=399.0)
    verdict = judge_group(
        evidence(), training(), [limit("goodput", value=0.5), slow], missing="skip"
    )
    assert verdict.code == "inconclusive"


@pytest.mark.parametrize("changes", [{"is_simulated": True}, {"ranks_planned": 1}])
def test_simulated_nodes_and_single_ranks_have_no_bound(evidence, bandwidth, changes):
    assert physics_limits(H100, evidence(**changes), bandwidth()) == ()


def test_unknown_rates_give_no_bound(evidence, bandwidth):
    assert physics_limits(None, evidence(), bandwidth()) == ()
    assert physics_limits(replace(H100, link_gbs=None), evidence(), bandwidth()) == ()

import random

import pytest

from pytest_cre.judge.limits import applying_limits, fabric_of

WHERE = {
    "entry": "communication/nccl-all-reduce",
    "scale": "full-scale",
    "nodes": 8,
    "architecture": "h100",
    "fabric": "infiniband",
    "is_simulated": False,
}


@pytest.mark.parametrize(
    "changes",
    [
        {"entry": "training/*"},
        {"scale": "intra-node"},
        {"architecture": "gb200"},
        {"fabric": "efa"},
        {"min_nodes": 9},
        {"max_nodes": 7},
        {"tier": "simulated"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_applying_limits_limit_of_other_place_is_left_out(limit, changes):
    assert applying_limits([limit(**changes)], **WHERE) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"entry": "communication/nccl-all-reduce"},
        {"scale": "full-scale"},
        {"architecture": "h100"},
        {"fabric": "infiniband"},
        {"min_nodes": 8},
        {"max_nodes": 8},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_applying_limits_limit_of_this_place_applies(limit, changes):
    given = limit(**changes)

    assert applying_limits([given], **WHERE) == (given,)


def test_applying_limits_unknown_architecture_and_fabric_take_only_open_limits(limit):
    bound = [limit(architecture="h100"), limit(fabric="infiniband")]
    where = WHERE | {"architecture": None, "fabric": None}

    assert applying_limits([*bound, limit(value=1.0)], **where) == (limit(value=1.0),)


def test_applying_limits_simulated_nodes_take_only_the_scenario_limits(limit):
    simulated = limit(tier="simulated", value=250.0)
    where = WHERE | {"is_simulated": True}

    assert applying_limits([limit(), simulated], **where) == (simulated,)


@pytest.mark.parametrize(
    ("broad", "narrow"),
    [
        ({"entry": "communication/*"}, {"entry": "communication/nccl-all-reduce"}),
        ({}, {"scale": "full-scale"}),
        ({"min_nodes": 2}, {"min_nodes": 2, "max_nodes": 16}),
        ({"min_nodes": 2, "max_nodes": 16}, {"min_nodes": 4, "max_nodes": 8}),
        ({}, {"fabric": "infiniband"}),
        ({}, {"architecture": "h100"}),
        ({"min_nodes": 8, "max_nodes": 8}, {"scale": "full-scale"}),
        ({"tier": "published"}, {"tier": "site"}),
        ({"tier": "physics"}, {"tier": "published"}),
    ],
)
def test_applying_limits_more_specific_limit_wins_whatever_the_order(limit, broad, narrow):
    one, other = limit(value=100.0, **broad), limit(value=200.0, **narrow)

    assert applying_limits([one, other], **WHERE) == (other,)
    assert applying_limits([other, one], **WHERE) == (other,)


def test_applying_limits_equally_specific_limits_keep_the_first(limit):
    first, second = limit(value=100.0), limit(value=200.0)

    assert applying_limits([first, second], **WHERE) == (first,)


def test_applying_limits_other_size_statistic_and_operator_stand_side_by_side(limit):
    wanted = (
        limit(statistic="at-size", size_bytes=8 << 30),
        limit(statistic="at-size", size_bytes=16 << 30),
        limit(operator="<=", value=900.0, tier="physics"),
        limit(operator=">=", value=300.0),
    )
    shuffled = list(wanted)
    random.Random(3).shuffle(shuffled)

    assert applying_limits(shuffled, **WHERE) == wanted


@pytest.mark.parametrize(
    ("transport", "fabric"),
    [
        (("IB",), "infiniband"),
        (("NET/IB/0/GDRDMA",), "infiniband"),
        (("RoCE",), "roce"),
        (("mlx5_0:1/RoCE",), "roce"),
        (("gIB",), "roce"),
        (("Socket",), "socket"),
        (("AWS Libfabric",), "efa"),
        (("Libfabric",), "efa"),
        (("efa-direct",), "efa"),
        (("GPUDirectTCPX_v7",), "tcpxo"),
        (("FasTrak",), "tcpxo"),
        (("IB", "NVLS", "P2P/IPC", "SHM"), "infiniband"),
        (("P2P/CUMEM", "NVLS"), "nvlink"),
        (("SHM",), None),
        (("IB", "Socket"), None),
        (("Slingshot",), None),
        ((), None),
    ],
)
def test_fabric_of_transport_names_tell_one_fabric_or_none(transport, fabric):
    assert fabric_of(transport) == fabric


def test_applying_limits_given_limit_wins_over_all_others_on_any_hardware(limit):
    given = limit(tier="given", value=900.0)
    exact = limit(entry="communication/nccl-all-reduce", min_nodes=8, max_nodes=8)
    simulated = limit(tier="simulated", entry="communication/nccl-all-reduce")

    assert applying_limits([exact, given], **WHERE) == (given,)
    assert applying_limits([simulated, given], **(WHERE | {"is_simulated": True})) == (given,)


def test_applying_limits_collective_must_be_the_one_that_is_run(limit):
    own = limit(collective="all_reduce")

    assert applying_limits([own], **WHERE, collective="all_reduce") == (own,)
    assert applying_limits([own], **WHERE, collective="alltoall") == ()
    assert applying_limits([own], **WHERE) == ()


def test_applying_limits_size_that_a_whole_table_lacks_is_not_for_this_run(limit):
    small = limit(statistic="at-size", size_bytes=64)
    large = limit(statistic="at-size", size_bytes=128)

    assert applying_limits([small, large], **WHERE, sizes={64}) == (small,)
    assert applying_limits([small, large], **WHERE, sizes=None) == (small, large)
    assert applying_limits([large, limit()], **WHERE, sizes={64}) == (limit(),)


def test_applying_limits_categories_of_the_ledger_stand_side_by_side(limit):
    hang = limit("ledger_share", "<=", 0.1, category="hang", entry="*")
    rework = limit("ledger_share", "<=", 0.1, category="rework", entry="*")

    assert applying_limits([rework, hang], **WHERE) == (hang, rework)

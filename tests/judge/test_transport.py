from dataclasses import replace

import pytest

from pytest_cre.judge.group import judge_group
from pytest_cre.judge.transport import group_fabric, transport_words

RDMA = ("infiniband", "roce")


def with_paths(measurement, *paths):
    return replace(measurement, bandwidth=replace(measurement.bandwidth, paths=paths))


@pytest.mark.parametrize("expected", [("infiniband",), ("roce",), RDMA, ("efa",), ("tcpxo",)])
def test_table_over_sockets_fails_whatever_its_number(evidence, bandwidth, limit, expected):
    group = evidence(fabrics=expected)
    verdict = judge_group(
        group, bandwidth(transport=("Socket",)), [limit(value=1.0)], missing="skip"
    )
    assert verdict.code == "fail"
    (reason,) = verdict.reasons
    assert reason.startswith("data between nodes took sockets where ")
    assert reason.endswith("is expected; it reached busbw 340.5 GB/s")
    assert [check.measured for check in verdict.checks] == [340.5]


@pytest.mark.parametrize(
    ("expected", "transport"),
    [
        (("infiniband",), ("IB",)),
        (("roce",), ("RoCE",)),
        (("roce",), ("IB",)),  # older NCCL calls both IB
        (RDMA, ("IB",)),
        (("efa",), ("EFA",)),
        (("efa",), ("AWS Libfabric",)),
        (("tcpxo",), ("TCPXO",)),
        (("socket",), ("Socket",)),
        (("efa",), ()),
        (("efa",), ("SomethingNew",)),
        ((), ("Socket",)),
    ],
)
def test_expected_or_unknown_transport_is_no_finding(evidence, bandwidth, expected, transport):
    assert transport_words(evidence(fabrics=expected), bandwidth(transport=transport)) is None


def test_part_of_the_data_over_sockets_is_a_finding(evidence, bandwidth):
    words = transport_words(evidence(fabrics=RDMA), bandwidth(transport=("IB", "Socket")))
    assert words.startswith("data between nodes took sockets where InfiniBand or RoCE is expected")


def test_one_node_alone_has_no_transport_between_nodes(evidence, bandwidth):
    group = evidence(fabrics=("efa",), nodes=("node-0",))
    assert transport_words(group, bandwidth(transport=("Socket",))) is None


@pytest.mark.parametrize(
    ("paths", "is_found"),
    [((), False), (("MNNVL", "P2P"), False), (("GDRDMA", "P2P"), True)],
)
def test_nvlink_between_nodes_shows_in_the_paths(evidence, bandwidth, paths, is_found):
    words = transport_words(evidence(fabrics=("nvlink",)), with_paths(bandwidth(), *paths))
    assert (words is not None) is is_found
    if is_found:
        assert words.startswith("data between nodes took InfiniBand where NVLink is expected")


@pytest.mark.parametrize(
    ("expected", "transport", "fabric"),
    [
        (("efa",), ("Socket",), "efa"),
        (("nvlink",), ("IB",), "nvlink"),
        (("roce",), ("IB",), "roce"),
        (RDMA, ("RoCE",), "roce"),
        (RDMA, ("IB",), "infiniband"),
        (RDMA, ("Socket",), "infiniband"),
        (RDMA, (), "infiniband"),
        ((), ("IB",), "infiniband"),
        ((), (), None),
    ],
)
def test_limits_are_those_of_the_expected_fabric(evidence, bandwidth, expected, transport, fabric):
    assert group_fabric(evidence(fabrics=expected), bandwidth(transport=transport)) == fabric


def test_sockets_where_they_are_expected_are_no_fallback(evidence, bandwidth, limit):
    measurement = bandwidth(transport=("Socket",), reasons=("socket-fallback",))
    verdict = judge_group(evidence(fabrics=("socket",)), measurement, [limit()], missing="skip")
    assert verdict.code == "pass"
    assert not any("socket" in each for each in verdict.warnings)

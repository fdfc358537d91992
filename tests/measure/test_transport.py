"""Which network a log tells of."""

import pytest

from tests.measure.reading import measured
from tests.measure.tables import table, text

INFO = "node-0:101:202 [0] NCCL INFO "


def read(*lines, **keywords):
    return measured(text([*lines, *table(ranks=16)]), **keywords)


@pytest.mark.parametrize(
    ("lines", "networks"),
    [
        ([INFO + "Using network IB"], ("IB",)),
        ([INFO + "Using network IB  "], ("IB",)),
        ([INFO + "Using network  "], ()),
        ([INFO + "Bootstrap : Using eth0"], ()),
        ([INFO + "Using non-device net plugin version 0"], ()),
        ([INFO + "Failed to find ncclCollNetPlugin_v10 symbol."], ()),
        ([INFO + "Assigned NET plugin IB to comm"], ("IB",)),
        ([INFO + "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA"], ("IB",)),
        (
            [INFO + "Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/0/GDRDMA"],
            ("AWS Libfabric",),
        ),
        (
            [
                INFO + "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
                INFO + "Using network IB",
            ],
            ("RoCE",),
        ),
        (
            [
                INFO + "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>",
                INFO + "Using network IB",
            ],
            ("IB",),
        ),
        (
            [
                INFO + "NET/OFI Selected provider is efa, fabric is efa-direct (found 16 nics)",
                INFO + "Using network Libfabric",
            ],
            ("EFA",),
        ),
        (
            [
                INFO + "NET/OFI Selected Provider is cxi (found 4 nics)",
                INFO + "Using network AWS Libfabric",
            ],
            ("Slingshot",),
        ),
        ([INFO + "Channel 01/0 : 0[0] -> 8[0] [send] via NET/FasTrak/0"], ("TCPXO",)),
        ([INFO + "Using network GPUDirectTCPX_v7"], ("TCPX",)),
        ([INFO + "Using network gIB"], ("gIB",)),
        ([], ()),
    ],
)
def test_network_is_read_from_every_dialect(lines, networks):
    assert read(*lines).bandwidth.transport == networks


def test_paths_of_channels_are_collected_once_each():
    lines = [
        INFO + f"Channel {at:02d}/0 : 0[0] -> 1[1] via {path}"
        for at in range(3)
        for path in ("P2P/CUMEM/read", "SHM/direct/direct", "P2P/MNNVL", "NET/IB/0/GDRDMA")
    ]
    assert read(*lines, INFO + "NVLS comm 0x55 headRank 0 nHeads 8").bandwidth.paths == (
        "GDRDMA",
        "MNNVL",
        "NVLS",
        "P2P",
        "SHM",
    )


@pytest.mark.parametrize(
    ("lines", "is_fallback"),
    [
        ([INFO + "NET/IB : No device found.", INFO + "Using network Socket"], True),
        ([INFO + "Using network IB", INFO + "Using network Socket"], True),
        ([INFO + "Using network Socket"], True),
        ([INFO + "NCCL_IB_DISABLE set by environment to 1.", INFO + "Using network Socket"], False),
        ([INFO + "NCCL_NET set by environment to Socket.", INFO + "Using network Socket"], False),
        (["# Using network Socket"], False),
        ([INFO + "Using network IB"], False),
    ],
)
def test_sockets_between_hosts_are_told_unless_asked_for(lines, is_fallback):
    measurement = read(*lines)
    assert ("socket-fallback" in measurement.reasons) == is_fallback
    assert measurement.status == "complete"


def test_sockets_named_on_one_host_carried_nothing():
    assert "socket-fallback" not in read(INFO + "Using network Socket", hosts=1).reasons
    assert "socket-fallback" in read(INFO + "[send] via NET/Socket/0", hosts=1).reasons

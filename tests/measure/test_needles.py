"""Every line that means something holds one of the needles."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cre.measure.needles import Needles
from pytest_cre.measure.stream import StreamReader
from pytest_cre.measure.transport import CHANNEL_NETWORKS, PATHS, TransportReader
from tests.measure.reading import measured
from tests.measure.tables import table, text

INFO = "node-3:417:533 [2] NCCL INFO "
NOISE = [
    INFO + "Channel 03/0 : 1[1] -> 2[2] via P2P/CUMEM/read",
    INFO + "AllReduce: opCount f8e4 sendbuff 0x7f8e5 recvbuff 0xbf16 count 8 datatype 7 op 0",
    INFO + "Bootstrap : Using eth0:10.0.0.5<0>",
    "WARNING: something with a memory and an error, at long last half a point",
    '{"level": "info", "message": "up"}',
    "I0222 00:27:10.324101 1251089 server.py:181] ready",
]
FACTS = [
    *table(ranks=2, cycles=1),
    *(INFO + f"Channel 00/0 : 0[0] -> 8[0] [send] {path.decode()}" for path in PATHS),
    *(INFO + f"Channel 00/0 : 0[0] -> 8[0] {net.decode()}/0" for net in CHANNEL_NETWORKS),
    *(
        f"{8 << at} {2 << at} {kind} sum -1 1 2 3 0 1 2 3 0"
        for at, kind in enumerate(("bf16", "int"))
    ),
    *(
        "    8     2 f8e4m3     sum      -1     1.0     2.0     3.0      0     1.0     2.0     3.0      0",
    ),
    INFO + "Using network IB",
    INFO + "NET/IB : No device found.",
    INFO + "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE",
    INFO + "NET/OFI Selected Provider is efa",
    INFO + "NCCL_IB_DISABLE set by environment to 1.",
    INFO + "NCCL_NET set by environment to Socket",
    "NCCL version 2.27.7+cuda12.9",
    "node-3: Test NCCL failure common.cu:401 'internal error / '",
    "node-3:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : Got completion from peer 10.0.0.1 with error 12",
    "Traceback (most recent call last):",
    "torch.distributed.DistStoreError: wait timeout",
    "mpirun noticed that process rank 3 exited on signal 9 (Killed).",
    "prterun detected that one or more processes failed",
    "mpiexec noticed something",
    "[node-3:00417] *** Process received signal ***: Segmentation fault (11)",
    "slurmstepd: error: *** STEP 5.0 ON node-3 CANCELLED ***",
    "oom-kill:constraint=CONSTRAINT_MEMCG",
    "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
    "{",
    '  "results": [], "average_bus_bandwidth": {"bandwidth": 1.5}',
    "}",
]


@st.composite
def written(draw):
    """A line as programs and launchers may write it: after a time, with colour codes within."""
    line = draw(st.sampled_from(FACTS) | st.sampled_from(NOISE))
    at = draw(st.integers(0, len(line)))
    escape = draw(st.sampled_from(["", "", "\x1b[0m", "\x1b[38;5;1m", "\x1b", "\x1b\x01", "\r"]))
    before = draw(
        st.sampled_from(
            [
                *("", "2026-02-16T10:00:00.123456789Z ", "2026-02-16T10:00:00Z "),
                *(
                    "2026-13-16T10:00:00.123456789Z ",
                    "2026-02-16T10:00:00.123456789Z [1,0]<stdout>:",
                ),
            ]
        )
    )
    return before + line[:at] + escape + line[at:]


@settings(max_examples=100)
@given(st.lists(written(), max_size=80), st.sampled_from([None, 97, 1500]))
def test_search_for_needles_finds_what_reading_every_line_finds(lines, chunk):
    log = text(lines)
    assert measured(log, chunk=chunk) == measured(log, is_prefiltered=False)


def test_colours_that_hide_needles_hide_nothing():
    plain = [*NOISE * 9, *table(ranks=2, cycles=1), *NOISE * 9]
    coloured = [line[:7] + "\x1b[1m".join(line[7:]) + "\x1b[0m" for line in plain]
    assert measured(text(coloured)) == measured(text(plain))
    assert measured(text(plain)).status == "complete"


@pytest.mark.parametrize("fact", sorted(set(FACTS)))
def test_fact_glued_to_noise_is_found_like_any_other(fact):
    log = text([*NOISE * 3, NOISE[0] + fact, fact, *NOISE])
    assert measured(log) == measured(log, is_prefiltered=False)


def test_channel_lines_are_passed_over_once_their_network_is_known():
    reader = StreamReader("a", kind="none", transport=TransportReader())
    block = text(NOISE[:1] * 50)
    assert len(list(reader.places(block))) == 50
    reader.feed(block)
    assert not list(reader.places(block))


def test_places_come_in_order_from_texts_and_sources():
    needles = Needles([b"iteration", b"<", b"iteration 5"], [rb"step=\d+"])
    block = b"a<b\nstep=1 step=2\niteration 5\n"
    assert needles.places(block) == [(1, 2), (4, 10), (18, 27)]


@given(
    st.lists(st.binary(min_size=1, max_size=6), min_size=1, max_size=120), st.binary(max_size=300)
)
def test_needle_of_any_length_is_found_wherever_it_occurs(texts, around):
    needles = Needles(texts)
    for needle in texts[:5]:
        assert needles.places(around + needle)

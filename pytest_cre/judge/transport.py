"""Whether the data took the network that the nodes are expected to use."""

from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.judge.figures import busbw_by_size
from pytest_cre.judge.limits import fabric_of
from pytest_cre.judge.words import quantity_words
from pytest_cre.measure.model import BandwidthMeasurement, Measurement

RDMA = frozenset({"infiniband", "roce"})
_WORDS = {
    "efa": "EFA",
    "infiniband": "InfiniBand",
    "nvlink": "NVLink",
    "roce": "RoCE",
    "socket": "sockets",
    "tcpxo": "TCPXO",
}


def transport_words(evidence: GroupEvidence, measurement: Measurement) -> str | None:
    """Return that the data took another network than expected, with its number; None if it did not.

    A log that names no network tells nothing, nor does one node alone. InfiniBand and RoCE are told
    apart only by some versions of NCCL, so one never contradicts the other.
    """
    bandwidth, expected = measurement.bandwidth, evidence.fabrics
    if bandwidth is None or not expected or len(evidence.nodes) < 2:
        return None
    if "nvlink" in expected:
        if not bandwidth.paths or "MNNVL" in bandwidth.paths:
            return None
        took = _WORDS.get(fabric_of(bandwidth.transport) or "", "another network")
    else:
        seen = {fabric for name in bandwidth.transport if (fabric := fabric_of((name,)))}
        wrong = sorted(each for each in seen - {"nvlink"} if not _fits(each, expected))
        if not wrong:
            return None
        took = " and ".join(_WORDS.get(each, each) for each in wrong)
    wanted = _expected_words(evidence)
    return f"data between nodes took {took} where {wanted} is expected{_number_words(bandwidth)}"


def fallback_words(evidence: GroupEvidence, bandwidth: BandwidthMeasurement) -> str:
    """Return that NCCL fell back to sockets, from what, and what it reached over them."""
    wanted = f" where {_expected_words(evidence)} is expected" if evidence.fabrics else ""
    return f"NCCL found no fast network and fell back to sockets{wanted}{_number_words(bandwidth)}"


def _expected_words(evidence: GroupEvidence) -> str:
    return " or ".join(_WORDS.get(each, each) for each in evidence.fabrics)


def group_fabric(evidence: GroupEvidence, measurement: Measurement) -> str | None:
    """Return the fabric whose limits apply: the expected one, else the one that the log tells.

    Traffic that went elsewhere is judged by what was expected, and fails for it besides.
    """
    bandwidth, expected = measurement.bandwidth, evidence.fabrics
    measured = fabric_of(bandwidth.transport) if bandwidth is not None else None
    if len(expected) == 1:
        return expected[0]
    if measured is not None and (not expected or _fits(measured, expected)):
        return measured
    return expected[0] if expected else None


def _fits(fabric: str, expected: tuple[str, ...]) -> bool:
    return fabric in expected or (fabric in RDMA and not RDMA.isdisjoint(expected))


def _number_words(bandwidth: BandwidthMeasurement) -> str:
    largest = max(busbw_by_size(bandwidth).values(), default=None)
    return "" if largest is None else f"; it reached busbw {quantity_words(largest, 'GB/s')}"

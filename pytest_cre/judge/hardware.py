"""What logs and events tell of the GPUs themselves: Xid errors and memory that cannot be corrected."""

import re
from collections.abc import Iterator

from pytest_cre.evidence.model import GroupEvidence

SHOWN_PER_NODE = 5
# NVIDIA, "XID Errors": those that a data centre GPU reports when hardware or fabric is at fault.
XID_MEANINGS = {
    13: "graphics engine exception",
    31: "memory page fault",
    48: "double bit ECC error",
    63: "row remapping or page retirement recorded",
    64: "row remapping or page retirement failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    92: "high rate of single bit ECC errors",
    94: "contained memory error",
    95: "uncontained memory error",
    119: "GSP timeout",
    120: "GSP error",
    140: "ECC unrecovered error",
}
_XID = re.compile(rb"\bXid\b\D{0,4}(?:\(PCI:[0-9A-Fa-f:.]{1,20}\)\D{0,4})?(\d{1,4})\b")
_ECC = re.compile(rb"[Uu]ncorrectable ECC error|DBE \(double bit error\)|double[- ]bit ECC")


def hardware_words(evidence: GroupEvidence) -> tuple[str, ...]:
    """Return one line for each kind of hardware message of each node, in order of nodes.

    They are warnings: what a message means for the figures is said by the figures, and a node that
    failed is found by the health rule.
    """
    found: dict[str, list[str]] = {}
    for node, words in (*_in_logs(evidence), *_in_events(evidence)):
        known = found.setdefault(node, [])
        if words not in known and len(known) < SHOWN_PER_NODE:
            known.append(words)
    return tuple(f"node {node}: {words}" for node in sorted(found) for words in found[node])


def _in_logs(evidence: GroupEvidence) -> Iterator[tuple[str, str]]:
    for log in evidence.logs:
        # What a launcher prints may come from any worker.
        node = log.node if log.role != "launcher" and log.node else "unknown"
        for match in _XID.finditer(log.data):
            yield node, _xid_words(int(match[1]))
        for match in _ECC.finditer(log.data):
            yield node, f"the log tells of {match[0].decode('ascii')}"


def _in_events(evidence: GroupEvidence) -> Iterator[tuple[str, str]]:
    for event in evidence.events:
        if event.get("type") == "Warning":
            kind, _, name = event.get("object", "").partition("/")
            for match in _XID.finditer(event.get("message", "").encode()):
                yield name if kind == "Node" else "unknown", _xid_words(int(match[1]))


def _xid_words(number: int) -> str:
    meaning = XID_MEANINGS.get(number)
    return f"Xid {number}" + (f" ({meaning})" if meaning else "")

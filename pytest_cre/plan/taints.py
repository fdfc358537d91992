"""Taints and tolerations, by the scheduler's own rules."""

from collections.abc import Iterable, Mapping, Sequence

GPU_TAINT_KEY = "nvidia.com/gpu"
SIMULATED_TAINT_KEY = "cre.pytest.org/simulated"

DEFAULT_TOLERATIONS: tuple[Mapping[str, str], ...] = (
    {"key": GPU_TAINT_KEY, "operator": "Exists"},
    {"key": SIMULATED_TAINT_KEY, "operator": "Exists"},
)
"""What every pod of ours tolerates: the customary taint of GPU nodes, and that of simulated ones."""

# Kubernetes sets these itself for what is told as cordoned and not-ready.
_CORDON_TAINTS = frozenset({"node.kubernetes.io/unschedulable"})
_NOT_READY_TAINTS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


def tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    """Return whether the toleration matches the taint; an empty key with Exists matches any."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    key = toleration.get("key", "")
    if key and key != taint.get("key"):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(key) and toleration.get("value", "") == taint.get("value", "")


def untolerated(
    taints: Iterable[Mapping[str, str]], tolerations: Sequence[Mapping[str, str]]
) -> tuple[str, ...]:
    """Return the taints that keep our pods away, as `key=value:effect`, sorted.

    Taints that only repeat a cordon or a lost node are left out.
    """
    hard = (
        taint
        for taint in taints
        if taint.get("effect") in ("NoSchedule", "NoExecute")
        and taint.get("key") not in _CORDON_TAINTS | _NOT_READY_TAINTS
    )
    return tuple(
        sorted(
            _text(taint)
            for taint in hard
            if not any(tolerates(each, taint) for each in tolerations)
        )
    )


def says_not_ready(taints: Iterable[Mapping[str, str]]) -> bool:
    """Return whether the cluster marked the node as lost or not ready."""
    return any(taint.get("key") in _NOT_READY_TAINTS for taint in taints)


def says_cordoned(taints: Iterable[Mapping[str, str]]) -> bool:
    """Return whether the cluster marked the node as unschedulable."""
    return any(taint.get("key") in _CORDON_TAINTS for taint in taints)


def _text(taint: Mapping[str, str]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"

"""Which of the workload kinds that an entry names it runs as."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pytest_cre.catalog.entry import CatalogEntry, WorkloadKind
from pytest_cre.plan.wording import listed

FIRST = "the entry's first kind"
_PROVIDERS: Mapping[WorkloadKind, str] = {
    "jobSet": "JobSet",
    "mpiJob": "the MPI operator",
    "trainJob": "the Kubeflow Trainer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KindChoice:
    """A workload kind, and why it was taken. `unmet`: why none can run; None when one can."""

    kind: WorkloadKind
    reason: str
    unmet: str | None = None


def choose_kind(
    entry: CatalogEntry, served: Collection[WorkloadKind], asked: WorkloadKind | None = None
) -> KindChoice:
    """Return the entry's first kind that the cluster serves, or the one that was asked for."""
    named = list(entry.workloads)
    if asked is not None and asked not in named:
        words = f"{entry.name} runs as {listed(named)}, not as {asked} as was asked for"
        return KindChoice(kind=asked, reason="asked for", unmet=words)
    for kind in named if asked is None else [asked]:
        if kind in served:
            return KindChoice(kind=kind, reason=_reason(kind, named, asked))
    words = f"the cluster serves {listed(sorted(served)) or 'none of these'}"
    if asked is not None:
        words = f"{asked} was asked for; {words}"
    wanted = asked or named[0]
    remedy = ""
    if wanted in _PROVIDERS:
        remedy = (
            f"; {wanted} needs {_PROVIDERS[wanted]}: --cre-cluster controlplane rehearses with it"
        )
    return KindChoice(
        kind=wanted, reason=words, unmet=f"{entry.name} runs as {listed(named)}; {words}{remedy}"
    )


def _reason(kind: WorkloadKind, named: list[WorkloadKind], asked: WorkloadKind | None) -> str:
    if asked is not None:
        return "asked for"
    before = named[: named.index(kind)]
    return f"the cluster does not serve {listed(before)}" if before else FIRST

"""Deleting what a run created: nothing else, and with proof.

An object is ours when it carries the run's label and, besides, this run's ledger knows it, or it is
owned by something of ours, or it is the run's own ConfigMap or lease; so is what stands unlabelled
between the two. A label alone proves nothing: people copy manifests. Every delete names the UID, so
a namesake is never hit.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.cluster.gpuholders import gpu_holder, left_pod_words
from pytest_cre.cluster.objects import (
    COMPUTE_DOMAIN,
    CONFIG_MAP,
    EVERY_CLUSTER,
    JOB,
    JOB_SET,
    LEASE,
    MPI_JOB,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_CLAIM_TEMPLATE,
    SERVICE,
    TRAIN_JOB,
    TRAINING_RUNTIME,
    ResourceKind,
    kind_named,
    metadata_of,
)
from pytest_cre.cluster.workloads.ownership import owner_of
from pytest_cre.errors import ClusterProblem
from pytest_cre.plan.model import MANAGED_BY, RUN_LABEL
from pytest_cre.plan.names import owner_name
from pytest_cre.run.leases import LEASE_NAME
from pytest_cre.run.ledger import Recorded, read_ledgers

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

POLL_S = 0.2
PATIENCE_S = 30.0
_THREADS = 8
# Workloads before what they made and would make again, and before what pods have mounted; the
# owner last, for as long as it exists it tells what belongs to the run.
_TIERS: tuple[tuple[ResourceKind, ...], ...] = (
    (TRAIN_JOB, MPI_JOB),
    (JOB_SET,),
    (JOB,),
    (POD,),
    # Under pods that live, a ComputeDomain takes their GPUs' memory with it.
    (COMPUTE_DOMAIN, RESOURCE_CLAIM_TEMPLATE, PERSISTENT_VOLUME_CLAIM),
    (SERVICE, LEASE, TRAINING_RUNTIME, CONFIG_MAP),
)

Found = tuple[ResourceKind, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep did. `leftovers` are objects that may still be there, as `Kind/name`.

    Pods are told with their node, and those that hold GPUs with them: `8 GPUs of node-3 still held by ns/name`.
    """

    deleted: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    problem: str | None = None  # why the cluster could not be asked, or a delete was refused
    was_answered: bool = True  # False: the cluster could not be asked to the end


def sweep(
    client: "Client",
    run_id: str,
    ledgers: Iterable[Path] = (),
    *,
    patience_s: Callable[[], float] = lambda: PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Swept:
    """Delete everything of the run, wait until it is gone, and say what is left.

    Finds objects by label, so also those whose create was never answered. A pod that carries the
    label and holds GPUs, or is being deleted, is left over even where nothing else proves that it
    is ours. Raises nothing for a cluster that does not answer: then what the ledgers know is left
    over. `patience_s` is asked again and again, for an interrupt makes it shorter.
    """
    shared = ((CONFIG_MAP, owner_name(run_id)), (LEASE, LEASE_NAME))
    everything = read_ledgers(ledgers, run_id, has_deleted=True)
    began_s = clock()

    def is_over() -> bool:
        return clock() - began_s >= patience_s()

    swept = _sweep(client, run_id, everything, shared, is_over, sleep)
    if not swept.was_answered:
        return swept
    try:
        while (held := _pods_left(client, run_id, everything)) and not is_over():
            sleep(POLL_S)
    except ClusterProblem as trouble:
        return replace(swept, problem=str(trouble), was_answered=False)
    return replace(swept, leftovers=tuple(sorted({*swept.leftovers, *held})))


def sweep_process(
    client: "Client", run_id: str, ledger: Path, *, patience_s: float = PATIENCE_S
) -> Swept:
    """Delete what one process of the run created and was not to keep, as `sweep` does.

    What all processes of the run share stays: its ConfigMap and its lease.
    """
    own = [
        each
        for each in read_ledgers([ledger], run_id, has_deleted=True)
        if not each.is_kept and (each.kind, each.name) != ("ConfigMap", owner_name(run_id))
    ]
    until_s = time.monotonic() + patience_s
    return _sweep(client, run_id, own, (), lambda: time.monotonic() >= until_s, time.sleep)


def _sweep(
    client: "Client",
    run_id: str,
    everything: Sequence[Recorded],
    shared: Sequence[tuple[ResourceKind, str]],
    is_over: Callable[[], bool],
    sleep: Callable[[float], None],
) -> Swept:
    # What was ours stays ours when the owner that proved it is gone, as a Job before its pods.
    uids = {each.uid for each in everything if each.uid}
    recorded = [each for each in everything if not each.is_deleted]
    asked: dict[str, str] = {}  # names by UID
    problem = None
    try:
        while found := _find(client, run_id, recorded, shared, uids):
            new = [each for each in found if not _uids([each]) <= asked.keys()]
            if new:
                problem = _delete(client, new) or problem
                asked |= {_uid(each): _name(each) for each in new}
            elif is_over():
                break
            else:
                sleep(POLL_S)
    except ClusterProblem as trouble:
        known = {f"{each.kind}/{each.name}" for each in recorded} | {*asked.values()}
        return Swept(leftovers=tuple(sorted(known)), problem=str(trouble), was_answered=False)
    left = _uids(found)
    leftovers = {
        left_pod_words(item) if kind is POD else _name((kind, item)) for kind, item in found
    }
    return Swept(
        deleted=tuple(sorted({name for uid, name in asked.items() if uid not in left})),
        leftovers=tuple(sorted(leftovers)),
        problem=problem if leftovers else None,
    )


def labelled_runs(client: "Client") -> Mapping[str, int]:
    """Return every run that has objects in the namespace, with their number, sorted."""
    counts: dict[str, int] = {}
    for kind in (kind for tier in _TIERS for kind in tier):
        selector = "=".join(MANAGED_BY)
        for item in _listed(client, kind, None, selector):
            run_id = (metadata_of(item).get("labels") or {}).get(RUN_LABEL)
            if run_id:
                counts[run_id] = counts.get(run_id, 0) + 1
    return dict(sorted(counts.items()))


def _find(
    client: "Client",
    run_id: str,
    recorded: Sequence[Recorded],
    shared: Sequence[tuple[ResourceKind, str]],
    uids: set[str],
) -> list[Found]:
    """Return the objects of the run that exist, and add their UIDs to `uids`."""
    namespaces = _namespaces(client, recorded)
    labelled: list[Found] = []
    made = {(each.api_version, each.kind) for each in recorded}
    for kind in _kinds(recorded):
        for namespace in namespaces:
            found = _listed(
                client,
                kind,
                namespace,
                f"{RUN_LABEL}={run_id}",
                is_made=(kind.api_version, kind.kind) in made,
            )
            labelled += [(kind, item) for item in found]
    labelled += _unlabelled_owners(client, labelled, uids)
    return _only_ours(labelled, recorded, shared, uids)


def _pods_left(client: "Client", run_id: str, recorded: Sequence[Recorded]) -> set[str]:
    """Return which pods with the run's label hold GPUs or are being deleted, in words."""
    pods = [
        pod
        for namespace in _namespaces(client, recorded)
        for pod in _listed(client, POD, namespace, f"{RUN_LABEL}={run_id}")
    ]
    return {
        left_pod_words(pod)
        for pod in pods
        if gpu_holder(pod) is not None or metadata_of(pod).get("deletionTimestamp")
    }


def _namespaces(client: "Client", recorded: Sequence[Recorded]) -> list[str]:
    return sorted({client.namespace, *(each.namespace for each in recorded if each.namespace)})


def _unlabelled_owners(client: "Client", labelled: Sequence[Found], uids: set[str]) -> list[Found]:
    """Return what owns labelled objects without being labelled, as the Job of an MPIJob's launcher."""
    known = uids | _uids(labelled)
    found: list[Found] = []
    for _, item in labelled:
        owner = owner_of(item)
        if owner is None or owner[2] in known or owner[0] is CONFIG_MAP:
            continue
        kind, name, uid = owner
        known.add(uid)
        owning = client.get(kind, name, namespace=_place(item)[0] or None)
        if owning is not None and metadata_of(owning).get("uid") == uid:
            found.append((kind, owning))
    return found


def _listed(
    client: "Client",
    kind: ResourceKind,
    namespace: str | None,
    selector: str,
    *,
    is_made: bool = False,
) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a kind, none where the cluster may lack it and does not serve it.

    `is_made`: a ledger says that the run made some, so the cluster serves them. Otherwise, whoever
    may not list claims has made none.
    """
    is_served = is_made or kind.group in EVERY_CLUSTER
    try:
        return client.list(
            kind, namespace=namespace, label_selector=selector, is_served=is_served
        ).items
    except ApiProblem as problem:
        if problem.status == 404 and not is_served:
            return ()
        if problem.status == 403 and kind is PERSISTENT_VOLUME_CLAIM and not is_made:
            return ()
        raise


def _kinds(recorded: Sequence[Recorded]) -> list[ResourceKind]:
    kinds = [kind for tier in _TIERS for kind in tier]
    for each in recorded:
        kind = kind_named(each.api_version, each.kind)
        if kind is not None and kind not in kinds:
            kinds.append(kind)
    return kinds


def _only_ours(
    labelled: Sequence[Found],
    recorded: Sequence[Recorded],
    shared: Sequence[tuple[ResourceKind, str]],
    uids: set[str],
) -> list[Found]:
    unanswered = {each.key for each in recorded if each.uid is None}
    owners = {(kind.kind, name) for kind, name in shared}
    ours: list[Found] = []
    rest = list(labelled)
    while True:  # once more for each level of ownership: a pod's Job must be known to be ours first
        new = [
            (kind, item)
            for kind, item in rest
            if str(metadata_of(item).get("uid")) in uids
            or (kind.api_version, kind.kind, *_place(item)) in unanswered
            or (kind, metadata_of(item).get("name")) in shared
            or any(
                owner.get("uid") in uids or (owner.get("kind"), owner.get("name")) in owners
                for owner in metadata_of(item).get("ownerReferences") or ()
            )
        ]
        if not new:
            return ours
        ours += new
        new_uids = _uids(new)
        uids |= new_uids
        rest = [each for each in rest if _uids([each]).isdisjoint(new_uids)]


def _delete(client: "Client", found: Sequence[Found]) -> str | None:
    """Ask for the deletion of every object, tier by tier; return the first refusal."""
    problems = []

    def delete(each: Found) -> None:
        kind, item = each
        namespace, name = _place(item)
        try:
            client.delete(
                kind, name, uid=str(metadata_of(item)["uid"]), namespace=namespace or None
            )
        except ClusterProblem as problem:
            problems.append(str(problem))

    known = [kind for tier in _TIERS for kind in tier]
    others = tuple({kind for kind, _ in found if kind not in known})
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="cre-sweep") as pool:
        for tier in ((*_TIERS[0], *others), *_TIERS[1:]):
            list(pool.map(delete, [each for each in found if each[0] in tier]))
    return min(problems, default=None)


def _place(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = metadata_of(item)
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _uids(found: Iterable[Found]) -> set[str]:
    return {_uid(each) for each in found}


def _uid(each: Found) -> str:
    return str(metadata_of(each[1]).get("uid"))


def _name(each: Found) -> str:
    kind, item = each
    return f"{kind.kind}/{_place(item)[1]}"

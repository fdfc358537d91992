"""One Lease per cluster namespace: whoever holds it has the fabric to itself."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.client import Conflict
from pytest_cre.cluster.objects import LEASE, metadata_of, part
from pytest_cre.errors import ClusterProblem, UnmetNeed
from pytest_cre.plan.model import RUN_LABEL
from pytest_cre.plan.names import run_labels
from pytest_cre.run.clocks import until_stopped

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

LEASE_NAME = "pytest-cre"
RELEASE_PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """How a lease is held and waited for. `patience_s` None waits until it is free."""

    duration_s: float = 60.0
    renew_s: float = 10.0
    poll_s: float = 0.5
    tell_s: float = 60.0  # between two words to the user who waits
    patience_s: float | None = None
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@contextmanager
def held_lease(
    client: "Client",
    run_id: str,
    holder: str,
    *,
    stop: threading.Event,
    on_wait: Callable[[str], None] = lambda _: None,
    on_lost: Callable[[], None] = lambda: None,
    terms: LeaseTerms | None = None,
) -> Iterator["HeldLease"]:
    """Hold the namespace's lease; release it at the end.

    `holder` must be of this process alone. While another run holds it, `on_wait` is told who, at
    once and then once a minute; other processes of our own run are waited for in silence. We wait
    until `stop` is set or the patience ends: then `UnmetNeed` names the holder. `on_lost` is called
    from another thread as soon as the lease is not ours any more.
    """
    lease = _acquire(client, run_id, holder, stop, on_wait, terms or LeaseTerms())
    # An interrupted run must not wait for a cluster that is gone to take its lease back.
    client = client.with_retry(until_stopped(client.retry, stop))
    held = HeldLease(client, holder, terms or LeaseTerms(), lease, on_lost)
    try:
        yield held
    finally:
        held.release()


def _acquire(
    client: "Client",
    run_id: str,
    holder: str,
    stop: threading.Event,
    on_wait: Callable[[str], None],
    terms: LeaseTerms,
) -> dict[str, Any]:
    deadline_s = None if terms.patience_s is None else terms.clock() + terms.patience_s
    seen: tuple[object, float] = (None, terms.clock())
    told: tuple[str, float] = ("", 0.0)
    while True:
        lease = client.get(LEASE, LEASE_NAME) or _create(client, run_id, holder, terms)
        if lease is None:
            continue  # somebody else was faster
        if _holder(lease) == holder:
            return lease
        # Expiry is counted on our clock from the last change we saw: clocks of two hosts differ.
        version = metadata_of(lease).get("resourceVersion")
        if version != seen[0]:
            seen = (version, terms.clock())
        if not _holder(lease) or terms.clock() - seen[1] > _duration_s(lease, terms):
            with suppress(Conflict):
                return client.replace(_renewed(lease, holder, terms, run_id=run_id))
            continue
        words = f"lease {LEASE_NAME} in namespace {client.namespace} is held by {_holder(lease)}"
        is_ours = part(metadata_of(lease), "labels").get(RUN_LABEL) == run_id
        if not is_ours and (words != told[0] or terms.clock() - told[1] >= terms.tell_s):
            told = (words, terms.clock())
            on_wait(words)
        if deadline_s is not None and terms.clock() >= deadline_s:
            raise UnmetNeed(f"{words}; gave up after {terms.patience_s:g} s")
        if stop.wait(terms.poll_s):
            raise UnmetNeed(f"{words}; interrupted while waiting")


class HeldLease:
    """A lease that a thread of ours renews. `loss` tells how it was lost, if it was."""

    def __init__(
        self,
        client: "Client",
        holder: str,
        terms: LeaseTerms,
        lease: dict[str, Any],
        on_lost: Callable[[], None],
    ) -> None:
        self._client = client
        self._holder = holder
        self._terms = terms
        self._lease = lease
        self._on_lost = on_lost
        self._ended = threading.Event()
        self.loss: str | None = None
        self._thread = threading.Thread(target=self._renew, name="cre-lease", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Stop renewing and delete the lease if it is still ours; note when it is not.

        A cluster that does not answer is left to the sweep, which finds the lease by its label.
        """
        self._ended.set()
        self._thread.join(RELEASE_PATIENCE_S)
        with suppress(ClusterProblem):
            current = self._client.get(LEASE, LEASE_NAME)
            if current is None or _holder(current) != self._holder:
                self._note_loss(current)
            else:
                _delete(self._client, current)

    def _renew(self) -> None:
        while not self._ended.wait(self._terms.renew_s):
            try:
                self._lease = self._client.replace(_renewed(self._lease, self._holder, self._terms))
            except ClusterProblem:
                self._look_again()

    def _look_again(self) -> None:
        """After a renewal that failed: read whose lease it is now, if the cluster answers."""
        with suppress(ClusterProblem):
            current = self._client.get(LEASE, LEASE_NAME)
            if current is not None and _holder(current) == self._holder:
                self._lease = current
            elif not self._ended.is_set():  # while it is released it may well be gone
                self._ended.set()
                self._note_loss(current)
                self._on_lost()

    def _note_loss(self, current: dict[str, Any] | None) -> None:
        if self.loss is None:
            where = f"lease {LEASE_NAME} in namespace {self._client.namespace}"
            end = "was deleted" if current is None else f"was taken by {_holder(current)}"
            self.loss = f"{where} {end}"


def leasing_run(client: "Client") -> str | None:
    """Return the run that has the lease, or had it when it died. Raises `ClusterProblem`."""
    current = client.get(LEASE, LEASE_NAME)
    run_id = part(metadata_of(current or {}), "labels").get(RUN_LABEL)
    return str(run_id) if run_id else None


def release_lease(client: "Client", holder: str) -> None:
    """Delete the lease if this holder has it. Raises `ClusterProblem`."""
    current = client.get(LEASE, LEASE_NAME)
    if current is not None and _holder(current) == holder:
        _delete(client, current)


def _delete(client: "Client", lease: Mapping[str, Any]) -> None:
    client.delete(LEASE, LEASE_NAME, uid=str(metadata_of(lease)["uid"]))


def _create(client: "Client", run_id: str, holder: str, terms: LeaseTerms) -> dict[str, Any] | None:
    """Return a lease of ours, or None when somebody else created one first."""
    manifest = _renewed(
        {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {
                "name": LEASE_NAME,
                "namespace": client.namespace,
                "labels": run_labels(run_id),
            },
        },
        holder,
        terms,
    )
    try:
        return client.create_or_adopt(manifest)
    except Conflict:
        return None


def _renewed(
    lease: Mapping[str, Any], holder: str, terms: LeaseTerms, *, run_id: str | None = None
) -> dict[str, Any]:
    """Return the lease held by us from now; `run_id` makes it another run's."""
    now = terms.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    old = lease.get("spec") or {}
    is_same = old.get("holderIdentity") == holder
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": math.ceil(terms.duration_s),
        "acquireTime": old.get("acquireTime", now) if is_same else now,
        "renewTime": now,
        "leaseTransitions": int(old.get("leaseTransitions") or 0)
        + (0 if is_same or not old else 1),
    }
    metadata = dict(metadata_of(lease))
    if run_id is not None:
        metadata["labels"] = {**(metadata.get("labels") or {}), **run_labels(run_id)}
    return {**lease, "metadata": metadata, "spec": spec}


def _holder(lease: Mapping[str, Any]) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _duration_s(lease: Mapping[str, Any], terms: LeaseTerms) -> float:
    duration = (lease.get("spec") or {}).get("leaseDurationSeconds")
    return float(duration) if isinstance(duration, int) and duration > 0 else terms.duration_s

"""The objects of one group: each in the ledger before it is created, and gone when it is done."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.cluster.gpuholders import left_pod_words
from pytest_cre.cluster.objects import POD, kind_named, metadata_of
from pytest_cre.errors import ClusterProblem
from pytest_cre.plan.model import RUN_LABEL
from pytest_cre.run.ledger import Ledger, Recorded

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

GONE_POLL_S = 0.1


class CreatedObjects:
    """What one group created, in order. Deletes exactly that, by UID."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._recorded: list[Recorded] = []

    def create(
        self,
        client: "Client",
        manifest: Mapping[str, object],
        is_worth_waiting: Callable[[ApiProblem], bool] = lambda _: False,
    ) -> Mapping[str, Any]:
        """Announce and create an object, and return it as the cluster has it.

        A refusal that is worth waiting is followed by another try. Raises `ClusterProblem`.
        """
        self._recorded.append(self._ledger.announce(manifest))
        while True:
            try:
                item = client.create_or_adopt(manifest)
                break
            except ApiProblem as refusal:
                if not is_worth_waiting(refusal):
                    raise
        uid = str(metadata_of(item)["uid"])
        self._recorded[-1] = self._ledger.created(self._recorded[-1], uid)
        return item

    def end_workload(
        self,
        client: "Client",
        pod_selector: str,
        *,
        patience_s: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> bool:
        """Delete what was created last, so that it can be created again; False if it stays.

        Waits until it and its pods are gone. Raises `ClusterProblem`.
        """
        began_s = clock()
        recorded = self._recorded[-1]
        self._delete(client, recorded)
        while client.list(POD, label_selector=pod_selector).items or self._exists(client, recorded):
            if clock() - began_s >= patience_s():
                return False
            sleep(GONE_POLL_S)
        self._ledger.deleted(recorded)
        del self._recorded[-1]
        return True

    def remove(
        self,
        client: "Client",
        pod_selector: str,
        *,
        patience_s: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> tuple[str, ...]:
        """Delete the workload, wait for its pods to end, delete the rest; return what is left.

        The rest is deleted after the pods because they have it mounted. `patience_s` is asked
        again and again, for an interrupt makes it shorter.
        """
        began_s = clock()
        try:
            workload_last = self._recorded[::-1]
            for recorded in workload_last[:1]:
                self._delete(client, recorded)
            while pods := client.list(POD, label_selector=pod_selector).items:
                if clock() - began_s >= patience_s():
                    break
                sleep(GONE_POLL_S)
            for recorded in workload_last[1:]:
                self._delete(client, recorded)
            left = [recorded for recorded in workload_last if self._exists(client, recorded)]
            # A controller may hold what was in use for a moment, as Trainer does with a runtime.
            while left and clock() - began_s < patience_s():
                sleep(GONE_POLL_S)
                left = [recorded for recorded in left if self._exists(client, recorded)]
        except ClusterProblem as problem:
            return tuple(f"{each.kind}/{each.name} ({problem})" for each in self._recorded)
        for recorded in workload_last:
            if recorded not in left:
                self._ledger.deleted(recorded)
        return (
            *(f"{each.kind}/{each.name}" for each in left),
            *(left_pod_words(pod) for pod in pods),
        )

    def _delete(self, client: "Client", recorded: Recorded) -> None:
        kind = kind_named(recorded.api_version, recorded.kind)
        uid = recorded.uid or self._uid_of_unanswered(client, recorded)
        if kind is not None and uid is not None:
            client.delete(kind, recorded.name, uid=uid, namespace=recorded.namespace or None)

    def _uid_of_unanswered(self, client: "Client", recorded: Recorded) -> str | None:
        """Return the UID of an object whose create was never answered, if it is there and ours."""
        item = self._read(client, recorded)
        labels = metadata_of(item or {}).get("labels") or {}
        return (
            str(metadata_of(item)["uid"])
            if item and labels.get(RUN_LABEL) == self._ledger.run_id
            else None
        )

    def _exists(self, client: "Client", recorded: Recorded) -> bool:
        item = self._read(client, recorded)
        if item is None:
            return False
        if recorded.uid is None:
            return self._uid_of_unanswered(client, recorded) is not None
        return bool(metadata_of(item).get("uid") == recorded.uid)

    def _read(self, client: "Client", recorded: Recorded) -> Mapping[str, Any] | None:
        kind = kind_named(recorded.api_version, recorded.kind)
        if kind is None:
            return None
        return client.get(kind, recorded.name, namespace=recorded.namespace or None)

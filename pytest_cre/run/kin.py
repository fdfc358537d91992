"""What stands between a workload and its pods, so that ownership is proven by UID at each level."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.objects import ResourceKind, metadata_of
from pytest_cre.cluster.workloads.ownership import owned_pods, unknown_owner

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

Object = Mapping[str, Any]


class Kin:
    """The objects between one workload and its pods. Each is read once, when a pod names it."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._owners: dict[str, Object] = {}
        self._kinds: dict[str, ResourceKind] = {}
        self._lost: set[str] = set()

    def pods_of(self, workload: Object, pods: Iterable[Object]) -> tuple[Object, ...]:
        """Return the pods that descend from the workload; raises `ClusterProblem`."""
        top = str(metadata_of(workload).get("uid") or "")
        pods = tuple(pods)
        for pod in pods:
            self._learn(pod, top)
        return owned_pods(top, pods, self._owners)

    @property
    def uids(self) -> set[str]:
        """Return the UIDs of the objects known."""
        return set(self._owners)

    def read_again(self) -> tuple[Object, ...]:
        """Return the objects known as they are now; raises `ClusterProblem`."""
        for uid, item in tuple(self._owners.items()):
            self._read(self._kinds[uid], str(metadata_of(item).get("name")), uid)
        return tuple(self._owners.values())

    def _learn(self, pod: Object, top: str) -> None:
        while (owner := unknown_owner(pod, top, self._owners)) is not None:
            kind, name, uid = owner
            if uid in self._lost or not self._read(kind, name, uid):
                self._lost.add(uid)  # deleted already: what it was owned by cannot be known
                return

    def _read(self, kind: ResourceKind, name: str, uid: str) -> bool:
        item = self._client.get(kind, name)
        if item is None or metadata_of(item).get("uid") != uid:
            return False
        # The API leaves out what the kind is where it was asked for by its kind.
        self._owners[uid] = {"apiVersion": kind.api_version, "kind": kind.kind, **item}
        self._kinds[uid] = kind
        return True

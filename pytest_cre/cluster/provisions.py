"""What a cluster serves besides nodes, asked once and only where an entry needs it."""

from functools import cache
from typing import TYPE_CHECKING

from pytest_cre.cluster.exchange import ApiProblem
from pytest_cre.cluster.objects import (
    COMPUTE_DOMAIN,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    SERVICE,
    part,
)

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

DOMAIN_DRIVER = "compute-domain.nvidia.com"
_KINDS = {each.kind: each for each in (COMPUTE_DOMAIN, RESOURCE_CLAIM_TEMPLATE)}
_UNTOLD = (403, 404)


class ClusterProvisions:
    """What one cluster provides; each answer is kept. None: our rights do not let us see it."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.serves = cache(self._serves)
        self.domain_nodes = cache(self._domain_nodes)
        self.has_service = cache(self._has_service)

    def _serves(self, kind: str) -> bool:
        return self._client.serves(_KINDS[kind])

    def _domain_nodes(self) -> frozenset[str] | None:
        try:
            return frozenset(
                str(spec.get("nodeName") or "")
                for page in self._client.pages(RESOURCE_SLICE)
                for item in page.items
                if (spec := part(item, "spec")).get("driver") == DOMAIN_DRIVER
            )
        except ApiProblem as problem:
            if problem.status not in _UNTOLD:
                raise
            return None

    def _has_service(self, namespace: str, name: str) -> bool | None:
        try:
            return self._client.get(SERVICE, name, namespace) is not None
        except ApiProblem as problem:
            if problem.status not in _UNTOLD:
                raise
            return None

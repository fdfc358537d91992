"""Simulated nodes with faults on a genuine control plane, beside those that it has already."""

import base64
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pytest_cre.controlplane.plane import ControlPlane
from pytest_cre.simulator.api import ApiClient, ApiRefusal
from pytest_cre.simulator.kubelet import LEASE_PERIOD_S
from pytest_cre.simulator.nodeobjects import LEASE_NAMESPACE
from pytest_cre.simulator.scenario import Scenario
from tests.campaign.clusters import Cluster, Clusters, ListenedClient, playing_nodes


class GenuineClusters(Clusters):
    """One control plane for all scenarios, one after another: each has nodes of its own on it."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__()
        self._plane = plane

    @asynccontextmanager
    async def _cluster(self, scenario: Scenario, seed: int, folder: Path) -> AsyncIterator[Cluster]:
        config = json.loads(self._plane.admin_kubeconfig.read_text())
        authority = folder / "authority.pem"
        encoded = config["clusters"][0]["cluster"]["certificate-authority-data"]
        authority.write_bytes(base64.b64decode(encoded))
        token = config["users"][0]["user"]["token"]
        async with ListenedClient(self._plane.server, token=token, ca_file=str(authority)) as api:
            try:
                async with playing_nodes(api, scenario, seed, lease_period_s=LEASE_PERIOD_S) as (
                    world,
                    sources,
                ):
                    yield Cluster(
                        kubeconfig=self._plane.harness_kubeconfig,
                        world=world,
                        sources=sources,
                        ends=api.ends,
                    )
            finally:
                for node in scenario.nodes:
                    await _remove(api, node.name)


async def _remove(api: ApiClient, node: str) -> None:
    """Take a node away, and the lease that would keep it alive."""
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases"
    for path in (f"/api/v1/nodes/{node}", f"{leases}/{node}"):
        with contextlib.suppress(ApiRefusal):
            await api.call("DELETE", path)

"""The run's own ConfigMap: created first, it owns everything else, so one delete takes it all."""

from typing import TYPE_CHECKING

from pytest_cre.cluster.objects import CONFIG_MAP, metadata_of
from pytest_cre.plan.names import owner_name, run_labels
from pytest_cre.run.ledger import Ledger

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client


def create_owner(client: "Client", ledger: Ledger) -> tuple[str, str]:
    """Create the run's owner, or adopt it, and return its name and UID.

    Raises `ClusterProblem`.
    """
    name = owner_name(ledger.run_id)
    manifest = {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {
            "name": name,
            "namespace": client.namespace,
            "labels": run_labels(ledger.run_id),
        },
        "data": {"run": ledger.run_id},
    }
    recorded = ledger.announce(manifest)
    uid = str(metadata_of(client.create_or_adopt(manifest))["uid"])
    ledger.created(recorded, uid)
    return name, uid

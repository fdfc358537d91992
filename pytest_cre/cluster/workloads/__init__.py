"""Workload kinds behind one protocol: where they end, and which pods are theirs."""

from collections.abc import Mapping

from pytest_cre.catalog.entry import WorkloadKind
from pytest_cre.cluster.workloads.indexed_job import IndexedJob
from pytest_cre.cluster.workloads.protocol import Workload

WORKLOADS: Mapping[WorkloadKind, Workload] = {"indexedJob": IndexedJob()}


def workload_of(kind: WorkloadKind) -> Workload:
    """Return how to read a kind of workload; `KeyError` for one that no plan can name yet."""
    return WORKLOADS[kind]

"""Workload kinds behind one protocol: where they end, and which pods are theirs."""

from collections.abc import Mapping

from pytest_cre.catalog.entry import WorkloadKind
from pytest_cre.cluster.workloads.indexed_job import IndexedJob
from pytest_cre.cluster.workloads.jobset import JobSet
from pytest_cre.cluster.workloads.mpijob import MpiJob
from pytest_cre.cluster.workloads.protocol import Workload
from pytest_cre.cluster.workloads.trainjob import TrainJob

WORKLOADS: Mapping[WorkloadKind, Workload] = {
    "indexedJob": IndexedJob(),
    "jobSet": JobSet(),
    "mpiJob": MpiJob(),
    "trainJob": TrainJob(),
}


def workload_of(kind: WorkloadKind) -> Workload:
    """Return how to read a kind of workload."""
    return WORKLOADS[kind]

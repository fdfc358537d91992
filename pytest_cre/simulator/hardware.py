"""Modelled GPU nodes: how fast a group of them exchanges data and trains.

A collective of S bytes takes `latency + S * bus_factor / busbw`. The bus bandwidth of a group is
that of its slowest part. Inside one NVLink domain that is the slowest NVLink. Across k domains with
n ranks, algorithms are hierarchical: a GPU's network carries `busbw * (k - 1) / (n - 1)`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SHARED = ("all_gather", "reduce_scatter", "alltoall")  # size is that of all ranks together
NETWORK_EFFICIENCY = 0.96  # protocol overhead on the wire
CROSSING_EFFICIENCY = 0.9  # of a hierarchical algorithm
POINT_TO_POINT_EFFICIENCY = 0.9
COMMUNICATION_SHARE = 0.2  # of a training step, on healthy links


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """What one kind of node can do; bandwidths are those of one GPU."""

    product: str  # the label's value
    device: str  # as programs print it
    gpus_per_node: int
    memory_gib: int
    nvlink_busbw_gbs: float  # over PCIe where the GPUs have no NVLink
    nvlink_latency_us: float
    network_gbs: float
    network_latency_us: float
    network: str  # as NCCL names it
    tflops_per_gpu: float
    step_time_s: float
    noise_ratio: float = 0.004
    gemm_tflops: float | None = None  # of matrix products alone; None: 1.3 times a training's
    nics: int | None = None  # that a node offers to pods; None: one per GPU

    @property
    def gemm_rate(self) -> float:
        """Return the TFLOP/s of bfloat16 matrix products on one GPU."""
        return self.gemm_tflops or self.tflops_per_gpu * 1.3

    @property
    def nics_per_node(self) -> int:
        """Return how many NICs a node offers."""
        return self.gpus_per_node if self.nics is None else self.nics


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNode:
    """One node; `domain` is its NVLink domain, its own name where it is alone in it."""

    name: str
    model: GpuModel
    gpus: int
    domain: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...] = ()
    is_unschedulable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """A node with the ranks it holds, and the factors of its speed: 1 is healthy, 0.5 half of it."""

    node: SimulatedNode
    ranks: int
    nvlink_factor: float = 1.0
    network_factor: float = 1.0
    is_on_sockets: bool = False
    step_factor: float = 1.0  # 2 takes twice as long


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpeed:
    """Latency and peak bus bandwidth of a collective on a group."""

    collective: str
    ranks: int
    latency_s: float
    busbw_gbs: float

    def seconds(self, size_bytes: int) -> float:
        """Return the time of one operation, without noise."""
        factor = bus_factor(self.collective, self.ranks)
        return self.latency_s + size_bytes * factor / (self.busbw_gbs * 1e9)


SOCKET_GBS = 2.2  # one GPU's share of an Ethernet link through the kernel


def bus_factor(collective: str, ranks: int) -> float:
    """Return what turns size / time into bus bandwidth."""
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if collective in SHARED else 1.0


def group_speed(collective: str, group: Sequence[Participant]) -> GroupSpeed:
    """Return how fast the group runs a collective; its slowest member decides."""
    ranks = sum(each.ranks for each in group)
    domains = {each.node.domain for each in group}
    busbw_gbs = min(each.node.model.nvlink_busbw_gbs * each.nvlink_factor for each in group)
    latency_us = max(each.node.model.nvlink_latency_us for each in group)
    if len(domains) > 1:
        rate_gbs = min(_network_gbs(each) for each in group)
        busbw_gbs = _crossing_gbs(collective, group, rate_gbs, busbw_gbs)
        latency_us = max(each.node.model.network_latency_us for each in group)
        latency_us += 20.0 * math.log2(len(group))
    return GroupSpeed(
        collective=collective, ranks=ranks, latency_s=latency_us * 1e-6, busbw_gbs=busbw_gbs
    )


def _network_gbs(member: Participant) -> float:
    rate_gbs = SOCKET_GBS if member.is_on_sockets else member.node.model.network_gbs
    return rate_gbs * member.network_factor * NETWORK_EFFICIENCY


def _crossing_gbs(
    collective: str, group: Sequence[Participant], rate_gbs: float, nvlink_gbs: float
) -> float:
    """Return the bus bandwidth across domains."""
    ranks_by_domain: dict[str, int] = {}
    for each in group:
        domain = each.node.domain
        ranks_by_domain[domain] = ranks_by_domain.get(domain, 0) + each.ranks
    ranks, largest = sum(ranks_by_domain.values()), max(ranks_by_domain.values())
    if collective == "sendrecv":
        return rate_gbs * POINT_TO_POINT_EFFICIENCY
    if collective == "alltoall":
        crossing = rate_gbs * (ranks - 1) / (ranks - largest)
    else:
        crossing = rate_gbs * (ranks - 1) / (len(ranks_by_domain) - 1)
    return min(nvlink_gbs, crossing) * CROSSING_EFFICIENCY


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpeed:
    """One step of a training on a group, without noise."""

    step_time_s: float
    tflops_per_gpu: float


def training_speed(group: Sequence[Participant]) -> TrainingSpeed:
    """Return the speed of the slowest member, which all others wait for.

    A simulated step is short whatever the model's size; the throughput is that of the real GPU.
    """
    slowdown = max(_slowdown(each) for each in group)
    return TrainingSpeed(
        step_time_s=max(each.node.model.step_time_s for each in group) * slowdown,
        tflops_per_gpu=min(each.node.model.tflops_per_gpu for each in group) / slowdown,
    )


def _slowdown(member: Participant) -> float:
    link = min(member.nvlink_factor, member.network_factor)
    if member.is_on_sockets:
        link = min(link, SOCKET_GBS / member.node.model.network_gbs)
    return member.step_factor * (1.0 - COMMUNICATION_SHARE + COMMUNICATION_SHARE / link)

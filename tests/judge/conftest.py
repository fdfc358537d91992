"""Builders of whole, healthy values; a test changes the one thing that it is about."""

from dataclasses import replace

import pytest

from pytest_cre.catalog.entry import CatalogEntry, WorkloadCommand
from pytest_cre.catalog.limit import UNITS, Limit
from pytest_cre.evidence.model import GroupEvidence, JobFacts, LogStream, PodFacts
from pytest_cre.measure.model import (
    LEDGER_CATEGORIES,
    BandwidthMeasurement,
    BandwidthRow,
    BandwidthTable,
    HalfRow,
    Measurement,
    OutOfBounds,
    TrainingMeasurement,
    TrainingSummary,
)

GIB = 1 << 30
SUCCEEDED = JobFacts(kind="Job", name="cre-job", uid="u-1", terminal="succeeded")


def _pod(index, **changes):
    pod = PodFacts(
        name=f"cre-job-{index}",
        uid=f"pod-{index}",
        node=f"node-{index}",
        completion_index=index,
        attempt=0,
        phase="Succeeded",
        exit_code=0,
        created_ns=1,
        started_ns=2,
        finished_ns=9,
    )
    return replace(pod, **changes)


@pytest.fixture
def pod():
    return _pod


@pytest.fixture
def evidence():
    """Two nodes of eight GPUs whose Job succeeded and whose logs are whole."""

    def build(**changes):
        whole = GroupEvidence(
            entry="communication/nccl-all-reduce",
            scale="full-scale",
            group="group-0",
            attempt=0,
            nodes=("node-0", "node-1"),
            gpus_per_node=8,
            ranks_planned=16,
            architecture="h100",
            is_simulated=False,
            job=SUCCEEDED,
            pods=(_pod(0), _pod(1)),
            logs=(
                LogStream(pod="cre-job-0", data=b"line\n", completion_index=0, is_complete=True),
                LogStream(pod="cre-job-1", data=b"", completion_index=1, is_complete=True),
            ),
        )
        return replace(whole, **changes)

    return build


@pytest.fixture
def row():
    def build(size_bytes, out_of_place_gbs, in_place_gbs, *, wrong=(0, 0)):
        def half(busbw_gbs, count):
            if busbw_gbs is None:
                return None
            return HalfRow(time_us=1.0, algbw_gbs=busbw_gbs / 2, busbw_gbs=busbw_gbs, wrong=count)

        return BandwidthRow(
            size_bytes=size_bytes,
            count=size_bytes // 4,
            dtype="float",
            redop="sum",
            root=-1,
            out_of_place=half(out_of_place_gbs, wrong[0]),
            in_place=half(in_place_gbs, wrong[1]),
        )

    return build


@pytest.fixture
def table(row):
    """A whole table: 8 GiB at 338.82 and 337.35 GB/s, 16 GiB at 340.5 and 341.5 GB/s."""

    def build(**changes):
        whole = BandwidthTable(
            test="all_reduce",
            rows=(row(8 * GIB, 338.82, 337.35), row(16 * GIB, 340.5, 341.5)),
            avg_busbw_gbs=339.5425,
            out_of_bounds=OutOfBounds(count=0, is_ok=True),
            is_complete=True,
            ranks=16,
            nccl_version="2.27.7",
            tool_version=None,
        )
        return replace(whole, **changes)

    return build


@pytest.fixture
def bandwidth(table):
    """A complete measurement of one whole table, or of the tables given."""

    def build(*tables, status="complete", reasons=(), failure=None, transport=("IB",)):
        return Measurement(
            kind="bandwidth",
            profile="nccl-bandwidth",
            status=status,
            reasons=tuple(reasons),
            bandwidth=BandwidthMeasurement(
                tables=tables or (table(),),
                max_out_of_place_gbs=340.5,
                max_in_place_gbs=341.5,
                transport=transport,
                failure=failure,
            ),
        )

    return build


@pytest.fixture
def training():
    """A complete training: goodput 0.9, 1.25 s per step, 400 TFLOP/s per GPU."""

    def build(*, goodput=0.9, flags=(), status="complete", reasons=(), failure=None):
        return Measurement(
            kind="training",
            profile="megatron-training",
            status=status,
            reasons=tuple(reasons),
            training=TrainingMeasurement(
                framework="megatron-lm",
                steps=(),
                checkpoints=(),
                attempts=1,
                failure=failure,
                summary=TrainingSummary(
                    first_step=1,
                    last_step=1000,
                    highest_step=1000,
                    step_records=1000,
                    avg_step_time_s=1.25,
                    avg_tflops_per_gpu=400.0,
                    interruptions=0,
                ),
                ledger_s=dict.fromkeys(LEDGER_CATEGORIES, 100.0),
                window_s=1200.0,
                ratios={
                    "goodput": goodput,
                    "ledger": 0.85,
                    "runtime": 0.86,
                    "strict_durable": 0.8,
                    "throughput_fraction": None,
                },
                flags=tuple(flags),
            ),
        )

    return build


@pytest.fixture
def limit():
    def build(metric="busbw", operator=">=", value=300.0, **changes):
        given = Limit(
            metric=metric,
            operator=operator,
            value=value,
            unit=UNITS[metric],
            entry="communication/*" if metric == "busbw" else "training/*",
            tier="published",
            statistic="max" if metric == "busbw" else "value",
            source="a publication",
            date="2026-09-01",
        )
        return replace(given, **changes)

    return build


@pytest.fixture
def entry():
    def build(**changes):
        whole = CatalogEntry(
            name="communication/nccl-all-reduce",
            description="",
            measures="bandwidth",
            image="image",
            workloads={"indexedJob": WorkloadCommand(command=("run",))},
            log_profile="nccl-bandwidth",
            timeout_s=60.0,
            start_timeout_s=60.0,
            test="all_reduce",
        )
        return replace(whole, **changes)

    return build

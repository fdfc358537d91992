"""Reports of a run: verdicts as `judge` gives them, and what was seen of the groups."""

from dataclasses import replace

import pytest

from pytest_cre.catalog.limit import UNITS, Limit
from pytest_cre.evidence.model import (
    Exclusion,
    GroupEvidence,
    JobFacts,
    LogStream,
    PodFacts,
    WorkflowEvidence,
)
from pytest_cre.judge.verdict import Check, GroupVerdict, ItemVerdict
from pytest_cre.report.model import ClusterReport, RunReport, item_report

ALL_REDUCE = "communication/nccl-all-reduce"
TRAINING = "training/nemotron5-8b"


@pytest.fixture
def limit():
    def build(metric="busbw", operator=">=", value=400.0, **changes):
        given = Limit(
            metric=metric,
            operator=operator,
            value=value,
            unit=UNITS[metric],
            entry="*",
            tier="published",
            statistic="max" if metric == "busbw" else "value",
            source="a publication",
            date="2026-09-01",
            architecture="gb200",
            place="profiles/architectures/gb200.yaml:12:5",
        )
        return replace(given, **changes)

    return build


@pytest.fixture
def check(limit):
    """A check of `measured` against a limit, with code and margin as `judge` gives them."""

    def build(measured=371.4, *, code=None, statistic="max", **changes):
        given = limit(**changes)
        margin = measured / given.value - 1
        margin = margin if given.operator == ">=" else -margin
        return Check(
            metric=given.metric,
            measured=measured,
            unit=given.unit,
            limit=given,
            margin=margin,
            code=code or ("pass" if margin >= 0 else "fail"),
            statistic=statistic,
        )

    return build


@pytest.fixture
def group():
    def build(*checks, name="group-0", nodes=8, code=None, reasons=(), **changes):
        codes = [check.code for check in checks]
        bad = next((each for each in codes if each != "pass"), "pass")
        return GroupVerdict(
            group=name,
            nodes=tuple(f"node-{index}" for index in range(nodes)),
            code=code or bad,
            checks=tuple(checks),
            reasons=tuple(reasons),
            **changes,
        )

    return build


@pytest.fixture
def item():
    def build(*groups, entry=ALL_REDUCE, scale="full-scale", code=None, reasons=()):
        bad = next((each.code for each in groups if each.code != "pass"), "pass")
        return ItemVerdict(
            entry=entry, scale=scale, code=code or bad, groups=groups, reasons=tuple(reasons)
        )

    return build


def _group_evidence(verdict, group, is_simulated, logs, pods):
    return GroupEvidence(
        entry=verdict.entry,
        scale=verdict.scale,
        group=group.group,
        attempt=group.attempt,
        nodes=group.nodes,
        gpus_per_node=8,
        ranks_planned=8 * len(group.nodes),
        architecture="gb200",
        is_simulated=is_simulated,
        job=JobFacts(kind="Job", name="cre-job", uid="u", terminal="succeeded"),
        pods=pods,
        logs=logs,
        options={"maxBytes": "16G"},
        queue_s=0.25,
        start_s=1.5,
        run_s=12.125,
    )


@pytest.fixture
def evidence():
    """The evidence that belongs to a verdict: one group each, a short log of rank 0."""

    def build(verdict, *, is_simulated=False, data=b"first line\nlast line\n", pods=()):
        logs = (LogStream(pod="cre-job-0", data=data, node="node-0", completion_index=0),)
        return WorkflowEvidence(
            entry=verdict.entry,
            scale=verdict.scale,
            groups=tuple(
                _group_evidence(verdict, group, is_simulated, logs, pods)
                for group in verdict.groups
            ),
        )

    return build


@pytest.fixture
def reported(evidence):
    """An item's report under the node id of its suite."""

    def build(verdict, *, is_simulated=False, node_id=None, **changes):
        name = verdict.entry.partition("/")[2]
        scale = "" if verdict.scale == "full-scale" else f"@{verdict.scale}"
        return item_report(
            verdict,
            evidence(verdict, is_simulated=is_simulated) if verdict.groups else None,
            node_id=node_id or f"suites/test_x.py::test_bandwidth[{name}{scale}]",
            duration_s=14.5,
            **changes,
        )

    return build


@pytest.fixture
def run():
    def build(*items, result="PASSED", is_simulated=False, **changes):
        given = RunReport(
            run_id="0a1b2c3d4e",
            result=result,
            is_simulated=is_simulated,
            cluster=ClusterReport(kind="kubernetes", server_version="v1.37.2", namespace="gpu"),
            architecture="gb200",
            nodes=tuple(f"node-{index}" for index in range(8)),
            settings={"missing_limit": "skip", "nodes": ["node-0"], "max_nodes": None},
            catalog_sha256="ab" * 32,
            plugin_version="0.1.0",
            planned=tuple(each.node_id for each in items),
            items=items,
        )
        return replace(given, **changes)

    return build


@pytest.fixture
def failed_pod():
    return PodFacts(
        name="cre-job-3",
        uid="p3",
        node="node-3",
        completion_index=3,
        attempt=0,
        phase="Failed",
        exit_code=1,
        finished_ns=5,
    )


@pytest.fixture
def mixed_run(limit, check, group, item, reported, run):
    """A run with every kind of verdict: two groups, several metrics, figures, exclusions."""
    at_8_gib = replace(limit(value=390.0), statistic="at-size", size_bytes=8 << 30)
    full = item(
        group(
            check(412.37),
            check(412.37, value=900.0, operator="<=", tier="physics"),
            replace(check(408.1, value=390.0), limit=at_8_gib, statistic="at 8 GiB"),
            figures={"busbw_max": 412.37, "busbw_average": 101.123456789, "ranks": 64},
        )
    )
    intra = item(
        group(check(478.9, value=431.0), name="group-0", nodes=1),
        group(
            check(371.4, value=431.0),
            name="group-1",
            nodes=1,
            reasons=["busbw 371.4 GB/s is 13.8 % below the gb200 limit 431 GB/s"],
        ),
        scale="intra-node",
    )
    training = item(
        group(
            check(0.8475, metric="goodput", value=0.8, statistic=""),
            check(1.3, metric="step_time", operator="<=", value=1.2, statistic=""),
            reasons=["step_time 1.3 s is 8.3 % above the gb200 limit 1.2 s"],
            figures={"goodput": 0.8475, "ledger_rework": 80.0},
        ),
        entry=TRAINING,
    )
    unmet = item(
        group(code="unmet", reasons=["0/8 nodes are available: 8 Insufficient nvidia.com/gpu."]),
        entry="communication/nccl-alltoall",
    )
    error = item(entry="training/other", code="error", reasons=["GET /apis/batch/v1/jobs: 500"])
    doubtful = item(
        group(check(380.0, code="inconclusive"), reasons=["the log of pod cre-job-0 has a gap"]),
        entry="communication/nccl-broadcast",
    )
    return run(
        reported(full, recorded=[("site.power", 812.5, "kW")]),
        *(reported(each) for each in (intra, training, unmet, error, doubtful)),
        result="ERROR",
        excluded=(Exclusion(node="node-9", reason="cordoned", message="spec.unschedulable"),),
    )

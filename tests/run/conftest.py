"""A cluster in memory that speaks the client's interface; tests play its controllers and faults."""

import copy
import itertools
import json
import socket
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_cre.catalog.entry import CatalogEntry, WorkloadCommand
from pytest_cre.cluster.client import ApiProblem, Conflict, Listing
from pytest_cre.cluster.retry import RetryPolicy
from pytest_cre.evidence.model import Exclusion, NodeFacts
from pytest_cre.formats.selector import parse_selector
from pytest_cre.plan.model import Selection
from pytest_cre.plan.workflow import plan_workflow
from pytest_cre.run.clocks import RunTiming
from pytest_cre.run.ledger import Ledger
from pytest_cre.run.owner import create_owner
from pytest_cre.run.workflow import run_workflow

RUN_ID = "k3f2a"
INDEX = "batch.kubernetes.io/job-completion-index"
QUICK = RunTiming(
    poll_s=0.3, bad_start_s=0.1, node_lost_s=0.1, spoiled_s=0.2, pods_end_s=1.0, drain_s=2.0,
    gone_s=1.0, interrupted_s=0.3, stall_check_s=0.05, progress_s=0.05,
)  # fmt: skip


def now_text() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Stream:
    """A response body that stays open until it is cut or ended."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._connection = SimpleNamespace(sock=self._theirs)

    def send(self, data: bytes) -> None:
        try:
            self._ours.sendall(data)
        except OSError:
            return

    def end(self) -> None:
        self._ours.close()

    def read1(self, size: int) -> bytes:
        return self._theirs.recv(size)

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


@dataclass
class Fault:
    """Requests that match raise `problem`; with `after` they are done first (a lost answer)."""

    verb: str
    kind: str
    problem: Exception
    times: int = 10**9
    after: bool = False


@dataclass
class FakeCluster:
    """The state behind every client of a test."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)  # by uid
    history: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    logs: dict[str, bytes] = field(default_factory=dict)  # by pod name
    on_job: Callable[["FakeCluster", dict[str, Any]], None] = lambda *_: None
    stuck_pods: bool = False  # deleted pods stay, as on a node that is gone
    streams: list[tuple[str, Any, Stream]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _versions: Any = field(default_factory=lambda: itertools.count(1))

    # What tests do to it

    def put(self, item: dict[str, Any], type_: str = "MODIFIED") -> dict[str, Any]:
        with self.lock:
            version = next(self._versions)
            metadata = item["metadata"]
            metadata.setdefault("uid", f"uid-{version}")
            metadata.setdefault("creationTimestamp", now_text())
            metadata["resourceVersion"] = str(version)
            if type_ == "DELETED":
                self.objects.pop(metadata["uid"], None)
            else:
                self.objects[metadata["uid"]] = item
            snapshot = copy.deepcopy(item)
            self.history.append((version, type_, snapshot))
            for kind, matches, stream in self.streams:
                if kind == item["kind"] and matches(metadata.get("labels")):
                    stream.send(_event(type_, snapshot))
        return item

    def remove(self, item: dict[str, Any]) -> None:
        self.put(item, "DELETED")

    def fail(self, verb: str, kind: str, problem: Exception, **more: Any) -> None:
        self.faults.append(Fault(verb, kind, problem, **more))

    def find(self, kind: str, name: str | None = None) -> list[dict[str, Any]]:
        with self.lock:
            return [
                item
                for item in self.objects.values()
                if item["kind"] == kind and name in (None, item["metadata"]["name"])
            ]

    def job(self) -> dict[str, Any]:
        (job,) = self.find("Job")
        return job

    def add_node(self, name: str, *, ready: bool = True) -> dict[str, Any]:
        status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
        return self.put(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status},
            "ADDED",
        )

    def add_pod(
        self,
        job: dict[str, Any],
        index: int,
        node: str | None,
        *,
        suffix: str = "aaaaa",
        **status: Any,
    ):
        name = job["metadata"]["name"]
        labels = dict(job["spec"]["template"]["metadata"]["labels"])
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": name,
            "uid": job["metadata"]["uid"],
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{index}-{suffix}", "namespace": "ns", "labels": labels,
                "annotations": {INDEX: str(index)}, "ownerReferences": [owner],
            },
            "spec": {"nodeName": node} if node else {},
            "status": {"phase": "Pending", **status},
        }  # fmt: skip
        if node:
            pod["status"].setdefault("conditions", []).append(
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": now_text()}
            )
        return self.put(pod, "ADDED")

    def run_pod(self, pod: dict[str, Any]) -> None:
        state = {"running": {"startedAt": now_text()}}
        pod["status"] |= {
            "phase": "Running",
            "containerStatuses": [{"name": "main", "state": state, "restartCount": 0}],
        }
        self.put(pod)

    def end_pod(
        self, pod: dict[str, Any], *, exit_code: int = 0, log: bytes = b"", reason: str = ""
    ) -> None:
        if log:
            self.logs[pod["metadata"]["name"]] = log
        started = now_text()
        for each in pod["status"].get("containerStatuses", []):
            started = each["state"].get("running", {}).get("startedAt", started)
        ended = {"exitCode": exit_code, "reason": reason or ("Error" if exit_code else "Completed"),
                 "startedAt": started, "finishedAt": now_text()}  # fmt: skip
        pod["status"] |= {
            "phase": "Failed" if exit_code else "Succeeded",
            "containerStatuses": [
                {"name": "main", "state": {"terminated": ended}, "restartCount": 0}
            ],
        }
        self.put(pod)

    def end_job(
        self, job: dict[str, Any], type_: str = "Complete", reason: str = "", message: str = ""
    ) -> None:
        condition = {"type": type_, "status": "True", "reason": reason, "message": message,
                     "lastTransitionTime": now_text()}  # fmt: skip
        job.setdefault("status", {}).setdefault("conditions", []).append(condition)
        self.put(job)

    # What clients do to it

    def check(self, verb: str, kind: str, name: str = "", *, after: bool = False) -> None:
        with self.lock:
            if not after:
                self.requests.append((verb, kind, name))
            for fault in self.faults:
                if (
                    (fault.verb, fault.after) == (verb, after)
                    and fault.kind in (kind, "*")
                    and fault.times > 0
                ):
                    fault.times -= 1
                    raise fault.problem

    def collect_garbage(self, owner: dict[str, Any]) -> None:
        uid = owner["metadata"]["uid"]
        for item in list(self.objects.values()):
            if any(each["uid"] == uid for each in item["metadata"].get("ownerReferences", [])):
                if item["kind"] == "Pod" and self.stuck_pods:
                    continue
                self.remove(item)
                self.collect_garbage(item)


class FakeClient:
    """The interface of `pytest_cre.cluster.client.Client`."""

    server = "https://fake"

    def __init__(
        self, cluster: FakeCluster, retry: RetryPolicy | None = None, namespace: str = "ns"
    ) -> None:
        self.cluster = cluster
        self.retry = retry or RetryPolicy(budget_s=0.2, first_pause_s=0.01)
        self.namespace = namespace

    def with_retry(self, policy: RetryPolicy) -> "FakeClient":
        return FakeClient(self.cluster, policy, self.namespace)

    def _retried(self, verb: str, kind: str, name: str, do: Callable[[], Any]) -> Any:
        pauses = self.retry.pauses()
        while True:
            try:
                self.cluster.check(verb, kind, name)
                result = do()
                self.cluster.check(verb, kind, name, after=True)
                return result
            except ApiProblem as problem:
                if problem.status < 500 or not pauses.wait():
                    raise

    def get(self, kind, name, namespace=None):
        def do():
            found = self.cluster.find(kind.kind, name)
            return copy.deepcopy(found[0]) if found else None

        return self._retried("get", kind.kind, name, do)

    def list(self, kind, *, label_selector="", field_selector="", **_):
        node = dict(
            each.split("=") for each in field_selector.split(",") if "!" not in each and each
        )
        node_name = node.get("spec.nodeName")

        def do():
            matches = parse_selector(label_selector).matches
            with self.cluster.lock:
                items = [copy.deepcopy(each) for each in self.cluster.find(kind.kind)
                         if matches(each["metadata"].get("labels"))
                         and node_name in (None, each.get("spec", {}).get("nodeName"))]  # fmt: skip
                version = str(self.cluster.history[-1][0]) if self.cluster.history else "0"
            return Listing(items=tuple(items), resource_version=version)

        return self._retried("list", kind.kind, "", do)

    def create_or_adopt(self, manifest):
        kind = manifest["kind"]
        name = manifest["metadata"]["name"]

        def do():
            found = self.cluster.find(kind, name)
            labels = manifest["metadata"].get("labels") or {}
            run = "cre.pytest.org/run"
            if found and found[0]["metadata"].get("labels", {}).get(run) != labels.get(run):
                raise Conflict(
                    f"{kind} {name} belongs to somebody else", status=409, reason="AlreadyExists"
                )
            if found:
                return copy.deepcopy(found[0])
            item = json.loads(json.dumps(manifest))
            created = copy.deepcopy(self.cluster.put(item, "ADDED"))
            if kind in ("Job", "JobSet", "MPIJob", "TrainJob"):
                self.cluster.on_job(self.cluster, item)
            return created

        return self._retried("create", kind, name, do)

    def replace(self, manifest):
        def do():
            found = self.cluster.find(manifest["kind"], manifest["metadata"]["name"])
            if not found:
                raise ApiProblem("not found", status=404, reason="NotFound")
            if found[0]["metadata"]["resourceVersion"] != manifest["metadata"]["resourceVersion"]:
                raise Conflict("the object has been modified", status=409, reason="Conflict")
            return copy.deepcopy(self.cluster.put(copy.deepcopy(manifest)))

        return self._retried("replace", manifest["kind"], manifest["metadata"]["name"], do)

    def delete(self, kind, name, *, uid, namespace=None, grace_period_s=None):
        def do():
            item = self.cluster.objects.get(uid)
            if item is not None and item["metadata"]["name"] == name:
                if item["kind"] != "Pod" or not self.cluster.stuck_pods:
                    self.cluster.remove(item)
                self.cluster.collect_garbage(item)
            return True

        return self._retried("delete", kind.kind, name, do)

    @contextmanager
    def open_watch(
        self, kind, *, resource_version, timeout_s, read_timeout_s, label_selector="", **_
    ):
        self.cluster.check("watch", kind.kind)
        stream = Stream()
        matches = parse_selector(label_selector).matches
        subscription = (kind.kind, matches, stream)
        with self.cluster.lock:
            for version, type_, item in self.cluster.history:
                is_asked = item["kind"] == kind.kind and matches(item["metadata"].get("labels"))
                if is_asked and version > int(resource_version):
                    stream.send(_event(type_, item))
            self.cluster.streams.append(subscription)
        try:
            yield stream
        finally:
            with self.cluster.lock:
                self.cluster.streams.remove(subscription)
            stream.close()

    @contextmanager
    def open_log(self, pod, container, *, follow, since_time=None, previous=False, **_):
        self.cluster.check("log", "Pod", pod)
        if not self.cluster.find("Pod", pod):
            raise ApiProblem("pods not found", status=404, reason="NotFound")
        lines = self.cluster.logs.get(pod, b"").splitlines(keepends=True)
        stream = Stream()
        kept = [
            line for line in lines if since_time is None or line[:20].decode() >= since_time[:19]
        ]
        stream.send(b"".join(kept))
        stream.end()
        try:
            yield stream
        finally:
            stream.close()


def _event(type_: str, item: dict[str, Any]) -> bytes:
    return json.dumps({"type": type_, "object": item}).encode() + b"\n"


@pytest.fixture
def cluster():
    fake = FakeCluster()
    for name in ("n1", "n2", "n3", "n4"):
        fake.add_node(name)
    return fake


@pytest.fixture
def client(cluster):
    return FakeClient(cluster)


@pytest.fixture
def ledger(tmp_path):
    own = Ledger(tmp_path / "own.ledger.jsonl", RUN_ID)
    yield own
    own.close()


@pytest.fixture
def entry():
    return CatalogEntry(
        name="communication/nccl-all-reduce", description="", measures="bandwidth", image="image:1",
        workloads={"indexedJob": WorkloadCommand(command=("run",))}, log_profile="nccl-bandwidth",
        timeout_s=5.0, start_timeout_s=3.0,
    )  # fmt: skip


def node_facts(name: str) -> NodeFacts:
    return NodeFacts(
        name=name, uid=name, labels={}, gpus_allocatable=8, is_ready=True, is_cordoned=False
    )


@pytest.fixture
def make_plan(client, ledger, entry):
    def make(*, nodes=("n1", "n2"), scale="full-scale", attempt=0, kind="indexedJob", **changes):
        changes = {"workloads": {kind: WorkloadCommand(command=("run",))}} | changes
        selection = Selection(
            nodes=tuple(node_facts(name) for name in nodes),
            excluded=(
                Exclusion(node="n9", reason="cordoned", message="spec.unschedulable is true"),
            ),
            architecture="h100",
            is_simulated=True,
        )
        return plan_workflow(
            replace(entry, **changes), scale, selection, None, served={kind}, run_id=RUN_ID,
            owner=create_owner(client, ledger), namespace="ns", options={}, scripts={}, attempt=attempt,
        )  # fmt: skip

    return make


@pytest.fixture
def run(client, ledger, make_plan):
    def run_it(plan=None, **arguments):
        arguments = {"ledger": ledger, "stop": threading.Event(), "timing": QUICK} | arguments
        return run_workflow(plan or make_plan(), client, **arguments)

    return run_it


def passing(cluster: FakeCluster, job: dict[str, Any], log: bytes = b"") -> None:
    """Play a Job whose pods all run and succeed at once."""
    nodes = [term["matchFields"][0]["values"][0] for term in _terms(job)]
    for index, node in enumerate(nodes):
        pod = cluster.add_pod(job, index, node)
        cluster.run_pod(pod)
        cluster.end_pod(pod, log=log or b"2026-01-01T00:00:00.000000001Z line of rank %d\n" % index)
    cluster.end_job(job)


def _terms(job: dict[str, Any]) -> list[dict[str, Any]]:
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


@pytest.fixture
def play_pass():
    return passing

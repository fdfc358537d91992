"""The four workload kinds on their genuine controllers, under the rights that a run has."""

import itertools
import threading

import pytest

from pytest_cre.catalog.entry import CatalogEntry, WorkloadCommand
from pytest_cre.cluster.client import connect
from pytest_cre.cluster.inventory import read_nodes
from pytest_cre.cluster.objects import (
    CONFIG_MAP,
    JOB,
    JOB_SET,
    MPI_JOB,
    POD,
    SERVICE,
    TRAIN_JOB,
    TRAINING_RUNTIME,
    kind_of,
)
from pytest_cre.cluster.workloads import workload_of
from pytest_cre.plan.selection import select_nodes
from pytest_cre.plan.workflow import plan_workflow
from pytest_cre.run.cleanup import sweep
from pytest_cre.run.clocks import RunTiming
from pytest_cre.run.created import CreatedObjects
from pytest_cre.run.ledger import Ledger
from pytest_cre.run.owner import create_owner
from pytest_cre.run.workflow import run_workflow
from tests.integration.running import SEED, until

KINDS = ("indexedJob", "jobSet", "mpiJob", "trainJob")
OBJECTS = (JOB, JOB_SET, MPI_JOB, TRAIN_JOB, TRAINING_RUNTIME, POD, SERVICE, CONFIG_MAP)
# The MPI operator makes Secrets, which a run has no right to see; they go with their MPIJob.
BANDWIDTH = ("-k", "nccl-all-reduce and not intra-node", "--cre-option=numCycles=1")
TRAINING = ("-k", "nemotron5-8b")
RUNS = itertools.count()
BASE = (f"--cre-simulated-seed={SEED}",)


@pytest.fixture(scope="module")
def embedded(start_run, scenario):
    local = ("--cre-cluster=embedded", f"--cre-scenario={scenario}", *BASE)
    wanted = ("-k", "nccl-all-reduce and not intra-node or nemotron5-8b")
    return start_run(*local, *wanted, "--cre-option=numCycles=1").result()


@pytest.fixture
def harness(plane):
    return connect(kubeconfig=str(plane.harness_kubeconfig), context=None, namespace=None)


def left_of(client, run):
    return sorted(
        f"{kind.kind}/{item['metadata']['name']}"
        for kind in OBJECTS
        for item in client.list(kind).items
        if run in item["metadata"]["name"]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_bandwidth_entry_gives_the_embedded_clusters_table_as_every_kind(
    kind, start_certifying, embedded, admin
):
    genuine = start_certifying(f"--cre-kind={kind}", *BANDWIDTH).result()

    assert genuine.code == 0, genuine.output
    item = genuine.item("nccl-all-reduce")
    assert (item["code"], item["kind"], item["kind_reason"]) == ("pass", kind, "asked for")
    assert f"as {kind}, asked for: nccl-all-reduce" in genuine.output
    assert item["groups"][0]["reasons"] == item["groups"][0]["warnings"] == []
    theirs, ours = (each.measured("nccl-all-reduce") for each in (genuine, embedded))
    (table,) = theirs["bandwidth"]["tables"]
    assert table["complete"]
    assert table["ranks"] == 16
    assert len(table["rows"]) == 32
    assert table["rows"] == ours["bandwidth"]["tables"][0]["rows"]
    assert left_of(admin, genuine.report["run_id"]) == []


@pytest.mark.parametrize("kind", ["jobSet", "trainJob"])
def test_training_entry_makes_the_embedded_clusters_steps_as_other_kinds(
    kind, start_certifying, embedded, admin
):
    def steps(run):
        training = run.measured("nemotron5-8b", pod=1)["training"]
        return [(each["step"], each["step_time_s"], each["loss"]) for each in training["steps"]]

    genuine = start_certifying(f"--cre-kind={kind}", *TRAINING).result()

    assert genuine.code == 0, genuine.output
    item = genuine.item("nemotron5-8b")
    assert (item["code"], item["kind"]) == ("pass", kind)
    assert [step for step, _, _ in steps(genuine)] == [1, 10, 20, 30, 40, 50]
    assert steps(genuine) == steps(embedded)
    assert left_of(admin, genuine.report["run_id"]) == []


def test_embedded_cluster_serves_no_operators_kind_and_says_what_was_taken(embedded):
    assert embedded.code == 0, embedded.output
    assert {item["kind"] for item in embedded.report["items"]} == {"indexedJob"}
    assert "as indexedJob, the entry's first kind: nccl-all-reduce, nemotron5-8b" in embedded.output


@pytest.fixture
def make_plan(harness, tmp_path):
    """Plan a shell command as a workload kind on both nodes, recorded in a ledger."""
    ledgers = []

    def make(kind, script, *, modify=lambda _: None, name="kinds/shell", run_id=None, **changes):
        command = WorkloadCommand(command=("sh", "-c", script))
        timing = {"timeout_s": 60.0, "start_timeout_s": 60.0} | changes
        entry = CatalogEntry(
            name=name, description="", measures="bandwidth", image="image",
            workloads={kind: command}, log_profile="nccl-bandwidth", **timing,
        )  # fmt: skip
        run_id = run_id or f"kinds-{next(RUNS)}"
        ledger = Ledger(tmp_path / f"{run_id}.ledger.jsonl", run_id)
        ledgers.append(ledger)
        selection = select_nodes(read_nodes(harness), {}, gpus_per_node=8)
        plan = plan_workflow(
            entry, "full-scale", selection, None, served=harness.served_workloads(), run_id=run_id,
            owner=create_owner(harness, ledger), namespace=harness.namespace, options={}, scripts={},
        )  # fmt: skip
        assert plan.problems == ()
        for manifest in plan.groups[0].manifests:
            modify(manifest)
        return plan, ledger

    yield make
    for ledger in ledgers:
        assert sweep(harness, ledger.run_id, [ledger.path]).leftovers == ()
        ledger.close()


def run(plan, harness, ledger, **more):
    given = {"stop": threading.Event()} | more
    evidence = run_workflow(plan, harness, ledger=ledger, **given)
    (group,) = evidence.groups
    assert evidence.leftovers == ()
    return group


@pytest.mark.parametrize("kind", KINDS)
def test_failed_workload_names_pod_node_and_exit_code(kind, make_plan, harness, admin):
    plan, ledger = make_plan(kind, "echo broken; exit 3")

    group = run(plan, harness, ledger)

    (problem,) = group.problems
    assert problem.code == "job-failed"
    assert "ended with exit code 3" in problem.message
    assert problem.node in group.nodes
    assert (group.job.terminal, group.job.reason) == ("failed", "BackoffLimitExceeded")
    assert any(b"broken" in log.data for log in group.logs if not log.is_context)
    assert left_of(admin, ledger.run_id) == [f"ConfigMap/cre-{ledger.run_id}"]


@pytest.mark.parametrize("kind", KINDS)
def test_deadline_of_the_cluster_is_a_run_timeout(kind, make_plan, harness):
    def hasten(manifest):
        if isinstance(manifest, dict):
            if "activeDeadlineSeconds" in manifest and "containers" not in manifest:
                manifest["activeDeadlineSeconds"] = 2
            for each in manifest.values():
                hasten(each)
        elif isinstance(manifest, list):
            for each in manifest:
                hasten(each)

    plan, ledger = make_plan(kind, "sleep 60", modify=hasten)

    group = run(plan, harness, ledger)

    # The cluster deletes the pods, so the ends of their logs may be lost as well.
    codes = [problem.code for problem in group.problems]
    assert codes[0] == "run-timeout"
    assert {code for code in codes[1:] if not code.startswith("log-")} == set()
    assert group.job.reason == "DeadlineExceeded"


@pytest.mark.parametrize("kind", KINDS)
def test_interrupt_in_mid_run_leaves_nothing(kind, make_plan, harness, admin):
    plan, ledger = make_plan(kind, "echo begun; sleep 60")
    stop = threading.Event()
    expected = workload_of(kind).expected_pods(2)

    group = run(
        plan, harness, ledger, stop=stop,
        on_progress=lambda told: stop.set() if told.pods_running == expected else None,
    )  # fmt: skip

    assert [problem.code for problem in group.problems] == ["interrupted"]
    assert len(group.pods) == expected
    assert left_of(admin, ledger.run_id) == [f"ConfigMap/cre-{ledger.run_id}"]


@pytest.mark.parametrize("kind", KINDS)
def test_sweep_after_a_killed_run_leaves_nothing(kind, make_plan, harness, admin):
    plan, ledger = make_plan(kind, "sleep 60")
    created = CreatedObjects(ledger)
    for manifest in plan.groups[0].manifests:
        created.create(harness, manifest, lambda refusal: workload_of(kind).is_early(str(refusal)))

    def phases():
        pods = admin.list(POD, label_selector=f"cre.pytest.org/run={ledger.run_id}").items
        return [pod["status"].get("phase") for pod in pods]

    until(lambda: phases() == ["Running"] * workload_of(kind).expected_pods(2))

    swept = sweep(harness, ledger.run_id, [ledger.path])

    assert (swept.leftovers, swept.problem) == ((), None)
    assert phases() == []
    until(lambda: left_of(admin, ledger.run_id) == [], timeout_s=10)


@pytest.mark.parametrize("kind", KINDS)
def test_workload_that_a_queue_holds_back_waits_without_a_deadline(kind, make_plan, harness, admin):
    def suspend(manifest):
        if manifest["kind"] == "MPIJob":
            manifest["spec"]["runPolicy"]["suspend"] = True
        elif manifest["kind"] in ("Job", "JobSet", "TrainJob"):
            manifest["spec"]["suspend"] = True

    plan, ledger = make_plan(kind, "echo one", modify=suspend, start_timeout_s=4.0)
    top = plan.groups[0].manifests[-1]
    seen = threading.Event()
    held_s = 5.0  # longer than the deadline of the start

    def release(progress):
        if progress.detail.startswith("suspended") and not seen.is_set():
            seen.set()
            threading.Timer(held_s, resume).start()

    def resume():
        item = admin.get(kind_of(top), top["metadata"]["name"])
        policy = item["spec"]["runPolicy"] if kind == "mpiJob" else item["spec"]
        policy["suspend"] = False
        admin.replace(item)

    group = run(plan, harness, ledger, on_progress=release)

    assert seen.is_set()
    assert group.problems == ()
    assert group.job.terminal == "succeeded"


def test_train_job_without_its_runtime_is_told_in_the_controllers_words(make_plan, harness):
    def misname(manifest):
        if manifest["kind"] == "TrainJob":
            manifest["spec"]["runtimeRef"]["name"] = "missing"

    plan, ledger = make_plan("trainJob", "true", modify=misname, start_timeout_s=4.0)

    group = run(plan, harness, ledger, timing=RunTiming(learn_s=1.0))

    # Its webhook refuses the TrainJob; without webhooks it would be events after the start's deadline.
    assert [problem.code for problem in group.problems] == ["api-error"]
    assert "specified trainingRuntime must be created before" in group.problems[0].message


@pytest.mark.parametrize("kind", KINDS)
def test_longest_name_is_accepted_by_the_operator(kind, make_plan, harness):
    plan, ledger = make_plan(kind, "true", name=f"kinds/{'x' * 57}", run_id=f"{kind.lower():x<20}")

    group = run(plan, harness, ledger)

    assert group.problems == ()
    assert group.job.terminal == "succeeded"

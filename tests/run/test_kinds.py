"""Workloads whose pods are owned by something in between, played without their controllers."""

import copy
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.run.cleanup import sweep
from pytest_cre.run.ledger import read_ledger
from tests.run.conftest import QUICK

JOBSETS, TRAINER, KUBEFLOW = (
    "jobset.x-k8s.io/v1alpha2", "trainer.kubeflow.org/v1alpha1", "kubeflow.org/v2beta1",
)  # fmt: skip
ROLE, REPLICA = "training.kubeflow.org/job-role", "training.kubeflow.org/replica-index"
LINE = b"2026-01-01T00:00:00.000000001Z %s\n"


def codes(group):
    return [problem.code for problem in group.problems]


def make(cluster, api_version, kind, name, owner, labels=None, **more):
    reference = {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    }  # fmt: skip
    metadata = {
        "name": name, "namespace": "ns", "labels": labels or {}, "ownerReferences": [reference],
    }  # fmt: skip
    item = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}
    return cluster.put(item, "ADDED")


def now_text():
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def end(cluster, item, type_, reason="", message=""):
    cluster.end_job(item, type_, reason, message)


def job_of_set(cluster, jobset, template):
    """Play the JobSet controller: the one Job of the set, with our labels."""
    (replicated,) = template["replicatedJobs"]
    return make(
        cluster, "batch/v1", "Job", f"{jobset['metadata']['name']}-node-0", jobset,
        replicated["template"]["metadata"]["labels"],
        spec=copy.deepcopy(replicated["template"]["spec"]),
    )  # fmt: skip


def nodes_of(job):
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [term["matchFields"][0]["values"][0] for term in terms]


def pods_of(cluster, job, *, container="main", exit_code=0):
    for index, node in enumerate(nodes_of(job)):
        pod = cluster.add_pod(job, index, node)
        cluster.run_pod(pod)
        cluster.end_pod(pod, exit_code=exit_code, log=LINE % f"rank {index}".encode())
        for status in pod["status"]["containerStatuses"]:
            status["name"] = container
        cluster.put(pod)


def play_jobset(cluster, jobset):
    job = job_of_set(cluster, jobset, jobset["spec"])
    pods_of(cluster, job)
    end(cluster, job, "Complete")
    end(cluster, jobset, "Completed")


def play_train_job(cluster, train_job):
    name = train_job["spec"]["runtimeRef"]["name"]
    (runtime,) = cluster.find("TrainingRuntime", name)
    template = runtime["spec"]["template"]
    jobset = make(
        cluster, JOBSETS, "JobSet", train_job["metadata"]["name"], train_job,
        template["metadata"]["labels"], spec=copy.deepcopy(template["spec"]),
    )  # fmt: skip
    job = job_of_set(cluster, jobset, jobset["spec"])
    pods_of(cluster, job, container="node")
    for each, type_ in ((job, "Complete"), (jobset, "Completed"), (train_job, "Complete")):
        end(cluster, each, type_)


def mpi_workers(cluster, mpi_job):
    """Play the operator until the workers run."""
    specs, name = mpi_job["spec"]["mpiReplicaSpecs"], mpi_job["metadata"]["name"]
    for index in range(specs["Worker"]["replicas"]):
        labels = specs["Worker"]["template"]["metadata"]["labels"]
        labels = labels | {ROLE: "worker", REPLICA: str(index)}
        pod = make(
            cluster, "v1", "Pod", f"{name}-worker-{index}", mpi_job, labels,
            spec={"nodeName": f"n{index + 1}"}, status={"phase": "Pending"},
        )  # fmt: skip
        cluster.logs[pod["metadata"]["name"]] = LINE % b"Server listening on 0.0.0.0 port 22."
        pod["status"]["conditions"] = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": now_text()}
        ]
        cluster.run_pod(pod)


def mpi_launcher(cluster, mpi_job):
    """Play the operator up to the start of the launcher; give the launcher's pod."""
    mpi_workers(cluster, mpi_job)
    specs, name = mpi_job["spec"]["mpiReplicaSpecs"], mpi_job["metadata"]["name"]
    job = make(cluster, "batch/v1", "Job", f"{name}-launcher", mpi_job, {"app": name})
    labels = specs["Launcher"]["template"]["metadata"]["labels"] | {ROLE: "launcher"}
    launcher = make(
        cluster, "v1", "Pod", f"{name}-launcher-xxxxx", job, labels,
        spec={"nodeName": "n1"}, status={"phase": "Pending"},
    )  # fmt: skip
    cluster.run_pod(launcher)
    return launcher


def play_mpi_job(cluster, mpi_job):
    launcher = mpi_launcher(cluster, mpi_job)
    cluster.end_pod(launcher, log=LINE % b"a table")
    end(cluster, mpi_job, "Succeeded")


PLAYED = {"jobSet": play_jobset, "trainJob": play_train_job, "mpiJob": play_mpi_job}


def left(cluster):
    kinds = ("Node", "ConfigMap")
    return [f"{e['kind']}/{e['metadata']['name']}" for e in cluster.objects.values()
            if e["kind"] not in kinds]  # fmt: skip


@pytest.mark.parametrize("kind", ["jobSet", "trainJob"])
def test_pods_two_and_three_levels_below_are_followed_to_their_end(kind, cluster, run, make_plan):
    cluster.on_job = PLAYED[kind]

    evidence = run(make_plan(kind=kind))

    (group,) = evidence.groups
    assert group.problems == ()
    assert group.job.terminal == "succeeded"
    assert [(pod.role, pod.completion_index, pod.phase) for pod in group.pods] == [
        ("rank", 0, "Succeeded"), ("rank", 1, "Succeeded"),
    ]  # fmt: skip
    assert [log.data for log in group.logs] == [LINE % b"rank 0", LINE % b"rank 1"]
    assert all(log.is_complete for log in group.logs)
    assert (evidence.kind, evidence.kind_reason) == (kind, "the entry's first kind")
    assert evidence.leftovers == ()
    assert left(cluster) == []


def test_mpi_job_ends_with_its_launcher_while_workers_run_on(cluster, run, make_plan):
    cluster.on_job = play_mpi_job

    evidence = run(make_plan(kind="mpiJob"))

    (group,) = evidence.groups
    assert group.problems == ()
    assert group.job.terminal == "succeeded"
    assert [(pod.role, pod.completion_index, pod.phase) for pod in group.pods] == [
        ("launcher", None, "Succeeded"), ("worker", 0, "Running"), ("worker", 1, "Running"),
    ]  # fmt: skip
    assert [(log.role, log.is_complete) for log in group.logs] == [
        ("launcher", True), ("worker", False), ("worker", False),
    ]  # fmt: skip
    assert group.logs[0].data == LINE % b"a table"
    assert group.logs[1].data == LINE % b"Server listening on 0.0.0.0 port 22."
    assert group.queue_s is not None
    assert evidence.leftovers == ()
    assert left(cluster) == []


def test_mpi_job_is_not_running_before_its_launcher_is(cluster, run, make_plan):
    cluster.on_job = mpi_workers
    seen = []

    evidence = run(make_plan(kind="mpiJob", start_timeout_s=0.4), on_progress=seen.append)

    assert codes(evidence.groups[0]) == ["start-timeout"]
    assert evidence.groups[0].problems[0].message == "2 of 3 pods ran within 0.4 s"
    assert "running" not in {each.phase for each in seen}


def test_pods_of_a_namesake_do_not_count(cluster, run, make_plan):
    def foreign(cluster, jobset):
        job = job_of_set(cluster, jobset, jobset["spec"])
        job["metadata"]["ownerReferences"][0]["uid"] = "somebody-elses"
        pods_of(cluster, cluster.put(job))

    cluster.on_job = foreign

    evidence = run(make_plan(kind="jobSet", start_timeout_s=0.4))

    (group,) = evidence.groups
    assert (group.pods, group.logs) == ((), ())
    assert codes(group) == ["start-timeout"]
    assert "0 of 2 pods ran" in group.problems[0].message


def test_pods_whose_job_is_gone_already_do_not_count(cluster, run, make_plan):
    def orphaned(cluster, jobset):
        job = job_of_set(cluster, jobset, jobset["spec"])
        cluster.add_pod(job, 0, "n1")
        cluster.remove(job)

    cluster.on_job = orphaned

    (group,) = run(make_plan(kind="jobSet", start_timeout_s=0.4)).groups
    assert group.pods == ()
    assert codes(group) == ["start-timeout"]


def test_each_object_in_between_is_read_once_and_again_after_a_failure(cluster, run, make_plan):
    def fails(cluster, jobset):
        job = job_of_set(cluster, jobset, jobset["spec"])
        pods_of(cluster, job, exit_code=3)
        end(cluster, job, "Failed", "BackoffLimitExceeded", "Job has reached the limit")
        end(cluster, jobset, "Failed", "ReachedMaxRestarts", "jobset failed")

    cluster.on_job = fails

    (group,) = run(make_plan(kind="jobSet")).groups

    assert codes(group) == ["job-failed"]
    assert "ended with exit code 3" in group.problems[0].message
    assert (group.job.reason, group.job.message) == (
        "BackoffLimitExceeded", "jobset failed: Job has reached the limit",
    )  # fmt: skip
    name = f"{group.job.name}-node-0"
    assert cluster.requests.count(("get", "Job", name)) <= 2


def test_a_deadline_of_the_job_below_is_a_run_timeout(cluster, run, make_plan):
    def expires(cluster, jobset):
        job = job_of_set(cluster, jobset, jobset["spec"])
        pods_of(cluster, job, exit_code=143)
        end(cluster, job, "Failed", "DeadlineExceeded", "Job was active longer")
        end(cluster, jobset, "Failed", "FailedJobs", "jobset failed")

    cluster.on_job = expires

    (group,) = run(make_plan(kind="jobSet")).groups
    assert codes(group) == ["run-timeout"]
    assert "DeadlineExceeded" in group.problems[0].message


def test_a_controller_that_cannot_start_is_quoted(cluster, run, make_plan):
    def refused(cluster, train_job):
        about = {"kind": "TrainJob", "name": train_job["metadata"]["name"],
                 "uid": train_job["metadata"]["uid"]}  # fmt: skip
        cluster.put(
            {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "ns"},
             "involvedObject": about, "type": "Warning", "count": 1,
             "reason": "TrainJobResourcesCreationFailed", "message": "the webhook refused"},
            "ADDED",
        )  # fmt: skip

    cluster.on_job = refused

    (group,) = run(make_plan(kind="trainJob", start_timeout_s=0.4)).groups
    assert codes(group) == ["start-timeout"]
    assert group.problems[0].message.endswith(
        "TrainJobResourcesCreationFailed: the webhook refused"
    )


def refusal():
    return ApiProblem(
        "create trainjobs ns/x: 403 Forbidden: not found: specified trainingRuntime must be created "
        "before the TrainJob is created",
        status=403,
        reason="Forbidden",
    )


def test_a_train_job_whose_runtime_is_not_known_yet_is_created_again(
    cluster, run, make_plan, ledger
):
    cluster.on_job = play_train_job
    cluster.fail("create", "TrainJob", refusal(), times=2)

    (group,) = run(make_plan(kind="trainJob")).groups

    assert group.problems == ()
    assert group.job.terminal == "succeeded"
    names = [each.kind for each in read_ledger(ledger.path)]
    assert names.count("TrainJob") == 1


def test_a_train_job_whose_runtime_never_gets_known_is_an_error(cluster, run, make_plan):
    cluster.fail("create", "TrainJob", refusal())

    evidence = run(make_plan(kind="trainJob"), timing=replace(QUICK, learn_s=0.3))

    assert codes(evidence.groups[0]) == ["api-error"]
    assert evidence.leftovers == ()
    assert left(cluster) == []


def test_an_interrupt_ends_the_waiting_for_a_runtime(cluster, run, make_plan):
    cluster.fail("create", "TrainJob", refusal())
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()

    (group,) = run(make_plan(kind="trainJob"), stop=stop).groups

    assert codes(group) == ["interrupted"]


def test_a_runtime_that_its_controller_holds_for_a_moment_is_no_leftover(
    cluster, run, make_plan, monkeypatch
):
    cluster.on_job = play_train_job
    remove = cluster.remove

    def hold(item):
        if item["kind"] == "TrainingRuntime":
            threading.Timer(0.3, remove, [item]).start()
        else:
            remove(item)

    monkeypatch.setattr(cluster, "remove", hold)

    evidence = run(make_plan(kind="trainJob"))
    assert evidence.leftovers == ()
    assert cluster.find("TrainingRuntime") == []


def test_sweep_waits_for_a_launcher_whose_job_carries_no_label(
    cluster, client, ledger, make_plan, monkeypatch
):
    plan = make_plan(kind="mpiJob")
    (manifest,) = plan.groups[0].manifests
    recorded = ledger.announce(manifest)
    item = client.create_or_adopt(manifest)
    ledger.created(recorded, item["metadata"]["uid"])
    (mpi_job,) = cluster.find("MPIJob")
    launcher = mpi_launcher(cluster, mpi_job)
    monkeypatch.setattr(cluster, "stuck_pods", True)

    swept = sweep(client, "k3f2a", [ledger.path], patience_s=lambda: 0.3)

    assert f"Pod/{launcher['metadata']['name']} on node n1" in swept.leftovers
    assert "MPIJob/" + mpi_job["metadata"]["name"] in swept.deleted

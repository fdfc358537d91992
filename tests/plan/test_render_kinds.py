"""The same entry as each workload kind."""

import dataclasses
import json

import pytest

from pytest_cre.catalog.entry import WorkloadCommand
from pytest_cre.plan.model import NodeGroup
from pytest_cre.plan.render import render_group

GROUP = NodeGroup(name="group-0", nodes=("n1", "n2"))
KINDS = ("indexedJob", "jobSet", "mpiJob", "trainJob")
LABELS = {
    "app.kubernetes.io/managed-by": "pytest-cre",
    "cre.pytest.org/run": "k3f2a",
    "cre.pytest.org/entry": "communication.nccl-all-reduce",
    "cre.pytest.org/group": "group-0",
    "cre.pytest.org/attempt": "0",
}
DEADLINE_S = 1501 + 300  # start and run deadline of the entry, and a margin


@pytest.fixture
def render(entry):
    command = WorkloadCommand(command=("run",), args=("--master=${masterAddress}", "-n=${gpus}"))
    entry = dataclasses.replace(entry, workloads=dict.fromkeys(KINDS, command))

    def render_it(kind, entry=entry, **changes):
        arguments = {
            "scale": "full-scale", "architecture": "h100", "gpus_per_node": 8, "run_id": "k3f2a",
            "owner": ("cre-k3f2a", "uid-1"), "namespace": "team-a", "options": {},
            "scripts": {"collective.py": "pass\n"},
        }  # fmt: skip
        return render_group(entry, kind, changes.pop("group", GROUP), **(arguments | changes))

    return render_it


def pod_templates(value):
    """Return every pod template inside manifests, in order."""
    if isinstance(value, list | tuple):
        return [found for each in value for found in pod_templates(each)]
    if not isinstance(value, dict):
        return []
    if "containers" in (value.get("spec") or {}):
        return [value]
    return [found for each in value.values() for found in pod_templates(each)]


def top(plan):
    return plan.manifests[-1]


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        ("indexedJob", ["ConfigMap", "Service", "Job"]),
        ("jobSet", ["ConfigMap", "JobSet"]),
        ("mpiJob", ["ConfigMap", "MPIJob"]),
        ("trainJob", ["ConfigMap", "TrainingRuntime", "TrainJob"]),
    ],
)
def test_render_creates_what_the_kind_needs_the_workload_last(kind, kinds, render):
    # A Service of the workload's name is made by the operators themselves, which refuse a foreign one.
    assert [each["kind"] for each in render(kind).manifests] == kinds


@pytest.mark.parametrize("kind", KINDS)
def test_render_every_object_is_labelled_and_owned_by_the_run(kind, render):
    plan = render(kind)
    for manifest in plan.manifests:
        assert manifest["metadata"]["name"] == plan.job_name
        assert manifest["metadata"]["labels"] == LABELS
        assert [each["uid"] for each in manifest["metadata"]["ownerReferences"]] == ["uid-1"]


@pytest.mark.parametrize("kind", KINDS)
def test_render_our_labels_reach_the_pods(kind, render):
    plan = render(kind)
    templates = pod_templates(plan.manifests)
    assert len(templates) == (2 if kind == "mpiJob" else 1)
    for template in templates:
        assert template["metadata"]["labels"] == LABELS | {"cre.pytest.org/job": plan.job_name}


@pytest.mark.parametrize("kind", KINDS)
def test_render_all_pods_stay_on_the_groups_nodes_and_tolerate_gpu_taints(kind, render):
    for template in pod_templates(render(kind).manifests):
        spec = template["spec"]
        nodes = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert [term["matchFields"][0]["values"] for term in nodes["nodeSelectorTerms"]] == [
            ["n1"], ["n2"],
        ]  # fmt: skip
        assert {each["key"] for each in spec["tolerations"]} == {
            "nvidia.com/gpu", "cre.pytest.org/simulated",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("indexedJob", "{0}-0.{0}"),
        ("jobSet", "{0}-node-0-0.{0}"),
        ("mpiJob", "{0}-worker-0.{0}"),
        ("trainJob", "{0}-node-0-0.{0}"),
    ],
)
def test_render_master_is_the_first_pod_that_runs_ranks(kind, first, render):
    plan = render(kind)
    (args,) = [
        container["args"]
        for template in pod_templates(plan.manifests)
        for container in template["spec"]["containers"]
        if "args" in container
    ]
    assert args == [f"--master={first.format(plan.job_name)}", "-n=16"]


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [
        ("indexedJob", "-99999-abcde"),
        ("jobSet", "-node-0-99999-abcde"),
        ("mpiJob", "-launcher-abcde"),
        ("mpiJob", "-worker-99999"),
        ("trainJob", "-node-0-99999-abcde"),
    ],
)
def test_render_longest_pod_name_is_a_dns_label(kind, suffix, render, entry):
    long = "communication/" + "x" * 80
    entry = dataclasses.replace(entry, name=long, workloads=dict.fromkeys(KINDS, WorkloadCommand(command=("a",))))  # fmt: skip
    plan = render(kind, entry, run_id="r" * 20, group=NodeGroup(name="group-12345-overflow", nodes=("n",)))  # fmt: skip
    assert len(plan.job_name + suffix) <= 63


@pytest.mark.parametrize("kind", KINDS)
def test_render_no_operator_retries_and_no_log_is_deleted_early(kind, render):
    text = json.dumps(render(kind).manifests)
    assert '"backoffLimit": 0' in text
    assert '"ttlSecondsAfterFinished": 3600' in text
    assert f'"activeDeadlineSeconds": {DEADLINE_S}' in text
    if kind in ("jobSet", "trainJob"):
        assert '"failurePolicy": {"maxRestarts": 0}' in text


def test_render_job_set_holds_one_indexed_job(render):
    (replicated,) = top(render("jobSet"))["spec"]["replicatedJobs"]
    job = replicated["template"]["spec"]
    assert (replicated["name"], replicated["replicas"]) == ("node", 1)
    assert (job["completionMode"], job["completions"], job["parallelism"]) == ("Indexed", 2, 2)
    assert "ttlSecondsAfterFinished" not in job  # its pods would go before those of the set
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert replicated["template"]["metadata"]["labels"]["cre.pytest.org/run"] == "k3f2a"


def test_render_mpi_job_waits_for_its_workers_and_keeps_them(render):
    spec = top(render("mpiJob"))["spec"]
    assert spec["launcherCreationPolicy"] == "WaitForWorkersReady"
    assert spec["runPolicy"]["cleanPodPolicy"] == "None"
    assert spec["sshAuthMountPath"] == "/root/.ssh"
    assert spec["slotsPerWorker"] == 8
    replicas = spec["mpiReplicaSpecs"]
    assert {role: each["replicas"] for role, each in replicas.items()} == {
        "Launcher": 1, "Worker": 2,
    }  # fmt: skip
    assert {each["restartPolicy"] for each in replicas.values()} == {"Never"}
    # The operator takes the policy of the replica and warns of one in the template.
    assert all("restartPolicy" not in each["template"]["spec"] for each in replicas.values())


def test_render_mpi_launcher_runs_the_command_without_gpus_beside_a_worker(render):
    spec = top(render("mpiJob"))["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["command"] == ["run"]
    assert "resources" not in container
    assert "podAntiAffinity" not in spec["affinity"]


def test_render_mpi_workers_hold_the_gpus_one_on_each_node(render):
    plan = render("mpiJob")
    spec = top(plan)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    (container,) = spec["containers"]
    assert "command" not in container  # the operator puts the SSH server there
    assert "args" not in container
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert container["readinessProbe"]["tcpSocket"] == {"port": 22}
    (apart,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"] == {
        "cre.pytest.org/job": plan.job_name, "training.kubeflow.org/job-role": "worker",
    }  # fmt: skip
    # Nothing else would end them: the deadline of an MPIJob is that of its launcher.
    assert spec["activeDeadlineSeconds"] == DEADLINE_S


def test_render_train_job_refers_to_its_own_runtime_with_the_torch_policy(render):
    plan = render("trainJob")
    _, runtime, train_job = plan.manifests
    assert train_job["spec"]["runtimeRef"] == {
        "apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": plan.job_name,
    }  # fmt: skip
    assert train_job["spec"]["trainer"] == {"numNodes": 2, "numProcPerNode": 8}
    assert runtime["spec"]["mlPolicy"] == {"numNodes": 2, "torch": {"numProcPerNode": 8}}
    template = runtime["spec"]["template"]
    assert template["metadata"]["labels"]["cre.pytest.org/run"] == "k3f2a"
    (replicated,) = template["spec"]["replicatedJobs"]
    labels = replicated["template"]["metadata"]["labels"]
    assert labels["trainer.kubeflow.org/trainjob-ancestor-step"] == "trainer"
    (container,) = replicated["template"]["spec"]["template"]["spec"]["containers"]
    assert (replicated["name"], container["name"]) == ("node", "node")


@pytest.mark.parametrize("kind", KINDS)
def test_render_placeholders_filled_in_give_what_a_run_creates(kind, render):
    placeholder = render(kind, run_id="run-id", owner=("cre-run-id", "OWNER-UID"),
                         group=NodeGroup(name="group-0", nodes=("NODE-0", "NODE-1")))  # fmt: skip
    text = json.dumps(placeholder.manifests)
    for name, value in {
        "run-id": "k3f2a", "OWNER-UID": "uid-1", "NODE-0": "n1", "NODE-1": "n2",
    }.items():  # fmt: skip
        text = text.replace(name, value)
    assert text == json.dumps(render(kind).manifests)

import dataclasses
import json

import pytest

from pytest_cre.catalog.entry import Checkpoint
from pytest_cre.errors import CatalogProblem
from pytest_cre.plan.model import NodeGroup
from pytest_cre.plan.render import render_group

GROUP = NodeGroup(name="group-1", nodes=("n1", "n2"))
LABELS = {
    "app.kubernetes.io/managed-by": "pytest-cre",
    "cre.pytest.org/run": "k3f2a",
    "cre.pytest.org/entry": "communication.nccl-all-reduce",
    "cre.pytest.org/group": "group-1",
    "cre.pytest.org/attempt": "2",
}


@pytest.fixture
def render(entry):
    def render_it(entry=entry, **changes):
        arguments = {
            "scale": "full-scale", "architecture": "h100", "gpus_per_node": 8, "run_id": "k3f2a",
            "owner": ("cre-k3f2a", "uid-1"), "namespace": "team-a", "options": {"maxBytes": "8G"},
            "scripts": {"collective.py": "print(1)\n", "unused.py": ""}, "attempt": 2,
        }  # fmt: skip
        return render_group(
            entry, "indexedJob", changes.pop("group", GROUP), **(arguments | changes)
        )

    return render_it


def by_kind(plan):
    return {manifest["kind"]: manifest for manifest in plan.manifests}


def test_render_creates_scripts_and_service_before_the_job(render):
    plan = render()

    assert [each["kind"] for each in plan.manifests] == ["ConfigMap", "Service", "Job"]
    assert [each["apiVersion"] for each in plan.manifests] == ["v1", "v1", "batch/v1"]
    assert {each["metadata"]["name"] for each in plan.manifests} == {plan.job_name}
    assert plan.ranks_planned == 16


def test_render_puts_labels_owner_and_namespace_on_every_object(render):
    plan = render()

    for manifest in plan.manifests:
        assert manifest["metadata"]["labels"] == LABELS
        assert manifest["metadata"]["namespace"] == "team-a"
        [owner] = manifest["metadata"]["ownerReferences"]
        assert owner == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "cre-k3f2a",
            "uid": "uid-1",
        }
    pod_labels = by_kind(plan)["Job"]["spec"]["template"]["metadata"]["labels"]
    assert pod_labels == LABELS | {"cre.pytest.org/job": plan.job_name}


def test_render_job_is_indexed_and_never_retries_or_stays(render):
    spec = by_kind(render())["Job"]["spec"]

    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
    assert spec["backoffLimit"] == 0
    assert spec["activeDeadlineSeconds"] == 1501 + 300  # start and run deadline, and a margin
    assert spec["ttlSecondsAfterFinished"] == 3600
    [rule] = spec["podFailurePolicy"]["rules"]
    assert rule == {
        "action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    }


def test_render_pods_run_once_on_exactly_the_groups_nodes(render):
    plan = render()
    pod = by_kind(plan)["Job"]["spec"]["template"]["spec"]

    assert pod["restartPolicy"] == "Never"
    assert pod["subdomain"] == by_kind(plan)["Service"]["metadata"]["name"]
    assert 0 < pod["terminationGracePeriodSeconds"] <= 30
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    fields = [field for term in required["nodeSelectorTerms"] for field in term["matchFields"]]
    assert fields == [
        {"key": "metadata.name", "operator": "In", "values": [node]} for node in ("n1", "n2")
    ]
    [apart] = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"] == {"cre.pytest.org/job": plan.job_name}
    assert {each["key"] for each in pod["tolerations"]} == {
        "nvidia.com/gpu",
        "cre.pytest.org/simulated",
    }


def test_render_container_has_gpus_shared_memory_scripts_and_last_words(render):
    pod = by_kind(render())["Job"]["spec"]["template"]["spec"]
    [container] = pod["containers"]

    assert container["image"] == "example.com/pytorch:1"
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert {each["mountPath"] for each in container["volumeMounts"]} == {"/dev/shm", "/cre"}
    assert {"name": "shm", "emptyDir": {"medium": "Memory"}} in pod["volumes"]
    assert container["env"] == [
        {"name": "NCCL_DEBUG", "value": "INFO"},
        {"name": "PYTHONUNBUFFERED", "value": "1"},
    ]


def test_render_substitutes_options_and_what_only_the_plan_knows(render):
    plan = render()
    [container] = by_kind(plan)["Job"]["spec"]["template"]["spec"]["containers"]

    assert container["command"] == ["python3", "/cre/collective.py"]
    assert container["args"] == [
        "--nodes", "2", "--gpus", "8", "--ranks", "16",
        "--master", f"{plan.job_name}-0.{plan.job_name}", "-e", "8G", "--arch", "h100",
    ]  # fmt: skip


def test_render_service_publishes_pods_before_they_are_ready(render):
    plan = render()
    spec = by_kind(plan)["Service"]["spec"]

    assert spec["clusterIP"] == "None"
    assert spec["publishNotReadyAddresses"] is True
    assert spec["selector"] == {"cre.pytest.org/job": plan.job_name}


def test_render_ships_only_the_entrys_scripts(render):
    assert by_kind(render())["ConfigMap"]["data"] == {"collective.py": "print(1)\n"}


def test_render_entry_without_scripts_mounts_none(render, entry):
    plan = render(dataclasses.replace(entry, scripts=()))
    pod = by_kind(plan)["Job"]["spec"]["template"]["spec"]

    assert [each["kind"] for each in plan.manifests] == ["Service", "Job"]
    assert [each["name"] for each in pod["volumes"]] == ["shm"]
    assert [each["name"] for each in pod["containers"][0]["volumeMounts"]] == ["shm"]


def test_render_entry_env_wins_over_ours(render, entry):
    plan = render(dataclasses.replace(entry, env={"PYTHONUNBUFFERED": "0"}))
    [container] = by_kind(plan)["Job"]["spec"]["template"]["spec"]["containers"]

    assert container["env"] == [{"name": "PYTHONUNBUFFERED", "value": "0"}]


def test_render_substitutes_names_in_the_environment(render, entry):
    plan = render(dataclasses.replace(entry, env={"WORLD": "${nodes}x$$", "HOST": "$(NODE)"}))
    container = by_kind(plan)["Job"]["spec"]["template"]["spec"]["containers"][0]
    values = {each["name"]: each["value"] for each in container["env"]}
    assert values["WORLD"].endswith("x$")
    assert values["WORLD"][:-2].isdecimal()
    assert values["HOST"] == "$(NODE)"


def test_render_same_input_gives_the_same_bytes(render, entry):
    reordered = dataclasses.replace(entry, env=dict(reversed((entry.env | {"A": "1"}).items())))
    other = dataclasses.replace(entry, env=entry.env | {"A": "1"})

    assert json.dumps(render(reordered).manifests) == json.dumps(render(other).manifests)


def test_render_holds_only_strings_where_kubernetes_wants_strings(render):
    [container] = by_kind(render())["Job"]["spec"]["template"]["spec"]["containers"]
    texts = [
        *(each["value"] for each in container["env"]), *container["command"], *container["args"],
        *container["resources"]["limits"].values(),
    ]  # fmt: skip

    assert all(isinstance(text, str) for text in texts)


def test_render_placeholders_filled_in_give_what_a_run_creates(render):
    placeholder = render(run_id="run-id", owner=("cre-run-id", "OWNER-UID"),
                         group=NodeGroup(name="group-1", nodes=("NODE-0", "NODE-1")))  # fmt: skip
    text = json.dumps(placeholder.manifests)
    for name, value in {
        "run-id": "k3f2a",
        "OWNER-UID": "uid-1",
        "NODE-0": "n1",
        "NODE-1": "n2",
    }.items():
        text = text.replace(name, value)

    assert text == json.dumps(render().manifests)


CHECKPOINT = Checkpoint(
    path="${checkpointPath}", enabled="${enableCheckpoint}", storage_size="2Ti",
    storage_class_name="${storageClassName}", max_restarts="3",
)  # fmt: skip
ON = {
    "maxBytes": "8G", "enableCheckpoint": "true", "checkpointPath": "/checkpoints/a",
    "storageClassName": "",
}  # fmt: skip


def test_checkpoints_have_a_claim_made_first_and_mounted_by_every_pod(render, entry):
    plan = render(dataclasses.replace(entry, checkpoint=CHECKPOINT), options=ON)

    assert [each["kind"] for each in plan.manifests] == [
        "PersistentVolumeClaim", "ConfigMap", "Service", "Job",
    ]  # fmt: skip
    claim, job = plan.manifests[0], plan.manifests[-1]
    assert claim["metadata"] == job["metadata"]
    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "2Ti"}},
    }
    spec = job["spec"]["template"]["spec"]
    assert {
        "name": "checkpoints",
        "persistentVolumeClaim": {"claimName": plan.job_name},
    } in spec["volumes"]
    assert {"name": "checkpoints", "mountPath": "/checkpoints/a"} in spec["containers"][0][
        "volumeMounts"
    ]
    assert plan.max_restarts == 3


def test_claim_names_the_storage_class_where_one_is_given(render, entry):
    options = ON | {"storageClassName": "fast"}
    plan = render(dataclasses.replace(entry, checkpoint=CHECKPOINT), options=options)

    assert plan.manifests[0]["spec"]["storageClassName"] == "fast"


def test_checkpoints_that_are_not_enabled_change_nothing(render, entry):
    options = ON | {"enableCheckpoint": "false"}
    plan = render(dataclasses.replace(entry, checkpoint=CHECKPOINT), options=options)

    assert plan.manifests == render(options=options).manifests
    assert plan.max_restarts == 0


def test_option_that_no_volume_can_have_is_refused_by_entry(render, entry):
    options = ON | {"checkpointPath": "here"}
    with pytest.raises(CatalogProblem, match=r"^communication/nccl-all-reduce: checkpoint.path"):
        render(dataclasses.replace(entry, checkpoint=CHECKPOINT), options=options)

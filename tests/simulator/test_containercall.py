import asyncio
import base64

import pytest

from pytest_cre.simulator.containercall import ConfigProblem, expand, resolve_call

OBJECTS = {
    ("configmaps", "scripts"): {"data": {"a.py": "print()", "b.py": "2"}},
    ("configmaps", "values"): {"data": {"ONE": "1"}},
    ("secrets", "keys"): {"data": {"TOKEN": base64.b64encode(b"t0k").decode()}},
}


def call(container, volumes=(), **metadata):
    pod = {
        "metadata": {"name": "p-0-x", "namespace": "ns", "uid": "u", **metadata},
        "spec": {"nodeName": "node-1", "hostname": "p-0", "volumes": list(volumes)},
    }

    async def fetch(plural, namespace, name):
        assert namespace == "ns"
        return OBJECTS.get((plural, name))

    return asyncio.run(
        resolve_call(
            pod, {"name": "main", **container}, pod_ip="10.0.0.1", host_ip="127.0.0.1", fetch=fetch
        )
    )


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(A)", "x1y1"),
        ("$(NONE)", "$(NONE)"),
        ("$$(A)", "$(A)"),
        ("$A ${A} $", "$A ${A} $"),
        ("$$", "$"),
    ],
)
def test_expand_follows_the_rules_of_kubernetes(text, expanded):
    assert expand(text, {"A": "1"}) == expanded


def test_call_expands_command_and_arguments_with_the_environment():
    result = call(
        {
            "command": ["torchrun"],
            "args": ["--node-rank=$(JOB_COMPLETION_INDEX)"],
            "env": [
                {
                    "name": "JOB_COMPLETION_INDEX",
                    "valueFrom": {
                        "fieldRef": {
                            "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"
                        }
                    },
                }
            ],
        },
        annotations={"batch.kubernetes.io/job-completion-index": "3"},
    )
    assert result.argv == ("torchrun", "--node-rank=3")


def test_call_environment_refers_to_what_stands_before():
    env = call({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}]}).env
    assert (env["B"], env["HOSTNAME"]) == ("12", "p-0")


def test_call_takes_values_from_fields_config_maps_and_secrets():
    env = call(
        {
            "envFrom": [{"configMapRef": {"name": "values"}, "prefix": "X_"}],
            "env": [
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "T", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "TOKEN"}}},
            ],
        }
    ).env
    assert (env["X_ONE"], env["NODE"], env["IP"], env["T"]) == ("1", "node-1", "10.0.0.1", "t0k")


def test_call_mounts_config_maps_as_files():
    files = call(
        {"volumeMounts": [{"name": "s", "mountPath": "/cre"}]},
        [{"name": "s", "configMap": {"name": "scripts"}}],
    ).files
    assert files == {"/cre/a.py": b"print()", "/cre/b.py": b"2"}


def test_call_mounts_one_key_by_sub_path_and_chosen_items():
    volumes = [
        {
            "name": "s",
            "configMap": {"name": "scripts", "items": [{"key": "a.py", "path": "x/y.py"}]},
        },
        {"name": "t", "configMap": {"name": "scripts"}},
    ]
    mounts = [
        {"name": "s", "mountPath": "/cre"},
        {"name": "t", "mountPath": "/etc/b.py", "subPath": "b.py"},
    ]
    assert call({"volumeMounts": mounts}, volumes).files == {
        "/cre/x/y.py": b"print()",
        "/etc/b.py": b"2",
    }


def test_call_with_missing_config_map_tells_reason_by_its_use():
    with pytest.raises(ConfigProblem, match='configmap "none" not found') as mount:
        call(
            {"volumeMounts": [{"name": "s", "mountPath": "/cre"}]},
            [{"name": "s", "configMap": {"name": "none"}}],
        )
    assert mount.value.reason == "ContainerCreating"
    with pytest.raises(ConfigProblem) as variable:
        call({"envFrom": [{"configMapRef": {"name": "none"}}]})
    assert variable.value.reason == "CreateContainerConfigError"


def test_call_with_optional_missing_config_map_goes_on():
    assert call({"envFrom": [{"configMapRef": {"name": "none", "optional": True}}]}).files == {}


def test_call_knows_which_volume_holds_a_path():
    result = call(
        {
            "volumeMounts": [
                {"name": "c", "mountPath": "/checkpoints/"},
                {"name": "e", "mountPath": "/tmp"},
            ]
        },
        [
            {"name": "c", "persistentVolumeClaim": {"claimName": "pvc"}},
            {"name": "e", "emptyDir": {}},
        ],
    )
    assert result.volume_of("/checkpoints/a") == "claim/ns/pvc"
    assert result.volume_of("/tmp/a") is None
    assert result.volume_of("/checkpointsX") is None

import base64
import json

import pytest

from pytest_cre.controlplane import operators
from pytest_cre.controlplane.operators import are_served, crds_of, local_webhooks, read_manifests

WEBHOOKS = {
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "mutating-webhook-configuration"},
    "webhooks": [
        {
            "name": "mjobset.kb.io",
            "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/mutate-jobset"}},
            "rules": [{"resources": ["jobsets"]}],
        },
        {
            "name": "mpod.kb.io",
            "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/mutate-pod"}},
            "rules": [{"resources": ["pods"]}],
        },
    ],
}


@pytest.fixture
def rewritten():
    return local_webhooks(WEBHOOKS, name="jobset", port=1234, authority_pem=b"PEM")


def test_webhooks_are_called_on_this_machine_and_verified(rewritten):
    assert rewritten["metadata"]["name"] == "jobset"
    assert rewritten["webhooks"][0]["clientConfig"] == {
        "url": "https://127.0.0.1:1234/mutate-jobset",
        "caBundle": base64.b64encode(b"PEM").decode(),
    }


def test_webhooks_on_pods_see_those_of_jobsets_alone(rewritten):
    on_jobsets, on_pods = rewritten["webhooks"]
    assert "objectSelector" not in on_jobsets
    assert on_pods["objectSelector"] == {
        "matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]
    }


def test_manifest_as_read_is_left_alone(rewritten):
    assert "service" in WEBHOOKS["webhooks"][0]["clientConfig"]


def test_manifests_are_read_by_the_operators_name(tmp_path):
    (tmp_path / "manifests").mkdir()
    objects = [WEBHOOKS, {"kind": "CustomResourceDefinition"}]
    (tmp_path / "manifests" / "jobset.json").write_text(json.dumps(objects))
    assert crds_of(read_manifests(tmp_path, "jobset")) == [{"kind": "CustomResourceDefinition"}]


class Served:
    """An API server that serves these kinds by path."""

    def __init__(self, by_path):
        self.by_path = by_path

    def answers(self, path):
        return path in self.by_path

    def call(self, _method, path):
        return {"resources": [{"name": name} for name in self.by_path[path]]}


CRD = {
    "spec": {
        "group": "x.io",
        "names": {"plural": "things"},
        "versions": [{"name": "v1", "served": True}, {"name": "v0", "served": False}],
    }
}


@pytest.mark.parametrize(
    ("by_path", "expected"),
    [
        ({}, False),
        ({"/apis/x.io/v1": ["others"]}, False),
        ({"/apis/x.io/v1": ["others", "things"]}, True),
        ({"/apis/x.io/v0": ["things"]}, False),
    ],
)
def test_kinds_are_served_when_discovery_names_them(by_path, expected):
    assert are_served(Served(by_path), [CRD]) is expected


def test_trainer_keeps_its_certificate_in_its_own_namespace_or_that_of_the_pod(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(operators, "_OWN_NAMESPACE", tmp_path / "namespace")
    assert operators.trainer_namespace() == "kubeflow-system"
    (tmp_path / "namespace").write_text("ci\n")
    assert operators.trainer_namespace() == "ci"

"""What the operators need in the cluster before they start: kinds, webhooks, certificates."""

import base64
import http.client
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

from pytest_cre.controlplane.api import Api
from pytest_cre.controlplane.commands import TRAINER, Workshop
from pytest_cre.controlplane.credentials import write_certificate
from pytest_cre.ports import LOOPBACK

Manifest = dict[str, Any]

TRAINER_SECRET = "kubeflow-trainer-webhook-cert"  # noqa: S105 - a name
TRAINER_SERVICE = "kubeflow-trainer-controller-manager"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
_PLURALS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_POD_SELECTOR = {
    "matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]
}


def read_manifests(binaries: Path, operator: str) -> list[Manifest]:
    """Return the objects that an operator's own repository says to install."""
    found: list[Manifest] = json.loads((binaries / "manifests" / f"{operator}.json").read_bytes())
    return found


def crds_of(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Return the custom resource definitions among them."""
    return [each for each in manifests if each["kind"] == "CustomResourceDefinition"]


def install_crds(api: Api, crds: Sequence[Manifest]) -> None:
    """Create the definitions, all at once."""
    with ThreadPoolExecutor(max_workers=len(crds)) as pool:
        list(pool.map(lambda crd: api.create(_CRDS, crd), crds))


def are_served(api: Api, crds: Iterable[Manifest]) -> bool:
    """Return whether clients can use the kinds: a definition is not served at once."""
    for crd in crds:
        spec = crd["spec"]
        for version in spec["versions"]:
            if version["served"]:
                path = f"/apis/{spec['group']}/{version['name']}"
                found = api.call("GET", path) if api.answers(path) else {}
                names = {each["name"] for each in found.get("resources", ())}
                if spec["names"]["plural"] not in names:
                    return False
    return True


def install_webhooks(
    api: Api, manifests: Iterable[Manifest], *, name: str, port: int, authority_pem: bytes
) -> None:
    """Create the webhook configurations so that they are called on this machine."""
    for manifest in manifests:
        plural = _PLURALS.get(manifest["kind"])
        if plural is not None:
            rewritten = local_webhooks(manifest, name=name, port=port, authority_pem=authority_pem)
            api.create(f"{_WEBHOOKS}/{plural}", rewritten)


def local_webhooks(manifest: Manifest, *, name: str, port: int, authority_pem: bytes) -> Manifest:
    """Return a webhook configuration whose service is a port of this machine.

    Webhooks on pods get the selector of the operator's own installation: without it no pod could be
    created while the operator is down.
    """
    rewritten = deepcopy(manifest)
    rewritten["metadata"]["name"] = name
    for webhook in rewritten["webhooks"]:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"] |= {
            "url": f"https://{LOOPBACK}:{port}{path}",
            "caBundle": base64.b64encode(authority_pem).decode(),
        }
        if any("pods" in rule["resources"] for rule in webhook["rules"]):
            webhook["objectSelector"] = _POD_SELECTOR
    return rewritten


def trainer_namespace() -> str:
    """Return the namespace that the Trainer keeps its certificate in."""
    try:  # in a pod it takes the pod's own
        return _OWN_NAMESPACE.read_text(encoding="utf-8").strip() or "kubeflow-system"
    except OSError:
        return "kubeflow-system"


def install_jobset_certificate(workshop: Workshop) -> Path:
    """Write the serving certificate of the JobSet webhooks; return its folder."""
    folder = workshop.folder / "jobset-serving"
    folder.mkdir()
    write_certificate(folder, "tls", workshop.credentials.authority.issue())
    return folder


def trainer_secret(workshop: Workshop, namespace: str) -> Manifest:
    """Write a valid certificate of the Trainer; return the Secret that it looks for it in.

    Finding both, it needs to make none and to wait for none.
    """
    authority = workshop.credentials.authority
    issued = authority.issue(f"{TRAINER_SERVICE}.{namespace}.svc")
    folder = workshop.temporary_folder(TRAINER) / "k8s-webhook-server" / "serving-certs"
    folder.mkdir(parents=True)
    write_certificate(folder, "tls", issued)
    files: Mapping[str, bytes] = {
        "ca.crt": authority.pem,
        "ca.key": authority.key_pem,
        "tls.crt": issued.certificate_pem,
        "tls.key": issued.key_pem,
    }
    return {
        "metadata": {"name": TRAINER_SECRET},
        "data": {name: base64.b64encode(content).decode() for name, content in files.items()},
    }


def install_trainer_secret(api: Api, namespace: str, secret: Manifest) -> None:
    """Create the Secret, and the Trainer's namespace."""
    api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    api.create(f"/api/v1/namespaces/{namespace}/secrets", secret)


def is_healthy(port: int, path: str) -> bool:
    """Return whether an operator says of itself that it is."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=2.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()

"""What is special about each kind when an object of it is created or updated."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass

from pytest_cre.embedded.jobrules import job_causes, job_update_causes, prepare_job
from pytest_cre.embedded.kinds import (
    CONFIG_MAP,
    EVENT,
    JOB,
    LEASE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SECRET,
    SERVICE,
    Json,
    Kind,
)
from pytest_cre.embedded.poddefaults import prepare_pod, prepare_pod_status
from pytest_cre.embedded.podrules import pod_causes, pod_update_causes
from pytest_cre.embedded.status import Cause, forbidden_value, invalid_value, required

_CONFIG_MAP_LIMIT_BYTES = 1024 * 1024
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_NOT_READY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def _nothing(_obj: Json) -> None:
    return


def _nothing_to_create(_obj: Json, _now: str) -> None:
    return


def _nothing_to_update(_new: Json, _old: Json) -> None:
    return


def _no_causes(_obj: Json) -> list[Cause]:
    return []


def _no_update_causes(_new: Json, _old: Json) -> list[Cause]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """The places where a kind has rules of its own; objects are changed in place."""

    prepare_create: Callable[[Json, str], None] = _nothing_to_create
    create_causes: Callable[[Json], list[Cause]] = _no_causes
    prepare_update: Callable[[Json, Json], None] = _nothing_to_update
    prepare_status: Callable[[Json], None] = _nothing
    update_causes: Callable[[Json, Json], list[Cause]] = _no_update_causes


def strategy_of(kind: Kind) -> Strategy:
    """Give the rules of a kind."""
    return _STRATEGIES.get(kind, _PLAIN)


def _prepare_namespace(namespace: Json, _now: str) -> None:
    name = namespace["metadata"].get("name", "")
    labels = namespace["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = name
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _keep_namespace_finalizers(new: Json, old: Json) -> None:
    new["spec"] = old.get("spec", {})
    new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"][
        "name"
    ]


def _prepare_node(node: Json, _now: str) -> None:
    spec = node.setdefault("spec", {})
    # A node takes no pods before its kubelet has said that it is ready.
    taints = spec.setdefault("taints", [])
    if not any(taint.get("key") == _NOT_READY_TAINT["key"] for taint in taints):
        taints.append(dict(_NOT_READY_TAINT))
    status = node.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _prepare_service(service: Json, _now: str) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    # Headless without a selector: whoever writes the addresses decides about their sort.
    is_open = spec.get("clusterIP") == "None" and not spec.get("selector")
    spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if is_open else ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if is_open else "SingleStack")
    if not spec.get("clusterIP"):
        # Any address will do: nothing listens on cluster addresses here.
        digits = int(service["metadata"]["uid"].replace("-", "")[:4], 16)
        spec["clusterIP"] = f"10.96.{digits // 256}.{digits % 254 + 1}"
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        # Typed decoding writes a zero where no target is given.
        port["targetPort"] = port.get("targetPort") or port.get("port")
    service["status"] = {"loadBalancer": {}}


def _service_causes(service: Json) -> list[Cause]:
    spec = service["spec"]
    if not spec.get("ports") and spec.get("clusterIP") != "None":
        return [required("spec.ports")]
    return []


def _keep_cluster_address(new: Json, old: Json) -> None:
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if not new.setdefault("spec", {}).get(field) and field in old.get("spec", {}):
            new["spec"][field] = old["spec"][field]


def _prepare_secret(secret: Json, _now: str) -> None:
    secret.setdefault("type", "Opaque")
    texts = secret.pop("stringData", None)
    if texts:
        data = secret.setdefault("data", {})
        for name, text in texts.items():
            data[name] = base64.b64encode(text.encode("utf-8", "replace")).decode()


def _prepare_secret_update(new: Json, _old: Json) -> None:
    _prepare_secret(new, "")


def _immutable_causes(new: Json, old: Json) -> list[Cause]:
    if not old.get("immutable"):
        return []
    return [
        forbidden_value(field, "field is immutable when `immutable` is set")
        for field in ("immutable", "data", "binaryData")
        if new.get(field) != old.get(field)
    ]


def _key_causes(obj: Json) -> list[Cause]:
    text = (
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
        "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
        f"'{_CONFIG_KEY.pattern}')"
    )
    return [
        invalid_value(f"{field}[{key}]", key, text)
        for field in ("data", "binaryData")
        for key in sorted(obj.get(field) or {})
        if not _CONFIG_KEY.fullmatch(key)
    ]


def _config_map_causes(config_map: Json) -> list[Cause]:
    causes = _key_causes(config_map)
    maps: list[dict[str, str]] = [config_map.get("data") or {}, config_map.get("binaryData") or {}]
    size_bytes = sum(len(text.encode("utf-8", "replace")) for m in maps for text in m.values())
    if size_bytes > _CONFIG_MAP_LIMIT_BYTES:
        text = f"Too long: may not be more than {_CONFIG_MAP_LIMIT_BYTES} bytes"
        causes.append(Cause(reason="FieldValueTooLong", message=text, field="[]"))
    return causes


def _prepare_claim(claim: Json, _now: str) -> None:
    """Give a claim a volume at once: there are only simulated disks to wait for."""
    spec = claim.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("volumeName", f"pvc-{claim['metadata']['uid']}")
    claim["status"] = {
        "phase": "Bound",
        "accessModes": list(spec.get("accessModes") or []),
        "capacity": dict((spec.get("resources") or {}).get("requests") or {}),
    }


def _claim_causes(claim: Json) -> list[Cause]:
    spec = claim["spec"]
    causes = []
    if not spec.get("accessModes"):
        causes.append(required("spec.accessModes", "at least 1 access mode is required"))
    if not ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
        causes.append(required("spec.resources[storage]"))
    return causes


def _claim_update_causes(new: Json, old: Json) -> list[Cause]:
    kept = ({**each.get("spec", {}), "resources": None} for each in (new, old))
    if len({repr(sorted(spec.items())) for spec in kept}) == 1:
        return []
    text = (
        "spec is immutable after creation except resources.requests and "
        "volumeAttributesClassName for bound claims"
    )
    return [forbidden_value("spec", text)]


def _lease_causes(lease: Json) -> list[Cause]:
    duration_s = (lease.get("spec") or {}).get("leaseDurationSeconds")
    if duration_s is None or duration_s > 0:
        return []
    return [invalid_value("spec.leaseDurationSeconds", duration_s, "must be greater than 0")]


def _event_causes(event: Json) -> list[Cause]:
    namespace = event.get("involvedObject", {}).get("namespace", "")
    expected = namespace or "default"
    if event["metadata"].get("namespace") == expected:
        return []
    return [invalid_value("involvedObject.namespace", namespace, "does not match event.namespace")]


_PLAIN = Strategy()
_STRATEGIES: dict[Kind, Strategy] = {
    POD: Strategy(
        prepare_create=prepare_pod,
        create_causes=pod_causes,
        update_causes=pod_update_causes,
        prepare_status=prepare_pod_status,
    ),
    JOB: Strategy(
        prepare_create=prepare_job, create_causes=job_causes, update_causes=job_update_causes
    ),
    NODE: Strategy(prepare_create=_prepare_node),
    NAMESPACE: Strategy(
        prepare_create=_prepare_namespace, prepare_update=_keep_namespace_finalizers
    ),
    SERVICE: Strategy(
        prepare_create=_prepare_service,
        create_causes=_service_causes,
        prepare_update=_keep_cluster_address,
    ),
    SECRET: Strategy(
        prepare_create=_prepare_secret,
        create_causes=_key_causes,
        prepare_update=_prepare_secret_update,
        update_causes=lambda new, old: _immutable_causes(new, old) + _key_causes(new),
    ),
    CONFIG_MAP: Strategy(
        create_causes=_config_map_causes,
        update_causes=lambda new, old: _immutable_causes(new, old) + _config_map_causes(new),
    ),
    PERSISTENT_VOLUME_CLAIM: Strategy(
        prepare_create=_prepare_claim,
        create_causes=_claim_causes,
        update_causes=_claim_update_causes,
    ),
    EVENT: Strategy(create_causes=_event_causes),
    LEASE: Strategy(
        create_causes=_lease_causes, update_causes=lambda new, _old: _lease_causes(new)
    ),
}

"""What is special about each kind when an object of it is created or updated."""

from collections.abc import Callable
from dataclasses import dataclass

from pytest_cre.embedded.jobrules import job_causes, job_update_causes, prepare_job
from pytest_cre.embedded.kinds import (
    CONFIG_MAP,
    EVENT,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    SECRET,
    SERVICE,
    Json,
    Kind,
)
from pytest_cre.embedded.podrules import (
    pod_causes,
    pod_update_causes,
    prepare_pod,
    prepare_pod_status,
)
from pytest_cre.embedded.status import Cause, invalid_value, required

_CONFIG_MAP_LIMIT_BYTES = 1024 * 1024
_NOT_READY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


_NO_NODE_INFO = dict.fromkeys(
    (
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ),
    "",
)


def _nothing(_obj: Json) -> None:
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

    prepare_create: Callable[[Json], None] = _nothing
    create_causes: Callable[[Json], list[Cause]] = _no_causes
    prepare_update: Callable[[Json, Json], None] = _nothing_to_update
    prepare_status: Callable[[Json], None] = _nothing
    update_causes: Callable[[Json, Json], list[Cause]] = _no_update_causes


def strategy_of(kind: Kind) -> Strategy:
    """Give the rules of a kind."""
    return _STRATEGIES.get(kind, _PLAIN)


def _prepare_namespace(namespace: Json) -> None:
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


def _prepare_node(node: Json) -> None:
    spec = node.setdefault("spec", {})
    # A node takes no pods before its kubelet has said that it is ready.
    taints = spec.setdefault("taints", [])
    if not any(taint.get("key") == _NOT_READY_TAINT["key"] for taint in taints):
        taints.append(dict(_NOT_READY_TAINT))
    status = node.setdefault("status", {})
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    status["nodeInfo"] = {**_NO_NODE_INFO, **status.get("nodeInfo", {})}
    _default_allocatable(node)


def _default_allocatable(node: Json) -> None:
    status = node["status"]
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _prepare_service(service: Json) -> None:
    spec = service.setdefault("spec", {})
    if not isinstance(spec, dict):
        return
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if not spec.get("clusterIP"):
        # Any address will do: nothing listens on cluster addresses here.
        digits = int(service["metadata"]["uid"].replace("-", "")[:4], 16)
        spec["clusterIP"] = f"10.96.{digits // 256}.{digits % 254 + 1}"
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    for port in spec.get("ports") or []:
        if isinstance(port, dict):
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))
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


def _prepare_secret(secret: Json) -> None:
    import base64

    secret.setdefault("type", "Opaque")
    texts = secret.pop("stringData", None)
    if isinstance(texts, dict):
        data = secret.setdefault("data", {})
        for name, text in texts.items():
            data[name] = base64.b64encode(str(text).encode()).decode()


def _prepare_secret_update(new: Json, _old: Json) -> None:
    _prepare_secret(new)


def _immutable_causes(new: Json, old: Json) -> list[Cause]:
    if not old.get("immutable"):
        return []
    changed = any(new.get(field) != old.get(field) for field in ("data", "binaryData", "immutable"))
    return (
        [
            Cause(
                reason="FieldValueForbidden",
                message="Forbidden: field is immutable when `immutable` is set",
                field="data",
            )
        ]
        if changed
        else []
    )


def _size_causes(config_map: Json) -> list[Cause]:
    maps: list[dict[str, str]] = [config_map.get("data", {}), config_map.get("binaryData", {})]
    size_bytes = sum(len(text.encode("utf-8", "replace")) for m in maps for text in m.values())
    if size_bytes <= _CONFIG_MAP_LIMIT_BYTES:
        return []
    text = f"Too long: may not be more than {_CONFIG_MAP_LIMIT_BYTES} bytes"
    return [Cause(reason="FieldValueTooLong", message=text, field="[]")]


def _event_causes(event: Json) -> list[Cause]:
    involved = event.get("involvedObject")
    namespace = involved.get("namespace", "") if isinstance(involved, dict) else ""
    expected = namespace or "default"
    if event["metadata"].get("namespace") == expected:
        return []
    return [invalid_value("involvedObject.namespace", namespace, "does not match event.namespace")]


def _prepare_event(event: Json) -> None:
    event.setdefault("source", {})
    event.setdefault("eventTime", None)
    event.setdefault("reportingComponent", "")
    event.setdefault("reportingInstance", "")
    event.setdefault("firstTimestamp", None)
    event.setdefault("lastTimestamp", None)


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
        prepare_update=_prepare_secret_update,
        update_causes=_immutable_causes,
    ),
    CONFIG_MAP: Strategy(
        create_causes=_size_causes,
        update_causes=lambda new, old: _immutable_causes(new, old) + _size_causes(new),
    ),
    EVENT: Strategy(prepare_create=_prepare_event, create_causes=_event_causes),
}

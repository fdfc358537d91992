"""The columns that kubectl shows, made by the server as on genuine clusters."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pytest_cre.embedded.ages import age_text
from pytest_cre.embedded.kinds import (
    CONFIG_MAP,
    ENDPOINTS,
    EVENT,
    JOB,
    LEASE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    Json,
    Kind,
)
from pytest_cre.embedded.podstate import pod_condition
from pytest_cre.embedded.podtable import pod_cells

Cells = list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    # A plus sign marks the columns that only `-o wide` shows.
    columns: tuple[str, ...]
    cells: Callable[[Json, datetime], Cells]


def columns_of(kind: Kind) -> list[Json]:
    """Give the column headers; those of priority 1 are shown by `-o wide` only."""
    return [_column(name.lstrip("+"), int(name[0] == "+")) for name in _TABLES[kind].columns]


def row_cells(kind: Kind, obj: Json, now: datetime) -> Cells:
    """Give one object's cells, in the order of the columns."""
    return _TABLES[kind].cells(obj, now)


def _column(name: str, priority: int) -> Json:
    text_format = "name" if name == "Name" else ""
    return {
        "name": name,
        "type": "string",
        "format": text_format,
        "description": name,
        "priority": priority,
    }


def _name(obj: Json) -> str:
    name: str = obj["metadata"]["name"]
    return name


def _age(obj: Json, now: datetime) -> str:
    return age_text(obj["metadata"].get("creationTimestamp"), now)


def _node_cells(node: Json, now: datetime) -> Cells:
    ready = pod_condition(node, "Ready")
    words = {"True": "Ready", "False": "NotReady"}.get((ready or {}).get("status", ""), "NotReady")
    if ready is None:
        words = "Unknown"
    if node.get("spec", {}).get("unschedulable"):
        words += ",SchedulingDisabled"
    role_prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    roles = sorted(key[len(role_prefix) :] for key in labels if key.startswith(role_prefix))
    status: Json = node.get("status", {})
    info: Json = status.get("nodeInfo") or {}
    addresses = {a.get("type"): a.get("address") for a in status.get("addresses") or []}
    return [
        _name(node),
        words,
        ",".join(roles) or "<none>",
        _age(node, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _job_cells(job: Json, now: datetime) -> Cells:
    spec, status = job.get("spec", {}), job.get("status", {})
    done = status.get("succeeded", 0)
    if "completions" in spec:
        completions = f"{done}/{spec['completions']}"
    else:
        parallelism = spec.get("parallelism", 0)
        completions = f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"
    duration = ""
    if status.get("startTime"):
        ends = status.get("completionTime")
        until = datetime.fromisoformat(ends) if ends else now
        duration = age_text(status["startTime"], until)
    containers = spec.get("template", {}).get("spec", {}).get("containers", [])
    selector = spec.get("selector", {}).get("matchLabels", {})
    return [
        _name(job),
        _job_status(job),
        completions,
        duration,
        _age(job, now),
        ",".join(c.get("name", "") for c in containers),
        ",".join(c.get("image", "") for c in containers),
        ",".join(f"{key}={value}" for key, value in sorted(selector.items())),
    ]


def _job_status(job: Json) -> str:
    for condition_type, words in (
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ):
        condition = pod_condition(job, condition_type)
        if condition is not None and condition.get("status") == "True":
            return words
        if condition_type == "Suspended" and job["metadata"].get("deletionTimestamp"):
            return "Terminating"
    return "Running"


def _service_cells(service: Json, now: datetime) -> Cells:
    spec = service.get("spec", {})
    ports = ",".join(
        f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in spec.get("ports") or []
    )
    selector = spec.get("selector") or {}
    return [
        _name(service),
        spec.get("type", ""),
        spec.get("clusterIP", "") or "<none>",
        "<none>",
        ports or "<none>",
        _age(service, now),
        ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or "<none>",
    ]


def _event_cells(event: Json, now: datetime) -> Cells:
    involved, source = event.get("involvedObject") or {}, event.get("source") or {}
    first = event.get("firstTimestamp") or event.get("eventTime")
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    component = source.get("component") or event.get("reportingComponent", "")
    host = source.get("host", "")
    return [
        age_text(last, now),
        event.get("type", ""),
        event.get("reason", ""),
        f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}",
        involved.get("fieldPath", ""),
        f"{component}, {host}" if host else component,
        str(event.get("message", "")).strip(),
        age_text(first, now),
        max(event.get("count") or 1, series.get("count") or 1),
        _name(event),
    ]


def _config_map_cells(obj: Json, now: datetime) -> Cells:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    return [_name(obj), len(data) + len(binary), _age(obj, now)]


def _secret_cells(obj: Json, now: datetime) -> Cells:
    return [_name(obj), obj.get("type", ""), len(obj.get("data") or {}), _age(obj, now)]


def _claim_cells(obj: Json, now: datetime) -> Cells:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    modes = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX"}
    return [
        _name(obj),
        status.get("phase", ""),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", ""),
        ",".join(modes.get(mode, mode) for mode in status.get("accessModes") or []),
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        _age(obj, now),
        spec.get("volumeMode", ""),
    ]


def _service_account_cells(obj: Json, now: datetime) -> Cells:
    return [_name(obj), _age(obj, now)]


def _namespace_cells(obj: Json, now: datetime) -> Cells:
    return [_name(obj), obj.get("status", {}).get("phase", ""), _age(obj, now)]


def _lease_cells(obj: Json, now: datetime) -> Cells:
    return [_name(obj), (obj.get("spec") or {}).get("holderIdentity", ""), _age(obj, now)]


def _endpoints_cells(obj: Json, now: datetime) -> Cells:
    hosts = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets") or []
        for address in subset.get("addresses") or []
        for port in subset.get("ports") or []
    ]
    return [_name(obj), ",".join(hosts) or "<none>", _age(obj, now)]


_TABLES: dict[Kind, _Table] = {
    POD: _Table(
        columns=(
            "Name",
            "Ready",
            "Status",
            "Restarts",
            "Age",
            "+IP",
            "+Node",
            "+Nominated Node",
            "+Readiness Gates",
        ),
        cells=lambda pod, now: pod_cells(pod, _age(pod, now), lambda since: age_text(since, now)),
    ),
    NODE: _Table(
        columns=(
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            "+Internal-IP",
            "+External-IP",
            "+OS-Image",
            "+Kernel-Version",
            "+Container-Runtime",
        ),
        cells=_node_cells,
    ),
    JOB: _Table(
        columns=(
            "Name",
            "Status",
            "Completions",
            "Duration",
            "Age",
            "+Containers",
            "+Images",
            "+Selector",
        ),
        cells=_job_cells,
    ),
    SERVICE: _Table(
        columns=("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "+Selector"),
        cells=_service_cells,
    ),
    EVENT: _Table(
        columns=(
            "Last Seen",
            "Type",
            "Reason",
            "Object",
            "+Subobject",
            "+Source",
            "Message",
            "+First Seen",
            "+Count",
            "+Name",
        ),
        cells=_event_cells,
    ),
    CONFIG_MAP: _Table(columns=("Name", "Data", "Age"), cells=_config_map_cells),
    PERSISTENT_VOLUME_CLAIM: _Table(
        columns=(
            *("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass"),
            *("VolumeAttributesClass", "Age", "+VolumeMode"),
        ),
        cells=_claim_cells,
    ),
    SECRET: _Table(columns=("Name", "Type", "Data", "Age"), cells=_secret_cells),
    SERVICE_ACCOUNT: _Table(columns=("Name", "Age"), cells=_service_account_cells),
    NAMESPACE: _Table(columns=("Name", "Status", "Age"), cells=_namespace_cells),
    LEASE: _Table(columns=("Name", "Holder", "Age"), cells=_lease_cells),
    ENDPOINTS: _Table(columns=("Name", "Endpoints", "Age"), cells=_endpoints_cells),
}

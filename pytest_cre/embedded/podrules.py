"""Defaults and rules of pods and pod templates."""

from typing import Any

from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.metarules import (
    dns_label_problem,
    dns_subdomain_problem,
    label_causes,
    label_key_problem,
)
from pytest_cre.embedded.status import (
    Cause,
    forbidden_value,
    invalid_value,
    required,
    unsupported_value,
)
from pytest_cre.formats.quantity import parse_quantity

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
# Seconds that a pod stays on a node that is not ready or not reachable.
_NODE_TROUBLE_TOLERATION_S = 300


def default_pod_spec(spec: Json) -> None:
    """Fill in what the API server fills into a pod spec or a template's spec."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    for container in _containers(spec):
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        tag = container.get("image", "").rpartition("/")[2].partition(":")[2]
        policy = "Always" if tag in ("", "latest") and "@" not in container.get("image", "") else ""
        container.setdefault("imagePullPolicy", policy or "IfNotPresent")
        container.setdefault("resources", {})
        for port in container.get("ports", []):
            port.setdefault("protocol", "TCP")
    for volume in spec.get("volumes", []):
        for source in ("configMap", "secret"):
            if isinstance(volume.get(source), dict):
                volume[source].setdefault("defaultMode", 420)


def prepare_pod(pod: Json) -> None:
    """Bring a pod that a client creates into the form that is stored."""
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    for container in _containers(spec):
        resources = container["resources"]
        if "limits" in resources:
            # A limit without a request is also the request.
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    spec.setdefault("enableServiceLinks", True)
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    spec.setdefault("priority", 0)
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            t.get("key") in (key, None) and t.get("effect") in ("NoExecute", None)
            for t in tolerations
        ):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _NODE_TROUBLE_TOLERATION_S,
                }
            )
    pod["status"] = {"phase": "Pending", "qosClass": _qos_class(spec)}


def prepare_pod_status(pod: Json) -> None:
    """Bring a status that a kubelet writes into the form that is stored."""
    status = pod["status"]
    if status.get("podIP"):
        status.setdefault("podIPs", [{"ip": status["podIP"]}])
    for condition in status.get("conditions", []):
        condition.setdefault("lastProbeTime", None)
    for container in status.get("containerStatuses", []):
        container.setdefault("lastState", {})


def pod_causes(pod: Json) -> list[Cause]:
    """Check a new pod."""
    return pod_spec_causes(pod.get("spec", {}), "spec", _RESTART_POLICIES)


def pod_spec_causes(spec: Json, at: str, restart_policies: tuple[str, ...]) -> list[Cause]:
    """Check a pod spec; `at` is the path of the spec in its object."""
    causes: list[Cause] = []
    if not spec.get("containers"):
        causes.append(required(f"{at}.containers"))
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field, [])):
            causes += _container_causes(container, f"{at}.{field}[{index}]", names)
    if spec.get("restartPolicy") not in restart_policies:
        if restart_policies == _RESTART_POLICIES:
            causes.append(
                unsupported_value(
                    f"{at}.restartPolicy", spec.get("restartPolicy"), restart_policies
                )
            )
        else:
            allowed = ", ".join(f'"{policy}"' for policy in restart_policies)
            causes.append(required(f"{at}.restartPolicy", f"valid values: {allowed}"))
    causes += label_causes(spec.get("nodeSelector", {}), f"{at}.nodeSelector")
    for field in ("hostname", "subdomain"):
        problem = dns_label_problem(spec[field]) if spec.get(field) else None
        if problem:
            causes.append(invalid_value(f"{at}.{field}", spec[field], problem))
    if spec.get("nodeName"):
        problem = dns_subdomain_problem(spec["nodeName"])
        if problem:
            causes.append(invalid_value(f"{at}.nodeName", spec["nodeName"], problem))
    grace = spec.get("terminationGracePeriodSeconds", 0)
    if grace < 0:
        causes.append(
            invalid_value(
                f"{at}.terminationGracePeriodSeconds",
                grace,
                "must be greater than or equal to 0",
            )
        )
    return causes


def pod_update_causes(new: Json, old: Json) -> list[Cause]:
    """Check an update of a pod: most of its spec is fixed once it exists."""

    def frozen(pod: Json) -> Json:
        spec = {key: value for key, value in pod["spec"].items() if key not in _CHANGEABLE}
        for field in ("containers", "initContainers"):
            spec[field] = [
                {key: value for key, value in container.items() if key != "image"}
                for container in pod["spec"].get(field, [])
            ]
        return spec

    if frozen(new) != frozen(old):
        return [
            forbidden_value(
                "spec",
                "pod updates may not change fields other than `spec.containers[*].image`,"
                "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
                "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
                "(allow it to be set to 1 if it was previously negative)",
            )
        ]
    return []


_CHANGEABLE = ("activeDeadlineSeconds", "tolerations", "containers", "initContainers")


def is_pod_finished(pod: Json) -> bool:
    """Whether the pod has ended for good."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def pod_condition(pod: Json, condition_type: str) -> Json | None:
    """Give one condition of a pod (or of any object that has conditions)."""
    conditions: list[Json] = pod.get("status", {}).get("conditions") or []
    return next((c for c in conditions if c.get("type") == condition_type), None)


def set_condition(obj: Json, condition: Json, now: str) -> None:
    """Add or replace one condition in place; the transition time moves with the status only."""
    conditions: list[Json] = obj.setdefault("status", {}).setdefault("conditions", [])
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            since = old.get("lastTransitionTime", now)
            moved = old.get("status") != condition["status"]
            conditions[index] = {**condition, "lastTransitionTime": now if moved else since}
            return
    conditions.append({**condition, "lastTransitionTime": now})


def _containers(spec: Json) -> list[Any]:
    return [*spec.get("initContainers", []), *spec.get("containers", [])]


def _container_causes(container: Json, at: str, names: set[str]) -> list[Cause]:
    causes: list[Cause] = []
    name = container.get("name", "")
    if not name:
        causes.append(required(f"{at}.name"))
    else:
        problem = dns_label_problem(name)
        if problem:
            causes.append(invalid_value(f"{at}.name", name, problem))
        elif name in names:
            causes.append(
                Cause(
                    reason="FieldValueDuplicate",
                    message=f'Duplicate value: "{name}"',
                    field=f"{at}.name",
                )
            )
        names.add(name)
    if not container.get("image"):
        causes.append(required(f"{at}.image"))
    for index, variable in enumerate(container.get("env", [])):
        if not variable.get("name"):
            causes.append(required(f"{at}.env[{index}].name"))
    resources = container.get("resources", {})
    for field in ("limits", "requests"):
        for resource, amount in sorted(resources.get(field, {}).items()):
            causes += _amount_causes(resource, amount, f"{at}.resources.{field}")
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    if causes:
        return causes
    for resource in sorted(requests):
        path = f"{at}.resources.requests"
        if "/" in resource and resource not in limits:
            causes.append(
                required(
                    f"{at}.resources.limits", "Limit must be set for non overcommitable resources"
                )
            )
        elif "/" in resource and parse_quantity(limits[resource]) != parse_quantity(
            requests[resource]
        ):
            causes.append(
                invalid_value(
                    path,
                    requests[resource],
                    f"must be equal to {resource} limit of {limits[resource]}",
                )
            )
        elif resource in limits and parse_quantity(requests[resource]) > parse_quantity(
            limits[resource]
        ):
            causes.append(
                invalid_value(
                    path,
                    requests[resource],
                    f"must be less than or equal to {resource} limit of {limits[resource]}",
                )
            )
    return causes


def _amount_causes(resource: str, amount: str, at: str) -> list[Cause]:
    problem = label_key_problem(resource)
    if problem:
        return [invalid_value(f"{at}[{resource}]", resource, problem)]
    value = parse_quantity(amount)
    if value < 0:
        return [invalid_value(f"{at}[{resource}]", amount, "must be greater than or equal to 0")]
    if "/" in resource and value != int(value):
        return [invalid_value(f"{at}[{resource}]", amount, "must be an integer")]
    return []


def _qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, by cpu and memory of all containers."""
    guaranteed, any_set = True, False
    for container in _containers(spec):
        limits = container["resources"].get("limits", {})
        requests = container["resources"].get("requests", {})
        for resource in ("cpu", "memory"):
            any_set = any_set or resource in limits or resource in requests
            if resource not in limits or requests.get(resource) != limits[resource]:
                guaranteed = False
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"

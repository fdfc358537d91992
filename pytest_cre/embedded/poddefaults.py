"""What the API server fills into pods and pod templates."""

from typing import Any

from pytest_cre.embedded.kinds import Json

# Seconds that a pod stays on a node that is not ready or not reachable.
_NODE_TROUBLE_TOLERATION_S = 300
_FILE_MODE = 0o644
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def default_pod_spec(spec: Json) -> None:
    """Fill in what the API server fills into a pod spec or a template's spec."""
    spec.setdefault("containers", None)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("securityContext", {})
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for container in containers_of(spec):
        _default_container(container)
    for volume in spec.get("volumes") or []:
        _default_volume(volume)


def prepare_pod(pod: Json, now: str) -> None:
    """Bring a pod that a client creates into the form that is stored."""
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    for container in containers_of(spec):
        resources = container["resources"]
        if "limits" in resources:
            # A limit without a request is also the request.
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    spec.setdefault("enableServiceLinks", True)
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
    if spec.get("schedulingGates"):
        pod["status"]["conditions"] = [{**_GATED, "lastTransitionTime": now}]


def prepare_pod_status(pod: Json) -> None:
    """Bring a status that a kubelet writes into the form that is stored."""
    status = pod["status"]
    if status.get("podIP"):
        status.setdefault("podIPs", [{"ip": status["podIP"]}])


def containers_of(spec: Json) -> list[Any]:
    """Give all containers of a spec, those that initialize first."""
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def _default_container(container: Json) -> None:
    image = container.get("image", "")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    tag = image.rpartition("/")[2].partition(":")[2]
    is_latest = tag in ("", "latest") and "@" not in image
    container.setdefault("imagePullPolicy", "Always" if is_latest else "IfNotPresent")
    container.setdefault("resources", {})
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or []:
        source = (variable.get("valueFrom") or {}).get("fieldRef")
        if source is not None:
            source.setdefault("apiVersion", "v1")
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            defaults = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1}
            for field, value in {**defaults, "failureThreshold": 3}.items():
                probe.setdefault(field, value)


def _default_volume(volume: Json) -> None:
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "downwardAPI", "projected", "secret"):
        if source in volume:
            volume[source].setdefault("defaultMode", _FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")


def _qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, by cpu and memory of all containers."""
    guaranteed, any_set = True, False
    for container in containers_of(spec):
        limits = container["resources"].get("limits", {})
        requests = container["resources"].get("requests", {})
        for resource in ("cpu", "memory"):
            any_set = any_set or resource in limits or resource in requests
            if resource not in limits or requests.get(resource) != limits[resource]:
                guaranteed = False
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"

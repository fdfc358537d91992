"""Rules of pods and pod templates."""

from pytest_cre.embedded.containerrules import container_causes
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

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_INT32_MAX = 2**31 - 1
_REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
# What of a pod's spec can be changed once it exists, containers' images aside.
_CHANGEABLE = (
    "activeDeadlineSeconds",
    "containers",
    "initContainers",
    "schedulingGates",
    "tolerations",
)


def pod_causes(pod: Json) -> list[Cause]:
    """Check a new pod."""
    return pod_spec_causes(pod["spec"], "spec", _RESTART_POLICIES)


def pod_spec_causes(spec: Json, at: str, restart_policies: tuple[str, ...]) -> list[Cause]:
    """Check a pod spec; `at` is the path of the spec in its object."""
    causes = _volume_causes(spec, f"{at}.volumes")
    if not spec.get("containers"):
        causes.append(required(f"{at}.containers"))
    names: set[str] = set()
    volumes = {volume.get("name", "") for volume in spec.get("volumes") or []}
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            causes += container_causes(container, f"{at}.{field}[{index}]", names, volumes)
    causes += _restart_policy_causes(spec, at, restart_policies)
    if spec["dnsPolicy"] not in _DNS_POLICIES:
        causes.append(unsupported_value(f"{at}.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES))
    causes += label_causes(spec.get("nodeSelector", {}), f"{at}.nodeSelector")
    causes += _name_causes(spec, at)
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is not None and not 1 <= deadline_s <= _INT32_MAX:
        text = f"must be between 1 and {_INT32_MAX}, inclusive"
        causes.append(invalid_value(f"{at}.activeDeadlineSeconds", deadline_s, text))
    causes += _affinity_causes(spec.get("affinity") or {}, f"{at}.affinity")
    for index, toleration in enumerate(spec.get("tolerations") or []):
        causes += _toleration_causes(toleration, f"{at}.tolerations[{index}]")
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        problem = label_key_problem(gate.get("name", ""))
        if problem:
            causes.append(invalid_value(f"{at}.schedulingGates[{index}]", gate["name"], problem))
    return causes


def pod_update_causes(new: Json, old: Json) -> list[Cause]:
    """Check an update of a pod: most of its spec is fixed once it exists."""

    def frozen(pod: Json) -> Json:
        spec = {key: value for key, value in pod["spec"].items() if key not in _CHANGEABLE}
        for field in ("containers", "initContainers"):
            spec[field] = [
                {key: value for key, value in container.items() if key != "image"}
                for container in pod["spec"].get(field) or []
            ]
        return spec

    new_gates, old_gates = (pod["spec"].get("schedulingGates") or [] for pod in (new, old))
    if any(gate not in old_gates for gate in new_gates):
        text = "only deletion is allowed, but found new scheduling gates"
        return [forbidden_value("spec.schedulingGates", text)]
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


def _restart_policy_causes(spec: Json, at: str, allowed: tuple[str, ...]) -> list[Cause]:
    if spec.get("restartPolicy") in allowed:
        return []
    field = f"{at}.restartPolicy"
    if allowed == _RESTART_POLICIES:
        return [unsupported_value(field, spec.get("restartPolicy"), allowed)]
    shown = ", ".join(f'"{policy}"' for policy in allowed)
    return [required(field, f"valid values: {shown}")]


def _name_causes(spec: Json, at: str) -> list[Cause]:
    causes: list[Cause] = []
    for field in ("hostname", "subdomain"):
        name = spec.get(field, "")
        problem = dns_label_problem(name) if name else None
        if problem:
            problem = "must not contain dots" if "." in name else problem
            causes.append(invalid_value(f"{at}.{field}", name, problem))
    for field in ("serviceAccountName", "nodeName"):
        problem = dns_subdomain_problem(spec[field]) if spec.get(field) else None
        if problem:
            causes.append(invalid_value(f"{at}.{field}", spec[field], problem))
    return causes


def _volume_causes(spec: Json, at: str) -> list[Cause]:
    causes: list[Cause] = []
    names: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or []):
        name = volume.get("name", "")
        problem = dns_label_problem(name) if name else None
        if not name:
            causes.append(required(f"{at}[{index}].name"))
        elif problem:
            causes.append(invalid_value(f"{at}[{index}].name", name, problem))
        elif name in names:
            text = f'Duplicate value: "{name}"'
            causes.append(
                Cause(reason="FieldValueDuplicate", message=text, field=f"{at}[{index}].name")
            )
        names.add(name)
        for source, field in (("configMap", "name"), ("secret", "secretName")):
            if source in volume and not volume[source].get(field):
                causes.append(required(f"{at}[{index}].{source}.{field}"))
    return causes


def _toleration_causes(toleration: Json, at: str) -> list[Cause]:
    causes: list[Cause] = []
    operator = toleration.get("operator", "")
    if not toleration.get("key") and operator != "Exists":
        text = (
            "operator must be Exists when `key` is empty, which means "
            '"match all values and all keys"'
        )
        causes.append(invalid_value(f"{at}.operator", operator, text))
    if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        causes.append(invalid_value(f"{at}.effect", toleration.get("effect", ""), text))
    if operator == "Exists" and toleration.get("value"):
        text = "value must be empty when `operator` is 'Exists'"
        causes.append(invalid_value(f"{at}.operator", toleration["value"], text))
    elif operator not in ("", "Equal", "Exists"):
        causes.append(unsupported_value(f"{at}.operator", operator, ("Equal", "Exists")))
    effect = toleration.get("effect", "")
    if effect and effect not in _EFFECTS:
        causes.append(unsupported_value(f"{at}.effect", effect, _EFFECTS))
    return causes


def _affinity_causes(affinity: Json, at: str) -> list[Cause]:
    causes: list[Cause] = []
    nodes = (affinity.get("nodeAffinity") or {}).get(_REQUIRED_TERMS)
    if nodes is not None and not nodes.get("nodeSelectorTerms"):
        field = f"{at}.nodeAffinity.{_REQUIRED_TERMS}.nodeSelectorTerms"
        causes.append(required(field, "must have at least one node selector term"))
    for kind in ("podAffinity", "podAntiAffinity"):
        for index, term in enumerate((affinity.get(kind) or {}).get(_REQUIRED_TERMS) or []):
            field = f"{at}.{kind}.{_REQUIRED_TERMS}[{index}].topologyKey"
            key = term.get("topologyKey", "")
            if not key:
                causes.append(required(field, "can not be empty"))
                causes.append(invalid_value(field, key, "name part must be non-empty"))
            problem = label_key_problem(key or " ")
            if problem:
                causes.append(invalid_value(field, key, problem))
    return causes

"""Rules of containers in pods and pod templates."""

from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.metarules import dns_label_problem, label_key_problem
from pytest_cre.embedded.status import Cause, invalid_value, required, unsupported_value
from pytest_cre.formats.quantity import parse_quantity

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")


def container_causes(container: Json, at: str, names: set[str], volumes: set[str]) -> list[Cause]:
    """Check a container; `names` are those of the pod's containers before it, and grow."""
    causes = _name_causes(container.get("name", ""), f"{at}.name", names)
    if not container.get("image"):
        causes.append(required(f"{at}.image"))
    for index, port in enumerate(container.get("ports") or []):
        number = port.get("containerPort", 0)
        if not number:
            causes.append(required(f"{at}.ports[{index}].containerPort"))
        elif not 0 < number < 65536:
            text = "must be between 1 and 65535, inclusive"
            causes.append(invalid_value(f"{at}.ports[{index}].containerPort", number, text))
    for index, variable in enumerate(container.get("env") or []):
        if not variable.get("name"):
            causes.append(required(f"{at}.env[{index}].name"))
    for index, mount in enumerate(container.get("volumeMounts") or []):
        causes += _mount_causes(mount, f"{at}.volumeMounts[{index}]", volumes)
    for field, allowed in (
        ("terminationMessagePolicy", _MESSAGE_POLICIES),
        ("imagePullPolicy", _PULL_POLICIES),
    ):
        if container[field] not in allowed:
            causes.append(unsupported_value(f"{at}.{field}", container[field], allowed))
    return causes + _resource_causes(container["resources"], f"{at}.resources")


def _name_causes(name: str, at: str, names: set[str]) -> list[Cause]:
    if not name:
        return [required(at)]
    problem = dns_label_problem(name)
    if problem:
        return [invalid_value(at, name, problem)]
    if name in names:
        text = f'Duplicate value: "{name}"'
        return [Cause(reason="FieldValueDuplicate", message=text, field=at)]
    names.add(name)
    return []


def _mount_causes(mount: Json, at: str, volumes: set[str]) -> list[Cause]:
    causes: list[Cause] = []
    name = mount.get("name", "")
    if not name:
        causes.append(required(f"{at}.name"))
    elif name not in volumes:
        text = f'Not found: "{name}"'
        causes.append(Cause(reason="FieldValueNotFound", message=text, field=f"{at}.name"))
    if not mount.get("mountPath"):
        causes.append(required(f"{at}.mountPath"))
    return causes


def _resource_causes(resources: Json, at: str) -> list[Cause]:
    causes: list[Cause] = []
    for field in ("limits", "requests"):
        for resource, amount in sorted((resources.get(field) or {}).items()):
            causes += _amount_causes(resource, amount, f"{at}.{field}")
    if causes:
        return causes
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for resource in sorted(requests):
        requested, limit = requests[resource], limits.get(resource)
        if limit is None:
            if "/" in resource:
                text = "Limit must be set for non overcommitable resources"
                causes.append(required(f"{at}.limits", text))
            continue
        if "/" in resource and parse_quantity(limit) != parse_quantity(requested):
            text = f"must be equal to {resource} limit of {limit}"
            causes.append(invalid_value(f"{at}.requests", requested, text))
        elif parse_quantity(requested) > parse_quantity(limit):
            text = f"must be less than or equal to {resource} limit of {limit}"
            causes.append(invalid_value(f"{at}.requests", requested, text))
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

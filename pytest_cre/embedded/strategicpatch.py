"""Strategic merge patch, by the merge keys of the kinds served here.

Lists named below are merged by a key or as sets; all other lists are replaced.
"""

from typing import Any

from pytest_cre.embedded.kinds import Json

_MERGE_KEYS = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_SETS = ("finalizers",)


def apply_strategic_patch(target: Json, patch: Json) -> Json:
    """Give the patched object; neither argument is changed. Raises ValueError for nonsense."""
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    result = dict(target)
    if "$retainKeys" in patch:
        kept = set(_list(patch["$retainKeys"], "$retainKeys"))
        result = {key: value for key, value in result.items() if key in kept}
    for key, value in patch.items():
        if key.startswith("$setElementOrder/") or key in ("$patch", "$retainKeys"):
            continue
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            removed = _list(value, key)
            result[name] = [item for item in result.get(name) or [] if item not in removed]
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            old = result.get(key)
            result[key] = apply_strategic_patch(old if isinstance(old, dict) else {}, value)
        elif isinstance(value, list) and key in _SETS:
            old_items = _list(result.get(key) or [], key)
            result[key] = old_items + [item for item in value if item not in old_items]
        elif isinstance(value, list) and _merge_key(key, value):
            order = patch.get(f"$setElementOrder/{key}")
            result[key] = _merge_lists(
                _list(result.get(key) or [], key), value, _merge_key(key, value), order
            )
        else:
            result[key] = value
    return result


def _merge_key(field: str, items: list[Any]) -> str:
    if field == "ports":
        # Ports of containers and of services share a name but not a key.
        in_containers = any(isinstance(item, dict) and "containerPort" in item for item in items)
        return "containerPort" if in_containers else "port"
    return _MERGE_KEYS.get(field, "")


def _merge_lists(old: list[Any], patch: list[Any], merge_key: str, order: object) -> list[Any]:
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [i for i in patch if not (isinstance(i, dict) and i.get("$patch") == "replace")]
    result = list(old)
    for item in patch:
        if not isinstance(item, dict) or merge_key not in item:
            raise ValueError(f"map: {item} does not contain declared merge key: {merge_key}")
        at = next(
            (
                index
                for index, known in enumerate(result)
                if isinstance(known, dict) and known.get(merge_key) == item[merge_key]
            ),
            None,
        )
        if item.get("$patch") == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(apply_strategic_patch({}, item))
        else:
            result[at] = apply_strategic_patch(result[at], item)
    wanted = order if isinstance(order, list) else patch
    return _arranged(result, _keys(wanted, merge_key), _keys(old, merge_key), merge_key)


def _keys(items: list[Any], merge_key: str) -> dict[Any, int]:
    keys = (item.get(merge_key) for item in items if isinstance(item, dict))
    return {str(key): place for place, key in enumerate(keys)}


def _arranged(
    items: list[Any], wanted: dict[Any, int], before: dict[Any, int], merge_key: str
) -> list[Any]:
    """Put the items that the patch names in its order, the others around them as they were."""

    def key(item: Json) -> str:
        return str(item.get(merge_key))

    named = sorted((i for i in items if key(i) in wanted), key=lambda i: wanted[key(i)])
    others = [i for i in items if key(i) not in wanted]
    result: list[Any] = []
    while named and others:
        other_first = key(named[0]) in before and before[key(others[0])] < before[key(named[0])]
        result.append((others if other_first else named).pop(0))
    return [*result, *named, *others]


def _list(value: object, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{field} must be a list")
    return value

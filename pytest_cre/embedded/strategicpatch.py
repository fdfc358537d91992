"""Strategic merge patch: lists are merged by the keys that their fields name, or as sets."""

from collections.abc import Callable
from typing import Any

from pytest_cre.embedded.fields import Field, merge_struct
from pytest_cre.embedded.kinds import Json


class MissingKeyError(ValueError):
    """An item of a list that is merged by a key lacks that key."""


def apply_strategic_patch(target: Json, patch: Json, struct_name: str) -> Json:
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
        else:
            field = merge_struct(struct_name, key)
            order = patch.get(f"$setElementOrder/{key}")
            result[key] = _merged(result.get(key), value, field, order)
    return result


def _merged(old: object, value: object, field: Field | None, order: object) -> object:
    """Give what becomes of one field that a patch names."""
    inner = field.type if field is not None else ""
    if isinstance(value, dict):
        return apply_strategic_patch(old if isinstance(old, dict) else {}, value, inner)
    if isinstance(value, list) and field is not None:
        if field.is_set:
            return _merge_set(_list(old or [], field.name), value, order)
        if field.merge_key:
            return _merge_lists(_list(old or [], field.name), value, field, order)
    return value


def _merge_set(old: list[Any], patch: list[Any], order: object) -> list[Any]:
    wanted = order if isinstance(order, list) else patch
    items = old + [item for item in patch if item not in old]
    return _arranged(items, wanted, old, lambda item: item)


def _merge_lists(old: list[Any], patch: list[Any], field: Field, order: object) -> list[Any]:
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [i for i in patch if not (isinstance(i, dict) and i.get("$patch") == "replace")]
    merge_key = field.merge_key
    result = list(old)
    for item in patch:
        if not isinstance(item, dict) or merge_key not in item:
            shown = _go_map(item) if isinstance(item, dict) else item
            raise MissingKeyError(f"map: {shown} does not contain declared merge key: {merge_key}")
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
            result.append(apply_strategic_patch({}, item, field.type))
        else:
            result[at] = apply_strategic_patch(result[at], item, field.type)
    return _arranged(
        result,
        order if isinstance(order, list) else patch,
        old,
        lambda item: item.get(merge_key) if isinstance(item, dict) else None,
    )


def _go_map(item: Json) -> str:
    return f"map[{' '.join(f'{key}:{item[key]}' for key in sorted(item))}]"


def _arranged(
    items: list[Any], wanted: list[Any], before: list[Any], key_of: Callable[[Any], Any]
) -> list[Any]:
    """Put the items that the patch names in its order, the others around them as they were."""

    def places(listed: list[Any]) -> dict[str, int]:
        return {str(key_of(item)): place for place, item in enumerate(listed)}

    def key(item: Any) -> str:
        return str(key_of(item))

    wanted_places, places_before = places(wanted), places(before)
    named = sorted(
        (i for i in items if key(i) in wanted_places), key=lambda i: wanted_places[key(i)]
    )
    others = [i for i in items if key(i) not in wanted_places]
    result: list[Any] = []
    while named and others:
        first, other = key(named[0]), key(others[0])
        other_first = first in places_before and places_before[other] < places_before[first]
        result.append((others if other_first else named).pop(0))
    return [*result, *named, *others]


def _list(value: object, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{field} must be a list")
    return value

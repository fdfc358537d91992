"""Types of the fields that the server itself reads, checked when an object arrives.

Genuine servers decode into typed structs and refuse a number where text belongs; what passes
here can be read by the controllers without surprises. Unlisted fields are kept as they are.
"""

from pytest_cre.embedded.kinds import Json, Kind
from pytest_cre.embedded.schema import MAP, OTHER_KINDS, QUANTITIES, SHAPES, STRUCT, Shape
from pytest_cre.embedded.status import ApiError, bad_request
from pytest_cre.formats.quantity import parse_quantity

_RANGES = {"int32": 2**31, "int64": 2**63}


def settle_shape(kind: Kind, obj: Json) -> None:
    """Check an object's types and drop nulls of listed fields in place, as typed decoding does.

    Raises ApiError 400 that names the field and the type it must have.
    """
    try:
        _settle(obj, SHAPES.get(kind, OTHER_KINDS), "", kind.kind)
    except _Mismatch as mismatch:
        raise _refusal(kind, mismatch) from None
    except _QuantityProblem:
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None


class _Mismatch(Exception):
    def __init__(self, field: str, value: object, go_type: str, struct: str) -> None:
        super().__init__(field)
        self.struct = struct
        self.field = field
        self.value = value
        self.go_type = go_type


class _QuantityProblem(Exception):
    pass


def _refusal(kind: Kind, mismatch: _Mismatch) -> ApiError:
    found = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}.get(
        type(mismatch.value), "object"
    )
    shown = f"number {mismatch.value}" if found == "number" and "int" in mismatch.go_type else found
    return bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: json: '
        f"cannot unmarshal {shown} into Go struct field {mismatch.struct}.{mismatch.field} "
        f"of type {mismatch.go_type}"
    )


def _settle(value: object, shape: Shape, field: str, struct: str) -> None:
    if isinstance(shape, dict):
        _settle_struct(value, shape, field, struct)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise _Mismatch(field, value, "array", struct)
        for item in value:
            _settle(item, shape[0], field, struct)
    elif shape == MAP:
        if not isinstance(value, dict):
            raise _Mismatch(field, value, MAP, struct)
        for name, item in value.items():
            if item is None:
                value[name] = ""
            elif not isinstance(item, str):
                raise _Mismatch(field, item, "string", struct)
    elif not _fits(value, shape):
        raise _Mismatch(field, value, shape, struct)


def _settle_struct(value: object, shape: dict[str, Shape], field: str, struct: str) -> None:
    if not isinstance(value, dict):
        raise _Mismatch(field, value, "object", struct)
    struct = str(shape.get(STRUCT, struct))
    for name, inner in shape.items():
        if name not in value or name == STRUCT:
            continue
        path = f"{field}.{name}" if field else name
        if value[name] is None:
            del value[name]
        elif inner == QUANTITIES:
            value[name] = _quantities(value[name], path, struct)
        else:
            _settle(value[name], inner, path, struct)


def _fits(value: object, go_type: str) -> bool:
    if go_type == "string":
        return isinstance(value, str)
    if go_type == "bool":
        return isinstance(value, bool)
    limit = _RANGES[go_type]
    return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit


def _quantities(value: object, field: str, struct: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _Mismatch(field, value, "v1.ResourceList", struct)
    settled: dict[str, str] = {}
    for name, amount in value.items():
        if isinstance(amount, bool) or not isinstance(amount, (str, int, float)):
            raise _Mismatch(field, amount, "resource.Quantity", struct)
        settled[name] = str(amount)
        try:
            parse_quantity(settled[name])
        except ValueError:
            raise _QuantityProblem from None
    return settled

"""What may not be kept: values of environment variables and of Secrets."""

from collections.abc import Mapping
from typing import cast

MASK = "(not kept)"
_KEPT_NAMES = frozenset({"PYTHONUNBUFFERED"})
_KEPT_PREFIXES = (
    "CRE_", "CUDA_", "FI_", "GLOO_", "NCCL_", "OMPI_", "SHARP_", "TORCH_", "UCX_",
)  # fmt: skip
_SECRET_FIELDS = ("data", "stringData")


def mask_manifest(manifest: Mapping[str, object]) -> Mapping[str, object]:
    """Return the manifest without values that may be secret; tuning variables stay readable."""
    masked = cast("dict[str, object]", _mask(manifest))
    if masked.get("kind") == "Secret":
        for field in _SECRET_FIELDS:
            values = masked.get(field)
            if isinstance(values, dict):
                masked[field] = dict.fromkeys(values, MASK)
    return masked


def _mask(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            str(key): [_mask_variable(each) for each in inner]
            if key == "env" and isinstance(inner, list | tuple)
            else _mask(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_mask(each) for each in value]
    return value


def _mask_variable(variable: object) -> object:
    if not isinstance(variable, Mapping) or "value" not in variable:
        return _mask(variable)
    name = str(variable.get("name", ""))
    if name in _KEPT_NAMES or name.startswith(_KEPT_PREFIXES):
        return dict(variable)
    return {**variable, "value": MASK}

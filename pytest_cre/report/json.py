"""The report as JSON: the same report gives the same bytes."""

import json
import math

from pytest_cre.report.model import RunReport, plain
from pytest_cre.report.text import clean


def render_json(report: RunReport) -> str:
    """Return the report as JSON with sorted keys; numbers keep every digit, none is NaN."""
    safe = _safe(plain(report.to_dict()))
    return json.dumps(safe, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"


def _safe(value: object) -> object:
    if isinstance(value, dict):
        return {clean(key): _safe(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_safe(each) for each in value]
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

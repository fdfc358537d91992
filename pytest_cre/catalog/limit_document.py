"""The form of a limit: the same in an architecture's YAML and in a scenario's JSON."""

import re
from datetime import date as calendar
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pytest_cre.catalog.documents import Bytes, Count, Document, Filled, Scale, Text
from pytest_cre.catalog.limit import (
    LEDGER_METRICS,
    STATISTICS,
    UNITS,
    Confidence,
    Fabric,
    Limit,
    Metric,
    Operator,
    Statistic,
    Tier,
)

LEDGER_CATEGORIES = (
    *("useful", "rework", "hang", "checkpoint_blocking", "schedule", "reschedule"),
    *("init", "load", "warmup", "straggler", "eval", "other"),
)
UNKNOWN_DATE = "unknown, read "
_DATE = re.compile(rf"[0-9]{{4}}(?:-[0-9]{{2}}){{0,2}}|{UNKNOWN_DATE}[0-9]{{4}}-[0-9]{{2}}")
_FREE_DATES = ("simulated", "given")


class LimitDocument(Document):
    """One limit, with where it applies and where it comes from."""

    metric: Metric
    operator: Operator
    value: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    unit: str
    entry: Filled
    collective: Filled | None = None
    statistic: Statistic
    size: Bytes | None = None
    category: str | None = None
    scale: Scale | None = None
    min_nodes: Count | None = None
    max_nodes: Count | None = None
    fabric: Fabric | None = None
    tier: Tier
    confidence: Confidence = "medium"
    source: Filled
    date: Text
    versions: str = ""
    note: str = ""

    @field_validator("value")
    @classmethod
    def _above_nothing(cls, value: float, info: ValidationInfo) -> float:
        # A ceiling of nothing is a limit for lost time; for speeds it would be a slip.
        if value == 0 and info.data.get("metric") not in LEDGER_METRICS:
            raise ValueError("must be above 0, got 0")
        return value

    @field_validator("unit")
    @classmethod
    def _unit_of_metric(cls, unit: str, info: ValidationInfo) -> str:
        metric: Metric | None = info.data.get("metric")
        if metric is not None and unit != UNITS[metric]:
            raise ValueError(f"must be {UNITS[metric]} for metric {metric}, got {unit[:40]!r}")
        return unit

    @field_validator("statistic")
    @classmethod
    def _statistic_of_metric(cls, statistic: Statistic, info: ValidationInfo) -> Statistic:
        metric: Metric | None = info.data.get("metric")
        choices = STATISTICS.get(metric, ("value",)) if metric is not None else ()
        if metric is not None and statistic not in choices:
            raise ValueError(f"must be {' or '.join(choices)} for {metric}, got {statistic!r}")
        return statistic

    @field_validator("category")
    @classmethod
    def _category_of_ledger(cls, category: Any) -> Any:
        if category is not None and category not in LEDGER_CATEGORIES:
            choices = ", ".join(LEDGER_CATEGORIES)
            raise ValueError(f"is unknown: {str(category)[:40]!r}; choices: {choices}")
        return category

    @field_validator("date")
    @classmethod
    def _date_or_unknown(cls, date: str, info: ValidationInfo) -> str:
        if info.data.get("tier") not in _FREE_DATES and not _is_day(date):
            raise ValueError(
                f"must be YYYY-MM-DD, YYYY-MM, YYYY or 'unknown, read YYYY-MM', got {date[:40]!r}"
            )
        return date

    @model_validator(mode="after")
    def _consistent(self) -> "LimitDocument":
        if (self.statistic == "at-size") != (self.size is not None):
            raise ValueError("takes a size with statistic at-size, and only then")
        if (self.metric in LEDGER_METRICS) != (self.category is not None):
            raise ValueError("takes a category with the ledger's metrics, and only then")
        if self.min_nodes and self.max_nodes and self.min_nodes > self.max_nodes:
            raise ValueError(f"has minNodes {self.min_nodes} above maxNodes {self.max_nodes}")
        if UNITS[self.metric] == "ratio" and self.value > 1:
            raise ValueError(f"holds {self.metric} {self.value:g}, but a ratio is at most 1")
        return self


class SimulatedLimitsDocument(Document):
    """The limits that a scenario hands over."""

    limits: list[LimitDocument]


def _is_day(date: str) -> bool:
    """Return whether a date is written as asked for, and is one of the calendar."""
    if not _DATE.fullmatch(date):
        return False
    digits = date.removeprefix(UNKNOWN_DATE)
    try:
        calendar.fromisoformat(digits + "0001-01-01"[len(digits) :])
    except ValueError:
        return False
    return True


def limit_from(form: LimitDocument, *, place: str, architecture: str | None = None) -> Limit:
    """Return the limit of a checked document."""
    return Limit(
        metric=form.metric,
        operator=form.operator,
        value=float(form.value),
        unit=form.unit,
        entry=form.entry,
        collective=form.collective,
        tier=form.tier,
        statistic=form.statistic,
        source=form.source,
        date=form.date,
        confidence=form.confidence,
        versions=form.versions,
        note=form.note,
        architecture=architecture,
        scale=form.scale,
        min_nodes=form.min_nodes,
        max_nodes=form.max_nodes,
        fabric=form.fabric,
        size_bytes=form.size,
        category=form.category,
        place=place,
    )

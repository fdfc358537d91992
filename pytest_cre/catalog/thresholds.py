"""Upstream's thresholds, CEL over one `value`, as limits that a run was given."""

import re
from collections.abc import Mapping
from dataclasses import replace

from pytest_cre.catalog.limit import NO_DATE, UNITS, Limit, Metric, Operator, Statistic
from pytest_cre.errors import CatalogProblem
from pytest_cre.formats.cel import CelProblem, compile_predicate
from pytest_cre.formats.choices import choices_words

KEYS: Mapping[str, tuple[Metric, Statistic]] = {
    "busBandwidthGBps": ("busbw", "max"),
    "algBandwidthGBps": ("algbw", "max"),
    "goodputRatio": ("goodput", "value"),
    "avgTFLOPsPerGPU": ("tflops_per_gpu", "value"),
    "avgStepTimeSec": ("step_time", "value"),
}
MEASURED_BY: Mapping[str, tuple[str, ...]] = {
    "bandwidth": ("busBandwidthGBps", "algBandwidthGBps"),
    "training": ("goodputRatio", "avgTFLOPsPerGPU", "avgStepTimeSec"),
}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_COMPARISON = re.compile(
    rf"\s*\(?\s*(?:value\s*(>=|<=|>|<)\s*({_NUMBER})|({_NUMBER})\s*(>=|<=|>|<)\s*value)\s*\)?\s*"
)
_MIRRORED: Mapping[str, Operator] = {">=": "<=", "<=": ">=", ">": "<", "<": ">"}
_OPERATORS: Mapping[str, Operator] = {">=": ">=", "<=": "<=", ">": ">", "<": "<"}


def limits_from_thresholds(
    thresholds: Mapping[str, str],
    *,
    entry: str,
    measures: str,
    places: Mapping[str, str],
    source: str,
) -> tuple[Limit, ...]:
    """Return the limits of an entry's thresholds, sorted by key; `places` is where each key stands.

    Comparisons with numbers, joined by `&&`, become one limit each, with a margin in the report;
    anything else stays an expression. Raises `CatalogProblem` for an unknown key, for one that the
    entry does not measure and for an expression that cannot say true or false.
    """
    limits: list[Limit] = []
    for key in sorted(thresholds):
        place, text = places[key], thresholds[key]
        if key not in KEYS:
            raise CatalogProblem(f"{place}: threshold {key!r} is unknown{choices_words(key, KEYS)}")
        if key not in MEASURED_BY.get(measures, ()):
            choices = ", ".join(MEASURED_BY.get(measures, ())) or "none"
            raise CatalogProblem(
                f"{place}: {entry} measures {measures}, so nothing gives {key}; choices: {choices}"
            )
        metric, statistic = KEYS[key]
        base = Limit(
            metric=metric,
            operator=">=",
            value=None,
            unit=UNITS[metric],
            entry=entry,
            tier="given",
            statistic=statistic,
            source=source,
            date=NO_DATE,
            expression=text,
            note=f"{key}: {text}",
            place=place,
        )
        try:
            compile_predicate(text, ("value",)).holds({"value": 1.0})
        except CelProblem as problem:
            raise CatalogProblem(f"{place}: threshold {key} {text!r} {problem}") from None
        compared = comparisons(text)
        limits += [
            replace(base, operator=operator, value=value, expression="")
            for operator, value in compared
        ] or [base]
    return tuple(limits)


def comparisons(text: str) -> tuple[tuple[Operator, float], ...]:
    """Return the comparisons with numbers that an expression is, or none where it is more.

    Two on the same side are more: a report has one limit for each.
    """
    found: list[tuple[Operator, float]] = []
    for part in text.split("&&"):
        match = _COMPARISON.fullmatch(part)
        if match is None or part.count("(") != part.count(")"):
            return ()
        if match[1]:
            found.append((_OPERATORS[match[1]], float(match[2])))
        else:
            found.append((_MIRRORED[match[4]], float(match[3])))
    return tuple(found) if len({operator for operator, _ in found}) == len(found) else ()

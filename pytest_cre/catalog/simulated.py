"""Limits that a scenario hands over on its simulated nodes."""

import json

from pytest_cre.catalog.limit import Limit
from pytest_cre.catalog.limit_document import SimulatedLimitsDocument, limit_from
from pytest_cre.errors import CatalogProblem
from pytest_cre.formats.yaml import YamlDocument, YamlProblem, validate


def limits_from_json(text: str, place: str) -> tuple[Limit, ...]:
    """Return the limits of a JSON list in the form that architectures use; raises `CatalogProblem`.

    Only the tier `simulated` is taken: a scenario cannot pass itself off as a publication.
    """
    try:
        data = json.loads(text, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as problem:
        words = " ".join(str(problem).split())
        raise CatalogProblem(f"{place}: limits are not JSON: {words}") from None
    document = YamlDocument({"limits": data}, place, {}, {})
    try:
        forms = validate(document, SimulatedLimitsDocument).limits
    except YamlProblem as problem:
        raise CatalogProblem(str(problem)) from None
    for index, form in enumerate(forms):
        if form.tier != "simulated":
            raise CatalogProblem(
                f"{place}: limits[{index}].tier must be simulated in a scenario, got {form.tier}"
            )
    return tuple(limit_from(form, place=place) for form in forms)


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice[:40]!r} stands twice")
    return found

"""Limits of one's own for an architecture that is described elsewhere: `limits/<name>.yaml`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from pytest_cre.catalog.checks import tier_problems
from pytest_cre.catalog.documents import Document, Name
from pytest_cre.catalog.limit import Limit
from pytest_cre.catalog.limit_document import LimitDocument, limit_from
from pytest_cre.formats.yaml import YamlDocument, validate


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsFile:
    """Limits that are added to those of an architecture."""

    name: str
    architecture: str
    limits: tuple[Limit, ...]
    place: str = ""


class LimitsDocument(Document):
    """Limits for an architecture, beside those in its own file."""

    description: str = ""
    architecture: Name
    limits: Annotated[list[LimitDocument], Field(min_length=1)]


def limits_file_from(document: YamlDocument, path: Path) -> LimitsFile:
    """Return the limits of a file; raises `YamlProblem`."""
    form = validate(document, LimitsDocument)
    return LimitsFile(
        name=path.stem,
        architecture=form.architecture,
        limits=tuple(
            limit_from(
                each, place=document.place(("limits", index)), architecture=form.architecture
            )
            for index, each in enumerate(form.limits)
        ),
        place=document.place(("architecture",)),
    )


def limits_file_problems(file: LimitsFile, document: YamlDocument) -> Iterator[str]:
    """Yield what is wrong with a file of limits, seen alone."""
    yield from tier_problems(file.limits, document)

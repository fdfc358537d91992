"""Documents of upstream's that a run takes as they are: from a file, or from a run's manifest."""

from pathlib import Path
from typing import Literal

from pytest_cre.catalog.certification import Certification, certification_from
from pytest_cre.catalog.files import read_text, shown
from pytest_cre.catalog.loader import Catalog
from pytest_cre.catalog.workloadrun import workload_run_from
from pytest_cre.errors import CatalogProblem
from pytest_cre.formats.yaml import YamlProblem, parse_yaml

DocumentKind = Literal["Certification", "WorkloadRun"]


def read_certification(path: Path, catalog: Catalog, kind: DocumentKind) -> Certification:
    """Return what a file of this kind asks for; raises `CatalogProblem` with file, line, column."""
    return certification_of(read_text(path), shown(path), catalog, kind)


def certification_of(
    text: str, source: str, catalog: Catalog, kind: DocumentKind | None = None
) -> Certification:
    """Return what a document asks for; `kind` None takes either. Raises `CatalogProblem`."""
    try:
        document = parse_yaml(text, source)
        found = document.data.get("kind") if isinstance(document.data, dict) else None
        if kind is not None and found in ("Certification", "WorkloadRun") and found != kind:
            option = {"Certification": "--cre-certification", "WorkloadRun": "--cre-workload"}[
                found
            ]
            raise CatalogProblem(f"{document.place(('kind',))}: a {found} belongs to {option}")
        if (kind or found) == "WorkloadRun":
            return workload_run_from(document, text, catalog)
        return certification_from(document, text, catalog)
    except YamlProblem as problem:
        raise CatalogProblem(str(problem)) from None

"""The manifest of a run beside its evidence: what was planned, under which settings, what came of it.

    DIR/run.json

It is written anew whenever an item ends, so a run that was killed can be told from one that ended. Its
checksum is in it, for it must be written in one step.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_cre.errors import EvidenceProblem
from pytest_cre.evidence.files import read_json, replace_json
from pytest_cre.evidence.store import folder_name

SCHEMA = "cre.run/1"
MANIFEST_FILE = "run.json"
CHECKSUM = "sha256"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedItem:
    """What a planned item runs, and its folder below the manifest's."""

    entry: str
    scale: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """What makes a run's whole report from its evidence. `report` is that of `cre.report/1`."""

    report: Mapping[str, Any]
    is_finished: bool
    planned: Mapping[str, PlannedItem] = field(default_factory=dict)  # by node id
    simulated_limits: Mapping[str, str] = field(default_factory=dict)  # JSON text by node
    catalogs: tuple[str, ...] = ()  # folders given beside the shipped ones
    profiles: tuple[str, ...] = ()
    certification: str = ""  # text of upstream's document that the run was given, and its file
    certification_source: str = ""
    logs_place: str = ""  # the evidence folder as the run's own texts name it


def plan_folders(items: Iterable[tuple[str, str, str]]) -> dict[str, PlannedItem]:
    """Return what each item (node id, entry, scale) runs; no two have the same folder."""
    seen: Counter[tuple[str, str]] = Counter()
    planned = {}
    for node_id, entry, scale in items:
        folder = folder_name(entry, scale, nth=seen[entry, scale])
        seen[entry, scale] += 1
        planned[node_id] = PlannedItem(entry=entry, scale=scale, folder=folder)
    return planned


def write_manifest(root: Path, manifest: RunManifest) -> None:
    """Write the manifest; a reader sees the old one or the whole new one."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        replace_json(root / MANIFEST_FILE, sealed({"schema": SCHEMA, **asdict(manifest)}))
    except OSError as error:
        raise EvidenceProblem(f"{root / MANIFEST_FILE}: cannot be written: {error}") from error


def sealed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest's facts with their checksum, over their JSON with sorted keys and no blanks."""
    plain = {key: value for key, value in facts.items() if key != CHECKSUM}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return {**plain, CHECKSUM: hashlib.sha256(text.encode()).hexdigest()}


def read_manifest(root: Path) -> RunManifest:
    """Return the manifest of an evidence folder; raises `EvidenceProblem`."""
    from pydantic import TypeAdapter

    from pytest_cre.evidence.files import validated

    path = root / MANIFEST_FILE
    if not path.is_file():
        raise EvidenceProblem(
            f"{root}: holds no {MANIFEST_FILE}; name the folder that --cre-evidence was given"
        )
    facts = read_json(path, dict)
    if facts.get("schema") != SCHEMA:
        raise EvidenceProblem(f"{path}: not written as {SCHEMA}")
    if facts.pop(CHECKSUM, None) != sealed(facts)[CHECKSUM]:
        raise EvidenceProblem(f"{path}: was changed after the run (checksum differs)")
    del facts["schema"]
    return validated(TypeAdapter(RunManifest), facts, path)

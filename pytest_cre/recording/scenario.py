"""The scenario that replays a run: its nodes under other names, its limits, and which pod says what."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.recording.naming import run_id
from pytest_cre.recording.scrub import Scrubber

SCENARIO_FILE = "scenario.yaml"
HEAD = """\
# A run, recorded with --cre-save-recording. Names and addresses in it are pseudonyms. To replay it:
#   pytest -m certification --cre-scenario={file}
"""
_ORIGIN = ("tier", "source", "confidence", "place")  # of a limit; the scenario is its source now
# Nothing is generated here, so only the product counts: it tells the architecture.
_NEW_MODEL = {
    "device": "recorded GPU",
    "memoryGiB": 1024,
    "nvlinkBusbwGbs": 1.0,
    "nvlinkLatencyUs": 1.0,
    "networkGbs": 1.0,
    "networkLatencyUs": 1.0,
    "network": "IB",
    "tflopsPerGpu": 1.0,
    "stepTimeS": 1.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What a scenario needs to know of a run beside its evidence."""

    nodes: tuple[str, ...]
    products: Mapping[str, str]  # label value of an architecture's GPUs
    limits_json: str = "[]"  # of simulated nodes


def rule_of(group: GroupEvidence, place: str) -> dict[str, object]:
    """Return which containers replay a group's recording.

    Names of workloads depend on the run by its id only.
    """
    job = group.job.name if group.job else ""
    run = next(filter(None, map(run_id, group.manifests)), "")
    pattern = job.replace(run, "*", 1) if run else job
    return {"match": {"entry": group.entry, "pod": f"{pattern}-*"}, "file": place}


def scenario_text(
    groups: Sequence[GroupEvidence],
    rules: Sequence[Mapping[str, object]],
    run: RecordedRun,
    scrubber: Scrubber,
) -> str:
    """Return the scenario file."""
    import yaml

    architecture = next((each.architecture for each in groups if each.architecture), None)
    gpus = max((each.gpus_per_node for each in groups), default=1)
    model = architecture or "recorded"
    product = run.products.get(model, "NVIDIA-GPU")
    racks = _racks(groups)
    document: dict[str, object] = {
        "description": f"recording of a run on {len(run.nodes)} nodes ({architecture or 'unknown'})",
        "onlyRecordings": True,
        "hardware": {model: {"product": product, "gpusPerNode": gpus, **_NEW_MODEL}},
        "nodes": [
            {
                "name": scrubber.name("node", node),
                "gpu": model,
                **({"rack": racks[node]} if node in racks else {}),
            }
            for node in sorted(run.nodes)
        ],
        "limits": _limits(run.limits_json),
        "recordings": list(rules),
    }
    written = {key: value for key, value in document.items() if value not in ([], {})}
    text = yaml.safe_dump(written, sort_keys=False, width=100)
    return HEAD.format(file=SCENARIO_FILE) + text


def _racks(groups: Sequence[GroupEvidence]) -> dict[str, str]:
    """Return the rack of each node, as far as entries of that scale tell it."""
    within = sorted({tuple(sorted(each.nodes)) for each in groups if each.scale == "intra-rack"})
    return {node: f"rack-{number}" for number, nodes in enumerate(within) for node in nodes}


def _limits(limits_json: str) -> list[dict[str, object]]:
    return [
        {key: value for key, value in limit.items() if key not in _ORIGIN}
        for limit in json.loads(limits_json)
    ]

"""Nodes as facts: of a cluster, or of a saved list."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.cluster.objects import NODE, Object, condition, metadata_of, status_of
from pytest_cre.errors import EvidenceProblem
from pytest_cre.evidence.model import SIMULATED_LIMITS_ANNOTATION, NodeFacts

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

GPU_RESOURCE = "nvidia.com/gpu"


def node_facts(item: Object) -> NodeFacts:
    """Return the fields of a Node that planning and verdicts use; whatever is missing is empty."""
    metadata, status = metadata_of(item), status_of(item)
    spec = item.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    return NodeFacts(
        name=str(metadata.get("name", "")),
        uid=str(metadata.get("uid", "")),
        labels={str(key): str(value) for key, value in (metadata.get("labels") or {}).items()},
        gpus_allocatable=_whole((status.get("allocatable") or {}).get(GPU_RESOURCE)),
        is_ready=condition(item, "Ready") is not None,
        is_cordoned=spec.get("unschedulable") is True,
        taints=tuple(
            {name: str(taint.get(name) or "") for name in ("key", "value", "effect")}
            for taint in spec.get("taints") or ()
        ),
        provider_id=str(spec.get("providerID") or ""),
        boot_id=str((status.get("nodeInfo") or {}).get("bootID") or ""),
        simulated_limits=str(annotations.get(SIMULATED_LIMITS_ANNOTATION) or ""),
    )


def read_nodes(client: "Client", label_selector: str = "") -> tuple[NodeFacts, ...]:
    """Return every node of the cluster, sorted by name.

    Each page is reduced to facts before the next is read: most of a Node is its list of images.
    """
    pages = client.pages(NODE, label_selector=label_selector)
    return _sorted(node_facts(item) for page in pages for item in page.items)


def load_nodes(path: Path) -> tuple[NodeFacts, ...]:
    """Return the nodes of a saved list (`kubectl get nodes -o json` or yaml), sorted by name."""
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if text.lstrip().startswith("{") else _yaml(text)
        items = data["items"] if data.get("kind") != "Node" else [data]
        return _sorted(node_facts(item) for item in items)
    except OSError as problem:
        raise EvidenceProblem(f"{path}: cannot be read: {problem.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise EvidenceProblem(
            f"{path}: not a list of nodes as `kubectl get nodes -o json` prints it"
        ) from None


def _yaml(text: str) -> Mapping[str, object]:
    import yaml

    try:
        return dict(yaml.safe_load(text))
    except yaml.YAMLError as problem:
        raise ValueError(str(problem)) from None


def _sorted(nodes: Iterable[NodeFacts]) -> tuple[NodeFacts, ...]:
    return tuple(sorted(nodes, key=lambda node: node.name))


def _whole(text: object) -> int:
    """Return a count of devices; what is no count is none."""
    try:
        return max(0, int(str(text)))
    except ValueError:
        return 0

"""Nodes as facts: of a cluster, or of a saved list."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.cluster.objects import (
    NODE,
    RESOURCE_SLICE,
    Object,
    condition,
    entries,
    metadata_of,
    part,
    status_of,
)
from pytest_cre.errors import EvidenceProblem
from pytest_cre.evidence.model import SIMULATED_LIMITS_ANNOTATION, NodeFacts
from pytest_cre.formats.quantity import parse_quantity

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

GPU_RESOURCE = "nvidia.com/gpu"
GPU_DRIVER = "gpu.nvidia.com"


def node_facts(item: Object) -> NodeFacts:
    """Return the fields of a Node that planning and verdicts use; whatever is missing is empty."""
    metadata, status = metadata_of(item), status_of(item)
    spec = part(item, "spec")
    annotations = part(metadata, "annotations")
    return NodeFacts(
        name=str(metadata.get("name", "")),
        uid=str(metadata.get("uid", "")),
        labels={str(key): str(value) for key, value in part(metadata, "labels").items()},
        gpus_allocatable=whole_count(part(status, "allocatable").get(GPU_RESOURCE)),
        is_ready=condition(item, "Ready") is not None,
        is_cordoned=spec.get("unschedulable") is True,
        taints=tuple(
            {name: str(taint.get(name) or "") for name in ("key", "value", "effect")}
            for taint in entries(spec, "taints")
        ),
        provider_id=str(spec.get("providerID") or ""),
        boot_id=str(part(status, "nodeInfo").get("bootID") or ""),
        resources={
            str(name): count
            for name, amount in sorted(part(status, "allocatable").items())
            if "/" in str(name) and name != GPU_RESOURCE and (count := whole_count(amount))
        },
        simulated_limits=str(annotations.get(SIMULATED_LIMITS_ANNOTATION) or ""),
    )


def read_nodes(client: "Client", label_selector: str = "") -> tuple[NodeFacts, ...]:
    """Return every node of the cluster, sorted by name.

    Each page is reduced to facts before the next is read: most of a Node is its list of images.
    """
    pages = client.pages(NODE, label_selector=label_selector)
    nodes = _sorted(node_facts(item) for page in pages for item in page.items)
    if any(node.gpu_product is not None for node in nodes):
        return nodes
    return with_slices(nodes, _slices(client))


def with_slices(nodes: Iterable[NodeFacts], slices: Iterable[Object]) -> tuple[NodeFacts, ...]:
    """Return nodes with the GPUs that ResourceSlices tell of; what a node says itself stands."""
    products: dict[str, str] = {}
    counts: dict[str, int] = {}
    for each in slices:
        spec = part(each, "spec")
        node = str(spec.get("nodeName") or "")
        if spec.get("driver") != GPU_DRIVER or not node:
            continue
        for device in entries(spec, "devices"):
            name = part(part(device, "attributes"), "productName").get("string")
            if name and part(part(device, "attributes"), "type").get("string", "gpu") == "gpu":
                products.setdefault(node, str(name))
                counts[node] = counts.get(node, 0) + 1
    return tuple(
        replace(
            node,
            slice_product=products[node.name],
            gpus_allocatable=node.gpus_allocatable or counts[node.name],
        )
        if node.name in products
        else node
        for node in nodes
    )


def _slices(client: "Client") -> tuple[Object, ...]:
    """Return the ResourceSlices; none where they are not served or may not be read."""
    try:
        return tuple(item for page in client.pages(RESOURCE_SLICE) for item in page.items)
    except ApiProblem as problem:
        if problem.status not in (403, 404):
            raise
        return ()


def load_nodes(path: Path) -> tuple[NodeFacts, ...]:
    """Return the nodes of a saved list (`kubectl get nodes -o json` or yaml), sorted by name."""
    try:
        data = _parsed(path.read_text(encoding="utf-8-sig"))
    except OSError as problem:
        raise EvidenceProblem(f"{path}: cannot be read: {problem.strerror}") from None
    except (ValueError, RecursionError):
        raise EvidenceProblem(f"{path}: neither JSON nor YAML") from None
    root = data if isinstance(data, dict) else {}
    items = (root,) if root.get("kind") == "Node" else entries(root, "items")
    nodes = [item for item in items if item.get("kind", "Node") == "Node"]
    if not nodes or not all(metadata_of(node).get("name") for node in nodes):
        raise EvidenceProblem(
            f"{path}: not a list of nodes as `kubectl get nodes -o json` prints it"
        )
    return _sorted(node_facts(node) for node in nodes)


def _parsed(text: str) -> object:
    if text.lstrip().startswith("{"):
        return json.loads(text)
    import yaml

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 10 times as fast
        return yaml.load(text, Loader=loader)  # noqa: S506 - both are safe
    except yaml.YAMLError as problem:
        raise ValueError(str(problem)) from None


def _sorted(nodes: Iterable[NodeFacts]) -> tuple[NodeFacts, ...]:
    return tuple(sorted(nodes, key=lambda node: node.name))


def whole_count(text: object) -> int:
    """Return a count of devices; what is no count is none."""
    try:
        return max(0, int(parse_quantity(str(text))))
    except ValueError:
        return 0

"""Which nodes of the cluster a run uses, and why it leaves out the others."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from pytest_cre.catalog.architecture import Architecture, architecture_of
from pytest_cre.errors import UsageProblem
from pytest_cre.evidence.model import Exclusion, GpuHolder, NodeFacts
from pytest_cre.formats.selector import SelectorProblem, parse_selector
from pytest_cre.plan.model import Selection
from pytest_cre.plan.taints import DEFAULT_TOLERATIONS, says_cordoned, says_not_ready, untolerated
from pytest_cre.plan.tenants import busy_words
from pytest_cre.plan.wording import listed

GPU_RESOURCE = "nvidia.com/gpu"
GPU_PRESENT_LABEL = "nvidia.com/gpu.present"


def is_gpu_node(node: NodeFacts) -> bool:
    """Return whether a label or an allocatable GPU says that the node has GPUs."""
    return (
        node.gpus_allocatable > 0
        or node.gpu_product is not None
        or node.labels.get(GPU_PRESENT_LABEL) == "true"
    )


def select_nodes(
    nodes: Sequence[NodeFacts],
    architectures: Mapping[str, Architecture],
    *,
    names: Sequence[str] = (),
    selector: str = "",
    architecture: str | None = None,
    max_nodes: int | None = None,
    gpus_per_node: int | None = None,
    tolerations: Sequence[Mapping[str, str]] = DEFAULT_TOLERATIONS,
    held: Mapping[str, Sequence[GpuHolder]] = MappingProxyType({}),
) -> Selection:
    """Return the GPU nodes to use, sorted by name, and every other GPU node with its reason.

    Each node gets the first reason that holds, in this order: unselected (`selector`, then
    `names`), tainted, cordoned, not-ready, no-gpu, minority-architecture, few-gpus, busy,
    over-max-nodes. `held` are the pods of others that hold GPUs, by node. `architecture` settles what otherwise the majority decides; nodes without a
    product label then count as of that architecture. `gpus_per_node` None asks for what the
    architecture has. Raises `UsageProblem` for a mistake in the arguments, for a cluster without
    GPU nodes and for one that mixes simulated with real ones.
    """
    gpu_nodes = sorted((node for node in nodes if is_gpu_node(node)), key=lambda node: node.name)
    _check_cluster(nodes, gpu_nodes)
    _check_names(names, nodes, gpu_nodes)
    if architecture is not None and architecture not in architectures:
        raise UsageProblem(
            f"unknown GPU architecture {architecture!r}; choices: {listed(sorted(architectures))}"
        )
    try:
        matches = parse_selector(selector).matches
    except SelectorProblem as problem:
        raise UsageProblem(f"nodes: {problem}") from problem
    sieve = _Sieve(gpu_nodes)
    sieve.drop("unselected", lambda node: None if matches(node.labels) else f"not in {selector!r}")
    if not sieve.kept:
        raise UsageProblem(f"node selector {selector!r} matches none of {len(gpu_nodes)} GPU nodes")
    sieve.drop(
        "unselected",
        lambda node: "not among the nodes named" if names and node.name not in names else None,
    )
    sieve.drop("tainted", lambda node: _taint_words(untolerated(node.taints, tolerations)))
    sieve.drop("cordoned", _cordon_words)
    sieve.drop("not-ready", _ready_words)
    sieve.drop("no-gpu", _gpu_words)
    chosen = _keep_one_architecture(sieve, architectures, architecture)
    needed = gpus_per_node or _usual_gpus(sieve.kept, architectures.get(chosen or ""))
    sieve.drop(
        "few-gpus",
        lambda node: (
            f"{node.gpus_allocatable} of {needed} GPUs allocatable"
            if node.gpus_allocatable < needed
            else None
        ),
    )
    sieve.drop("busy", lambda node: busy_words(node, held.get(node.name, ())))
    if max_nodes is not None:
        used = {node.name for node in sieve.kept[:max_nodes]}
        sieve.drop(
            "over-max-nodes",
            lambda node: f"more than {max_nodes} nodes" if node.name not in used else None,
        )
    return Selection(
        nodes=tuple(sieve.kept),
        excluded=tuple(sorted(sieve.excluded, key=lambda each: each.node)),
        architecture=chosen,
        is_simulated=gpu_nodes[0].is_simulated,
    )


class _Sieve:
    """Nodes kept so far, and those dropped with their first reason."""

    def __init__(self, nodes: Iterable[NodeFacts]) -> None:
        self.kept = list(nodes)
        self.excluded: list[Exclusion] = []

    def drop(self, reason: str, words: Callable[[NodeFacts], str | None]) -> None:
        """Drop every node for which `words` has something to say."""
        kept = []
        for node in self.kept:
            message = words(node)
            if message is None:
                kept.append(node)
            else:
                self.excluded.append(Exclusion(node=node.name, reason=reason, message=message))
        self.kept = kept


def _check_cluster(nodes: Sequence[NodeFacts], gpu_nodes: Sequence[NodeFacts]) -> None:
    if not gpu_nodes:
        raise UsageProblem(
            f"no GPU node in the cluster: none of its {len(nodes)} nodes allocates {GPU_RESOURCE} "
            f"or carries the label {GPU_PRESENT_LABEL}=true"
        )
    simulated = [node.name for node in gpu_nodes if node.is_simulated]
    real = [node.name for node in gpu_nodes if not node.is_simulated]
    if simulated and real:
        raise UsageProblem(
            f"the cluster mixes simulated GPU nodes ({listed(simulated, 3)}) with real ones "
            f"({listed(real, 3)}); a certification needs one kind"
        )


def _check_names(
    names: Sequence[str], nodes: Sequence[NodeFacts], gpu_nodes: Sequence[NodeFacts]
) -> None:
    gpu_names = [node.name for node in gpu_nodes]
    for name in names:
        if name not in gpu_names:
            problem = "has no GPU" if any(node.name == name for node in nodes) else "does not exist"
            raise UsageProblem(f"node {name!r} {problem}; GPU nodes: {listed(gpu_names)}")


def _taint_words(taints: tuple[str, ...]) -> str | None:
    return f"taint not tolerated: {', '.join(taints)}" if taints else None


def _cordon_words(node: NodeFacts) -> str | None:
    is_cordoned = node.is_cordoned or says_cordoned(node.taints)
    return "spec.unschedulable is true" if is_cordoned else None


def _ready_words(node: NodeFacts) -> str | None:
    is_ready = node.is_ready and not says_not_ready(node.taints)
    return None if is_ready else "the condition Ready is not True"


def _gpu_words(node: NodeFacts) -> str | None:
    return None if node.gpus_allocatable > 0 else f"no {GPU_RESOURCE} is allocatable"


def _keep_one_architecture(
    sieve: _Sieve, architectures: Mapping[str, Architecture], asked: str | None
) -> str | None:
    """Drop the nodes of all architectures but one; return its name, None where none is known."""
    of = {node.name: architecture_of(node.gpu_product, architectures) for node in sieve.kept}
    if asked is not None:
        for node in sieve.kept:
            if node.gpu_product is None:
                of[node.name] = asked
        if sieve.kept and asked not in of.values():
            found = sorted({node.gpu_product or "" for node in sieve.kept})
            raise UsageProblem(f"no node is of architecture {asked!r}; products: {listed(found)}")
        chosen: str | None = asked
    else:
        chosen = _majority([name for node in sieve.kept if (name := of[node.name]) is not None])
    if chosen is None:
        # Products that no architecture knows: one of them at a time, so that a group is of a kind.
        of = {node.name: node.gpu_product for node in sieve.kept}
        usual = _majority([product or "" for product in of.values()]) or None
    else:
        usual = chosen
    sieve.drop(
        "minority-architecture",
        lambda node: (
            None
            if of[node.name] == usual
            else f"{of[node.name] or node.gpu_product or 'no product label'}; "
            f"the run uses {usual or 'nodes without a product label'}"
        ),
    )
    return chosen


def _majority(values: Sequence[str]) -> str | None:
    """Return the commonest value; of several, the one that comes first in the sequence."""
    counts = Counter(values)  # keeps the order of first appearance
    return max(counts, key=lambda value: counts[value]) if counts else None


def _usual_gpus(nodes: Sequence[NodeFacts], architecture: Architecture | None) -> int:
    """Return the GPUs that every node must have: the architecture's, else the commonest number."""
    if architecture is not None:
        return architecture.gpus_per_node
    counts = Counter(node.gpus_allocatable for node in nodes)
    return max(counts, key=lambda gpus: (counts[gpus], gpus)) if counts else 1

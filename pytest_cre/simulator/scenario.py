"""Scenarios: which nodes are simulated, how fast they are, what is wrong with them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

from pytest_cre.formats.yaml import YamlDocument, YamlProblem, parse_yaml, validate
from pytest_cre.simulator.apifaults import ApiFault
from pytest_cre.simulator.derivedlimits import derived_limits, without_those_given
from pytest_cre.simulator.faults import After, Fault, Match
from pytest_cre.simulator.hardware import GpuModel, SimulatedNode
from pytest_cre.simulator.models import MODELS
from pytest_cre.simulator.recordings import Recordings, load_recordings
from pytest_cre.simulator.scenariofile import (
    FaultDocument,
    MatchDocument,
    NodesDocument,
    ScenarioDocument,
)

FOLDER = Path(__file__).parent / "scenarios"
_LARGEST_FILE_BYTES = 1 << 20
_DEEPEST_BASE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRule:
    """Which containers replay which recording."""

    match: Match
    recordings: Recordings
    speed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRule:
    """Which containers run as real processes, and with which Python."""

    match: Match
    python: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario, checked and complete. `limits_json` is what the nodes' annotation carries."""

    name: str
    seed: int
    nodes: tuple[SimulatedNode, ...]
    faults: tuple[Fault, ...] = ()
    api_faults: tuple[ApiFault, ...] = ()
    limits_json: str = "[]"
    recordings: tuple[RecordingRule, ...] = ()
    only_recordings: bool = False  # GPU programs that no recording stands for end at once
    processes: tuple[ProcessRule, ...] = ()
    table_s: float = 1.0  # real time of one table of a collective
    init_s: float = 0.3  # real time from the start of a program to its first work
    pod_start_s: float = 0.1
    rendezvous_timeout_s: float = 60.0


def shipped_scenarios() -> tuple[str, ...]:
    """Return the names of the scenarios that come with the package, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def load_scenario(name_or_path: str) -> Scenario:
    """Return a shipped scenario or that of a file; raises `ValueError` in one line."""
    layers = _layers(_locate(name_or_path, None), ())
    return _Builder(layers).scenario()


@dataclass(frozen=True, slots=True)
class _Layer:
    path: Path
    document: YamlDocument
    form: ScenarioDocument

    def refuse(self, problem: str, *path: str | int) -> YamlProblem:
        return YamlProblem(f"{self.document.place(path)}: {problem}")


def _locate(name_or_path: str, base: Path | None) -> Path:
    """Return the file of a scenario; a path in a file is relative to it."""
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml") or path.name != name_or_path:
        path = path if base is None else base / path
        if not path.is_file():
            raise ValueError(
                f"scenario file {name_or_path!r} does not exist; "
                f"choices: a file, or one of {', '.join(shipped_scenarios())}"
            )
        return path
    if name_or_path not in shipped_scenarios():
        raise ValueError(
            f"scenario {name_or_path!r} is unknown; choices: {', '.join(shipped_scenarios())}, "
            "or the path of a YAML file"
        )
    return FOLDER / f"{name_or_path}.yaml"


def _layers(path: Path, above: tuple[Path, ...]) -> tuple[_Layer, ...]:
    """Return a scenario file and those it extends, itself first."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST_FILE_BYTES + 1)
        text = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        words = problem.strerror if isinstance(problem, OSError) else "is not UTF-8 text"
        raise ValueError(f"{path}: cannot be read: {words}") from None
    if len(raw) > _LARGEST_FILE_BYTES:
        raise ValueError(f"{path}: is larger than {_LARGEST_FILE_BYTES} bytes")
    document = parse_yaml(text, str(path))
    layer = _Layer(path, document, validate(document, ScenarioDocument))
    if layer.form.extends is None:
        return (layer,)
    if path.resolve() in above or len(above) >= _DEEPEST_BASE:
        raise layer.refuse("scenarios extend each other in a circle", "extends")
    try:
        base = _locate(layer.form.extends, path.parent)
    except ValueError as problem:
        raise layer.refuse(str(problem), "extends") from None
    return (layer, *_layers(base, (*above, path.resolve())))


class _Builder:
    """From files to a scenario: the first file that gives a value wins, stanzas add up."""

    def __init__(self, layers: Sequence[_Layer]) -> None:
        self.layers = layers
        self.name = layers[0].path.stem

    def scenario(self) -> Scenario:
        chosen: dict[str, Any] = {
            field: value
            for field, key in (
                ("table_s", "table_time"),
                ("init_s", "init_time"),
                ("pod_start_s", "pod_start_time"),
                ("rendezvous_timeout_s", "rendezvous_timeout"),
            )
            if (value := self.first(key)) is not None
        }
        seed, nodes = self.first("seed"), self.nodes()
        return Scenario(
            name=self.name,
            seed=0 if seed is None else seed,
            nodes=nodes,
            faults=(*self.links(), *(_fault(each) for each in self.all_of("faults"))),
            api_faults=tuple(each.fault() for each in self.all_of("api_faults")),
            limits_json=self.limits_json(nodes),
            recordings=tuple(self.recordings()),
            only_recordings=bool(self.first("only_recordings")),
            processes=tuple(
                ProcessRule(match=_match(each.match), python=each.python)
                for each in self.all_of("processes")
            ),
            **chosen,
        )

    def first(self, key: str) -> Any:
        values = (getattr(layer.form, key) for layer in self.layers)
        return next((value for value in values if value is not None), None)

    def all_of(self, key: str) -> list[Any]:
        return [each for layer in self.layers for each in getattr(layer.form, key)]

    def models(self) -> Mapping[str, GpuModel]:
        models = dict(MODELS)
        for layer in reversed(self.layers):
            for name, form in layer.form.hardware.items():
                given = {
                    field.name: value
                    for field in fields(GpuModel)
                    if (value := getattr(form, field.name)) is not None
                }
                if name in models:
                    models[name] = replace(models[name], **given)
                    continue
                needed = {field.name for field in fields(GpuModel) if field.default is MISSING}
                if missing := sorted(needed - given.keys()):
                    raise layer.refuse(
                        f"new GPU model {name!r} needs {_camel(missing[0])} too", "hardware", name
                    )
                models[name] = GpuModel(**given)
        return models

    def nodes(self) -> tuple[SimulatedNode, ...]:
        models = self.models()
        layer = next((layer for layer in self.layers if layer.form.nodes is not None), None)
        if layer is None or layer.form.nodes is None:
            raise self.layers[0].refuse("nodes are missing; give nodes or extends")
        nodes: dict[str, SimulatedNode] = {}
        for number, form in enumerate(layer.form.nodes):
            if form.gpu not in models:
                choices = ", ".join(sorted(models))
                raise layer.refuse(
                    f"GPU model {form.gpu!r} is unknown; choices: {choices}", "nodes", number, "gpu"
                )
            for node in _nodes(form, models[form.gpu]):
                if node.name in nodes:
                    raise layer.refuse(f"node {node.name!r} is there twice", "nodes", number)
                nodes[node.name] = node
        return tuple(nodes[name] for name in sorted(nodes))

    def links(self) -> Iterator[Fault]:
        for form in self.all_of("links"):
            yield Fault(
                action="slow-link",
                match=_match(form.match),
                factor=form.factor,
                link=form.link,
                to=_match(form.to) if form.to is not None else None,
            )

    def limits_json(self, nodes: Sequence[SimulatedNode]) -> str:
        """Return the limits of the first file that gives any, or says how they follow."""
        forms = (layer.form for layer in self.layers)
        said = next((each for each in forms if each.has_limits), None)
        if said is None:
            return "[]"
        limits: list[Mapping[str, object]] = [
            each.model_dump(by_alias=True, exclude_none=True) for each in said.limits or ()
        ]
        if said.derived_limits is not None:
            derived = derived_limits(nodes, said.derived_limits.margin)
            limits = without_those_given(derived, limits)
        own = {"tier": "simulated", "source": f"scenario {self.name}"}
        whole = [{**each, **own} for each in limits]
        return json.dumps(whole, separators=(",", ":"), sort_keys=True)

    def recordings(self) -> Iterator[RecordingRule]:
        for layer in self.layers:
            for number, form in enumerate(layer.form.recordings):
                try:
                    recordings = load_recordings(layer.path.parent / form.file)
                except ValueError as problem:
                    raise layer.refuse(str(problem), "recordings", number, "file") from None
                if form.exit_code is not None:
                    recordings = {
                        index: tuple(replace(each, exit_code=form.exit_code) for each in of_pod)
                        for index, of_pod in recordings.items()
                    }
                match = _match(form.match)
                yield RecordingRule(match=match, recordings=recordings, speed=form.speed)


def _nodes(form: NodesDocument, model: GpuModel) -> Iterator[SimulatedNode]:
    for index in range(form.count):
        name = form.name.replace("{index}", str(index))
        gpus = model.gpus_per_node if form.gpus_per_node is None else form.gpus_per_node
        yield SimulatedNode(
            name=name,
            model=model,
            gpus=gpus,
            domain=form.rack or name,
            labels={**({"nvidia.com/gpu.clique": form.rack} if form.rack else {}), **form.labels},
            taints=tuple(each.model_dump() for each in form.taints),
            is_unschedulable=form.unschedulable,
        )


def _match(form: MatchDocument) -> Match:
    return Match(**form.model_dump())


def _fault(form: FaultDocument) -> Fault:
    given = form.model_dump(exclude_none=True, exclude={"match", "after", "bytes"})
    if form.bytes is not None:
        given["size_bytes"] = form.bytes
    after = form.after
    return Fault(
        match=_match(form.match),
        after=After()
        if after is None
        else After(step=after.step, size_bytes=after.size, seconds=after.seconds),
        **given,
    )


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)

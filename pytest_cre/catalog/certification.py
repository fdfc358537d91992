"""What a run was told to certify, by a document of upstream's: entries, nodes, limits, scheduler."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic.alias_generators import to_camel

from pytest_cre.catalog.certification_document import (
    KUEUE_LABEL,
    CategoryDocument,
    CategoryOptionsDocument,
    CertificationDocument,
    CertificationSpec,
    checked,
)
from pytest_cre.catalog.entry import DIAGNOSE, MIN_GROUP_SIZE, SCALES, CatalogEntry
from pytest_cre.catalog.limit import Limit
from pytest_cre.catalog.loader import Catalog
from pytest_cre.catalog.options import resolve_options
from pytest_cre.catalog.override import Condition, Override, When
from pytest_cre.catalog.thresholds import MEASURED_BY, limits_from_thresholds
from pytest_cre.errors import CatalogProblem, UsageProblem
from pytest_cre.formats.choices import choices_words
from pytest_cre.formats.yaml import Path as YamlPath
from pytest_cre.formats.yaml import YamlDocument

FULL_SCALE = SCALES[0]
OPTIONS = (
    *("max_bytes", "num_iterations", "num_cycles"),
    *("max_steps", "exit_duration_mins", "save_interval"),
    *("enable_checkpoint", "max_restarts", "storage_class_name", "storage_size"),
)
MNNVL = "NCCL_MNNVL_ENABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """An entry to run at one scale.

    `nodes_per_group` is the size of the groups at full scale, None for the entry's own choice; with
    `may_shrink` fewer nodes make one group of them all. `max_concurrent` None: no bound.
    """

    entry: str
    scale: str
    nodes_per_group: int | None = None
    may_shrink: bool = False
    gpus_per_node: int | None = None
    timeout_s: float | None = None
    max_concurrent: int | None = None
    min_group_size: int = MIN_GROUP_SIZE
    iterations: int = 1
    override: Override | None = None
    limits: tuple[Limit, ...] = ()
    place: str = ""

    def group_size(self, nodes: int) -> int | None:
        """Return how many of so many nodes form a group, None for the entry's own choice."""
        size = self.nodes_per_group
        return min(size, nodes) if size is not None and self.may_shrink and nodes else size

    def on(self, entry: CatalogEntry) -> CatalogEntry:
        """Return the entry with the deadline and the GPUs that the category asks for."""
        return replace(
            entry,
            timeout_s=self.timeout_s or entry.timeout_s,
            gpus_per_node=self.gpus_per_node or entry.gpus_per_node,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Certification:
    """What a document asks for. `text` is the whole document, `source` the name of its file."""

    name: str
    source: str
    text: str
    categories: tuple[Category, ...]
    selector: str = ""
    node_names: tuple[str, ...] = ()
    scheduler: str | None = None
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    image_pull_secrets: tuple[str, ...] = ()
    queue: str | None = None  # a LocalQueue of Kueue
    nic_resource: str | None = None
    rdma_device_access: str | None = None
    entries: tuple[CatalogEntry, ...] = ()  # that only this document knows
    notes: tuple[str, ...] = ()  # what is told, because it has no effect

    def category(self, entry: str, scale: str) -> Category | None:
        """Return what is asked of an entry at this scale, or None where it is not asked for."""
        found = (each for each in self.categories if (each.entry, each.scale) == (entry, scale))
        return next(found, None)

    def applied(self, catalog: Catalog) -> Catalog:
        """Return the catalog with the entries' scales, overrides and limits as they are asked for.

        Entries that are not asked for stay as they are.
        """
        entries = {**catalog.entries, **{entry.name: entry for entry in self.entries}}
        asked: dict[str, list[Category]] = {}
        for category in self.categories:
            asked.setdefault(category.entry, []).append(category)
        for name, categories in asked.items():
            entry = entries[name]
            entries[name] = replace(
                entry,
                scales=tuple(each.scale for each in categories),
                scales_on_request=(),
                overrides=(
                    *entry.overrides,
                    *(each.override for each in categories if each.override),
                ),
                limits=(*entry.limits, *(limit for each in categories for limit in each.limits)),
            )
        return catalog.with_entries(entries.values())


def certification_from(document: YamlDocument, text: str, catalog: Catalog) -> Certification:
    """Return what a Certification asks for.

    Raises `YamlProblem` for its form, and `CatalogProblem` for what the catalog cannot do of it.
    """
    form = checked(document, CertificationDocument)
    spec = form.spec
    reader = _Reader(document, spec, catalog)
    categories = tuple(
        reader.category(index, category) for index, category in enumerate(spec.categories)
    )
    for line in reader.problems(categories):
        raise CatalogProblem(line)
    gang = spec.gang_scheduler
    return Certification(
        name=form.metadata.name,
        source=document.source,
        text=text,
        categories=categories,
        selector=spec.target.selector(),
        node_names=tuple(spec.target.node_names),
        scheduler=gang.scheduler_name if gang is not None else None,
        pod_labels=gang.labels() if gang is not None else {},
        image_pull_secrets=tuple(sorted(reader.secrets)),
        queue=reader.only("workload_metadata"),
        nic_resource=reader.only("nic_resource_name"),
        rdma_device_access=reader.only("rdma_device_access"),
        notes=reader.notes,
    )


class _Reader:
    """One document's categories, with their options over those of the spec."""

    def __init__(self, document: YamlDocument, spec: CertificationSpec, catalog: Catalog) -> None:
        self._document = document
        self._spec = spec
        self._catalog = catalog
        self._taken: set[str] = set()  # options and thresholds of the spec that a category takes
        self._values: dict[str, dict[str, YamlPath]] = {}  # of what the whole run has one of
        self.secrets: set[str] = set()
        self._noted: dict[str, str] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what to tell about the document."""
        return tuple(self._noted.values())

    def category(self, index: int, form: CategoryDocument) -> Category:
        """Return a category."""
        name = f"{form.domain}/{form.variant}"
        at: YamlPath = ("spec", "categories", index)
        place = self._document.place(at)
        entry = self._catalog.entries.get(name)
        if entry is None:
            words = choices_words(name, self._catalog.entries)
            raise CatalogProblem(f"{place}: category {name!r} is unknown{words}")
        options = _Options(self._spec, form.options, (*at, "options"))
        scale = self._scale(entry, options)
        self._collect(options)
        return Category(
            entry=name,
            scale=scale,
            nodes_per_group=self._nodes(options, scale),
            may_shrink=True,
            gpus_per_node=options.get("gpus_per_node"),
            timeout_s=options.get("timeout_per_job"),
            max_concurrent=options.get("max_concurrent") or None,
            min_group_size=self._at_diagnose(options, scale, "min_group_size") or MIN_GROUP_SIZE,
            iterations=self._iterations(options, scale),
            override=self._override(index, entry, scale, options),
            limits=self._limits(entry, scale, options),
            place=place,
        )

    def only(self, name: str) -> str | None:
        """Return the value that all categories share, or None where none sets one."""
        return next(iter(self._values.get(name, {})), None)

    def problems(self, categories: tuple[Category, ...]) -> Iterator[str]:
        """Yield what is wrong between the categories."""
        seen: dict[tuple[str, str], Category] = {}
        for each in categories:
            first = seen.setdefault((each.entry, each.scale), each)
            if first is not each:
                yield (
                    f"{each.place}: {each.entry} at {each.scale} stands twice, first in "
                    f"{first.place}; repeatCount repeats it"
                )
        for name, found in sorted(self._values.items()):
            if len(found) > 1:
                path = list(found.values())[1]
                words = " and ".join(sorted(found))
                yield f"{self._document.place(path)}: {to_camel(name)} must be one for all, got {words}"
        for name in (*OPTIONS, "min_group_size"):
            if getattr(self._spec, name) is not None and name not in self._taken:
                yield f"{self._place(('spec', to_camel(name)))}: no category takes {to_camel(name)}"
        for key in sorted(self._spec.thresholds):
            if key not in self._taken:
                place = self._place(("spec", "thresholds", key))
                yield f"{place}: no category measures {key!r}, so nothing would be judged by it"

    def _scale(self, entry: CatalogEntry, options: "_Options") -> str:
        """Return the scale; only entries that run at full scale have a choice."""
        has_choice = FULL_SCALE in entry.scales and entry.measures == "bandwidth"
        asked = options.get("test_scale")
        if has_choice and (asked != DIAGNOSE or DIAGNOSE in entry.all_scales):
            return asked or FULL_SCALE
        if options.is_own("test_scale") and asked not in (None, *entry.scales):
            place = self._place(options.path("test_scale"))
            raise CatalogProblem(
                f"{place}: {entry.name} cannot run at {asked}; choices: {', '.join(entry.scales)}"
            )
        return asked if asked in entry.scales and options.is_own("test_scale") else entry.scales[0]

    def _nodes(self, options: "_Options", scale: str) -> int | None:
        if scale == FULL_SCALE:
            size: int | None = options.get("nodes_per_job")
            return size
        if options.is_own("nodes_per_job"):
            place = self._place(options.path("nodes_per_job"))
            raise CatalogProblem(f"{place}: nodesPerJob has no meaning at {scale}; take it out")
        return None

    def _at_diagnose(self, options: "_Options", scale: str, name: str) -> int | None:
        """Return the value of an option that only a diagnosis takes."""
        if scale == DIAGNOSE:
            self._taken.add(name)
            value: int | None = options.get(name)
            return value
        if options.is_own(name):
            place = self._place(options.path(name))
            raise CatalogProblem(
                f"{place}: {to_camel(name)} has no meaning at {scale}; take it out"
            )
        return None

    def _iterations(self, options: "_Options", scale: str) -> int:
        """Return how often each group is tested; a diagnosis decides that itself."""
        if scale != DIAGNOSE:
            return options.get("repeat_count") or 1
        if options.is_own("repeat_count") and (options.get("repeat_count") or 1) > 1:
            place = self._place(options.path("repeat_count"))
            raise CatalogProblem(f"{place}: repeatCount has no meaning at {scale}; take it out")
        return 1

    def _override(
        self, index: int, entry: CatalogEntry, scale: str, options: "_Options"
    ) -> Override | None:
        """Return the category's image, NVLink switch and options as the entry's last override."""
        given: dict[str, str] = {}
        for name in OPTIONS:
            value = options.get(name)
            if value is None:
                continue
            if to_camel(name) in entry.options:
                text = str(value)
                given[to_camel(name)] = text.lower() if isinstance(value, bool) else text
                self._taken.add(name)
            elif options.is_own(name):
                words = choices_words(to_camel(name), entry.options)
                raise CatalogProblem(
                    f"{self._place(options.path(name))}: {entry.name} has no option "
                    f"{to_camel(name)}{words}"
                )
        try:
            resolve_options(entry, given)
        except UsageProblem as problem:
            raise CatalogProblem(f"{self._place(options.at)}: {problem}") from None
        mnnvl, image = options.get("enable_mnnvl"), options.get("image")
        if not given and mnnvl is None and image is None:
            return None
        return Override(
            name=f"certification-category-{index}",
            when=When(scale=Condition(equals=scale)),
            image=escaped(image) if image is not None else None,
            env={} if mnnvl is None else {MNNVL: str(int(mnnvl))},
            options=given,
            place=self._place(options.at),
        )

    def _limits(self, entry: CatalogEntry, scale: str, options: "_Options") -> tuple[Limit, ...]:
        thresholds: Mapping[str, str] = options.get("thresholds") or {}
        path = options.path("thresholds")
        if not options.is_own("thresholds"):
            known = MEASURED_BY.get(entry.measures, ())
            unknown = {key for keys in MEASURED_BY.values() for key in keys}
            thresholds = {
                key: text
                for key, text in thresholds.items()
                if key in known or key not in unknown  # an unknown key is told, not left out
            }
            self._taken |= set(thresholds)
        found = limits_from_thresholds(
            thresholds,
            entry=entry.name,
            measures=entry.measures,
            places={key: self._place((*path, key)) for key in thresholds},
            source=f"Certification {self._document.source}",
        )
        return tuple(replace(limit, scale=scale) for limit in found)

    def _collect(self, options: "_Options") -> None:
        """Note what the pods of the whole run have in common."""
        self.secrets |= {each.name for each in options.get("image_pull_secrets") or ()}
        for name in ("nic_resource_name", "rdma_device_access"):
            value = options.get(name)
            if value is not None:
                self._values.setdefault(name, {}).setdefault(value, options.path(name))
        for level in options.levels("workload_metadata"):
            for queue in (level.labels.get(KUEUE_LABEL),) if level is not None else ():
                if queue is not None:
                    path = options.path("workload_metadata")
                    self._values.setdefault("workload_metadata", {}).setdefault(queue, path)
        if options.get("measurement_timeout") is not None:
            place = self._place(options.path("measurement_timeout"))
            self._noted["measurementTimeout"] = (
                f"{place}: measurementTimeout has no effect: logs are read to their end"
            )

    def _place(self, path: YamlPath) -> str:
        return self._document.place(path)


class _Options:
    """A category's options: what it sets stands above what the spec sets."""

    def __init__(
        self, spec: CertificationSpec, own: CategoryOptionsDocument | None, at: YamlPath
    ) -> None:
        self._spec = spec
        self._own = own
        self.at = at

    def is_own(self, name: str) -> bool:
        """Return whether the category sets it itself."""
        return self._own is not None and name in self._own.model_fields_set

    def get(self, name: str) -> Any:
        """Return the value, None or empty where nothing sets it."""
        return getattr(self._own if self.is_own(name) else self._spec, name)

    def levels(self, name: str) -> tuple[Any, ...]:
        """Return the values of both levels, the spec's first."""
        return (getattr(self._spec, name), getattr(self._own, name) if self._own else None)

    def path(self, name: str) -> YamlPath:
        """Return where the value stands."""
        alias = CategoryOptionsDocument.model_fields[name].alias or to_camel(name)
        return (*(self.at if self.is_own(name) else ("spec",)), alias)


def escaped(text: str) -> str:
    """Return text that stays as it is where `${name}` is filled in."""
    return text.replace("$", "$$")

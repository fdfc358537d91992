"""Rendered manifests fitted to a platform and an architecture, by overrides that are data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.catalog.override import Override
from pytest_cre.errors import CatalogProblem
from pytest_cre.evidence.model import AppliedOverride
from pytest_cre.formats.patch import PatchProblem
from pytest_cre.plan.podedits import Editor, Nics
from pytest_cre.plan.podguard import LostPart, check_pods
from pytest_cre.plan.podsites import GPU_RESOURCE, Manifest, all_templates, editable
from pytest_cre.plan.site import NO_SITE, Site, on_site


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """What the pods of a run are fitted to. The empty one changes nothing.

    `overrides` are tried in order, an entry's own after them. `platform` is the one whose settings
    are taken. `nics` are the allocatable NICs of the nodes by resource, the least of them;
    `nics_per_node` is what the node is sold with, used where the nodes are not known.
    """

    platform: str | None = None
    architecture: str | None = None
    overrides: tuple[Override, ...] = ()
    nics_per_node: int = 0
    nics: Mapping[str, int] | None = None
    site: Site = NO_SITE
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def matching(
        self,
        entry: CatalogEntry,
        *,
        kind: str,
        scale: str,
        nodes: int,
        options: Mapping[str, str],
    ) -> tuple[Override, ...]:
        """Return the overrides whose conditions hold, in order."""
        return tuple(
            override
            for override in (*self.overrides, *entry.overrides)
            if override.when.allows(
                platform=self.platform,
                architecture=self.architecture,
                kind=kind,
                scale=scale,
                entry=entry.name,
                measures=entry.measures,
                nodes=nodes,
                options=options,
            )
        )

    def option_defaults(self, entry: CatalogEntry, scale: str) -> dict[str, str]:
        """Return the defaults of the entry's options that overrides set, later ones over earlier.

        Options are chosen before kind and group are, so no condition on these can hold.
        """
        found: dict[str, str] = {}
        kind = next(iter(entry.workloads))
        for override in self.matching(entry, kind=kind, scale=scale, nodes=1, options={}):
            found |= {key: each for key, each in override.options.items() if key in entry.options}
        return found

    def fit(
        self,
        manifests: Sequence[Manifest],
        entry: CatalogEntry,
        *,
        kind: str,
        scale: str,
        nodes: int,
        values: Mapping[str, str],
        name: str,
        options: Mapping[str, str],
    ) -> tuple[tuple[Manifest, ...], tuple[AppliedOverride, ...]]:
        """Return the manifests of one group as they are to be created, and what was done to them.

        `values` are what `${name}` stands for in the entry. Raises `CatalogProblem` for an override
        that cannot be applied, and `UnmetNeed` for what the site rules out.
        """
        matching = self.matching(entry, kind=kind, scale=scale, nodes=nodes, options=options)
        known = {**values, "job": name, "nicsPerNode": str(self.nics_per_node)}
        nics = Nics(
            per_node=self.nics_per_node,
            allocatable=self.nics,
            site_resource=self.site.nic_resource,
            are_host_devices=self.site.asks_for_no_nics,
        )
        edited, applied = editable(manifests), []
        for override in matching:
            editor = Editor(override, known, edited, entry.image, nics)
            is_free = override.edits_freely or GPU_RESOURCE in override.resources
            before = editable(all_templates(edited)) if is_free else []
            try:
                editor.apply()
                if is_free:
                    check_pods(before, editor.manifests[-len(edited) :])
            except (PatchProblem, LostPart) as problem:
                raise CatalogProblem(
                    f"{override.place}: override {override.name} on {entry.name}: {problem}"
                ) from None
            edited = editor.manifests
            applied.append(
                AppliedOverride(
                    name=override.name,
                    place=override.place,
                    changes=tuple(dict.fromkeys(editor.changes)),
                )
            )
        has_traffic = entry.measures in ("bandwidth", "training")
        return on_site(edited, self.site, has_traffic=has_traffic), tuple(applied)


NO_FITTING = Fitting()

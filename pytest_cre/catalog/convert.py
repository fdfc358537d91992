"""Documents to the catalog's own types, by form alone; what they say is checked in `checks`."""

from dataclasses import replace
from pathlib import Path

from pydantic.alias_generators import to_camel

from pytest_cre.catalog.documents import PatternsDocument, ProfileDocument
from pytest_cre.catalog.entry import (
    CatalogEntry,
    Checkpoint,
    Needs,
    OptionSpec,
    Repeat,
    WorkloadCommand,
    WorkloadKind,
)
from pytest_cre.catalog.entry_document import EntryDocument
from pytest_cre.catalog.limit_document import limit_from
from pytest_cre.catalog.logprofile import EventPattern, LogProfile
from pytest_cre.catalog.override_document import overrides_from
from pytest_cre.formats.yaml import YamlDocument, validate

_FIELDS: dict[WorkloadKind, str] = {
    "indexedJob": "indexed_job",
    "jobSet": "job_set",
    "mpiJob": "mpi_job",
    "trainJob": "train_job",
}


def entry_name(path: Path) -> str:
    """Return the name of the entry in a file: `<domain>/<variant>`."""
    return f"{path.absolute().parent.name}/{path.stem}"


def entry_from(document: YamlDocument, path: Path) -> CatalogEntry:
    """Return the entry of a file `<domain>/<variant>.yaml`; raises `YamlProblem`."""
    form = validate(document, EntryDocument)
    workloads: dict[WorkloadKind, WorkloadCommand] = {}
    for kind in sorted(_FIELDS, key=list(document.data["workloads"] | _FIELDS).index):
        given = getattr(form.workloads, _FIELDS[kind])
        if given is not None:
            workloads[kind] = WorkloadCommand(command=tuple(given.command), args=tuple(given.args))
    options = {
        name: OptionSpec(
            name=name,
            default=option.default,
            pattern=option.pattern,
            description=option.description,
        )
        for name, option in sorted(form.options.items())
    }
    return CatalogEntry(
        name=entry_name(path),
        description=form.description,
        measures=form.measures,
        test=form.test,
        image=form.image,
        workloads=workloads,
        log_profile=form.log_profile,
        timeout_s=form.timeout,
        start_timeout_s=form.start_timeout,
        scales=tuple(form.scales),
        scales_on_request=tuple(form.scales_on_request),
        gpus_per_node=form.gpus_per_node,
        options=options,
        env=dict(sorted(form.env.items())),
        scripts=tuple(form.scripts),
        architectures=tuple(form.architectures),
        overrides=overrides_from(form.overrides, document),
        needs=Needs(
            nodes=form.needs.nodes,
            gpus=form.needs.gpus,
            model_parallel=tuple(form.needs.model_parallel),
            expert_parallel=form.needs.expert_parallel,
            has_nvlink=form.needs.nvlink,
            cluster=tuple(form.needs.cluster),
        ),
        cost_s=form.cost,
        node_health=form.node_health,
        stall_multiplier=form.stall_multiplier,
        repeat=Repeat(least=form.repeat.least, most=form.repeat.most, error=form.repeat.error)
        if form.repeat is not None
        else None,
        retries=form.retries,
        checkpoint=Checkpoint(
            path=form.checkpoint.path,
            enabled=_word(form.checkpoint.enabled),
            storage_size=form.checkpoint.storage_size,
            storage_class_name=form.checkpoint.storage_class_name,
            max_restarts=form.checkpoint.max_restarts,
        )
        if form.checkpoint is not None
        else None,
        limits=tuple(
            replace(
                limit_from(each, place=document.place(("limits", index))), entry=entry_name(path)
            )
            for index, each in enumerate(form.limits)
        ),
        extends=form.extends,
        place=document.place(),
        places={
            form.log_profile: document.place(("logProfile",)),
            **{
                name: document.place(("architectures", index))
                for index, name in enumerate(form.architectures)
            },
        },
    )


def _word(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value


def profile_from(document: YamlDocument, _path: Path) -> LogProfile:
    """Return the log profile of upstream's document; raises `YamlProblem`."""
    form = validate(document, ProfileDocument)
    patterns: dict[str, EventPattern] = {}
    for field in PatternsDocument.model_fields:
        given = getattr(form.spec.patterns, field)
        if given is not None:
            patterns[to_camel(field)] = EventPattern(
                regex=given.regex,
                example=given.example,
                units=dict(sorted(given.units.items())),
                place=document.place(("spec", "patterns", to_camel(field), "regex")),
            )
    strategy = form.spec.worker_strategy
    return LogProfile(
        name=form.metadata.name,
        patterns=patterns,
        timestamp_layout=form.spec.timestamp.layout,
        strategy=strategy.type,
        lifecycle_pod=strategy.lifecycle_pod,
        training_step_pod=strategy.training_step_pod,
        replicated_job_name=strategy.replicated_job_name,
        container_name=form.spec.container_name,
        warmup_steps=form.spec.warmup_steps,
        log_interval=form.spec.log_interval,
        place=document.place(("metadata", "name")),
    )

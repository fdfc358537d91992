"""Upstream's WorkloadRun as an entry that only one run knows."""

from dataclasses import replace
from typing import Any

from pytest_cre.catalog.certification import FULL_SCALE, MNNVL, Category, Certification, escaped
from pytest_cre.catalog.certification_document import KUEUE_LABEL, checked
from pytest_cre.catalog.entry import (
    CatalogEntry,
    Measures,
    Needs,
    WorkloadCommand,
    WorkloadKind,
)
from pytest_cre.catalog.loader import Catalog
from pytest_cre.catalog.override import Override, When
from pytest_cre.catalog.thresholds import limits_from_thresholds
from pytest_cre.catalog.workloadrun_document import (
    FrameworkDocument,
    MpiDocument,
    TorchDocument,
    WorkloadRunDocument,
    WorkloadRunSpec,
)
from pytest_cre.errors import CatalogProblem
from pytest_cre.formats.choices import choices_words
from pytest_cre.formats.yaml import YamlDocument

DOMAIN = "workload"
START_TIMEOUT_S = 600.0
_TORCHRUN = ("--nnodes=${nodes}", "--nproc-per-node=${gpusPerNode}", "--master-port=29500")
_PLACED = ("--node-rank=$(JOB_COMPLETION_INDEX)", "--master-addr=${masterAddress}")
_MPIRUN = ("-N", "${gpusPerNode}", "--mca", "plm_rsh_args", "-o StrictHostKeyChecking=no")
_AS_ROOT = "--allow-run-as-root"
_POD_KINDS: tuple[WorkloadKind, ...] = ("indexedJob", "jobSet", "trainJob")


def workload_run_from(document: YamlDocument, text: str, catalog: Catalog) -> Certification:
    """Return what a WorkloadRun asks for: one entry `workload/<name>` at one scale.

    Raises `YamlProblem` for its form, and `CatalogProblem` for a log profile that is unknown or
    reads something else.
    """
    form = checked(document, WorkloadRunDocument)
    spec, name = form.spec, f"{DOMAIN}/{form.metadata.name}"
    if len(name) > 63:
        place = document.place(("metadata", "name"))
        raise CatalogProblem(
            f"{place}: metadata.name must have at most {62 - len(DOMAIN)} characters"
        )
    orchestration, scale = spec.orchestration, spec.orchestration.test_scale
    measures, profile, test = _measured(document, spec, catalog)
    entry = CatalogEntry(
        name=name,
        description=f"WorkloadRun {form.metadata.name}",
        measures=measures,
        test=test,
        image=spec.image,
        workloads=_commands(spec.framework),
        log_profile=profile,
        timeout_s=orchestration.timeout_per_job,
        start_timeout_s=START_TIMEOUT_S,
        scales=(scale,),
        gpus_per_node=spec.gpus_per_node,
        env={"NCCL_DEBUG": "INFO"},
        needs=Needs(),
        place=document.place(),
    )
    limits = limits_from_thresholds(
        spec.thresholds,
        entry=name,
        measures=measures,
        places={key: document.place(("spec", "thresholds", key)) for key in spec.thresholds},
        source=f"WorkloadRun {document.source}",
    )
    gang = spec.gang_scheduler
    return Certification(
        name=form.metadata.name,
        source=document.source,
        text=text,
        categories=(
            Category(
                entry=name,
                scale=scale,
                nodes_per_group=spec.num_nodes if scale == FULL_SCALE else None,
                max_concurrent=orchestration.max_concurrent or None,
                iterations=orchestration.repeat_count,
                override=_override(document, spec),
                limits=tuple(replace(limit, scale=scale) for limit in limits),
                place=document.place(("spec",)),
            ),
        ),
        selector=spec.target.selector(),
        node_names=tuple(spec.target.node_names),
        scheduler=gang.scheduler_name if gang is not None else None,
        pod_labels=gang.labels() if gang is not None else {},
        image_pull_secrets=tuple(sorted({each.name for each in spec.image_pull_secrets})),
        queue=spec.workload_metadata.labels.get(KUEUE_LABEL),
        nic_resource=spec.nic_resource_name,
        entries=(entry,),
        notes=_notes(document, spec),
    )


def _measured(
    document: YamlDocument, spec: WorkloadRunSpec, catalog: Catalog
) -> tuple[Measures, str, str | None]:
    """Return what is measured, by which log profile, and of which collective."""
    bandwidth, goodput = spec.bandwidth_measurement, spec.goodput_measurement
    form, key = (
        (bandwidth, "bandwidthMeasurement") if bandwidth else (goodput, "goodputMeasurement")
    )
    assert form is not None  # noqa: S101 - the form demands one of the two
    measures: Measures = "bandwidth" if bandwidth else "training"
    place = document.place(("spec", key, "logProfileRef"))
    profile = catalog.log_profiles.get(form.log_profile_ref)
    if profile is None:
        words = choices_words(form.log_profile_ref, catalog.log_profiles)
        raise CatalogProblem(f"{place}: log profile {form.log_profile_ref!r} is unknown{words}")
    if profile.reads != measures:
        raise CatalogProblem(
            f"{place}: log profile {profile.name!r} reads {profile.reads}, {key} wants {measures}"
        )
    if form.test_type is not None and not bandwidth:
        place = document.place(("spec", key, "testType"))
        raise CatalogProblem(f"{place}: testType goes only with bandwidthMeasurement")
    test = form.test_type.removeprefix("loopback_") if form.test_type is not None else None
    return measures, profile.name, test


def _commands(framework: FrameworkDocument) -> dict[WorkloadKind, WorkloadCommand]:
    if framework.mpi is not None:
        return {"mpiJob": _mpirun(framework.mpi)}
    if framework.torch is not None:
        command = _torchrun(framework.torch)
    else:
        assert framework.exec is not None  # noqa: S101 - the form demands one of the three
        command = WorkloadCommand(
            command=_verbatim(framework.exec.command), args=_verbatim(framework.exec.args)
        )
    return dict.fromkeys(_POD_KINDS, command)


def _torchrun(form: TorchDocument) -> WorkloadCommand:
    program = ("-m", form.module) if form.module is not None else (form.script or "",)
    return WorkloadCommand(
        command=("torchrun",),
        args=(*_TORCHRUN, *_PLACED, *_verbatim(program), *_verbatim(form.args)),
    )


def _mpirun(form: MpiDocument) -> WorkloadCommand:
    as_root = () if _AS_ROOT in form.mpi_args else (_AS_ROOT,)
    ours = (*_MPIRUN, *as_root, "-x", "NCCL_DEBUG=INFO")
    return WorkloadCommand(
        command=_verbatim([form.mpirun_path]),
        args=(*ours, *_verbatim(form.mpi_args), *_verbatim([form.binary, *form.args])),
    )


def _override(document: YamlDocument, spec: WorkloadRunSpec) -> Override:
    """Return what the document's pods have besides, after all that the platform adds.

    The image stands here as well, because a platform may bring its own.
    """
    env = {each.name: escaped(each.value) for each in spec.env}
    if spec.enable_mnnvl is not None:
        env.setdefault(MNNVL, str(int(spec.enable_mnnvl)))
    volumes: list[Any] = _escaped_all(spec.volumes)
    mounts: list[Any] = _escaped_all(spec.volume_mounts)
    objects: list[dict[str, Any]] = []
    if spec.config is not None:
        name = "${job}-config"
        if spec.config.inline is not None:
            objects.append(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": name},
                    "data": _escaped_all(spec.config.inline),
                }
            )
        elif spec.config.config_map_ref is not None:
            name = escaped(spec.config.config_map_ref.name)
        volumes.append({"name": "config", "configMap": {"name": name}})
        mounts.append({"name": "config", "mountPath": "/config"})
    patch = [
        {"op": "add", "path": f"/spec/{path}/-", "value": each}
        for path, parts in (("volumes", volumes), ("containers/0/volumeMounts", mounts))
        for each in parts
    ]
    if spec.init_containers:
        value = _escaped_all(spec.init_containers)
        patch.append({"op": "add", "path": "/spec/initContainers", "value": value})
    resources = spec.resources
    container = (
        {"resources": _escaped_all({"limits": resources.limits, "requests": resources.requests})}
        if resources is not None
        else {}
    )
    return Override(
        name="workload-run",
        when=When(),
        image=escaped(spec.image),
        env=dict(sorted(env.items())),
        container=container,
        patch=tuple(patch),
        objects=tuple(objects),
        place=document.place(("spec",)),
    )


def _notes(document: YamlDocument, spec: WorkloadRunSpec) -> tuple[str, ...]:
    found = []
    for key, form in (
        ("bandwidthMeasurement", spec.bandwidth_measurement),
        ("goodputMeasurement", spec.goodput_measurement),
    ):
        if form is not None and form.sample_interval is not None:
            place = document.place(("spec", key, "sampleInterval"))
            found.append(f"{place}: sampleInterval has no effect: logs are followed all the time")
    return tuple(found)


def _verbatim(words: "list[str] | tuple[str, ...]") -> tuple[str, ...]:
    return tuple(escaped(word) for word in words)


def _escaped_all(value: Any) -> Any:
    """Return JSON in which every text stays as it is where `${name}` is filled in."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict):
        return {key: _escaped_all(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_escaped_all(each) for each in value]
    return value

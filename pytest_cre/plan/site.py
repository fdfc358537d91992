"""What a site asks of every pod, whatever the catalog says: mirrors, secrets, queue, proxy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_cre.plan.podsites import (
    Json,
    Manifest,
    all_templates,
    containers_of,
    editable,
    with_tolerations,
)

KUEUE_LABEL = "kueue.x-k8s.io/queue-name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The settings of a site; the empty one changes nothing. `pod_labels` go on pods alone."""

    images: Mapping[str, str] = field(default_factory=dict)  # beginning of a name to its mirror
    image_pull_secrets: tuple[str, ...] = ()
    tolerations: tuple[Mapping[str, str], ...] = ()
    service_account: str | None = None
    priority_class: str | None = None
    scheduler: str | None = None
    queue: str | None = None  # a LocalQueue of Kueue
    labels: Mapping[str, str] = field(default_factory=dict)
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)  # proxy variables and the like
    nic_resource: str | None = None  # instead of what platforms ask for
    place: str = ""


NO_SITE = Site()


def on_site(manifests: Sequence[Manifest], site: Site) -> tuple[Manifest, ...]:
    """Return the manifests as the site wants them; our own labels and settings win over its."""
    if site == NO_SITE:
        return tuple(manifests)
    edited = editable(manifests)
    for manifest in edited:
        metadata = manifest["metadata"]
        _add(metadata, "labels", site.labels)
        _add(metadata, "annotations", site.annotations)
    if site.queue is not None:
        _add(edited[-1]["metadata"], "labels", {KUEUE_LABEL: site.queue})
    for template in all_templates(edited):
        _fit_template(template, site)
    return tuple(edited)


def mirrored(image: str, images: Mapping[str, str]) -> str:
    """Return where an image is pulled from: the longest beginning that fits is replaced."""
    fitting = [start for start in images if image.startswith(start)]
    if not fitting:
        return image
    longest = max(fitting, key=len)
    return images[longest] + image[len(longest) :]


def _fit_template(template: Json, site: Site) -> None:
    metadata, spec = template.setdefault("metadata", {}), template["spec"]
    _add(metadata, "labels", {**site.labels, **site.pod_labels})
    _add(metadata, "annotations", site.annotations)
    with_tolerations(template, site.tolerations)
    for key, value in (
        ("serviceAccountName", site.service_account),
        ("priorityClassName", site.priority_class),
        ("schedulerName", site.scheduler),
    ):
        if value is not None:
            spec[key] = value
    if site.image_pull_secrets:
        present = spec.setdefault("imagePullSecrets", [])
        present += [{"name": name} for name in site.image_pull_secrets]
    for container in containers_of(template):
        container["image"] = mirrored(container["image"], site.images)
        names = {each["name"] for each in container.get("env", ())}
        added = [
            {"name": name, "value": value}
            for name, value in sorted(site.env.items())
            if name not in names
        ]
        if added:
            container["env"] = [*container.get("env", ()), *added]


def _add(metadata: Json, part: str, added: Mapping[str, str]) -> None:
    if added:
        metadata[part] = {**added, **(metadata.get(part) or {})}

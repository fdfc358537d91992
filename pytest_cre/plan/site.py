"""What a site asks of every pod, whatever the catalog says: mirrors, secrets, queue, proxy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_cre.catalog.limit import Fabric
from pytest_cre.errors import UnmetNeed
from pytest_cre.plan.podsites import (
    Json,
    Manifest,
    all_templates,
    containers_of,
    editable,
    gpu_containers,
    with_tolerations,
)

HOST_RDMA = "hostPath"
RDMA_DEVICES = "/dev/infiniband"
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
    rdma_device_access: str | None = None  # devicePlugin, where it is not given
    has_host_network: bool = False  # pods have the node's own network
    fabric: Fabric | None = None  # that traffic between nodes must take
    place: str = ""

    @property
    def has_host_rdma(self) -> bool:
        """Return whether pods open the node's own RDMA devices and ask for none."""
        return self.rdma_device_access == HOST_RDMA

    @property
    def asks_for_no_nics(self) -> bool:
        """Return whether the node's own devices stand for all that pods would ask for."""
        return self.has_host_rdma and self.nic_resource is None


NO_SITE = Site()


def on_site(
    manifests: Sequence[Manifest], site: Site, *, has_traffic: bool = True
) -> tuple[Manifest, ...]:
    """Return the manifests as the site wants them; our own labels and settings win over its.

    `has_traffic`: the pods use a fast network. Raises `UnmetNeed` for what the site rules out.
    """
    if site == NO_SITE:
        return tuple(manifests)
    edited = editable(manifests)
    if has_traffic:
        _reach_network(edited, site)
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


def _reach_network(manifests: Sequence[Json], site: Site) -> None:
    """Let pods that hold GPUs use the node's own network, or its RDMA devices."""
    if site.has_host_network and manifests[-1]["kind"] == "MPIJob":
        raise UnmetNeed(
            "an MPIJob cannot use the nodes' own network, for its SSH servers would need their port "
            "22; run another workload kind, or take hostNetwork out of --cre-site"
        )
    for template in all_templates(manifests):
        holders = gpu_containers(template)
        spec = template["spec"]
        if holders and site.has_host_network:
            spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        if holders and site.has_host_rdma:
            # A node without such devices does not start the pod: the type is looked at.
            path = {"path": RDMA_DEVICES, "type": "Directory"}
            spec.setdefault("volumes", []).append({"name": "rdma-devices", "hostPath": path})
        for container in holders if site.has_host_rdma else ():
            mounts = container.setdefault("volumeMounts", [])
            mounts.append({"name": "rdma-devices", "mountPath": RDMA_DEVICES})
            context = container.get("securityContext") or {}
            container["securityContext"] = {**context, "privileged": True}


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

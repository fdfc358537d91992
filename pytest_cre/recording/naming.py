"""The names that a group's evidence knows, and those that stand in its logs."""

import re
from collections.abc import Mapping

from pytest_cre.evidence.images import images_in
from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.plan.model import RUN_LABEL
from pytest_cre.recording.finding import is_public
from pytest_cre.recording.scrub import Names

_IMAGE = re.compile(r"(?:(?P<host>[^/]*[.:][^/]*)/)?(?P<path>[^@:]*)(?::[^@]*)?(?:@.*)?")


def names_of_group(group: GroupEvidence, names: Names) -> None:
    """Collect the names of a group."""
    for node in (
        *group.nodes,
        *(each.name for each in (*group.nodes_before, *group.nodes_after)),
        *(pod.node for pod in group.pods if pod.node),
    ):
        names.add("node", node)
        names.add("node", node.partition(".")[0])
    for pod in (*(each.name for each in group.pods), *(log.pod for log in group.logs)):
        names.add("pod", pod)
    if group.job is not None:
        names.add("job", group.job.name)
    for manifest in group.manifests:
        metadata = _mapping(manifest.get("metadata"))
        names.add("job", str(metadata.get("name", "")))
        names.add("job", run_id(manifest))
        names.add("namespace", str(metadata.get("namespace", "")))
        for image in images_in(manifest):
            host, path = image_parts(image)
            if host and not is_public(host.encode()):
                names.add("host", host.rpartition(":")[0] or host)
                names.add("image", path)
    for log in group.logs:
        names.read(log.data)


def run_id(manifest: Mapping[str, object]) -> str:
    """Return the id of the run that created an object, or nothing."""
    labels = _mapping(_mapping(manifest.get("metadata")).get("labels"))
    return str(labels.get(RUN_LABEL, ""))


def image_parts(image: str) -> tuple[str, str]:
    """Return registry and path of an image's name; the registry is empty where none is named."""
    found = _IMAGE.fullmatch(image)
    return (found["host"] or "", found["path"]) if found else ("", image)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}

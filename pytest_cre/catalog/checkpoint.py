"""What an entry's checkpoint volume comes to with the values of a run's options."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from pytest_cre.catalog.entry import Checkpoint
from pytest_cre.catalog.options import substitute
from pytest_cre.errors import CatalogProblem
from pytest_cre.formats.quantity import parse_quantity

MOST_RESTARTS = 100
_PATH = re.compile(r"(/[-._A-Za-z0-9]+)+")
_CLASS = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointVolume:
    """A claim to make. `storage_class_name` None: the cluster's default."""

    path: str
    storage_size: str
    storage_class_name: str | None
    max_restarts: int


def checkpoint_volume(
    checkpoint: Checkpoint | None, values: Mapping[str, str]
) -> CheckpointVolume | None:
    """Return the volume that an entry asks for; None for none, or one that is not enabled.

    `values` are what `${name}` stands for. Raises `CatalogProblem` for a value that cannot be.
    """
    if checkpoint is None:
        return None
    texts = {
        field.name: substitute(getattr(checkpoint, field.name), values)
        for field in fields(checkpoint)
    }
    enabled, restarts, size = texts["enabled"], texts["max_restarts"], texts["storage_size"]
    if enabled not in ("true", "false"):
        raise CatalogProblem(f"checkpoint.enabled must be true or false, got {enabled[:40]!r}")
    if not _PATH.fullmatch(texts["path"]) or ".." in texts["path"].split("/"):
        raise CatalogProblem(
            f"checkpoint.path must be a path such as /checkpoints, got {texts['path'][:80]!r}"
        )
    if not re.fullmatch(r"[0-9]{1,3}", restarts, re.ASCII) or int(restarts) > MOST_RESTARTS:
        raise CatalogProblem(
            f"checkpoint.maxRestarts must be a number from 0 to {MOST_RESTARTS}, "
            f"got {restarts[:40]!r}"
        )
    try:
        is_size = parse_quantity(size) > 0
    except ValueError:
        is_size = False
    if not is_size:
        raise CatalogProblem(
            f"checkpoint.storageSize must be a size such as 500Gi or 10Ti, got {size[:40]!r}"
        )
    storage_class = texts["storage_class_name"]
    if storage_class and not _CLASS.fullmatch(storage_class):
        raise CatalogProblem(
            f"checkpoint.storageClassName must be the name of a class, got {storage_class[:80]!r}"
        )
    if enabled == "false":
        return None
    return CheckpointVolume(
        path=texts["path"],
        storage_size=size,
        storage_class_name=storage_class or None,
        max_restarts=int(restarts),
    )

"""Reading and writing objects by the rules of the API.

The HTTP front, the scheduler and the controllers all go through here. Every call runs without
interruption, so a write is either whole or refused by an ApiError.
"""

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from pytest_cre.embedded.deletion import (
    DeleteOptions,
    Deletion,
    check_preconditions,
    ended,
    ending,
    ending_namespace,
    rfc3339,
)
from pytest_cre.embedded.kinds import NAMESPACE, POD, SERVICE_ACCOUNT, Json, Kind
from pytest_cre.embedded.metarules import (
    SERVER_FIELDS,
    fixed_metadata_causes,
    metadata_causes,
    metadata_update_causes,
)
from pytest_cre.embedded.status import (
    ApiError,
    Cause,
    already_exists,
    bad_request,
    forbidden,
    foreign_uid,
    invalid,
    invalid_value,
    modified,
    not_found,
)
from pytest_cre.embedded.store import Record, Store
from pytest_cre.embedded.strategies import strategy_of

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_PREFIX_LIMIT = 58


class Registry:
    """The API's verbs on the store."""

    def __init__(self, store: Store, *, clock: Callable[[], datetime], rng: random.Random) -> None:
        self.store = store
        self._clock = clock
        self._rng = rng
        self._last_moment_ns = 0

    def now(self) -> datetime:
        """Give the present time."""
        return self._clock()

    def now_text(self) -> str:
        """Give the present time as objects carry it."""
        return rfc3339(self._clock())

    def now_micro_text(self) -> str:
        """Give the present time to the microsecond."""
        return self._clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def new_moment(self) -> int:
        """Give the present time in nanoseconds, a little later each time it is asked for."""
        now_ns = int(self._clock().timestamp() * 1e6) * 1000
        self._last_moment_ns = max(now_ns, self._last_moment_ns + 1)
        return self._last_moment_ns

    def new_uid(self) -> str:
        """Give a fresh identity."""
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Give five characters as the API appends them to a generateName."""
        return "".join(self._rng.choices(_SUFFIX_ALPHABET, k=5))

    def get(self, kind: Kind, namespace: str, name: str) -> Record:
        """Read one object; raises 404."""
        record = self.store.get(kind, (namespace, name))
        if record is None:
            raise not_found(kind, name)
        return record

    def create(self, kind: Kind, namespace: str, obj: Json, *, dry_run: bool = False) -> Record:
        """Write a new object, decoded; `obj` belongs to the registry from now on."""
        metadata = _own_metadata(kind, namespace, obj)
        if metadata.get("resourceVersion"):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        for field in SERVER_FIELDS:
            if field != "generation":
                metadata.pop(field, None)
        prefix = metadata.get("generateName", "")
        if prefix and not metadata.get("name"):
            metadata["name"] = prefix[:_GENERATED_PREFIX_LIMIT] + self.suffix()
        name = metadata.get("name", "")
        metadata["uid"] = self.new_uid()
        metadata["creationTimestamp"] = self.now_text()
        if kind.has_generation:
            metadata["generation"] = 1
        self._admit(kind, namespace, name)
        if kind is POD:
            self._give_account(namespace, name, obj)
        strategy = strategy_of(kind)
        if not name:
            raise invalid(kind, name, metadata_causes(kind, metadata))
        strategy.prepare_create(obj, self.now_text())
        causes = metadata_causes(kind, metadata) + strategy.create_causes(obj)
        if causes:
            raise invalid(kind, name, causes)
        if self.store.get(kind, (namespace, name)) is not None:
            raise already_exists(kind, name)
        if dry_run:
            return Record(kind, (namespace, name), obj, 0)
        return self.store.put(kind, (namespace, name), obj)

    def update(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        obj: Json,
        *,
        subresource: str = "",
        dry_run: bool = False,
        is_patch: bool = False,
    ) -> Record:
        """Replace an object, or its status only; `obj` belongs to the registry from now on.

        It is decoded, and a client's or made from what the store holds.
        """
        metadata = _own_metadata(kind, namespace, obj)
        if not metadata.get("name"):
            raise bad_request(
                f"the name of the object ({name} based on URL) was undeterminable: name must be "
                "provided"
            )
        if metadata["name"] != name:
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the "
                f"URL ({name})"
            )
        old = self.get(kind, namespace, name)
        before: Json = old.obj["metadata"]
        fixed = fixed_metadata_causes(metadata, before) if is_patch else []
        if not is_patch and metadata.get("uid") not in (None, "", before["uid"]):
            raise foreign_uid(kind, old.key, metadata["uid"], before["uid"])
        version = metadata.get("resourceVersion")
        if kind.needs_version_on_replace and not version:
            raise _needs_version(kind, name)
        if version and version != before["resourceVersion"]:
            raise modified(kind, name)
        new = self._merged(kind, obj, old, subresource)
        causes = fixed + metadata_update_causes(kind, new["metadata"], before)
        if subresource != "status":
            causes += strategy_of(kind).update_causes(new, old.obj)
        if causes:
            raise invalid(kind, name, causes)
        if new == old.obj:
            return old
        return self._commit(old, new, dry_run=dry_run)

    def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions) -> Deletion:
        """Delete an object, or mark it for those who must do something first."""
        record = self.get(kind, namespace, name)
        check_preconditions(record, options)
        now = self.now()
        last = ending_namespace(record, now) if kind is NAMESPACE else ending(record, options, now)
        if options.dry_run:
            return Deletion(record, is_gone=last is None)
        if last is None:
            return Deletion(self.store.remove(kind, record.key, ended(record, now)), is_gone=True)
        if last == record.obj:
            return Deletion(record, is_gone=False)
        return Deletion(self.store.put(kind, record.key, last), is_gone=False)

    def _merged(self, kind: Kind, obj: Json, old: Record, subresource: str) -> Json:
        """Take from `obj` only what the addressed path may change."""
        metadata: Json = {**obj["metadata"]}
        before: Json = old.obj["metadata"]
        for field in (*SERVER_FIELDS, "resourceVersion", "name", "namespace", "generateName"):
            metadata.pop(field, None)
            if field in before:
                metadata[field] = before[field]
        if subresource == "status":
            new = {**old.obj, "metadata": metadata}
            new["metadata"]["ownerReferences"] = before.get("ownerReferences")
            if new["metadata"]["ownerReferences"] is None:
                del new["metadata"]["ownerReferences"]
            new["status"] = obj.get("status", {})
            strategy_of(kind).prepare_status(new)
            return new
        new = {**obj, "metadata": metadata}
        if kind.has_status:
            new.pop("status", None)
            if "status" in old.obj:
                new["status"] = old.obj["status"]
        strategy_of(kind).prepare_update(new, old.obj)
        return new

    def _commit(self, old: Record, new: Json, *, dry_run: bool) -> Record:
        kind, metadata = old.kind, new["metadata"]
        if kind.has_generation and new.get("spec") != old.obj.get("spec"):
            metadata["generation"] = old.obj["metadata"].get("generation", 0) + 1
        if dry_run:
            return Record(kind, old.key, new, old.version)
        if (
            metadata.get("deletionTimestamp")
            and not metadata.get("finalizers")
            and not metadata.get("deletionGracePeriodSeconds")
            and not (new.get("spec") or {}).get("finalizers")
        ):
            # The last finalizer was taken off an object whose deletion had been asked for.
            gone = self.store.remove(kind, old.key)
            return Record(kind, old.key, new, gone.version)
        return self.store.put(kind, old.key, new)

    def _give_account(self, namespace: str, name: str, pod: Json) -> None:
        """Have a pod run under a service account that exists."""
        spec = pod.setdefault("spec", {})
        account = spec.get("serviceAccountName") or "default"
        if self.store.get(SERVICE_ACCOUNT, (namespace, account)) is None:
            raise forbidden(
                POD,
                name,
                f"error looking up service account {namespace}/{account}: serviceaccount "
                f'"{account}" not found',
            )
        spec["serviceAccountName"] = account

    def _admit(self, kind: Kind, namespace: str, name: str) -> None:
        if not kind.namespaced:
            return
        record = self.store.get(NAMESPACE, ("", namespace))
        if record is None:
            raise not_found(NAMESPACE, namespace)
        if record.obj["metadata"].get("deletionTimestamp"):
            raise forbidden(
                kind,
                name,
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated",
                [
                    Cause(
                        reason="NamespaceTerminating",
                        message=f"namespace {namespace} is being terminated",
                        field="metadata.namespace",
                    )
                ],
            )


def _own_metadata(kind: Kind, namespace: str, obj: Json) -> Json:
    """Settle the namespace of an object; gives its metadata."""
    obj.setdefault("metadata", {})
    metadata: Json = obj["metadata"]
    if not kind.namespaced:
        metadata.pop("namespace", None)
    elif metadata.get("namespace") in (None, ""):
        metadata["namespace"] = namespace
    elif metadata["namespace"] != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return metadata


def _needs_version(kind: Kind, name: str) -> ApiError:
    cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
    error = invalid(kind, name, [cause])
    # Worded with the resource where other refusals of this sort name the kind.
    message = error.message.replace(kind.qualified_kind, kind.qualified_plural, 1)
    return ApiError(422, "Invalid", message, {**(error.details or {}), "kind": kind.plural})

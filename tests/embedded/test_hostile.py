"""Whatever is sent is stored or refused; what is stored never stops a controller."""

import asyncio
import contextlib
import copy
import functools
import json
import random
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cre.embedded import bodies
from pytest_cre.embedded.deletion import DeleteOptions
from pytest_cre.embedded.events import EventRecorder
from pytest_cre.embedded.kinds import (
    EVENT,
    JOB,
    KINDS,
    NAMESPACE,
    NODE,
    POD,
)
from pytest_cre.embedded.paths import parse_path
from pytest_cre.embedded.protobuf import ProtobufError, read_envelope, read_message
from pytest_cre.embedded.queue import ControlLoop
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.server import ClusterSettings, control_loops
from pytest_cre.embedded.status import ApiError
from pytest_cre.embedded.store import Store
from pytest_cre.embedded.tables import columns_of, row_cells

CONTAINER = {
    "name": "c",
    "image": "i",
    "env": [{"name": "A", "value": "b"}],
    "command": ["x"],
    "resources": {"limits": {"nvidia.com/gpu": "8", "cpu": "500m"}},
    "ports": [{"containerPort": 1}],
}
SPEC = {
    "restartPolicy": "Never",
    "containers": [CONTAINER],
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 1}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
                ]
            }
        }
    },
    "volumes": [{"name": "v", "configMap": {"name": "m"}}],
}
METADATA = {
    "name": "x",
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "finalizers": ["a/b"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "y", "uid": "u"}],
}
OBJECTS = {
    POD: {"metadata": METADATA, "spec": SPEC},
    JOB: {
        "metadata": METADATA,
        "spec": {
            "completions": 3,
            "parallelism": 2,
            "completionMode": "Indexed",
            "backoffLimit": 1,
            "backoffLimitPerIndex": 1,
            "activeDeadlineSeconds": 5,
            "ttlSecondsAfterFinished": 1,
            "podFailurePolicy": {
                "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]
            },
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": SPEC},
        },
    },
    NODE: {
        "metadata": METADATA,
        "spec": {"taints": [{"key": "a", "effect": "NoExecute"}]},
        "status": {
            "allocatable": {"nvidia.com/gpu": "8", "cpu": "4", "pods": "10"},
            "addresses": [{"type": "InternalIP", "address": "::1"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    },
    EVENT: {
        "metadata": {"name": "x"},
        "involvedObject": {"kind": "Pod", "namespace": "default"},
        "series": {"count": 2},
        "source": {"component": "k"},
    },
}
STATUS = {
    "phase": "Failed",
    "reason": "Evicted",
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [
        {"name": "c", "ready": True, "restartCount": 1, "state": {"terminated": {"exitCode": 1}}}
    ],
}
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=3,
)


def places(value, path=()):
    """All places within a JSON value."""
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        yield from places(inner, (*path, key))


def spoilt(draw, obj):
    """A copy with one to three places replaced by anything."""
    obj = copy.deepcopy(obj)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([place for place in places(obj) if place]))
        target = obj
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = draw(values)
    return obj


class Plant:
    """Store, registry and all controllers, worked by hand."""

    def __init__(self):
        self.store = Store(history_events=16)
        self.registry = Registry(self.store, clock=lambda: datetime.now(UTC), rng=random.Random(1))
        self.dirty = {}
        self.controllers = [
            loop.controller for loop in control_loops(self.registry, ClusterSettings(token="t"))
        ]
        for controller in self.controllers:
            controller.start(functools.partial(self._mark, controller))
        self.create(NAMESPACE, "", {"metadata": {"name": "default"}})
        self.settle()
        self.create(NODE, "", {**OBJECTS[NODE], "metadata": {"name": "good"}})

    def create(self, kind, namespace, obj):
        """Create an object as the HTTP front does, from a client's text."""
        body = bodies.parse_object(json.dumps(obj).encode(), "", kind, "Warn")
        return self.registry.create(kind, namespace, body.obj)

    def _mark(self, controller, key, **_when):
        self.dirty[controller, key] = None

    def settle(self, rounds=200):
        for _ in range(rounds):
            if not self.dirty:
                return
            controller, key = next(iter(self.dirty))
            del self.dirty[controller, key]
            controller.reconcile(key)


@settings(max_examples=150)
@given(st.data())
def test_object_of_any_shape_is_refused_or_harms_no_controller_and_no_table(data):
    plant = Plant()
    kind = data.draw(st.sampled_from(list(OBJECTS)))
    namespace = "default" if kind.namespaced else ""
    try:
        plant.create(kind, namespace, spoilt(data.draw, OBJECTS[kind]))
    except ApiError:
        return
    plant.settle()
    for record in plant.store.records(kind):
        assert len(row_cells(kind, record.obj, datetime.now(UTC))) == len(columns_of(kind))
        if kind is POD:
            patch = json.dumps({"status": spoilt(data.draw, STATUS)}).encode()
            with contextlib.suppress(ApiError):
                body = bodies.apply_patch(
                    record.copy(), patch, bodies.STRATEGIC_PATCH, POD, "Ignore"
                )
                plant.registry.update(POD, *record.key, body.obj, subresource="status")
            row_cells(kind, plant.store.get(kind, record.key).obj, datetime.now(UTC))
    plant.settle()
    for record in plant.store.records(kind):
        plant.registry.delete(kind, *record.key, DeleteOptions(propagation="Foreground"))
    plant.settle()


@settings(max_examples=200)
@given(
    st.binary(max_size=40) | st.text(max_size=40).map(str.encode),
    st.sampled_from([bodies.JSON_PATCH, bodies.MERGE_PATCH, bodies.STRATEGIC_PATCH]),
)
def test_patch_of_any_bytes_is_applied_or_refused(data, content_type):
    with contextlib.suppress(ApiError):
        target = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}}
        body = bodies.apply_patch(target, data, content_type, POD, "Strict")
        assert isinstance(body.obj, dict)


@settings(max_examples=150)
@given(values, st.sampled_from([bodies.JSON_PATCH, bodies.MERGE_PATCH, bodies.STRATEGIC_PATCH]))
def test_patch_of_any_json_is_applied_or_refused(patch, content_type):
    target = {"kind": "Pod", "apiVersion": "v1", **OBJECTS[POD]}
    before = copy.deepcopy(target)
    with contextlib.suppress(ApiError):
        bodies.apply_patch(before, json.dumps(patch).encode(), content_type, POD, "Warn")
    assert before == target


@settings(max_examples=300)
@given(st.binary(max_size=60), st.sampled_from(["Pod", "Job", "ConfigMap", "DeleteOptions"]))
def test_protobuf_of_any_bytes_is_read_or_refused(data, name):
    with contextlib.suppress(ProtobufError):
        assert isinstance(read_message(name, data), dict)
    with contextlib.suppress(ProtobufError):
        read_envelope(b"k8s\0" + data)


@given(st.text(alphabet="/apisv1batcnmed.-%\0", max_size=60))
def test_path_of_any_text_names_a_known_kind_or_nothing(path):
    address = parse_path(path)
    assert address is None or address.kind in KINDS


def test_controller_that_fails_for_one_object_goes_on_with_the_others(caplog):
    class Failing:
        name, kind, seen = "failing", NAMESPACE, []

        def start(self, mark):
            for name in ("bad", "good"):
                mark(("", name))

        def reconcile(self, key):
            self.seen.append(key[1])
            if key[1] == "bad" and self.seen.count("bad") == 1:
                raise KeyError("spec")

    async def work():
        plant = Plant()
        for name in ("bad", "good"):
            plant.registry.create(NAMESPACE, "", {"metadata": {"name": name}})
        controller = Failing()
        recorder = EventRecorder(plant.registry, "test")
        task = asyncio.create_task(ControlLoop(controller, plant.store, recorder).run())
        while controller.seen != ["bad", "good", "bad"]:
            await asyncio.sleep(0.01)
        task.cancel()
        return plant.store.records(EVENT)

    events = asyncio.run(asyncio.wait_for(work(), 5))
    assert [e.obj["reason"] for e in events] == ["ReconcileError"]
    assert events[0].obj["message"] == "failing controller: KeyError: 'spec'"
    assert "failing controller" in caplog.text

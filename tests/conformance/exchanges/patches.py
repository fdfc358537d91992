"""Changing objects by patches."""

from tests.conformance.api import JSON_PATCH
from tests.conformance.play import MERGE, STRATEGIC

MAP = {
    "metadata": {"name": "a", "labels": {"one": "1", "two": "2"}},
    "data": {"k": "v", "gone": "x"},
}


def merging(play):
    first = play.make("configmaps", MAP)
    body = {"metadata": {"labels": {"one": None, "three": "3"}}, "data": {"gone": None, "new": "n"}}
    play.ask("PATCH", "configmaps/a", body, type_=MERGE)
    play.ask("PATCH", "configmaps/a", body, type_=MERGE)
    play.ask("PATCH", "configmaps/a", {}, type_=MERGE)
    stale = {
        "metadata": {"resourceVersion": first["metadata"]["resourceVersion"]},
        "data": {"k": "z"},
    }
    play.ask("PATCH", "configmaps/a", stale, type_=MERGE)
    play.ask("PATCH", "configmaps/missing", body, type_=MERGE)
    play.ask("PATCH", "configmaps/a?dryRun=All", {"data": {"k": "dry"}}, type_=MERGE, only=["data"])
    play.ask("PATCH", "configmaps/a", {"data": None}, type_=MERGE)


def what_may_not_be_changed(play):
    play.make("configmaps", MAP)
    for metadata in (
        {"name": "b"},
        {"namespace": "other"},
        {"uid": "11111111-1111-1111-1111-111111111111"},
        {"creationTimestamp": "2001-01-01T00:00:00Z"},
        {"deletionTimestamp": "2001-01-01T00:00:00Z"},
        {"generation": 9},
    ):
        play.ask("PATCH", "configmaps/a", {"metadata": metadata}, type_=MERGE)
    play.ask("PATCH", "configmaps/a", {"kind": "Namespace", "data": None}, type_=MERGE)
    play.ask("PATCH", "configmaps/a", {"apiVersion": "v2"}, type_=MERGE)


def json_operations(play):
    play.make("configmaps", MAP)
    play.ask(
        "PATCH",
        "configmaps/a",
        [
            {"op": "test", "path": "/data/k", "value": "v"},
            {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "added"}},
            {"op": "replace", "path": "/data/k", "value": "w"},
            {"op": "copy", "from": "/data/k", "path": "/data/copied"},
            {"op": "move", "from": "/metadata/labels/one", "path": "/metadata/labels/moved"},
            {"op": "remove", "path": "/data/gone"},
        ],
        type_=JSON_PATCH,
    )
    play.ask(
        "PATCH",
        "configmaps/a",
        [
            {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "changed"},
            {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]},
            {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"},
            {"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/0"},
        ],
        type_=JSON_PATCH,
    )
    for operation in (
        {"op": "test", "path": "/data/k", "value": "other"},
        {"op": "remove", "path": "/data/none"},
        {"op": "replace", "path": "/data/none", "value": "x"},
        {"op": "add", "path": "/none/deep", "value": "x"},
        {"op": "dance", "path": "/data/k"},
        {"op": "add", "path": "/data/k", "value": 5},
    ):
        play.ask("PATCH", "configmaps/a", [operation], type_=JSON_PATCH)


def strategic_lists(play):
    play.make(
        "pods",
        {
            "metadata": {"name": "p", "finalizers": ["example.com/a"]},
            "spec": {
                "schedulerName": "nobody",
                "containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "i:1"}],
            },
        },
    )
    only = ["metadata.finalizers", "metadata.ownerReferences", "spec.containers.image"]
    body = {
        "metadata": {
            "finalizers": ["example.com/b"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "o-1"}
            ],
        },
        "spec": {"containers": [{"name": "d", "image": "i:2"}]},
    }
    play.ask("PATCH", "pods/p", body, type_=STRATEGIC, only=only)
    removal = {
        "metadata": {
            "$deleteFromPrimitiveList/finalizers": ["example.com/a"],
            "ownerReferences": [{"$patch": "delete", "uid": "o-1"}],
        }
    }
    play.ask("PATCH", "pods/p", removal, type_=STRATEGIC, only=only)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    other = {"status": {"conditions": [{"type": "Own", "status": "True"}]}}
    order = {
        "status": {
            "$setElementOrder/conditions": [{"type": "Own"}, {"type": "Ready"}],
            "conditions": [{"type": "Ready", "status": "False"}],
        }
    }
    for patch in (ready, other, order):
        play.ask("PATCH", "pods/p/status", patch, type_=STRATEGIC, only=["status.conditions"])
    gone = {"status": {"conditions": [{"type": "Own", "$patch": "delete"}]}}
    play.ask("PATCH", "pods/p/status", gone, type_=STRATEGIC, only=["status.conditions"])
    keyless = {"status": {"conditions": [{"status": "True"}]}}
    play.ask("PATCH", "pods/p/status", keyless, type_=STRATEGIC)
    whole = {"status": {"conditions": [{"$patch": "replace"}, {"type": "Only", "status": "True"}]}}
    play.ask("PATCH", "pods/p/status", whole, type_=STRATEGIC, only=["status.conditions"])


def strategic_service_ports(play):
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 90}]
    play.make("services", {"metadata": {"name": "s"}, "spec": {"ports": ports}})
    change = {"spec": {"ports": [{"port": 90, "targetPort": "x"}]}}
    play.ask("PATCH", "services/s", change, type_=STRATEGIC, only=["spec.ports"])


def unreadable(play):
    play.make("configmaps", MAP)
    for body in (b"", b"{", b"[]", b"5", b"null"):
        play.ask("PATCH", "configmaps/a", body, type_=MERGE)
    play.ask("PATCH", "configmaps/a", b"{}", type_=JSON_PATCH)
    play.ask("PATCH", "configmaps/a", {"data": "text"}, type_=MERGE)
    play.ask("PATCH", "configmaps/a", {"data": "text"}, type_=STRATEGIC)
    play.ask("PATCH", "configmaps/a", {}, type_="application/json")
    play.ask("PATCH", "configmaps", {}, type_=MERGE)


def unknown_fields(play):
    play.make("configmaps", MAP)
    body = {"data": {"k": "2"}, "dta": {}}
    play.ask("PATCH", "configmaps/a?fieldValidation=Strict", body, type_=MERGE)
    play.ask("PATCH", "configmaps/a?fieldValidation=Strict", body, type_=STRATEGIC)
    play.ask("PATCH", "configmaps/a?fieldValidation=Warn", body, type_=MERGE, only=["data"])


def server_side_apply(play):
    body = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}'
    path = "configmaps/b?fieldManager=somebody"
    play.ask("PATCH", path, body, type_="application/apply-patch+yaml")

"""Creating, reading and replacing objects."""

import time

from tests.conformance.play import MERGE

MAP = {"metadata": {"name": "a", "labels": {"team": "x"}}, "data": {"k": "v"}}


def create_read_list(play):
    play.ask("POST", "configmaps", MAP)
    play.ask("GET", "configmaps/a")
    play.ask("GET", "configmaps?labelSelector=team%3Dx")
    play.ask("GET", "configmaps/missing")


def create_twice(play):
    play.make("configmaps", MAP)
    play.ask("POST", "configmaps", MAP)
    play.make("jobs", _job())
    play.ask("POST", "jobs", _job())


def create_with_generated_name(play):
    play.ask("POST", "configmaps", {"metadata": {"generateName": "gen-"}})
    play.ask("POST", "configmaps", {"metadata": {"generateName": "long-" + "x" * 100}})
    bad = {"metadata": {"generateName": "Bad_"}}
    play.ask("POST", "configmaps", bad, only=["code", "reason", "details.causes.field"])
    play.ask("POST", "configmaps", {"metadata": {"generateName": "gen-", "name": "chosen"}})


def create_with_an_unusable_name(play):
    for name in ("Upper", "under_score", "-dash", "a..b", "x" * 254, "a/b", "."):
        play.ask("POST", "configmaps", {"metadata": {"name": name}})
    play.ask("POST", "configmaps", {"metadata": {}})
    play.ask("POST", "configmaps", {})
    play.ask("POST", "namespaces", {"metadata": {"name": "a.b"}})
    play.ask("POST", "namespaces", {"metadata": {"name": "x" * 64}})
    play.ask("POST", "services", {"metadata": {"name": "1a"}, "spec": {"clusterIP": "None"}})


def create_in_another_place(play):
    play.ask("POST", "configmaps", {"metadata": {"name": "a", "namespace": "other"}})
    play.ask("POST", "/api/v1/namespaces/no-such-place/configmaps", MAP)
    play.ask("POST", "/api/v1/configmaps", MAP)
    play.ask("POST", "configmaps/a", MAP)
    play.ask("POST", "jobs", {"kind": "ConfigMap", "apiVersion": "v1", **MAP})
    play.ask("POST", "jobs", {**_job(), "apiVersion": "batch/v2", "kind": "Job"})
    play.ask("POST", "jobs", {**_job(), "apiVersion": "batch/v1", "kind": "Joob"})


def create_with_what_the_server_decides(play):
    play.ask("POST", "configmaps", {"metadata": {"name": "a", "resourceVersion": "5"}})
    play.ask(
        "POST",
        "configmaps",
        {
            "metadata": {
                "name": "b",
                "uid": "00000000-0000-0000-0000-000000000000",
                "creationTimestamp": "2001-01-01T00:00:00Z",
                "deletionTimestamp": "2001-01-01T00:00:00Z",
                "generation": 7,
                "selfLink": "/x",
            }
        },
    )


def create_from_unreadable_text(play):
    for body in (b"", b"{", b"[]", b"null", b'"x"', b'{"metadata": 5}'):
        play.ask("POST", "configmaps", body)
    play.ask("POST", "configmaps", b"{}", type_="text/plain")
    play.ask("POST", "configmaps", b"metadata: {name: m}\ndata: {k: v}", type_="application/yaml")


def create_with_fields_of_the_wrong_type(play):
    play.ask("POST", "configmaps", {"metadata": {"name": "a"}, "data": {"k": 5}})
    play.ask("POST", "configmaps", {"metadata": {"name": "a", "labels": {"x": 1}}})
    play.ask("POST", "configmaps", {"metadata": {"name": 5}})
    play.ask("POST", "configmaps", {"metadata": {"name": "a", "labels": ["x"]}})
    play.ask("POST", "jobs", _job(completions="2"))
    play.ask("POST", "jobs", _job(completions=2**31))
    play.ask("POST", "jobs", _job(parallelism=1.5))
    play.ask("POST", "jobs", _job(suspend="yes"))
    pod = _pod()
    pod["spec"]["containers"][0]["env"] = [{"name": "X", "value": 1}]
    play.ask("POST", "pods", pod)
    pod["spec"]["containers"] = {}
    play.ask("POST", "pods", pod)
    play.ask("POST", "pods", _pod(resources={"limits": {"cpu": "many"}}))
    play.ask("POST", "pods", _pod(resources={"limits": {"cpu": True}}))


def create_with_unknown_fields(play):
    body = {**MAP, "dta": {"k": "v"}}
    play.ask("POST", "configmaps?fieldValidation=Strict", body)
    play.ask("POST", "configmaps?fieldValidation=Warn", body)
    play.ask("POST", "jobs", _job(name="b", complations=3), only=["metadata.name", "spec"])
    play.ask("POST", "jobs?fieldValidation=Strict", _job(name="c", complations=3, foo=1))
    text = b'{"metadata": {"name": "twice"}, "data": {"k": "v", "k": "w"}}'
    play.ask("POST", "configmaps?fieldValidation=Strict", text)
    play.ask("POST", "configmaps?fieldValidation=Nonsense", body)


def create_with_nulls(play):
    play.ask(
        "POST",
        "configmaps",
        {"metadata": {"name": "a", "labels": None, "annotations": {"x": None}}, "data": None},
    )
    play.ask(
        "POST",
        "jobs",
        _job(completions=None, suspend=None, podFailurePolicy=None),
        only=["metadata.labels", "spec"],
    )


def create_as_a_dry_run(play):
    play.ask("POST", "configmaps?dryRun=All", MAP)
    play.ask("GET", "configmaps/a")
    play.ask("POST", "configmaps?dryRun=Some", MAP)


def create_with_unusable_metadata(play):
    for metadata in (
        {"labels": {"bad key": "v"}},
        {"labels": {"k": "bad value!"}},
        {"labels": {"k": "x" * 64}},
        {"labels": {"a/b/c": ""}},
        {"labels": {"/b": ""}},
        {"annotations": {"bad key": "v"}},
        {"annotations": {"k": "x" * 270000}},
        {"finalizers": ["nodomain"]},
        {"finalizers": ["bad finalizer"]},
        {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u"}]},
        {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True}
                for n in ("a", "b")
            ]
        },
    ):
        play.ask("POST", "configmaps", {"metadata": {"name": "a", **metadata}})


def replace(play):
    first = play.make("configmaps", MAP)
    body = {**first, "data": {"k": "w"}}
    play.ask("PUT", "configmaps/a", body)
    play.ask("PUT", "configmaps/a", {**first, "data": {"k": "stale"}})
    play.ask("PUT", "configmaps/a", {"metadata": {"name": "a"}, "data": {"k": "no version"}})
    play.ask("PUT", "configmaps/a", {"metadata": {"name": "a"}, "data": {"k": "no version"}})
    play.ask("PUT", "configmaps/b", body)
    play.ask("PUT", "configmaps/a", {"metadata": {}, "data": {}})
    wrong = {"metadata": {"name": "a", "uid": "11111111-1111-1111-1111-111111111111"}}
    play.ask("PUT", "configmaps/a", wrong)
    play.ask("PUT", "configmaps/missing", {"metadata": {"name": "missing"}})
    play.ask("PUT", "configmaps/missing", {"metadata": {"name": "missing", "resourceVersion": "4"}})
    play.ask("PUT", "configmaps/a?dryRun=All", {"metadata": {"name": "a"}, "data": {"k": "dry"}})
    play.ask("GET", "configmaps/a")


def status_is_written_apart(play):
    play.make("pods", _pod())
    play.ask(
        "PATCH",
        "pods/p/status",
        {"metadata": {"labels": {"l": "1"}}, "spec": {"nodeName": "x"}, "status": {"message": "m"}},
        type_=MERGE,
        only=["metadata.labels", "metadata.generation", "spec.nodeName", "status"],
    )
    play.ask(
        "PATCH",
        "pods/p",
        {"metadata": {"labels": {"l": "2"}}, "status": {"message": "ignored"}},
        type_=MERGE,
        only=["metadata.labels", "metadata.generation", "status.message"],
    )
    play.ask("GET", "pods/p/status", only=["metadata.labels", "status.message"])
    play.make("jobs", _job(suspend=True))
    play.seen("jobs/j", lambda answer: answer.body["status"]["conditions"])
    job = play.read("jobs/j")
    job["status"]["conditions"].append({"type": "Own", "status": "True"})
    job["spec"]["parallelism"] = 5
    only = ["metadata.generation", "spec.parallelism", "status.conditions.type"]
    job = play.ask("PUT", "jobs/j/status", job, only=only)
    play.ask(
        "PUT", "jobs/j/status", {**job, "status": {**job["status"], "ready": 3}}, only=["code"]
    )
    job["metadata"].pop("resourceVersion")
    job["status"] = {}
    job["spec"]["parallelism"] = 5
    play.ask("PUT", "jobs/j", job, only=only)
    play.ask("GET", "configmaps/a/status")
    play.ask("GET", "pods/p/nonsense")


def quantities(play):
    amounts = {
        "cpu": "1.5",
        "memory": "1024Mi",
        "ephemeral-storage": "0.5Gi",
        "nvidia.com/gpu": 8,
        "example.com/a": "1e3",
        "example.com/b": "3k",
    }
    play.ask(
        "POST", "pods", _pod(resources={"limits": amounts}), only=["spec.containers.resources"]
    )
    more = {"cpu": "0.1", "memory": "1000000", "example.com/c": "+5", "hugepages-2Mi": "4Mi"}
    play.ask(
        "POST",
        "pods",
        _pod("q", resources={"limits": more, "requests": {"cpu": "1m", "memory": "1Mi"}}),
        only=["spec.containers.resources"],
    )
    for amount in ("-1", "1.5", "x", "1 Gi", ""):
        play.ask("POST", "pods", _pod("r", resources={"limits": {"nvidia.com/gpu": amount}}))
    play.ask("POST", "pods", _pod("r", resources={"requests": {"nvidia.com/gpu": "1"}}))
    play.ask(
        "POST", "pods", _pod("r", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})
    )


def secrets_and_immutable_maps(play):
    play.ask("POST", "secrets", {"metadata": {"name": "s"}, "stringData": {"k": "text"}})
    play.ask("POST", "secrets", {"metadata": {"name": "t"}, "data": {"k": "not base64!"}})
    play.ask("POST", "configmaps", {**MAP, "immutable": True})
    play.ask("PATCH", "configmaps/a", {"data": {"k": "w"}}, type_=MERGE)
    play.ask("PATCH", "configmaps/a", {"immutable": False}, type_=MERGE)
    play.ask("PATCH", "configmaps/a", {"metadata": {"labels": {"l": "1"}}}, type_=MERGE)
    play.ask("POST", "configmaps", {"metadata": {"name": "b"}, "data": {"bad key": "v"}})
    play.ask("POST", "configmaps", {"metadata": {"name": "big"}, "data": {"k": "x" * (1 << 20)}})


def services(play):
    headless = {
        "metadata": {"name": "s"},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"cre.pytest.org/job": "j"},
        },
    }
    play.ask("POST", "services", headless)
    play.ask("POST", "services", {"metadata": {"name": "t"}, "spec": {"selector": {"a": "b"}}})
    play.ask("POST", "services", {"metadata": {"name": "u"}, "spec": {"ports": [{"port": 80}]}})
    play.ask("DELETE", "services/s")


def events(play):
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": play.namespace},
        "reason": "R",
        "message": "m",
        "type": "Normal",
    }
    play.ask("POST", "events", event)
    play.ask("POST", "events", {**event, "metadata": {"name": "f"}, "involvedObject": {}})


def leases(play):
    spec = {
        "holderIdentity": "me",
        "leaseDurationSeconds": 60,
        "acquireTime": "2026-01-01T00:00:00.500000Z",
        "renewTime": "2026-01-01T00:00:00.123456Z",
        "leaseTransitions": 0,
    }
    first = play.ask("POST", "leases", {"metadata": {"name": "l"}, "spec": spec})
    play.ask("PUT", "leases/l", {"metadata": {"name": "l"}, "spec": spec})
    renewed = {**spec, "renewTime": "2026-01-01T00:00:10.000000Z"}
    play.ask("PUT", "leases/l", {**first, "spec": renewed})
    play.ask("PUT", "leases/l", {**first, "spec": {**renewed, "holderIdentity": "thief"}})
    play.ask("PUT", "leases/new", {"metadata": {"name": "new"}, "spec": spec})
    play.ask("POST", "leases", {"metadata": {"name": "m"}, "spec": {"leaseDurationSeconds": 0}})
    for moment in ("yesterday", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z"):
        play.ask("POST", "leases", {"metadata": {"name": "m"}, "spec": {"renewTime": moment}})
    play.ask("PATCH", "leases/l", {"spec": {"holderIdentity": "other"}}, type_=MERGE)
    play.ask("DELETE", "leases/l", {"preconditions": {"uid": first["metadata"]["uid"]}})


def field_managers(play):
    """The one exchange that looks at managedFields, by what it keeps of them."""
    made = play.make("configmaps?fieldManager=somebody", MAP)
    play.note(
        "managers of the fields",
        [[m["manager"], m["operation"]] for m in made["metadata"].get("managedFields", [])],
    )


def token_of_a_pod(play):
    """The one exchange that looks at the volume with a pod's own token."""
    body = play.make("pods", _pod())
    names = [volume["name"].rpartition("-")[0] for volume in body["spec"].get("volumes", [])]
    play.note("volumes", names)


def authority_of_the_cluster(play):
    """Genuine servers furnish a namespace in their own time."""
    end_s = time.monotonic() + 1
    while True:
        code = play.api("GET", play.at("configmaps/kube-root-ca.crt")).code
        if code == 200 or time.monotonic() > end_s:
            break
    play.note("there is", code)


def _job(name="j", **spec):
    return {
        "metadata": {"name": name},
        "spec": {
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}
            },
            **spec,
        },
    }


def _pod(name="p", **container):
    return {
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "c", "image": "i:1", **container}],
        },
    }

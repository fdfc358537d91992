"""Lists: selectors, pages, moments, and the forms they come in."""

from urllib.parse import quote

from tests.conformance.play import METADATA, METADATA_LIST, TABLE

NAMES = ["items.metadata.name"]


def _make_secrets(play, count=5):
    for number in range(count):
        labels = {"number": str(number), **({"even": ""} if number % 2 == 0 else {})}
        play.make("secrets", {"metadata": {"name": f"m{number}", "labels": labels}})


def by_labels(play):
    _make_secrets(play)
    for selector in (
        "number=1",
        "number==1",
        "number!=1",
        "number in (1,2)",
        "number notin (1, 2)",
        "even",
        "!even",
        "even,number notin (0)",
        "number=",
        "number in ()",
        "none in (a)",
        "a=b=c",
        "number in 1",
        "bad key=1",
        "number=bad value",
        "number>2",
        "number in (1",
        ",",
    ):
        play.ask("GET", f"secrets?labelSelector={quote(selector)}", only=_names_or_refusal())


def _names_or_refusal():
    return [*NAMES, "kind", "status", "message", "reason", "code"]


def by_fields(play):
    node = play.add_node()
    for name, more in (("placed", {"nodeName": node}), ("waiting", {"schedulerName": "nobody"})):
        spec = {"containers": [{"name": "c", "image": "i:1"}], **more}
        play.make("pods", {"metadata": {"name": name}, "spec": spec})
    for selector in (
        f"spec.nodeName={node}",
        "spec.nodeName!=",
        "spec.nodeName=",
        "status.phase=Pending",
        "status.phase!=Pending",
        "metadata.name=placed",
        f"metadata.namespace={play.namespace},status.phase=Pending",
        "spec.restartPolicy=Always",
        "spec.schedulerName=nobody",
        "spec.serviceAccountName=default",
        "spec.hostNetwork=false",
        "status.podIP=",
        "spec.hostname=x",
        "metadata.labels=x",
        "status.phase",
        "=x",
    ):
        play.ask("GET", f"pods?fieldSelector={quote(selector)}", only=_names_or_refusal())
    play.ask("GET", "jobs?fieldSelector=status.successful%3D0", only=_names_or_refusal())
    play.ask("GET", "configmaps?fieldSelector=data%3Dx", only=_names_or_refusal())
    play.ask("GET", "services?fieldSelector=metadata.name%3Dx", only=_names_or_refusal())


def pages(play):
    _make_secrets(play)
    first = play.ask("GET", "secrets?limit=2", only=["metadata", *NAMES])
    token = quote(first["metadata"]["continue"])
    play.ask("DELETE", "secrets/m3", only=["status"])
    play.make("secrets", {"metadata": {"name": "m9"}})
    second = play.ask("GET", f"secrets?limit=2&continue={token}", only=["metadata", *NAMES])
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    token = quote(second["metadata"]["continue"])
    play.ask("GET", f"secrets?limit=2&continue={token}", only=["metadata", *NAMES])
    play.ask("GET", f"secrets?continue={token}", only=["metadata", *NAMES])
    play.ask("GET", f"secrets?continue={token}&resourceVersion=5")
    play.ask("GET", "secrets?limit=2&labelSelector=even", only=["metadata", *NAMES])
    play.ask("GET", "secrets?limit=2&continue=nonsense", only=["code", "reason"])
    play.ask("GET", "secrets?limit=many", only=["code", "reason"])
    play.ask("GET", "secrets?limit=-1", only=NAMES)


def moments(play):
    _make_secrets(play, 1)
    only = [*NAMES, "message", "reason", "code"]
    version = play.read("secrets")["metadata"]["resourceVersion"]
    play.ask("GET", "secrets?resourceVersion=0", only=NAMES)
    play.ask("GET", f"secrets?resourceVersion={version}", only=["items.metadata.name"])
    match = "resourceVersionMatch"
    play.ask("GET", f"secrets?{match}=Exact&resourceVersion={version}", only=NAMES)
    play.ask("GET", f"secrets?{match}=NotOlderThan&resourceVersion={version}", only=NAMES)
    play.ask("GET", f"secrets?{match}=Exact", only=only)
    play.ask("GET", f"secrets?{match}=Exact&resourceVersion=0", only=only)
    play.ask("GET", f"secrets?{match}=Nonsense&resourceVersion={version}", only=only)
    play.ask("GET", "secrets?resourceVersion=nonsense", only=only)
    play.ask("GET", "secrets?resourceVersion=999999999")
    play.ask("GET", "secrets/m0?resourceVersion=0", only=["metadata.name"])


def of_nothing(play):
    play.ask("GET", "configmaps?labelSelector=none", only=["kind", "apiVersion", "items"])
    play.ask("GET", "/api/v1/namespaces/no-such-place/configmaps", only=["kind", "items"])
    play.ask("GET", "/api/v1/namespaces/no-such-place")
    play.ask("GET", "/apis/batch/v1/namespaces/no-such-place/jobs", only=["kind", "items"])


def of_all_namespaces(play):
    _make_secrets(play, 1)
    play.ask(
        "GET",
        f"/api/v1/secrets?labelSelector=number&fieldSelector=metadata.namespace={play.namespace}",
        only=["kind", "items.metadata.name", "items.kind"],
    )


def metadata_only(play):
    _make_secrets(play, 1)
    play.ask("GET", "secrets/m0", accept=METADATA)
    play.ask("GET", "secrets?labelSelector=number", accept=METADATA_LIST)


def tables(play):
    node = play.add_node()
    play.make("configmaps", {"metadata": {"name": "m"}, "data": {"k": "v"}})
    play.make("secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}})
    play.make("leases", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    play.make("services", {"metadata": {"name": "h"}, "spec": {"clusterIP": "None"}})
    play.make(
        "services",
        {"metadata": {"name": "p"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}},
    )
    spec = {"containers": [{"name": "c", "image": "i:1"}], "nodeName": node}
    play.make("pods", {"metadata": {"name": "p"}, "spec": spec})
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    job = {"suspend": True, "template": template}
    play.make("jobs", {"metadata": {"name": "j"}, "spec": job})
    play.seen("jobs/j", lambda answer: answer.body["status"]["conditions"])
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "x", "namespace": play.namespace},
        "reason": "R",
        "message": "m",
        "source": {"component": "c", "host": "h"},
        "type": "Normal",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 3,
    }
    play.make("events", event)
    named = "fieldSelector=metadata.name%3D"
    columns = [f"columnDefinitions.{field}" for field in ("name", "type", "format", "priority")]
    only = ["kind", "apiVersion", "rows.cells", *columns]
    for path in (
        f"configmaps?{named}m",
        "secrets",
        "leases",
        "services",
        "pods",
        "jobs",
        "serviceaccounts",
        f"events?{named}e",
        f"nodes?{named}{node}",
        f"namespaces?{named}{play.namespace}",
    ):
        play.ask("GET", path, accept=TABLE, only=only)
    play.ask("GET", "pods/p", accept=TABLE, only=["metadata", "rows"])
    play.ask("GET", "pods?includeObject=None", accept=TABLE, only=["rows"])
    play.ask("GET", "leases?includeObject=Object", accept=TABLE, only=["rows"])
    play.ask("GET", "pods?includeObject=Nonsense", accept=TABLE)
    play.ask("GET", "pods/missing", accept=TABLE)


def descriptions_of_columns(play):
    body = play.ask("GET", "configmaps", accept=TABLE, only=["kind"])
    columns = body["columnDefinitions"]
    play.note("columns explained", [len(column["description"]) > 30 for column in columns])


def pods_in_a_table(play):
    """The words for the states that a pod goes through."""
    node = play.add_node()
    spec = {
        "nodeName": node,
        "initContainers": [{"name": "i", "image": "i:1"}],
        "containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "i:1"}],
    }
    play.make("pods", {"metadata": {"name": "p"}, "spec": spec})
    done = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    failed = {"terminated": {"exitCode": 3}}
    killed = {"terminated": {"exitCode": 137, "signal": 9}}
    running = {"running": {}}
    creating = {"waiting": {"reason": "ContainerCreating"}}
    pulling = {"waiting": {"reason": "ImagePullBackOff"}}
    for phase, init, states, more in (
        ("Pending", creating, (creating, creating), {}),
        ("Pending", running, (creating, creating), {}),
        ("Pending", failed, (creating, creating), {}),
        ("Pending", done, (pulling, creating), {}),
        ("Running", done, (running, running), {}),
        ("Running", done, (running, done), {}),
        ("Running", done, (running, failed), {}),
        ("Succeeded", done, (done, done), {}),
        ("Failed", done, (done, failed), {}),
        ("Failed", done, (done, killed), {}),
        ("Failed", done, (), {"reason": "Evicted"}),
    ):
        status = {
            "phase": phase,
            "initContainerStatuses": [_container("i", init)],
            "containerStatuses": [_container(n, s) for n, s in zip("cd", states, strict=False)],
            "reason": more.get("reason"),
        }
        play.patch("pods/p/status", {"status": status})
        play.ask("GET", "pods", accept=TABLE, only=["rows.cells"])
    restarted = _container("c", running)
    restarted |= {
        "restartCount": 2,
        "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:00:00Z"}},
    }
    play.patch(
        "pods/p/status",
        {"status": {"phase": "Running", "containerStatuses": [restarted], "reason": None}},
    )
    play.ask("GET", "pods", accept=TABLE, only=["rows.cells"])
    play.ask("DELETE", "pods/p", only=["kind"])
    play.ask("GET", "pods", accept=TABLE, only=["rows.cells"])


def _container(name, state):
    is_running = "running" in state
    return {
        "name": name,
        "image": "i:1",
        "imageID": "",
        "restartCount": 0,
        "ready": is_running,
        "state": state,
    }

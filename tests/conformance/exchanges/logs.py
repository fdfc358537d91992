"""Logs of containers, with each option; what reaches the kubelet is part of the record."""

from urllib.parse import quote

from tests.conformance.api import MERGE

TEXT = [b"first\n", b"second\n", b"no newline"]


def _start(play, containers=("c",), **spec):
    node = play.add_node()
    body = {
        "metadata": {"name": "p"},
        "spec": {
            "nodeName": node,
            "containers": [{"name": name, "image": "i:1"} for name in containers],
            **spec,
        },
    }
    pod = play.make("pods", body)
    play.kubelet.run(pod)
    for name in (*containers, "init"):
        play.kubelet.answers[f"{play.namespace}/p/{name}"] = (200, TEXT)
    return node


def _asked(play):
    """Record what the kubelet was asked for since the last time."""
    prefix = f"/containerLogs/{play.namespace}/"
    mine = [entry for entry in play.kubelet.requests if entry[0].startswith(prefix)]
    play.note("the kubelet was asked for", [[path, dict(query)] for path, query in mine[-1:]])


def each_option(play):
    _start(play)
    moment = quote("2026-01-01T00:00:00Z")
    for option in (
        "",
        "container=c",
        "follow=true",
        "follow=false",
        "tailLines=0",
        "tailLines=2",
        "sinceSeconds=5",
        f"sinceTime={moment}",
        f"sinceTime={quote('2026-01-01T00:00:00.123456789Z')}",
        f"sinceTime={quote('2026-01-01T01:00:00+01:00')}",
        "limitBytes=10",
        "timestamps=true",
        "previous=true",
        "pretty=true",
        "insecureSkipTLSVerifyBackend=true",
        f"container=c&follow=true&timestamps=true&previous=false&limitBytes=5&sinceTime={moment}",
        "unknown=1",
        "stream=All",
    ):
        play.ask("GET", f"pods/p/log?{option}")
        _asked(play)


def unusable_options(play):
    _start(play)
    for option in (
        "tailLines=-1",
        "tailLines=x",
        "sinceSeconds=0",
        "sinceSeconds=-5",
        "sinceTime=yesterday",
        "sinceTime=2026-01-01",
        "limitBytes=0",
        "limitBytes=x",
        "sinceSeconds=5&sinceTime=2026-01-01T00%3A00%3A00Z",
        "tailLines=-1&limitBytes=-1",
        "stream=Stdout",
        "stream=Neither",
        "follow=maybe",
        "timestamps=",
    ):
        play.ask("GET", f"pods/p/log?{option}")


def which_container(play):
    _start(play, ("c", "d"), initContainers=[{"name": "init", "image": "i:1"}])
    play.ask("GET", "pods/p/log")
    play.ask("GET", "pods/p/log?container=d")
    _asked(play)
    play.ask("GET", "pods/p/log?container=init")
    _asked(play)
    play.ask("GET", "pods/p/log?container=wrong")
    play.ask("GET", "pods/missing/log?container=c")
    play.ask("GET", "pods/p/log?container=c", accept="text/plain")
    play.ask("POST", "pods/p/log", {})


def before_there_is_a_node(play):
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i:1"}]}
    play.make("pods", {"metadata": {"name": "p"}, "spec": spec})
    play.ask("GET", "pods/p/log")
    play.ask("GET", "pods/p/log?container=wrong")
    play.ask("GET", "pods/p/log?follow=true")


def what_the_kubelet_refuses(play):
    _start(play)
    place = f"{play.namespace}/p/c"
    waiting = b'container "c" in pod "p" is waiting to start: ContainerCreating'
    for code, text in (
        (400, waiting),
        (400, b'previous terminated container "c" in pod "p" not found'),
        (404, b'pod "p" not found\n'),
        (500, b"something broke"),
        (502, b"bad gateway"),
        (403, b"Forbidden"),
    ):
        play.kubelet.answers[place] = (code, [text])
        play.ask("GET", "pods/p/log")


def a_kubelet_that_does_not_answer(play):
    node = _start(play)
    status = {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}
    play.patch(f"nodes/{node}/status", {"status": status})
    play.ask("GET", "pods/p/log?tailLines=3")
    play.patch(f"nodes/{node}/status", {"status": {"addresses": None}})
    play.ask("GET", "pods/p/log", only=["code", "reason"])
    play.ask("DELETE", f"nodes/{node}", only=["status"])
    play.ask("GET", "pods/p/log")


def following_while_it_grows(play):
    _start(play)
    place = f"{play.namespace}/p/c"
    play.kubelet.answers[place] = (200, [b"early\n", None, b"late\n"])
    play.kubelet.release.clear()
    pieces = []
    with play.api.open("GET", play.at("pods/p/log?follow=true&container=c")) as response:
        pieces.append(response.readline().decode())
        play.kubelet.release.set()
        pieces.append(response.read().decode())
        kind = response.headers.get("Content-Type")
    play.note("pieces", {"pieces": pieces, "type": kind})


def of_a_pod_that_ended(play):
    _start(play)
    pod = play.kubelet.finish(play.read("pods/p"), 3)
    play.ask("GET", "pods/p/log?previous=true&container=c")
    play.patch("pods/p/status", {"status": {"phase": "Failed", "reason": "Evicted"}}, MERGE)
    play.ask("GET", "pods/p/log")
    assert pod["metadata"]["uid"]

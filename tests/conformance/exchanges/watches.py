"""Watches: what they tell, from when on, and how they end."""

from urllib.parse import quote

from tests.conformance.play import TABLE

ONLY = ["kind", "apiVersion", "metadata.name", "metadata.resourceVersion", "data"]


def _map(name, value="v", **labels):
    return {"metadata": {"name": name, "labels": labels}, "data": {"k": value}}


def _version(play):
    return play.read("configmaps?labelSelector=none")["metadata"]["resourceVersion"]


def _is(type_, name):
    return lambda event: (event["type"], event["object"]["metadata"].get("name")) == (type_, name)


def from_a_version(play):
    version = _version(play)
    path = f"configmaps?watch=true&resourceVersion={version}&fieldSelector=metadata.name%3Da"

    def act():
        play.make("configmaps", _map("a"))
        play.patch("configmaps/a", {"data": {"k": "w"}})
        play.patch("configmaps/a", {"data": {"k": "w"}})
        play.api("DELETE", play.at("configmaps/a"))

    play.during(path, act, stop=_is("DELETED", "a"), only=ONLY)
    # The same once more, from the history.
    play.watch(path, stop=_is("DELETED", "a"), only=ONLY)


def from_an_event(play):
    version = _version(play)
    path = "configmaps?watch=true&fieldSelector=metadata.name%3Da&resourceVersion="
    play.make("configmaps", _map("a"))
    play.patch("configmaps/a", {"data": {"k": "w"}})
    play.api("DELETE", play.at("configmaps/a"))
    events = play.watch(f"{path}{version}", stop=_is("MODIFIED", "a"), only=ONLY)
    seen = events[-1]["object"]["metadata"]["resourceVersion"]
    play.watch(f"{path}{seen}", stop=_is("DELETED", "a"), only=ONLY)


def from_now_on(play):
    play.make("configmaps", _map("a", team="x"))
    path = "configmaps?watch=1&labelSelector=team&timeoutSeconds=1"
    play.watch(path, only=ONLY)
    play.watch(f"{path}&resourceVersion=0", only=ONLY)


def what_enters_and_leaves_a_selection(play):
    version = _version(play)

    def act():
        play.make("configmaps", _map("a", team="y"))
        play.patch("configmaps/a", {"metadata": {"labels": {"team": "x"}}})
        play.patch("configmaps/a", {"data": {"k": "2"}})
        play.patch("configmaps/a", {"metadata": {"labels": {"team": "y"}}})
        play.make("configmaps", _map("end", team="x"))

    path = f"configmaps?watch=true&resourceVersion={version}&labelSelector=team%3Dx"
    play.during(path, act, stop=_is("ADDED", "end"), only=[*ONLY, "metadata.labels"])


def pods_of_a_node(play):
    node = play.add_node()
    version = _version(play)

    def act():
        spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i:1"}]}
        play.make("pods", {"metadata": {"name": "p"}, "spec": spec})
        body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}}
        play.make("pods/p/binding", body)

    path = f"pods?watch=true&resourceVersion={version}&fieldSelector={quote('spec.nodeName!=')}"
    play.during(path, act, stop=_is("ADDED", "p"), only=["metadata.name", "spec.nodeName"])


def with_initial_events(play):
    for name in ("a", "b"):
        play.make("configmaps", _map(name, team="x"))
    path = (
        "configmaps?watch=true&labelSelector=team&sendInitialEvents=true&allowWatchBookmarks=true"
        "&resourceVersionMatch=NotOlderThan&timeoutSeconds=5"
    )
    play.watch(
        path,
        stop=lambda event: event["type"] == "BOOKMARK",
        only=["kind", "apiVersion", "metadata.name", "metadata.annotations"],
    )
    play.watch(f"{path}&resourceVersion=0", stop=_is("ADDED", "b"), only=["metadata.name"])
    play.watch("configmaps?watch=true&sendInitialEvents=true")
    play.watch("configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=Exact")
    play.watch("configmaps?watch=true&resourceVersionMatch=NotOlderThan")
    play.watch("configmaps?sendInitialEvents=true&resourceVersionMatch=NotOlderThan")


def from_nonsense(play):
    play.watch("configmaps?watch=true&resourceVersion=nonsense")
    play.watch("configmaps?watch=true&resourceVersion=-1")
    play.watch("configmaps?watch=true&labelSelector=a%3Db%3Dc%3Dd")
    play.watch("configmaps?watch=true&fieldSelector=data%3Dx")
    play.watch("configmaps?watch=true&timeoutSeconds=soon")


def of_one_object(play):
    play.make("configmaps", _map("a"))
    play.ask("GET", "configmaps/a?watch=true&timeoutSeconds=1", only=ONLY)
    play.ask("GET", "configmaps/missing?watch=true&timeoutSeconds=1")
    named = "fieldSelector=metadata.name%3Da"
    play.watch(f"configmaps?watch=true&timeoutSeconds=1&{named}", only=ONLY)


def that_ends_in_time(play):
    version = _version(play)
    play.watch(f"secrets?watch=true&resourceVersion={version}&timeoutSeconds=1")
    play.ask("GET", "secrets?watch=false&labelSelector=no", only=["kind", "items"])


def as_tables(play):
    play.make("configmaps", _map("a", team="x"))
    play.make("configmaps", _map("b", team="x"))
    play.watch(
        "configmaps?watch=true&labelSelector=team&timeoutSeconds=1",
        accept=TABLE,
        only=["kind", "apiVersion", "columnDefinitions.name", "rows.cells", "metadata"],
    )


def by_the_old_prefix(play):
    play.make("configmaps", _map("a", team="x"))
    path = (
        f"/api/v1/watch/namespaces/{play.namespace}/configmaps?labelSelector=team&timeoutSeconds=1"
    )
    play.watch(path, only=["metadata.name"])

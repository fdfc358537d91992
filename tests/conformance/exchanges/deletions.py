"""Deleting: at once, in time, with conditions, with what is owned."""

MAP = {"metadata": {"name": "a"}}
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}


def _owned(name, owner, **more):
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **more,
    }
    return {"metadata": {"name": name, "ownerReferences": [reference]}}


def at_once(play):
    play.make("configmaps", MAP)
    play.ask("DELETE", "configmaps/a")
    play.ask("DELETE", "configmaps/a")
    play.make("secrets", MAP)
    play.ask("DELETE", "secrets/a")
    play.make("serviceaccounts", MAP)
    play.ask("DELETE", "serviceaccounts/a", only=["kind", "metadata.name"])
    play.make("configmaps", MAP)
    play.ask("DELETE", "configmaps/a?dryRun=All")
    play.ask("GET", "configmaps/a", only=["metadata.name"])


def with_preconditions(play):
    made = play.make("configmaps", MAP)
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    other = "11111111-1111-1111-1111-111111111111"
    play.ask("DELETE", "configmaps/a", {"preconditions": {"uid": other}})
    play.patch("configmaps/a", {"data": {"k": "v"}})
    play.ask("DELETE", "configmaps/a", {"preconditions": {"resourceVersion": version}})
    play.ask("DELETE", "configmaps/a", {"preconditions": {"uid": uid}})
    play.ask("DELETE", "configmaps/a", {"preconditions": {"uid": uid}})


def with_unusable_options(play):
    play.make("configmaps", MAP)
    play.ask("DELETE", "configmaps/a", {"propagationPolicy": "Sideways"})
    play.ask("DELETE", "configmaps/a?propagationPolicy=Sideways")
    both = {"propagationPolicy": "Orphan", "orphanDependents": True}
    play.ask("DELETE", "configmaps/a", both)
    play.ask("DELETE", "configmaps/a", {"gracePeriodSeconds": "soon"})
    play.ask("DELETE", "configmaps/a", b"{", only=["code", "reason"])
    play.ask("DELETE", "configmaps/a", {"dryRun": ["Some"]})
    play.ask("DELETE", "configmaps/a", {"kind": "Pod", "apiVersion": "v1"})
    play.ask("DELETE", "configmaps/a?gracePeriodSeconds=soon", only=["code", "reason"])
    play.ask("GET", "configmaps/a", only=["metadata.name"])


def pods_with_grace(play):
    node = play.add_node()
    spec = {"containers": [{"name": "c", "image": "i:1"}], "schedulerName": "nobody"}
    play.make("pods", {"metadata": {"name": "unplaced"}, "spec": spec})
    play.ask("DELETE", "pods/unplaced", only=["kind", "metadata"])
    play.ask("GET", "pods/unplaced", only=["reason"])
    only = [
        "metadata.deletionTimestamp",
        "metadata.deletionGracePeriodSeconds",
        "metadata.generation",
        "reason",
        "kind",
    ]
    for name in ("p", "q", "r", "s"):
        placed = {**spec, "nodeName": node, "terminationGracePeriodSeconds": 20}
        play.make("pods", {"metadata": {"name": name}, "spec": placed})
    play.ask("DELETE", "pods/p", only=only)
    play.ask("DELETE", "pods/p", only=only)
    play.ask("DELETE", "pods/p?gracePeriodSeconds=5", only=only)
    play.ask("DELETE", "pods/p", {"gracePeriodSeconds": 50}, only=only)
    play.ask("DELETE", "pods/p", {"gracePeriodSeconds": 0}, only=only)
    play.ask("GET", "pods/p", only=only)
    play.ask("DELETE", "pods/q", {"gracePeriodSeconds": 0}, only=only)
    play.ask("DELETE", "pods/r", {"gracePeriodSeconds": -1}, only=only)
    play.kubelet.finish(play.read("pods/s"))
    play.ask("DELETE", "pods/s", only=only)


def held_by_finalizers(play):
    play.make("configmaps", {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    play.ask("DELETE", "configmaps/a")
    play.ask("DELETE", "configmaps/a", only=["metadata"])
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/late"]}}
    play.ask("PATCH", "configmaps/a", more, type_="application/merge-patch+json")
    play.ask("PATCH", "configmaps/a", {"data": {"k": "v"}}, type_="application/merge-patch+json")
    none = {"metadata": {"finalizers": None}}
    play.ask("PATCH", "configmaps/a", none, type_="application/merge-patch+json")
    play.ask("GET", "configmaps/a", only=["reason"])


def what_is_owned_in_the_background(play):
    owner = play.make("configmaps", MAP)
    play.make("configmaps", _owned("b", owner))
    play.make("secrets", _owned("c", owner))
    play.ask("DELETE", "configmaps/a", {"propagationPolicy": "Background"})
    play.gone("configmaps/b")
    play.gone("secrets/c")


def what_is_owned_in_the_foreground(play):
    owner = play.make("configmaps", MAP)
    held = _owned("b", owner, blockOwnerDeletion=True)
    held["metadata"]["finalizers"] = ["example.com/hold"]
    play.make("configmaps", held)
    play.make("configmaps", _owned("c", owner))
    play.ask("DELETE", "configmaps/a", {"propagationPolicy": "Foreground"})
    play.gone("configmaps/c")
    only = ["metadata.finalizers", "metadata.deletionTimestamp"]
    play.ask("GET", "configmaps/a", only=only)
    play.until("configmaps/b", lambda a: a.body["metadata"]["deletionTimestamp"], only=only)
    play.patch("configmaps/b", {"metadata": {"finalizers": None}})
    play.gone("configmaps/a")


def what_is_owned_left_behind(play):
    owner = play.make("configmaps", MAP)
    play.make("configmaps", _owned("b", owner))
    play.ask("DELETE", "configmaps/a?propagationPolicy=Orphan")
    play.gone("configmaps/a")
    play.ask("GET", "configmaps/b")


def what_nobody_owns_any_more(play):
    owner = play.make("configmaps", MAP)
    other = play.make("configmaps", {"metadata": {"name": "other"}})
    both = _owned("b", owner)
    both["metadata"]["ownerReferences"] += _owned("b", other)["metadata"]["ownerReferences"]
    play.make("configmaps", both)
    play.ask("DELETE", "configmaps/a", only=["status"])
    play.until(
        "configmaps/b",
        lambda a: len(a.body["metadata"]["ownerReferences"]) == 1,
        only=["metadata.ownerReferences"],
    )
    play.ask("DELETE", "configmaps/other", only=["status"])
    play.gone("configmaps/b")
    gone = {"metadata": {"name": "x", "uid": "11111111-1111-1111-1111-111111111111"}}
    play.ask("POST", "configmaps", _owned("c", gone), only=["metadata.name"])
    play.gone("configmaps/c")


def collections(play):
    for name in ("a", "b", "c"):
        labels = {"sweep": "yes"} if name != "c" else {}
        play.make("secrets", {"metadata": {"name": name, "labels": labels}})
    play.ask(
        "DELETE",
        "secrets?labelSelector=sweep%3Dyes&dryRun=All",
        only=["kind", "items.metadata.name"],
    )
    play.ask("DELETE", "secrets?labelSelector=sweep%3Dyes", only=["kind", "items.metadata.name"])
    play.ask("GET", "secrets", only=["items.metadata.name"])
    play.ask("DELETE", "/api/v1/secrets")
    play.make("services", {"metadata": {"name": "s"}, "spec": {"clusterIP": "None"}})
    play.ask("DELETE", "services", only=["kind", "items.metadata.name"])


def jobs_by_each_policy(play):
    play.add_node()
    template = {"spec": {**TEMPLATE["spec"], "nodeSelector": play.here}}
    for number, options in enumerate(
        (
            None,
            {"propagationPolicy": "Orphan"},
            {"propagationPolicy": "Background"},
            {"propagationPolicy": "Foreground"},
        )
    ):
        name = f"j{number}"
        play.make("jobs", {"metadata": {"name": name}, "spec": {"template": template}})
        pod = play.placed(1, **{"job-name": name})[0]
        play.kubelet.run(pod)
        play.ask("DELETE", f"jobs/{name}", options, only=["kind", "metadata.finalizers"])
        if number < 2:
            play.gone(f"jobs/{name}")
            play.until(
                f"pods?labelSelector=job-name%3D{name}",
                lambda a: "ownerReferences" not in a.body["items"][0]["metadata"],
                only=["items.metadata.finalizers", "items.metadata.deletionTimestamp"],
            )
            continue
        pods = f"pods?labelSelector=job-name%3D{name}"
        play.until(
            pods,
            lambda a: a.body["items"][0]["metadata"]["deletionTimestamp"],
            only=["items.metadata.deletionGracePeriodSeconds"],
        )
        if number == 3:
            play.ask("GET", f"jobs/{name}", only=["metadata.finalizers"])
        play.kubelet.reap(pod)
        play.gone(f"jobs/{name}")
        play.until(pods, lambda a: not a.body["items"], only=["items"])

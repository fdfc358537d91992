import pytest

MERGE = "application/merge-patch+json"


def config_map(cluster, namespace, name, **metadata):
    return cluster.create(f"{namespace}/configmaps", {"metadata": {"name": name, **metadata}})


def owned_by(owner, **more):
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **more,
    }
    return [reference]


def pod(name, **spec):
    containers = [{"name": "c", "image": "i:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def test_delete_answers_with_a_status_that_carries_the_uid(cluster, namespace):
    made = config_map(cluster, namespace, "a")
    answer = cluster("DELETE", f"{namespace}/configmaps/a")
    assert (answer.code, answer.body["status"]) == (200, "Success")
    details = {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert answer.body["details"] == details
    assert cluster("GET", f"{namespace}/configmaps/a").code == 404


def test_delete_with_another_uid_is_409_and_keeps_the_object(cluster, namespace):
    config_map(cluster, namespace, "a")
    answer = cluster("DELETE", f"{namespace}/configmaps/a", {"preconditions": {"uid": "other"}})
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert "the UID in the precondition (other) does not match" in answer.body["message"]
    assert cluster("GET", f"{namespace}/configmaps/a").code == 200


def test_delete_with_the_right_uid_works(cluster, namespace):
    uid = config_map(cluster, namespace, "a")["metadata"]["uid"]
    answer = cluster("DELETE", f"{namespace}/configmaps/a", {"preconditions": {"uid": uid}})
    assert answer.code == 200


def test_delete_with_an_outdated_version_is_409(cluster, namespace):
    version = config_map(cluster, namespace, "a")["metadata"]["resourceVersion"]
    cluster.patch(f"{namespace}/configmaps/a", {"data": {"x": "1"}})
    options = {"preconditions": {"resourceVersion": version}}
    assert cluster("DELETE", f"{namespace}/configmaps/a", options).code == 409


def test_delete_with_an_unknown_policy_is_422(cluster, namespace):
    config_map(cluster, namespace, "a")
    answer = cluster("DELETE", f"{namespace}/configmaps/a?propagationPolicy=Foo")
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")


@pytest.mark.parametrize("where", ["body", "query"])
def test_background_deletion_takes_the_dependents_after_the_owner(cluster, namespace, where):
    owner = config_map(cluster, namespace, "owner")
    config_map(cluster, namespace, "child", ownerReferences=owned_by(owner))
    path = f"{namespace}/configmaps/owner"
    if where == "query":
        cluster("DELETE", f"{path}?propagationPolicy=Background")
    else:
        cluster("DELETE", path, {"propagationPolicy": "Background"})
    assert cluster("GET", path).code == 404
    cluster.gone(f"{namespace}/configmaps/child")


def test_foreground_deletion_takes_the_blocking_dependents_first(cluster, namespace):
    owner = config_map(cluster, namespace, "owner")
    config_map(
        cluster,
        namespace,
        "child",
        finalizers=["test/hold"],
        ownerReferences=owned_by(owner, blockOwnerDeletion=True),
    )
    path = f"{namespace}/configmaps"
    answer = cluster("DELETE", f"{path}/owner", {"propagationPolicy": "Foreground"})
    assert answer.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    cluster.until(f"{path}/child", lambda a: a.body["metadata"]["deletionTimestamp"])
    assert cluster("GET", f"{path}/owner").code == 200
    cluster.patch(f"{path}/child", {"metadata": {"finalizers": None}})
    cluster.gone(f"{path}/child")
    cluster.gone(f"{path}/owner")


def test_orphan_deletion_leaves_the_dependents_without_owner(cluster, namespace):
    owner = config_map(cluster, namespace, "owner")
    config_map(cluster, namespace, "child", ownerReferences=owned_by(owner))
    cluster("DELETE", f"{namespace}/configmaps/owner", {"propagationPolicy": "Orphan"})
    cluster.gone(f"{namespace}/configmaps/owner")
    child = cluster.get(f"{namespace}/configmaps/child")
    assert "ownerReferences" not in child["metadata"]


def test_object_whose_owner_never_existed_is_collected(cluster, namespace):
    ghost = {"metadata": {"name": "ghost", "uid": "no-such-uid"}}
    config_map(cluster, namespace, "child", ownerReferences=owned_by(ghost))
    cluster.gone(f"{namespace}/configmaps/child")


def test_job_deleted_without_a_policy_warns_and_leaves_its_pods(cluster, namespace):
    jobs = namespace.replace("/api/v1", "/apis/batch/v1") + "/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    cluster.create(jobs, {"metadata": {"name": "j"}, "spec": {"template": template}})
    cluster.until(f"{namespace}/pods", lambda a: len(a.body["items"]) == 1)
    answer = cluster("DELETE", f"{jobs}/j")
    assert "child pods are preserved by default" in answer.headers["Warning"]
    cluster.gone(f"{jobs}/j")
    # A pod that nobody counts any more can be deleted at once.
    left = cluster.until(
        f"{namespace}/pods", lambda a: "finalizers" not in a.body["items"][0]["metadata"]
    )
    assert "ownerReferences" not in left["items"][0]["metadata"]


def test_finalizer_holds_an_object_until_it_is_taken_off(cluster, namespace):
    config_map(cluster, namespace, "a", finalizers=["test/hold"])
    answer = cluster("DELETE", f"{namespace}/configmaps/a")
    assert answer.body["metadata"]["deletionTimestamp"]
    assert cluster("GET", f"{namespace}/configmaps/a").code == 200
    cluster.patch(f"{namespace}/configmaps/a", {"metadata": {"finalizers": None}})
    assert cluster("GET", f"{namespace}/configmaps/a").code == 404


def test_finalizer_cannot_be_added_to_an_object_that_is_going(cluster, namespace):
    config_map(cluster, namespace, "a", finalizers=["test/hold"])
    cluster("DELETE", f"{namespace}/configmaps/a")
    patch = {"metadata": {"finalizers": ["test/hold", "test/more"]}}
    answer = cluster("PATCH", f"{namespace}/configmaps/a", patch, content_type=MERGE)
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")


def test_collection_deletion_takes_what_the_selector_names(cluster, namespace):
    for name, value in (("a", "1"), ("b", "2"), ("c", "1")):
        config_map(cluster, namespace, name, labels={"x": value})
    answer = cluster("DELETE", f"{namespace}/configmaps?labelSelector=x%3D1")
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "c"]
    names = [i["metadata"]["name"] for i in cluster.get(f"{namespace}/configmaps")["items"]]
    assert names == ["b"]


def test_pod_without_a_node_goes_at_once(cluster, namespace):
    cluster.create(f"{namespace}/pods", pod("p"))
    assert cluster("DELETE", f"{namespace}/pods/p").body["kind"] == "Pod"
    assert cluster("GET", f"{namespace}/pods/p").code == 404


def test_pod_on_a_node_gets_its_grace_period(cluster, namespace):
    cluster.create(f"{namespace}/pods", pod("p", nodeName="n", terminationGracePeriodSeconds=7))
    metadata = cluster("DELETE", f"{namespace}/pods/p").body["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 7
    assert metadata["generation"] == 2
    shorter = cluster("DELETE", f"{namespace}/pods/p?gracePeriodSeconds=3").body["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 3
    longer = cluster("DELETE", f"{namespace}/pods/p?gracePeriodSeconds=60").body["metadata"]
    assert longer["deletionGracePeriodSeconds"] == 3
    assert cluster("DELETE", f"{namespace}/pods/p", {"gracePeriodSeconds": 0}).code == 200
    assert cluster("GET", f"{namespace}/pods/p").code == 404


def test_finished_pod_goes_at_once(cluster, namespace):
    cluster.create(f"{namespace}/pods", pod("p", nodeName="n"))
    cluster.patch(f"{namespace}/pods/p/status", {"status": {"phase": "Succeeded"}})
    cluster("DELETE", f"{namespace}/pods/p")
    assert cluster("GET", f"{namespace}/pods/p").code == 404


def test_eviction_marks_the_pod_as_disrupted(cluster, namespace):
    cluster.create(f"{namespace}/pods", pod("p", nodeName="n"))
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert cluster.create(f"{namespace}/pods/p/eviction", body)["status"] == "Success"
    evicted = cluster.get(f"{namespace}/pods/p")
    condition = next(c for c in evicted["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")
    assert evicted["metadata"]["deletionTimestamp"]


def test_namespace_goes_with_all_that_is_in_it(cluster, namespace):
    name = namespace.rpartition("/")[2]
    config_map(cluster, namespace, "a")
    cluster.create(f"{namespace}/pods", pod("p"))
    answer = cluster("DELETE", namespace)
    assert answer.body["status"]["phase"] == "Terminating"
    cluster.gone(namespace)
    everywhere = cluster.get("/api/v1/configmaps")["items"] + cluster.get("/api/v1/pods")["items"]
    assert name not in {item["metadata"]["namespace"] for item in everywhere}


def test_namespace_that_is_going_takes_nothing_new_and_says_what_it_waits_for(cluster, namespace):
    name = namespace.rpartition("/")[2]
    config_map(cluster, namespace, "a", finalizers=["test/hold"])
    cluster("DELETE", namespace)
    answer = cluster("POST", f"{namespace}/configmaps", {"metadata": {"name": "b"}})
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["details"]["causes"][0] == {
        "reason": "NamespaceTerminating",
        "field": "metadata.namespace",
        "message": f"namespace {name} is being terminated",
    }
    waiting = cluster.until(namespace, lambda a: a.body["status"]["conditions"])
    messages = {c["type"]: c["message"] for c in waiting["status"]["conditions"]}
    assert messages["NamespaceContentRemaining"] == (
        "Some resources are remaining: configmaps. has 1 resource instances"
    )
    assert messages["NamespaceFinalizersRemaining"].endswith("test/hold in 1 resource instances")
    assert cluster("DELETE", namespace).code == 200
    cluster.patch(f"{namespace}/configmaps/a", {"metadata": {"finalizers": None}})
    cluster.gone(namespace)


def test_namespace_with_a_finalizer_of_its_own_goes_with_the_finalizer(cluster):
    path = "/api/v1/namespaces/held"
    cluster.create(
        "/api/v1/namespaces", {"metadata": {"name": "held", "finalizers": ["test/hold"]}}
    )
    cluster("DELETE", path)
    cluster.until(path, lambda a: a.body["spec"] == {})
    cluster.patch(path, {"metadata": {"finalizers": None}})
    cluster.gone(path)


def test_namespace_of_the_servers_own_comes_back_when_deleted(cluster):
    path = "/api/v1/namespaces/kube-node-lease"
    uid = cluster.get(path)["metadata"]["uid"]
    cluster("DELETE", path)
    cluster.until(path, lambda a: a.body["metadata"]["uid"] != uid)


def test_reference_to_a_lost_owner_goes_while_another_owner_lives(cluster, namespace):
    owners = [config_map(cluster, namespace, name) for name in ("one", "two")]
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", **{k: o["metadata"][k] for k in ("name", "uid")}}
        for o in owners
    ]
    config_map(cluster, namespace, "owned", ownerReferences=references)
    cluster("DELETE", f"{namespace}/configmaps/one")
    path = f"{namespace}/configmaps/owned"
    cluster.until(path, lambda a: a.body["metadata"]["ownerReferences"] == references[1:])


def test_foreground_deletion_waits_for_what_blocks_it_though_other_things_go(cluster, namespace):
    owner = config_map(cluster, namespace, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    reference["uid"] = owner["metadata"]["uid"]
    blocking = {**reference, "blockOwnerDeletion": True}
    config_map(cluster, namespace, "held", finalizers=["test/hold"], ownerReferences=[blocking])
    config_map(cluster, namespace, "loose", ownerReferences=[reference])
    cluster("DELETE", f"{namespace}/configmaps/owner", {"propagationPolicy": "Foreground"})
    cluster.gone(f"{namespace}/configmaps/loose")
    assert cluster("GET", f"{namespace}/configmaps/owner").code == 200
    cluster.patch(f"{namespace}/configmaps/held", {"metadata": {"finalizers": None}})
    cluster.gone(f"{namespace}/configmaps/owner")

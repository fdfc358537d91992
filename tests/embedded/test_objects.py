import pytest

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def pod(name="p", **spec):
    containers = [{"name": "c", "image": "i:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def job(name="j", **spec):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    return {"metadata": {"name": name}, "spec": {"suspend": True, "template": template, **spec}}


def jobs_of(namespace):
    return namespace.replace("/api/v1", "/apis/batch/v1") + "/jobs"


def failure(answer):
    body = answer.body
    assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", answer.code)
    return answer.code, body.get("reason"), body["message"]


def test_create_answers_201_with_what_the_server_adds(cluster, namespace):
    answer = cluster("POST", f"{namespace}/configmaps", {"metadata": {"name": "a"}, "data": {}})
    metadata = answer.body["metadata"]
    assert answer.code == 201
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMap", "v1")
    assert {"uid", "resourceVersion", "creationTimestamp"} <= set(metadata)
    assert metadata["namespace"] == namespace.rpartition("/")[2]
    assert "generation" not in metadata


def test_create_of_an_existing_name_is_409_already_exists(cluster, namespace):
    cluster.create(f"{namespace}/configmaps", {"metadata": {"name": "a"}})
    answer = cluster("POST", f"{namespace}/configmaps", {"metadata": {"name": "a"}})
    assert failure(answer) == (409, "AlreadyExists", 'configmaps "a" already exists')
    assert answer.body["details"] == {"name": "a", "kind": "configmaps"}


def test_missing_object_is_404_with_group_in_the_details(cluster, namespace):
    answer = cluster("GET", f"{jobs_of(namespace)}/nope")
    assert failure(answer) == (404, "NotFound", 'jobs.batch "nope" not found')
    assert answer.body["details"] == {"name": "nope", "group": "batch", "kind": "jobs"}


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
def test_write_to_a_missing_object_is_404(cluster, namespace, method):
    path = f"{namespace}/configmaps/nope"
    answer = cluster(
        method, path, {}, content_type=MERGE if method == "PATCH" else "application/json"
    )
    assert failure(answer)[:2] == (404, "NotFound")


def test_unknown_kind_in_a_known_group_is_a_404_status(cluster):
    answer = cluster("GET", "/apis/batch/v1/namespaces/default/foos")
    assert failure(answer) == (404, "NotFound", "the server could not find the requested resource")


def test_unknown_group_is_a_plain_404(cluster):
    answer = cluster("GET", "/apis/jobset.x-k8s.io/v1alpha2/jobsets")
    assert (answer.code, answer.body) == (404, "404 page not found\n")


def test_create_in_a_missing_namespace_is_404(cluster):
    answer = cluster("POST", "/api/v1/namespaces/nope/pods", pod())
    assert failure(answer) == (404, "NotFound", 'namespaces "nope" not found')


def test_namespace_other_than_the_paths_is_400(cluster, namespace):
    body = {"metadata": {"name": "a", "namespace": "other"}}
    assert failure(cluster("POST", f"{namespace}/configmaps", body))[:2] == (400, "BadRequest")


@pytest.mark.parametrize("name", ["Bad", "a_b", "-a", "a" * 254, "a..b"])
def test_invalid_name_is_422_and_names_the_field(cluster, namespace, name):
    answer = cluster("POST", f"{namespace}/configmaps", {"metadata": {"name": name}})
    assert failure(answer)[:2] == (422, "Invalid")
    cause = answer.body["details"]["causes"][0]
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", "metadata.name")


def test_invalid_label_value_is_422(cluster, namespace):
    body = {"metadata": {"name": "a", "labels": {"entry": "communication/nccl"}}}
    answer = cluster("POST", f"{namespace}/configmaps", body)
    assert failure(answer)[:2] == (422, "Invalid")
    assert answer.body["details"]["causes"][0]["field"] == "metadata.labels"


def test_object_without_a_name_is_422(cluster, namespace):
    answer = cluster("POST", f"{namespace}/configmaps", {"metadata": {}})
    expected = (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )
    assert failure(answer) == (422, "Invalid", expected)


def test_generate_name_appends_five_characters(cluster, namespace):
    names = {
        cluster.create(f"{namespace}/configmaps", {"metadata": {"generateName": "a-"}})["metadata"][
            "name"
        ]
        for _ in range(20)
    }
    assert len(names) == 20
    assert {(name[:2], len(name)) for name in names} == {("a-", 7)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"env": [{"name": "A", "value": 1}]},
            "json: cannot unmarshal number into Go struct field "
            "EnvVar.spec.containers.env.value of type string",
        ),
        ({"args": "x"}, "Container.spec.containers.args of type []string"),
        ({"resources": {"limits": {"nvidia.com/gpu": "x1"}}}, "quantities must match the regular"),
    ],
)
def test_field_of_the_wrong_type_is_400_and_named(cluster, namespace, change, message):
    body = pod()
    body["spec"]["containers"][0].update(change)
    code, reason, text = failure(cluster("POST", f"{namespace}/pods", body))
    assert (code, reason) == (400, "BadRequest")
    assert message in text


def test_gpu_count_given_as_a_number_is_stored_as_text(cluster, namespace):
    body = pod(
        containers=[{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 8}}}]
    )
    stored = cluster.create(f"{namespace}/pods", body)
    amounts = {"nvidia.com/gpu": "8"}
    assert stored["spec"]["containers"][0]["resources"] == {"limits": amounts, "requests": amounts}


@pytest.mark.parametrize(
    "data", [b"", b"{nope", b"[]", b'"x"', b"{" * 5000, b'{"a": NaN}', b"\xff"]
)
def test_body_that_is_no_object_is_400(cluster, namespace, data):
    assert failure(cluster("POST", f"{namespace}/configmaps", data))[:2] == (400, "BadRequest")


def test_body_over_three_mebibytes_is_413(cluster, namespace):
    data = b'{"data": {"a": "' + b"x" * (3 * 2**20) + b'"}}'
    answer = cluster("POST", f"{namespace}/configmaps", data)
    assert failure(answer)[:2] == (413, "RequestEntityTooLarge")


def test_config_map_over_one_mebibyte_is_422(cluster, namespace):
    body = {"metadata": {"name": "a"}, "data": {"x": "x" * 2**20}}
    cluster.create(f"{namespace}/configmaps", body)
    body["metadata"]["name"], body["data"]["y"] = "b", "y"
    answer = cluster("POST", f"{namespace}/configmaps", body)
    assert failure(answer)[:2] == (422, "Invalid")
    assert "may not be more than 1048576 bytes" in answer.body["message"]


def test_body_in_yaml_is_read(cluster, namespace):
    answer = cluster(
        "POST",
        f"{namespace}/configmaps",
        b"metadata: {name: a}\ndata: {x: '1'}",
        content_type="application/yaml",
    )
    assert (answer.code, answer.body["data"]) == (201, {"x": "1"})


def test_put_with_an_outdated_version_is_409_conflict(cluster, namespace):
    old = cluster.create(f"{namespace}/configmaps", {"metadata": {"name": "a"}, "data": {"x": "1"}})
    cluster.patch(f"{namespace}/configmaps/a", {"data": {"x": "2"}})
    code, reason, message = failure(cluster("PUT", f"{namespace}/configmaps/a", old))
    assert (code, reason) == (409, "Conflict")
    assert message.startswith(
        'Operation cannot be fulfilled on configmaps "a": the object has been'
    )


def test_patch_with_an_outdated_version_is_409_conflict(cluster, namespace):
    cluster.create(f"{namespace}/configmaps", {"metadata": {"name": "a"}})
    patch = {"metadata": {"resourceVersion": "1"}, "data": {"x": "2"}}
    answer = cluster("PATCH", f"{namespace}/configmaps/a", patch, content_type=MERGE)
    assert failure(answer)[:2] == (409, "Conflict")


def test_put_without_a_version_replaces_unconditionally(cluster, namespace):
    cluster.create(f"{namespace}/configmaps", {"metadata": {"name": "a"}, "data": {"x": "1"}})
    body = {"metadata": {"name": "a"}, "data": {"y": "2"}}
    answer = cluster("PUT", f"{namespace}/configmaps/a", body)
    assert (answer.code, answer.body["data"]) == (200, {"y": "2"})


def test_lease_replaced_without_a_version_is_422(cluster, namespace):
    path = namespace.replace("/api/v1", "/apis/coordination.k8s.io/v1") + "/leases"
    cluster.create(path, {"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}})
    answer = cluster("PUT", f"{path}/a", {"metadata": {"name": "a"}, "spec": {}})
    assert failure(answer)[:2] == (422, "Invalid")


def test_resource_versions_grow_over_all_kinds(cluster, namespace):
    versions = [
        int(
            cluster.create(f"{namespace}/{kind}", {"metadata": {"name": "a"}})["metadata"][
                "resourceVersion"
            ]
        )
        for kind in ("configmaps", "secrets", "configmaps?x=1", "serviceaccounts")
        if "?" not in kind
    ]
    assert versions == sorted(set(versions))
    assert int(cluster.get(f"{namespace}/pods")["metadata"]["resourceVersion"]) >= versions[-1]


def test_update_without_a_change_keeps_the_version(cluster, namespace):
    before = cluster.create(
        f"{namespace}/configmaps", {"metadata": {"name": "a"}, "data": {"x": "1"}}
    )
    assert cluster.patch(f"{namespace}/configmaps/a", {"data": {"x": "1"}}) == before
    assert cluster("PUT", f"{namespace}/configmaps/a", before).body == before


def test_generation_moves_with_the_spec_only(cluster, namespace):
    path = jobs_of(namespace)
    assert cluster.create(path, job())["metadata"]["generation"] == 1
    labelled = cluster.patch(f"{path}/j", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 1
    counted = cluster.patch(f"{path}/j/status", {"status": {"ready": 0}})
    assert counted["metadata"]["generation"] == 1
    changed = cluster.patch(f"{path}/j", {"spec": {"parallelism": 3}})
    assert changed["metadata"]["generation"] == 2


def test_status_path_leaves_the_spec_alone(cluster, namespace):
    cluster.create(f"{namespace}/pods", pod())
    patch = {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}}
    changed = cluster.patch(f"{namespace}/pods/p/status", patch)
    assert changed["status"]["phase"] == "Running"
    assert "nodeName" not in changed["spec"]


def test_main_path_leaves_the_status_alone(cluster, namespace):
    cluster.create(f"{namespace}/pods", pod())
    patch = {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}}
    changed = cluster.patch(f"{namespace}/pods/p", patch)
    assert changed["status"]["phase"] == "Pending"
    assert changed["metadata"]["labels"] == {"a": "b"}


def test_status_of_a_new_pod_is_the_servers(cluster, namespace):
    body = {**pod(), "status": {"phase": "Succeeded"}}
    assert cluster.create(f"{namespace}/pods", body)["status"]["phase"] == "Pending"


def test_merge_patch_replaces_lists_and_deletes_by_null(cluster, namespace):
    cluster.create(
        f"{namespace}/configmaps", {"metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}}
    )
    changed = cluster.patch(f"{namespace}/configmaps/a", {"data": {"x": None, "z": "3"}})
    assert changed["data"] == {"y": "2", "z": "3"}


def test_json_patch_is_applied_in_order(cluster, namespace):
    cluster.create(f"{namespace}/configmaps", {"metadata": {"name": "a"}, "data": {"x": "1"}})
    operations = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "move", "from": "/data/x", "path": "/data/y"},
    ]
    changed = cluster.patch(f"{namespace}/configmaps/a", operations, JSON_PATCH)
    assert changed["data"] == {"y": "1"}


@pytest.mark.parametrize(
    "operation",
    [{"op": "test", "path": "/data/x", "value": "2"}, {"op": "remove", "path": "/data/zz"}],
)
def test_json_patch_that_does_not_apply_is_422(cluster, namespace, operation):
    cluster.create(f"{namespace}/configmaps", {"metadata": {"name": "a"}, "data": {"x": "1"}})
    answer = cluster("PATCH", f"{namespace}/configmaps/a", [operation], content_type=JSON_PATCH)
    assert failure(answer)[:2] == (422, "Invalid")


def test_strategic_patch_merges_conditions_by_type(cluster, namespace):
    cluster.create(f"{namespace}/pods", pod())
    path = f"{namespace}/pods/p/status"
    for condition in (
        {"type": "A", "status": "True"},
        {"type": "B", "status": "True"},
        {"type": "A", "status": "False"},
    ):
        changed = cluster.patch(path, {"status": {"conditions": [condition]}}, STRATEGIC)
    statuses = {c["type"]: c["status"] for c in changed["status"]["conditions"]}
    assert (statuses["A"], statuses["B"]) == ("False", "True")


def test_patch_of_an_unknown_type_is_415(cluster, namespace):
    cluster.create(f"{namespace}/configmaps", {"metadata": {"name": "a"}})
    answer = cluster(
        "PATCH", f"{namespace}/configmaps/a", {}, content_type="application/apply-patch+yaml"
    )
    assert failure(answer)[:2] == (415, "UnsupportedMediaType")


def test_pod_spec_is_fixed_once_created(cluster, namespace):
    cluster.create(f"{namespace}/pods", pod())
    patch = {"spec": {"restartPolicy": "Never"}}
    answer = cluster("PATCH", f"{namespace}/pods/p", patch, content_type=MERGE)
    assert failure(answer)[:2] == (422, "Invalid")
    assert "pod updates may not change fields" in answer.body["message"]


def test_job_template_is_fixed_once_started(cluster, namespace):
    path = jobs_of(namespace)
    cluster.create(path, job(suspend=False, parallelism=0))
    cluster.until(f"{path}/j", lambda a: a.body["status"]["startTime"])
    patch = {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}
    answer = cluster("PATCH", f"{path}/j", patch, content_type=MERGE)
    assert failure(answer)[:2] == (422, "Invalid")


def test_list_items_lack_kind_and_version_of_the_api(cluster, namespace):
    cluster.create(f"{namespace}/configmaps", {"metadata": {"name": "a"}})
    listed = cluster.get(f"{namespace}/configmaps")
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert set(listed["items"][0]) == {"metadata"}


def test_dry_run_changes_nothing(cluster, namespace):
    answer = cluster("POST", f"{namespace}/configmaps?dryRun=All", {"metadata": {"name": "a"}})
    assert answer.code == 201
    assert cluster("GET", f"{namespace}/configmaps/a").code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/pods"),
        ("DELETE", "/api/v1/pods"),
        ("DELETE", "/api/v1/namespaces"),
        ("POST", "/api/v1/namespaces/default/pods/p"),
        ("PUT", "/api/v1/namespaces/default/pods"),
        ("GET", "/api/v1/namespaces/default/pods/p/binding"),
    ],
)
def test_method_that_a_path_does_not_have_is_405(cluster, method, path):
    answer = cluster(method, path, {} if method in ("POST", "PUT") else None)
    assert failure(answer)[:2] == (405, "MethodNotAllowed")


def test_access_review_allows_everything(cluster):
    body = {"spec": {"resourceAttributes": {"verb": "create", "resource": "jobs"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert cluster.create(path, body)["status"] == {"allowed": True}


def test_self_review_says_who_one_is(cluster):
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    user = cluster.create(path, {})["status"]["userInfo"]
    assert user["username"] == "pytest-cre-embedded"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_permanent_namespace_exists_and_may_not_be_deleted(cluster, name):
    assert cluster.get(f"/api/v1/namespaces/{name}")["status"]["phase"] == "Active"
    code, reason, message = failure(cluster("DELETE", f"/api/v1/namespaces/{name}"))
    assert (code, reason) == (403, "Forbidden")
    assert message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'

import time
from urllib.parse import quote

import pytest


@pytest.fixture
def maps(cluster, namespace):
    """Five config maps with labels; gives their path."""
    path = f"{namespace}/configmaps"
    for name, labels in (
        ("a", {"x": "1", "y": "1"}),
        ("b", {"x": "2"}),
        ("c", {"x": "1"}),
        ("d", {"y": "2"}),
        ("e", {}),
    ):
        cluster.create(path, {"metadata": {"name": name, "labels": labels}})
    return path


def names(listed):
    return "".join(item["metadata"]["name"] for item in listed["items"])


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("x=1", "ac"),
        ("x==1", "ac"),
        ("x!=1", "bde"),
        ("x in (1,2)", "abc"),
        ("x notin (1)", "bde"),
        ("x", "abc"),
        ("!x", "de"),
        ("x=1,y=1", "a"),
        ("x,!y", "bc"),
        ("", "abcde"),
    ],
)
def test_label_selector_chooses(cluster, maps, selector, expected):
    assert names(cluster.get(f"{maps}?labelSelector={quote(selector)}")) == expected


def test_label_selector_that_cannot_be_read_is_400(cluster, maps):
    answer = cluster("GET", f"{maps}?labelSelector={quote('a b c')}")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [("metadata.name=b", "b"), ("metadata.name!=b", "acde"), ("metadata.name=zz", "")],
)
def test_field_selector_chooses_by_name(cluster, maps, selector, expected):
    assert names(cluster.get(f"{maps}?fieldSelector={quote(selector)}")) == expected


def test_field_selector_over_all_namespaces_takes_the_namespace(cluster, maps):
    name = maps.split("/")[4]
    listed = cluster.get(f"/api/v1/configmaps?fieldSelector=metadata.namespace%3D{name}")
    assert names(listed) == "abcde"


def test_field_selectors_of_pods_choose_by_node_and_phase(cluster, namespace):
    path = f"{namespace}/pods"
    for name, node in (("a", "n1"), ("b", "n2"), ("c", "")):
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": node}
        cluster.create(path, {"metadata": {"name": name}, "spec": spec})
    cluster.patch(f"{path}/a/status", {"status": {"phase": "Running"}})
    for selector, expected in (
        ("spec.nodeName=n1", "a"),
        ("spec.nodeName!=", "ab"),
        ("status.phase=Pending", "bc"),
        ("spec.nodeName!=,status.phase!=Running", "b"),
    ):
        assert names(cluster.get(f"{path}?fieldSelector={quote(selector)}")) == expected


def test_field_selectors_of_events_choose_by_the_object_involved(cluster, namespace):
    name = namespace.rpartition("/")[2]
    for event, pod in (("a", "p"), ("b", "q")):
        involved = {"kind": "Pod", "name": pod, "namespace": name, "uid": f"u-{pod}"}
        body = {"metadata": {"name": event}, "involvedObject": involved, "reason": "R"}
        cluster.create(f"{namespace}/events", body)
    for selector in (
        "involvedObject.name=q",
        "involvedObject.uid=u-q",
        "involvedObject.kind=Pod,involvedObject.name=q",
    ):
        assert names(cluster.get(f"{namespace}/events?fieldSelector={quote(selector)}")) == "b"


def test_field_selector_on_another_field_is_400(cluster, maps):
    answer = cluster("GET", f"{maps}?fieldSelector=data.x%3D1")
    assert (answer.code, answer.body["message"]) == (
        400,
        '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    )
    answer = cluster("GET", f"{maps.replace('configmaps', 'pods')}?fieldSelector=spec.x%3D1")
    assert (answer.code, answer.body["message"]) == (400, "field label not supported: spec.x")


def test_pages_together_are_the_list_at_the_first_pages_moment(cluster, maps):
    first = cluster.get(f"{maps}?limit=2")
    assert (names(first), first["metadata"]["remainingItemCount"]) == ("ab", 3)
    cluster("DELETE", f"{maps}/d")
    cluster.create(maps, {"metadata": {"name": "c2"}})
    cluster.patch(f"{maps}/c", {"data": {"x": "changed"}})
    second = cluster.get(f"{maps}?limit=2&continue={first['metadata']['continue']}")
    third = cluster.get(f"{maps}?limit=2&continue={second['metadata']['continue']}")
    assert names(second) + names(third) == "cde"
    assert "data" not in second["items"][0]
    versions = {page["metadata"]["resourceVersion"] for page in (first, second, third)}
    assert len(versions) == 1
    assert "continue" not in third["metadata"]


def test_page_token_can_be_used_twice(cluster, maps):
    token = cluster.get(f"{maps}?limit=2")["metadata"]["continue"]
    pages = {names(cluster.get(f"{maps}?limit=2&continue={token}")) for _ in range(2)}
    assert pages == {"cd"}


def test_pages_of_a_selection_do_not_count_what_remains(cluster, maps):
    page = cluster.get(f"{maps}?limit=1&labelSelector=x")
    assert names(page) == "a"
    assert "remainingItemCount" not in page["metadata"]


def test_page_token_that_is_too_old_is_410(cluster, maps):
    token = cluster.get(f"{maps}?limit=2")["metadata"]["continue"]
    time.sleep(0.5)  # the lifetime of the token is what is tested
    answer = cluster("GET", f"{maps}?limit=2&continue={token}")
    assert (answer.code, answer.body["reason"]) == (410, "Expired")
    assert "continue parameter is too old" in answer.body["message"]


@pytest.mark.parametrize("token", ["abc", "eyJ2IjoxfQ", "%00", "Ä"])
def test_page_token_that_is_rubbish_is_400(cluster, maps, token):
    assert cluster("GET", f"{maps}?limit=2&continue={quote(token)}").code == 400


def test_page_token_of_another_kind_is_400(cluster, maps, namespace):
    token = cluster.get(f"{maps}?limit=2")["metadata"]["continue"]
    assert cluster("GET", f"{namespace}/secrets?limit=2&continue={token}").code == 400


@pytest.mark.parametrize(
    ("query", "code", "reason"),
    [
        ("limit=abc", 400, "BadRequest"),
        ("resourceVersion=abc", 400, "BadRequest"),
        ("resourceVersion=999999999", 504, "Timeout"),
    ],
)
def test_list_option_that_cannot_be_met_is_refused(cluster, maps, query, code, reason):
    answer = cluster("GET", f"{maps}?{query}")
    assert (answer.code, answer.body["reason"]) == (code, reason)


def test_version_of_the_future_asks_to_come_again(cluster, maps):
    answer = cluster("GET", f"{maps}?resourceVersion=999999999")
    assert answer.headers["Retry-After"] == "1"
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"

import json
import threading
import time

import pytest

SERVER_ARGUMENTS = ("--history", "16", "--bookmark-interval", "0.2")


def seen(events):
    return [
        (e["type"], e["object"]["metadata"]["name"], (e["object"].get("data") or {}).get("x"))
        for e in events
    ]


@pytest.fixture
def maps(namespace):
    return f"{namespace}/configmaps"


def told(cluster, maps, query, **labels):
    """Give all events of a watch up to a last object that is made for this purpose."""
    cluster.create(maps, config_map("zz-last", "", labels=labels))
    events = cluster.events(
        f"{maps}?watch=1&{query}", stop=lambda e: e["object"]["metadata"]["name"] == "zz-last"
    )
    return events[:-1]


def version(cluster, path):
    return cluster.get(path)["metadata"]["resourceVersion"]


def config_map(name, x, **metadata):
    return {"metadata": {"name": name, **metadata}, "data": {"x": x}}


def test_watch_from_a_version_tells_each_change_once(cluster, maps):
    start = version(cluster, maps)
    cluster.create(maps, config_map("a", "1"))
    cluster.patch(f"{maps}/a", {"data": {"x": "2"}})
    cluster.patch(f"{maps}/a", {"data": {"x": "2"}})  # changes nothing
    cluster("DELETE", f"{maps}/a")
    newest = version(cluster, maps)
    events = told(cluster, maps, f"resourceVersion={start}")
    assert seen(events) == [("ADDED", "a", "1"), ("MODIFIED", "a", "2"), ("DELETED", "a", "2")]
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(set(versions))
    assert versions[-1] == int(newest)
    assert {(e["object"]["kind"], e["object"]["apiVersion"]) for e in events} == {
        ("ConfigMap", "v1")
    }


def test_watch_without_a_version_begins_with_what_there_is(cluster, maps):
    cluster.create(maps, config_map("a", "1"))
    cluster.create(maps, config_map("b", "2"))
    events = told(cluster, maps, "allowWatchBookmarks=false")
    assert seen(events) == [("ADDED", "a", "1"), ("ADDED", "b", "2")]


def test_watch_ends_after_its_timeout_and_sends_no_bookmarks_unasked(cluster, maps):
    begun_s = time.monotonic()
    assert cluster.events(f"{maps}?watch=1&timeoutSeconds=1") == []
    assert 0.9 < time.monotonic() - begun_s < 3


def test_watch_tells_changes_while_it_is_open(cluster, maps):
    with cluster.open("GET", f"{maps}?watch=1") as response:
        cluster.create(maps, config_map("a", "1"))
        assert json.loads(response.readline())["type"] == "ADDED"
        cluster("DELETE", f"{maps}/a")
        assert json.loads(response.readline())["type"] == "DELETED"


def test_watch_from_a_forgotten_version_is_a_410_event(cluster, maps):
    start = version(cluster, maps)
    cluster.create(maps, config_map("a", "0"))
    for count in range(20):
        cluster.patch(f"{maps}/a", {"data": {"x": f"n{count}"}})
    events = cluster.events(f"{maps}?watch=1&timeoutSeconds=5&resourceVersion={start}")
    assert [event["type"] for event in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith(f"too old resource version: {start} (")


def test_watch_from_the_oldest_version_kept_works(cluster, maps):
    cluster.create(maps, config_map("a", "0"))
    kept = [cluster.patch(f"{maps}/a", {"data": {"x": f"n{n}"}}) for n in range(16)]
    start = kept[0]["metadata"]["resourceVersion"]
    events = told(cluster, maps, f"resourceVersion={start}")
    assert [x for _type, _name, x in seen(events)] == [f"n{n}" for n in range(1, 16)]


def test_watch_of_a_selection_translates_what_enters_and_leaves(cluster, maps):
    start = version(cluster, maps)
    cluster.create(maps, config_map("a", "1", labels={"in": "no"}))
    cluster.patch(f"{maps}/a", {"metadata": {"labels": {"in": "yes"}}})
    cluster.patch(f"{maps}/a", {"data": {"x": "2"}})
    left = cluster.patch(f"{maps}/a", {"metadata": {"labels": {"in": "no"}}, "data": {"x": "3"}})
    cluster("DELETE", f"{maps}/a")
    query = f"labelSelector=in%3Dyes&resourceVersion={start}"
    events = told(cluster, maps, query, **{"in": "yes"})
    # What leaves is shown as it last was inside, under the version of the change.
    assert seen(events) == [("ADDED", "a", "1"), ("MODIFIED", "a", "2"), ("DELETED", "a", "2")]
    last = events[-1]["object"]["metadata"]
    assert last["resourceVersion"] == left["metadata"]["resourceVersion"]


def test_watch_of_one_name_tells_only_of_it(cluster, maps):
    cluster.create(maps, config_map("a", "1"))
    cluster.create(maps, config_map("b", "1"))
    with cluster.open("GET", f"{maps}?watch=1&fieldSelector=metadata.name%3Db") as response:
        cluster.patch(f"{maps}/a", {"data": {"x": "2"}})
        cluster.patch(f"{maps}/b", {"data": {"x": "2"}})
        events = [json.loads(response.readline()) for _ in range(2)]
    assert seen(events) == [("ADDED", "b", "1"), ("MODIFIED", "b", "2")]


def test_watch_with_bookmarks_sends_the_present_version(cluster, maps, namespace):
    with cluster.open("GET", f"{maps}?watch=1&allowWatchBookmarks=true") as response:
        cluster.create(f"{namespace}/secrets", {"metadata": {"name": "s"}})
        newest = int(version(cluster, maps))
        bookmark = json.loads(response.readline())
        while int(bookmark["object"]["metadata"]["resourceVersion"]) < newest:
            bookmark = json.loads(response.readline())
    assert bookmark["type"] == "BOOKMARK"
    assert set(bookmark["object"]) == {"kind", "apiVersion", "metadata"}


def test_watch_with_initial_events_marks_their_end(cluster, maps):
    cluster.create(maps, config_map("a", "1"))
    events = cluster.events(
        f"{maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true",
        stop=lambda event: event["type"] == "BOOKMARK",
    )
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    annotations = events[1]["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


def test_watch_with_initial_events_but_no_match_rule_is_422(cluster, maps):
    answer = cluster("GET", f"{maps}?watch=1&sendInitialEvents=true")
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")


def test_watch_from_rubbish_is_refused(cluster, maps):
    answer = cluster("GET", f"{maps}?watch=1&resourceVersion=abc")
    assert (answer.code, answer.body["status"]) == (500, "Failure")


def test_watch_resumed_after_each_event_loses_and_doubles_nothing(cluster, maps):
    position, told = version(cluster, maps), []
    cluster.create(maps, config_map("a", "0"))
    for count in range(1, 12):
        cluster.patch(f"{maps}/a", {"data": {"x": str(count)}})
    while len(told) < 12:
        event = cluster.events(f"{maps}?watch=1&resourceVersion={position}", lambda _e: True)[0]
        position = event["object"]["metadata"]["resourceVersion"]
        told.append(event["object"]["data"]["x"])
    assert told == [str(count) for count in range(12)]


def test_watch_as_a_table_has_headers_in_the_first_event_only(cluster, maps):
    cluster.create(maps, config_map("a", "1"))
    cluster.create(maps, config_map("b", "1"))
    accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
    with cluster.open("GET", f"{maps}?watch=1", accept=accept) as response:
        events = [json.loads(response.readline()) for _ in range(2)]
    assert [e["object"]["rows"][0]["cells"][:2] for e in events] == [["a", 1], ["b", 1]]
    assert [bool(e["object"]["columnDefinitions"]) for e in events] == [True, False]


def test_many_watchers_see_each_event(cluster, maps):
    counts = []

    def follow(response):
        with response:
            counts.append(sum(1 for _line in zip(range(20), response, strict=False)))

    responses = [cluster.open("GET", f"{maps}?watch=1") for _ in range(30)]
    threads = [threading.Thread(target=follow, args=(response,)) for response in responses]
    for thread in threads:
        thread.start()
    cluster.create(maps, config_map("a", "0"))
    for count in range(1, 20):
        cluster.patch(f"{maps}/a", {"data": {"x": str(count)}})
    for thread in threads:
        thread.join(10)
    assert counts == [20] * 30

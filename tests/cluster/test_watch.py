import json
import threading
import time

import pytest

from pytest_cre.cluster.client import connect
from pytest_cre.cluster.objects import JOB, NODE, POD
from pytest_cre.cluster.watch import Watcher, WatchTiming

TIMING = WatchTiming(silence_s=0.3, first_pause_s=0.03, longest_pause_s=0.06, jitter=lambda: 0.0)


def pod(name="p", uid="u", version="1", **status):
    return {
        "metadata": {"name": name, "namespace": "team", "uid": uid, "resourceVersion": version},
        "status": status,
    }


def event(type_, item):
    return json.dumps({"type": type_, "object": item}).encode() + b"\n"


def listed(*pods, version="10"):
    return {"metadata": {"resourceVersion": version}, "items": list(pods)}


class Script:
    """Answers the n-th list and the n-th watch with the n-th of what it was given; the last stays."""

    def __init__(self, lists, watches):
        self.lists, self.watches = lists, watches
        self.listed = self.watched = 0

    def __call__(self, request, reply):
        if "watch" in request.query:
            action = self.watches[min(self.watched, len(self.watches) - 1)]
            self.watched += 1
            action(reply)
        else:
            found = self.lists[min(self.listed, len(self.lists) - 1)]
            self.listed += 1
            if callable(found):
                found(reply)
            else:
                reply.json(found)


def stream(*chunks, hold_s=10.0):
    """Answer with these chunks, then stay open and silent."""
    return lambda reply: reply.chunks([*chunks, *[b"", 0.05] * round(hold_s / 0.05)])


def ended(*chunks):
    return lambda reply: reply.chunks(list(chunks))


@pytest.fixture
def watch(serve):
    watchers = []

    def start(script, timing=TIMING, **more):
        watcher = Watcher(serve(script).client(), POD, timing=timing, **more).start()
        watchers.append(watcher)
        return watcher

    yield start
    for watcher in watchers:
        watcher.stop()


def names(items):
    return [each["metadata"]["name"] for each in items]


def test_watcher_keeps_what_lists_and_events_say(watch, eventually):
    watcher = watch(
        Script(
            [listed(pod("b", "2"), pod("a", "1"))],
            [
                stream(
                    event("ADDED", pod("c", "3")),
                    event("MODIFIED", pod("a", "1", phase="Running")),
                    event("BOOKMARK", {"metadata": {"resourceVersion": "12"}}),
                    event("DELETED", pod("b", "2", phase="Failed")),
                )
            ],
        )
    )
    eventually(watcher.deleted)
    assert names(watcher.snapshot()) == ["a", "c"]
    assert watcher.snapshot()[0]["status"] == {"phase": "Running"}
    assert watcher.deleted() == (pod("b", "2", phase="Failed"),)
    assert watcher.is_synced


def test_watch_starts_at_the_version_of_the_list_with_bookmarks_and_a_limit(serve, eventually):
    script = Script([listed(version="abc")], [stream()])
    server = serve(script)
    with Watcher(server.client(), POD, label_selector="a=b", field_selector="c=d", timing=TIMING):
        eventually(lambda: script.watched)
    query = server.requests[1].query
    assert 240 <= int(query.pop("timeoutSeconds")) <= 300
    assert query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "abc",
        "labelSelector": "a=b",
        "fieldSelector": "c=d",
    }


def test_wait_wakes_on_a_change_and_not_before(watch, eventually):
    let_go = threading.Event()

    def answer(reply):
        def chunks():
            yield event("BOOKMARK", {"metadata": {}})
            let_go.wait(10)
            yield event("ADDED", pod())
            yield 5.0

        reply.chunks(chunks())

    told = []
    watcher = watch(Script([listed()], [answer]), on_change=lambda: told.append(1))
    eventually(lambda: watcher.is_synced)
    seen = watcher.generation
    assert watcher.wait(0.05, seen) == seen
    let_go.set()
    assert watcher.wait(5, seen) > seen
    assert names(watcher.snapshot()) == ["p"]
    eventually(lambda: len(told) == 2)


@pytest.mark.parametrize(
    "breakage",
    [
        pytest.param(ended(), id="ends-at-once"),
        pytest.param(ended(event("ADDED", pod("x", "9"))), id="ends-after-one-event"),
        pytest.param(ended(b"garbage\n"), id="garbage-line"),
        pytest.param(ended(b'[1]\n{"type": "ADDED"}\n'), id="odd-json"),
        pytest.param(ended(event("PUZZLED", pod())), id="unknown-event"),
        pytest.param(ended(event("ERROR", {"message": "no code"})), id="error-without-code"),
        pytest.param(ended(event("ERROR", {"code": 410, "reason": "Expired"})), id="410-as-event"),
        pytest.param(lambda reply: reply.refuse(410, "Expired"), id="410-as-status"),
        pytest.param(lambda reply: reply.refuse(504, "Timeout"), id="504"),
        pytest.param(lambda reply: reply.drop(), id="closed-before-headers"),
        pytest.param(
            lambda reply: (reply.chunks([b"half"], is_ended=False), reply.reset()), id="reset"
        ),
        pytest.param(
            lambda reply: reply.chunks([b'{"type": '], is_ended=False), id="no-last-chunk"
        ),
        pytest.param(stream(hold_s=1.0), id="black-hole"),
    ],
)
def test_after_any_break_a_new_list_tells_what_was_missed(watch, eventually, breakage):
    before = [pod("gone", "1"), pod("same-name", "2")]
    after = [pod("same-name", "3"), pod("new", "4")]
    watcher = watch(Script([listed(*before), listed(*after)], [breakage, stream()]))
    eventually(lambda: names(watcher.snapshot()) == ["new", "same-name"])
    uids = {each["metadata"]["uid"] for each in watcher.deleted()}
    assert uids >= {"1", "2"}
    assert "3" not in uids
    eventually(lambda: watcher.problem is None)


@pytest.mark.parametrize(
    "breakage",
    [
        lambda reply: reply.refuse(410, "Expired"),
        ended(event("ADDED", pod()), event("ERROR", {"code": 410, "reason": "Gone"})),
    ],
    ids=["status", "event"],
)
def test_watches_that_break_at_once_do_not_storm_the_server(serve, breakage):
    script = Script([listed()], [breakage])
    server = serve(script)
    timing = WatchTiming(jitter=lambda: 0.0)  # the real pauses
    with Watcher(server.client(), POD, timing=timing):
        time.sleep(1.3)
    assert script.listed <= 2


def test_a_black_hole_is_left_within_the_silence_allowed(watch, eventually):
    script = Script([listed(), listed(pod())], [stream(hold_s=2.0), stream()])
    started = time.monotonic()
    watcher = watch(script)
    eventually(lambda: names(watcher.snapshot()) == ["p"])
    assert 0.25 < time.monotonic() - started < 1.5


def test_a_server_that_goes_away_is_a_problem_until_it_is_back(watch, eventually):
    is_up = threading.Event()

    def answer(reply):
        if is_up.is_set():
            reply.json(listed(pod()))
        else:
            reply.refuse(503, "ServiceUnavailable")

    watcher = watch(Script([listed(), answer], [ended(), stream()]))
    eventually(lambda: watcher.problem)
    assert "list pods in team: 503" in str(watcher.problem)
    seen = watcher.generation
    is_up.set()
    eventually(lambda: watcher.problem is None)
    assert watcher.generation > seen
    assert names(watcher.snapshot()) == ["p"]


def test_a_missing_right_is_a_named_problem(serve, eventually):
    server = serve(lambda _, reply: reply.refuse(403, "Forbidden"))
    with Watcher(server.client(), JOB, timing=TIMING) as watcher:
        eventually(lambda: watcher.problem)
        assert "list jobs in team: 403 Forbidden" in str(watcher.problem)
        assert not watcher.is_synced


def test_stop_ends_a_silent_watch_at_once(watch, eventually):
    script = Script([listed()], [stream()])
    watcher = watch(script, timing=WatchTiming())
    eventually(lambda: script.watched)
    started = time.monotonic()
    watcher.stop()
    assert time.monotonic() - started < 1
    assert not watcher._thread.is_alive()


def test_stop_ends_a_silent_watch_over_tls_at_once(embedded_kubeconfig, eventually):
    client = connect(kubeconfig=str(embedded_kubeconfig), context=None, namespace=None)
    with Watcher(client, NODE) as watcher:
        eventually(lambda: watcher._response)
        started = time.monotonic()
    assert time.monotonic() - started < 1
    assert not watcher._thread.is_alive()


def test_the_bulk_of_a_node_is_not_kept(watch, eventually):
    def node(name, uid):
        found = pod(name, uid, images=[{"names": ["x"]}], phase="Ready")
        found["metadata"]["managedFields"] = [{"manager": "kubelet"}]
        return found

    watcher = watch(Script([listed(node("a", "1"))], [stream(event("ADDED", node("b", "2")))]))
    eventually(lambda: len(watcher.snapshot()) == 2)
    for item in watcher.snapshot():
        assert item["status"] == {"phase": "Ready"}
        assert "managedFields" not in item["metadata"]


def test_an_event_cut_into_pieces_is_put_together(watch, eventually):
    line = event("ADDED", pod("whole", "7"))
    watcher = watch(
        Script([listed()], [stream(*[line[i : i + 3] for i in range(0, len(line), 3)])])
    )
    eventually(lambda: names(watcher.snapshot()) == ["whole"])


def test_refusals_are_timed_until_a_watch_is_open_again(watch, eventually):
    refuse = lambda reply: reply.refuse(404, "")  # noqa: E731
    held = stream(b"", hold_s=3.0)
    watcher = watch(Script([listed(pod())], [refuse, refuse, refuse, held]))
    eventually(lambda: watcher.refused_for_s > 0.05)
    assert names(watcher.snapshot()) == ["p"]
    eventually(lambda: watcher.refused_for_s == 0)
    assert watcher.problem is None or watcher.problem.status == 404


def test_silence_is_no_refusal(watch, eventually):
    watcher = watch(Script([lambda reply: reply.drop()], [ended()]))
    eventually(lambda: watcher.problem is not None)
    assert watcher.refused_for_s == 0

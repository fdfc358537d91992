"""Planted faults of the API, as a plain HTTP client meets them."""

import asyncio
import contextlib
import json
import time

import aiohttp
import pytest

from pytest_cre.embedded.certificate import new_identity
from pytest_cre.embedded.faults import FaultBook
from pytest_cre.embedded.server import ClusterSettings, running_cluster
from pytest_cre.simulator.scenario import load_scenario

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def identity():
    return new_identity()


@pytest.fixture
def play(tmp_path, identity):
    """Run a scene on a cluster with one stanza; gives what the scene does, and the hits."""

    def run(stanza, scene, **settings):
        path = tmp_path / "scenario.yaml"
        path.write_text(f"extends: h100-2\napiFaults:\n- {stanza}\n")
        book = FaultBook.of(load_scenario(str(path)).api_faults)

        async def everything():
            given = ClusterSettings(token="t", **settings)
            async with asyncio.timeout(10), running_cluster(given, identity, book) as url:
                headers = {"Authorization": "Bearer t", "User-Agent": "tester/1"}
                connector = aiohttp.TCPConnector(ssl=False)
                async with aiohttp.ClientSession(
                    url, headers=headers, connector=connector
                ) as session:
                    return await scene(session)

        return asyncio.run(everything()), book.counts

    return run


async def create(session, name):
    body = {"metadata": {"name": name}, "data": {"k": "v" * 100}}
    async with session.post(MAPS, json=body) as response:
        return response.status


async def code(session, path=MAPS):
    async with session.get(path) as response:
        return response.status


async def events(session, **query):
    """Return the lines of a watch until it ends or breaks, and how it broke."""
    query = {"watch": "true", "timeoutSeconds": "1", **query}
    lines, broke = [], None
    try:
        async with session.get(MAPS, params=query) as response:
            async for line in response.content:
                lines += [line]
    except aiohttp.ClientError as problem:
        broke = problem
    return lines, broke


async def three(session, **query):
    for name in "abc":
        await create(session, name)
    return await events(session, **query)


def test_answer_spares_the_first_requests_and_ends_after_its_times(play):
    async def scene(session):
        return [await code(session) for _ in range(5)]

    stanza = "{action: answer, code: 401, after: {requests: 2}, times: 2}"
    codes, counts = play(stanza, scene)
    assert codes == [200, 200, 401, 401, 200]
    assert counts["answer"] == 2


def test_every_second_request_flaps(play):
    async def scene(session):
        return [await code(session) for _ in range(4)]

    assert play("{action: answer, code: 404, every: 2}", scene)[0] == [404, 200, 404, 200]


def test_answer_carries_reason_message_and_retry_after(play):
    async def scene(session):
        async with session.get(MAPS) as response:
            return response.headers.get("Retry-After"), await response.json()

    (header, body), _ = play("{action: answer, code: 429, retryAfter: 2, message: slow}", scene)
    assert header == "2"
    assert (body["reason"], body["message"], body["code"]) == ("TooManyRequests", "slow", 429)


def test_verb_and_resource_choose_what_is_hit(play):
    async def scene(session):
        return await code(session, "/api/v1/nodes"), await code(session), await create(session, "a")

    stanza = "{match: {verb: create, resource: config*}, action: answer, code: 403}"
    assert play(stanza, scene)[0] == (200, 200, 403)


def test_lasting_fault_is_over_after_its_time(play):
    async def scene(session):
        began_s = time.monotonic()
        while await code(session) == 503:
            await asyncio.sleep(0.02)
        return time.monotonic() - began_s

    took_s, _ = play("{action: answer, code: 503, lasting: 300ms}", scene)
    assert 0.3 <= took_s < 3


def test_lost_answer_has_done_its_work(play):
    async def scene(session):
        with pytest.raises(aiohttp.ClientError):
            await create(session, "a")
        return await create(session, "a")

    assert play("{match: {verb: create}, action: lose-answer, times: 1}", scene)[0] == 409


def test_refusing_server_comes_back_on_the_same_port(play):
    async def scene(session):
        await create(session, "a")
        problems = []
        for _ in range(200):
            try:
                return problems, await code(session)
            except aiohttp.ClientError as problem:
                problems.append(problem)
                await asyncio.sleep(0.02)

    stanza = "{match: {verb: list}, action: refuse, seconds: 0.2, times: 1}"
    (problems, last), _ = play(stanza, scene)
    assert any(isinstance(each, aiohttp.ClientConnectorError) for each in problems)
    assert last == 200


def test_delay_is_before_the_headers(play):
    async def scene(session):
        began_s = time.monotonic()
        return await code(session), time.monotonic() - began_s

    (status, took_s), _ = play("{action: delay, seconds: 0.2}", scene)
    assert status == 200
    assert took_s >= 0.2


def test_black_hole_takes_the_connection_and_says_nothing(play):
    async def scene(session):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(code(session), 0.2)
        return await code(session)

    assert play("{action: black-hole, times: 1}", scene)[0] == 200


@pytest.mark.parametrize(("action", "is_broken"), [("reset", True), ("close", False)])
def test_answer_that_breaks_off(play, action, is_broken):
    async def scene(session):
        await create(session, "a")
        try:
            async with session.get(MAPS) as response:
                return await response.read(), None
        except aiohttp.ClientError as problem:
            return b"", problem

    (data, broke), _ = play(f"{{match: {{verb: list}}, action: {action}}}", scene)
    assert (broke is not None) == is_broken
    with pytest.raises(json.JSONDecodeError):
        json.loads(data)


def test_slow_drip_takes_its_time_and_is_whole(play):
    async def scene(session):
        began_s = time.monotonic()
        async with session.get(MAPS) as response:
            return await response.json(), time.monotonic() - began_s

    (body, took_s), _ = play("{match: {verb: list}, action: slow-drip, bytesPerSecond: 500}", scene)
    assert body["items"] == []
    assert took_s > 0.1


@pytest.mark.parametrize(("action", "is_broken"), [("reset", True), ("close", False)])
def test_watch_that_breaks_off_after_some_lines(play, action, is_broken):
    stanza = f"{{match: {{verb: watch}}, action: {action}, lines: 1}}"
    (lines, broke), _ = play(stanza, three)
    assert (broke is not None) == is_broken
    assert [line.endswith(b"\n") for line in lines[:1]] == [True]
    assert len([line for line in lines if line.endswith(b"\n")]) == 1


def test_silent_watch_breaks_after_its_time(play):
    stanza = "{match: {verb: watch}, action: black-hole, lines: 2, seconds: 0.1}"
    (lines, broke), _ = play(stanza, three)
    assert len(lines) == 2
    assert broke is not None


def test_watch_gets_every_event_twice(play):
    (lines, _), _ = play("{action: duplicate-events}", three)
    assert lines[0::2] == lines[1::2]
    assert len(lines) == 6


def test_watch_gets_garbage_and_goes_on(play):
    (lines, _), _ = play("{action: garbage-line, lines: 1}", three)
    assert len(lines) == 4
    with pytest.raises(UnicodeDecodeError):
        json.loads(lines[1])


@pytest.mark.parametrize(("more", "expected"), [("", None), (", code: 410", 410)])
def test_error_event_ends_a_watch_with_and_without_a_code(play, more, expected):
    (lines, _), _ = play(f"{{action: error-event, lines: 1{more}}}", three)
    event = json.loads(lines[1])
    assert len(lines) == 2
    assert (event["type"], event["object"].get("code")) == ("ERROR", expected)


def test_watch_without_bookmarks(play):
    async def scene(session):
        return await three(session, allowWatchBookmarks="true")

    (lines, _), _ = play("{action: no-bookmarks}", scene, bookmark_interval_s=0.2)
    assert [json.loads(line)["type"] for line in lines] == ["ADDED"] * 3


def test_forgotten_history_is_410_as_an_event(play):
    async def scene(session):
        async with session.get(MAPS) as response:
            version = (await response.json())["metadata"]["resourceVersion"]
        return await three(session, resourceVersion=version)

    (lines, _), _ = play("{action: forget-history, lines: 2}", scene)
    assert [json.loads(line)["object"].get("code") for line in lines] == [410]


def test_recreated_object_has_its_name_and_another_uid(play):
    async def uid(session):
        async with session.get(f"{MAPS}/a") as response:
            return (await response.json())["metadata"]["uid"]

    async def scene(session):
        await create(session, "a")
        before = await uid(session)
        with contextlib.suppress(aiohttp.ClientError):
            await code(session)
        return before, await uid(session)

    stanza = "{match: {verb: list}, action: recreate, object: a}"
    (before, after), _ = play(stanza, scene)
    assert before != after


@pytest.mark.parametrize(
    ("action", "seen"),
    [
        ("null-lists", lambda item: item["metadata"]["finalizers"] is None),
        ("unknown-fields", lambda item: item["novelty"]["flag"] and item["metadata"]["novelty"]),
    ],
)
def test_objects_in_strange_shapes(play, action, seen):
    async def scene(session):
        await create(session, "a")
        async with session.get(MAPS) as response:
            (listed,) = (await response.json())["items"]
        lines, _ = await events(session)
        return listed, json.loads(lines[0])["object"]

    listed, watched = play(f"{{action: {action}}}", scene)[0]
    assert seen(listed)
    assert seen(watched)


def test_empty_list_is_null(play):
    async def scene(session):
        async with session.get(MAPS) as response:
            return await response.json()

    assert play("{action: null-lists}", scene)[0]["items"] is None


def test_simulated_nodes_are_spared_unless_they_are_named(play):
    async def scene(session):
        headers = {"User-Agent": "pytest-cre-simulator"}
        async with session.get(MAPS, headers=headers) as response:
            return response.status

    assert play("{action: answer, code: 500}", scene)[0] == 200
    named = '{match: {client: "pytest-cre-sim*"}, action: answer, code: 500}'
    assert play(named, scene)[0] == 500


@pytest.mark.parametrize(
    ("stanza", "problem"),
    [
        ("{action: refuse}", r"3:3: .*refuse needs seconds"),
        ("{action: delay, seconds: 1, code: 500}", "does not take code"),
        ("{action: anser, code: 500}", "3:12: "),
        ("{action: answer, code: 500, tims: 2}", "3:31: "),
        ("{action: answer, code: 200}", "3:26: "),
        ("{match: {verb: list}, action: garbage-line}", "happens to watches only"),
        ("{action: delay, seconds: 1, after: {}}", "exactly one of requests, seconds"),
    ],
)
def test_wrong_stanza_is_refused_with_its_place(tmp_path, stanza, problem):
    path = tmp_path / "s.yaml"
    path.write_text(f"extends: h100-2\napiFaults:\n- {stanza}\n")
    with pytest.raises(ValueError, match=problem):
        load_scenario(str(path))

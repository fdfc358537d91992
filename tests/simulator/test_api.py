import asyncio
import json

import pytest
from aiohttp import web

from pytest_cre.simulator.api import ApiClient, ApiRefusal


def pod(name, version):
    return {"metadata": {"name": name, "uid": name, "resourceVersion": str(version)}}


def event(kind, name, version):
    return json.dumps({"type": kind, "object": pod(name, version)}).encode() + b"\n"


class Script:
    """An API server that answers list and watch as told, one watch after another."""

    def __init__(self, *watches):
        self.watches = list(watches)
        self.lists = 0
        self.versions = []

    async def answer(self, request):
        if request.query.get("watch") != "true":
            self.lists += 1
            metadata = {"resourceVersion": str(100 * self.lists)}
            return web.json_response({"metadata": metadata, "items": [pod("listed", self.lists)]})
        self.versions.append(request.query["resourceVersion"])
        watch = self.watches.pop(0) if self.watches else None
        if isinstance(watch, int):
            return web.json_response({"reason": "Expired", "message": "too old"}, status=watch)
        response = web.StreamResponse()
        await response.prepare(request)
        if watch is None:
            await asyncio.sleep(5)
        for piece in watch or ():
            await response.write(piece)
        return response


def follow(script, count):
    """Return the first things that following yields."""

    async def scene():
        app = web.Application()
        app.router.add_get("/api/v1/pods", script.answer)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        seen = []
        try:
            async with asyncio.timeout(5), ApiClient(url, token="t", ca_file=None) as api:
                async for kind, item in api.follow("/api/v1/pods", {"fieldSelector": "a!="}):
                    names = (
                        [each["metadata"]["name"] for each in item] if kind == "LISTED" else None
                    )
                    seen.append((kind, names or item["metadata"]["name"]))
                    if len(seen) == count:
                        break
        finally:
            await runner.cleanup()
        return seen

    return asyncio.run(scene())


def test_follow_lists_and_then_watches_from_the_lists_version():
    script = Script([event("ADDED", "a", 101), event("DELETED", "a", 102)])
    assert follow(script, 3) == [("LISTED", ["listed"]), ("ADDED", "a"), ("DELETED", "a")]
    assert script.versions == ["100"]


def test_follow_of_a_watch_that_ends_goes_on_from_the_last_event():
    script = Script(
        [event("ADDED", "a", 101), event("BOOKMARK", "", 150)], [event("ADDED", "b", 151)]
    )
    assert [kind for kind, _ in follow(script, 3)] == ["LISTED", "ADDED", "ADDED"]
    assert script.versions == ["100", "150"]
    assert script.lists == 1


@pytest.mark.parametrize(
    "loss",
    [
        410,
        500,
        [
            json.dumps({"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}).encode()
            + b"\n"
        ],
        [json.dumps({"type": "ERROR", "object": {"kind": "Status"}}).encode() + b"\n"],
        [b"rubbish\n"],
        [b"[]\n"],
    ],
)
def test_follow_after_a_loss_lists_anew(loss):
    script = Script(loss, [event("ADDED", "b", 201)])
    assert [kind for kind, _ in follow(script, 3)] == ["LISTED", "LISTED", "ADDED"]
    assert script.versions == ["100", "200"]


def test_follow_takes_events_of_any_length_in_any_pieces():
    long = event("ADDED", "x" * 300_000, 101)
    script = Script([long[:70_000], long[70_000:]])
    assert follow(script, 2)[1] == ("ADDED", "x" * 300_000)


def test_call_repeats_what_may_pass_and_gives_up_on_what_will_not():
    async def scene():
        answers = [503, 429, 200, 404]

        async def answer(request):
            assert request.headers["Authorization"] == "Bearer t"
            return web.json_response({"reason": "NotFound", "message": "m"}, status=answers.pop(0))

        app = web.Application()
        app.router.add_post("/x", answer)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            async with ApiClient(url, token="t", ca_file=None) as api:
                await api.call("POST", "/x", {})
                assert answers == [404]
                with pytest.raises(ApiRefusal) as refusal:
                    await api.call("POST", "/x", {})
        finally:
            await runner.cleanup()
        return refusal.value

    refusal = asyncio.run(scene())
    assert (refusal.status, refusal.reason) == (404, "NotFound")

import random
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from pytest_cre.cluster.logs import LogFollower, LogSource, LogTiming

TIMING = LogTiming(
    silence_s=0.3,
    drain_s=0.5,
    read_silence_s=0.5,
    first_pause_s=0.001,
    longest_pause_s=0.02,
    breath_s=0.01,
    jitter=lambda: 0.0,
)
SOURCE = LogSource(pod="p", pod_uid="u", container="main", node="node-7", completion_index=3)
BASE = 1_767_225_600  # 2026-01-01T00:00:00Z


def stamp(time_ns):
    moment = datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{moment}.{time_ns % 10**9:09d}Z ".encode()


def since_ns(text):
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return round(moment.timestamp()) * 10**9


@dataclass
class Kubelet:
    """One container's log, served as a kubelet does, and the pod around it."""

    lines: list[tuple[int, bytes]] = field(default_factory=list)
    first: int = 0  # lines before were rotated away
    state: str = "running"
    restart_count: int = 0
    uid: str = "u"
    on_follow: object = None  # (reply, body) -> None instead of the plain way
    on_read: object = None
    follows: int = 0
    reads: int = 0

    @property
    def text(self):
        return b"".join(stamp(time_ns) + text for time_ns, text in self.lines)

    def pod(self):
        status = {
            "running": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            "terminated": {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:01:00Z"}},
            "waiting": {"waiting": {"reason": "ContainerCreating"}},
        }[self.state]
        phase = {"running": "Running", "terminated": "Succeeded", "waiting": "Pending"}[self.state]
        main = {"name": "main", "state": status, "restartCount": self.restart_count}
        return {
            "metadata": {"name": "p", "uid": self.uid},
            "status": {"phase": phase, "containerStatuses": [main]},
        }

    def body(self, query):
        after = since_ns(query["sinceTime"]) if "sinceTime" in query else 0
        kept = [
            stamp(time_ns) + text
            for time_ns, text in list(self.lines)[self.first :]
            if time_ns >= after
        ]
        return b"".join(kept)[: int(query.get("limitBytes", 1 << 40))]

    def __call__(self, request, reply):
        if not request.path.endswith("/log"):
            reply.json(self.pod())
            return
        body = self.body(request.query)
        assert request.query["timestamps"] == "true"
        if "follow" in request.query:
            self.follows += 1
            if self.on_follow:
                self.on_follow(reply, body)
            else:
                self.stream(request, reply)
        else:
            self.reads += "limitBytes" not in request.query
            if self.on_read and "limitBytes" not in request.query:
                self.on_read(reply, body)
            else:
                reply.chunks([body[at : at + 1000] for at in range(0, len(body), 1000)])

    def stream(self, request, reply):
        """Follow: what there is, then what comes, until the container has ended."""

        def chunks():
            sent = 0
            while True:
                has_ended = self.state == "terminated"
                body = self.body(request.query)
                yield body[sent:]
                sent = len(body)
                if has_ended:
                    return
                yield 0.005

        reply.chunks(chunks())


def lines_of(count, *, per_second=50, text=b"step %d\n"):
    gap = 10**9 // per_second
    return [
        (BASE * 10**9 + index * gap, text % index if b"%d" in text else text)
        for index in range(count)
    ]


@pytest.fixture
def follow(serve):
    followers = []

    def start(kubelet, timing=TIMING, source=SOURCE):
        follower = LogFollower(serve(kubelet).client(), source, timing).start()
        followers.append(follower)
        return follower

    yield start
    for follower in followers:
        follower.close()


def assert_whole(follower, kubelet, deadline_s=5):
    stream = follower.finish(deadline_s)
    assert stream.data == kubelet.text
    assert (stream.is_complete, stream.has_gap) == (True, False)
    assert follower.problem is None
    return stream


def test_follower_gives_the_log_of_a_container_that_ends(follow, eventually):
    kubelet = Kubelet(lines_of(20))
    follower = follow(kubelet)
    eventually(lambda: follower.snapshot() == kubelet.text)
    kubelet.lines += [(BASE * 10**9 + 10**10, b"last\n")]
    kubelet.state = "terminated"
    stream = assert_whole(follower, kubelet)
    assert (stream.pod, stream.container, stream.node) == ("p", "main", "node-7")
    assert (stream.completion_index, stream.restart_count) == (3, 0)
    assert kubelet.follows == 1
    assert kubelet.reads == 1


def test_a_stream_cut_at_random_a_hundred_times_gives_the_very_same_bytes(follow, eventually):
    draw = random.Random(7)
    kubelet = Kubelet(lines_of(700, per_second=10))

    def cut_somewhere(reply, body):
        if kubelet.follows > 100:
            reply.chunks([body])
            return
        end = draw.randrange(max(1, min(len(body), 600)))
        sizes = [draw.randrange(1, 40) for _ in range(40)]
        chunks, at = [], 0
        while at < end:
            step = min(sizes[at % 40], end - at)
            chunks.append(body[at : at + step])
            at += step
        how = draw.randrange(3)
        if how == 0:
            reply.chunks(chunks)  # looks like an orderly end
        else:
            reply.chunks(chunks, is_ended=False)
            if how == 2:
                reply.reset()

    kubelet.on_follow = cut_somewhere
    follower = follow(kubelet)
    eventually(lambda: kubelet.follows > 100)
    kubelet.state = "terminated"
    assert_whole(follower, kubelet)


@pytest.mark.parametrize("is_same_instant", [True, False])
def test_500_identical_lines_in_one_second_are_500_after_cuts(follow, eventually, is_same_instant):
    step = 0 if is_same_instant else 1_000_000
    kubelet = Kubelet([(BASE * 10**9 + index * step, b"same\n") for index in range(500)])
    ends = iter([100, 5000, 12000, 12001, 17000])

    def cut(reply, body):
        reply.chunks([body[: next(ends, len(body))]], is_ended=False)

    kubelet.on_follow = cut
    follower = follow(kubelet)
    eventually(lambda: kubelet.follows > 6)
    kubelet.state = "terminated"
    assert_whole(follower, kubelet)


def test_a_last_line_without_newline_is_kept(follow, eventually):
    kubelet = Kubelet([*lines_of(3), (BASE * 10**9 + 10**9, b"RESULT 480.1")])
    follower = follow(kubelet)
    eventually(lambda: follower.snapshot().endswith(b"RESULT 480.1"))
    kubelet.state = "terminated"
    assert_whole(follower, kubelet)


def test_a_line_that_was_cut_is_told_once_and_whole(follow, eventually):
    kubelet = Kubelet(lines_of(1, text=b"RESULT 480.1 GB/s\n"))
    kubelet.on_follow = lambda reply, body: reply.chunks([body[:-9], 0.05], is_ended=False)
    follower = follow(kubelet)
    eventually(lambda: kubelet.follows > 3)
    assert follower.snapshot().count(b"RESULT") == 1
    kubelet.state = "terminated"
    assert_whole(follower, kubelet)


def test_a_stream_that_never_ends_is_left_once_the_container_has_ended(follow, eventually):
    kubelet = Kubelet(lines_of(10))
    release = threading.Event()

    def hang(reply, body):
        def chunks():
            yield body[:50]
            release.wait(10)

        reply.chunks(chunks())

    kubelet.on_follow = hang
    follower = follow(kubelet, LogTiming(drain_s=0.2))
    eventually(lambda: follower.size_bytes == 50)
    kubelet.state = "terminated"
    started = time.monotonic()
    assert_whole(follower, kubelet)
    assert time.monotonic() - started < 2
    release.set()


def test_a_stream_silenced_by_rotation_is_opened_anew(follow, eventually):
    kubelet = Kubelet(lines_of(5))
    release = threading.Event()

    def first_goes_silent(reply, body):
        def chunks():
            yield body
            release.wait(5 if kubelet.follows == 1 else 0.1)

        reply.chunks(chunks())

    kubelet.on_follow = first_goes_silent
    follower = follow(kubelet)
    eventually(lambda: follower.size_bytes)
    kubelet.lines += [(BASE * 10**9 + 2 * 10**9, b"after rotation\n")]
    eventually(lambda: follower.snapshot() == kubelet.text)
    kubelet.state = "terminated"
    assert_whole(follower, kubelet)
    release.set()


def test_a_final_read_that_ends_early_without_a_sign_is_repeated(follow, eventually):
    kubelet = Kubelet(lines_of(200), state="terminated")
    kubelet.on_follow = lambda reply, _: reply.refuse(500, "InternalError")
    ends = iter([3000, 100])

    def early(reply, body):
        reply.chunks([body[: next(ends, len(body))]])

    kubelet.on_read = early
    assert_whole(follow(kubelet), kubelet)


def test_a_final_read_that_breaks_is_repeated(follow):
    kubelet = Kubelet(lines_of(100), state="terminated")
    kubelet.on_follow = lambda reply, _: reply.refuse(500, "InternalError")

    def breaking(reply, body):
        if kubelet.reads == 1:
            reply.drop()
        elif kubelet.reads == 2:
            reply.chunks([body[:1000]], is_ended=False)
        elif kubelet.reads == 3:
            reply.refuse(502, "BadGateway")
        else:
            reply.chunks([body])

    kubelet.on_read = breaking
    assert_whole(follow(kubelet), kubelet)


def test_a_final_read_that_never_ends_is_incomplete_at_the_deadline(follow):
    kubelet = Kubelet(lines_of(10), state="terminated")
    kubelet.on_follow = lambda reply, _: reply.refuse(500, "InternalError")
    kubelet.on_read = lambda reply, body: reply.chunks([body, *[0.05, b"x"] * 200])
    follower = follow(kubelet)
    started = time.monotonic()
    stream = follower.finish(0.6)
    assert time.monotonic() - started < 3
    assert not stream.is_complete
    assert stream.data.startswith(kubelet.text)
    assert follower.problem.code == "log-incomplete"


def test_a_container_that_has_not_started_is_waited_for(follow, eventually):
    kubelet = Kubelet(lines_of(5), state="waiting")

    def not_yet(reply, body):
        if kubelet.follows < 4:
            message = 'container "main" in pod "p" is waiting to start: ContainerCreating'
            reply.refuse(400, "BadRequest", message)
        else:
            reply.chunks([body])

    kubelet.on_follow = not_yet
    follower = follow(kubelet)
    eventually(lambda: follower.snapshot() == kubelet.text)
    kubelet.state = "terminated"
    assert_whole(follower, kubelet)


def test_a_container_that_never_started_has_no_log_and_says_why(follow):
    kubelet = Kubelet(state="waiting")
    kubelet.on_follow = lambda reply, _: reply.refuse(400, "BadRequest", "waiting to start")
    follower = follow(kubelet)
    stream = follower.finish(5)
    assert (stream.data, stream.is_complete) == (b"", False)
    assert follower.problem.code == "log-unavailable"
    assert "container main is waiting" in follower.problem.message


def test_a_pod_that_is_gone_leaves_an_incomplete_log(follow, eventually):
    kubelet = Kubelet(lines_of(5))
    follower = follow(kubelet)
    eventually(lambda: follower.snapshot() == kubelet.text)
    kubelet.uid, kubelet.state = "another pod of this name", "terminated"
    kubelet.lines = lines_of(1, text=b"not ours\n")
    stream = follower.finish(1)
    assert stream.data == b"".join(stamp(time_ns) + text for time_ns, text in lines_of(5))
    assert not stream.is_complete
    assert follower.problem.code == "log-incomplete"
    assert follower.problem.node == "node-7"


def test_a_follow_of_a_pod_that_is_gone_stops_asking(follow, eventually):
    kubelet = Kubelet()
    kubelet.on_follow = lambda reply, _: reply.refuse(404, "NotFound", 'pods "p" not found')
    follower = follow(kubelet)
    eventually(lambda: not follower._thread.is_alive())
    assert kubelet.follows == 1


def test_a_sick_kubelet_makes_the_log_unavailable_and_names_the_node(follow):
    kubelet = Kubelet(lines_of(5), state="terminated")
    kubelet.on_follow = kubelet.on_read = lambda reply, _: reply.refuse(
        500, "InternalError", "Get https://10.0.0.7:10250/containerLogs: dial tcp: i/o timeout"
    )
    follower = follow(kubelet)
    started = time.monotonic()
    stream = follower.finish(0.5)
    assert time.monotonic() - started < 2
    assert (stream.data, stream.is_complete) == (b"", False)
    assert follower.problem.code == "log-unavailable"
    assert "pod p on node node-7" in follower.problem.message
    assert "i/o timeout" in follower.problem.message


@pytest.mark.parametrize("status", [400, 403])
def test_a_log_that_is_refused_is_not_asked_for_until_the_deadline(follow, status):
    kubelet = Kubelet(lines_of(5), state="terminated")
    refusal = "unable to retrieve container logs for containerd://1"
    kubelet.on_follow = kubelet.on_read = lambda reply, _: reply.refuse(status, "No", refusal)
    follower = follow(kubelet)
    started = time.monotonic()
    assert not follower.finish(30).is_complete
    assert time.monotonic() - started < 3
    assert refusal in follower.problem.message


def test_lines_lost_to_rotation_are_a_gap_that_is_known(follow, eventually):
    kubelet = Kubelet(lines_of(10))
    kubelet.on_follow = lambda reply, body: (
        reply.chunks([body]) if kubelet.follows == 1 else reply.refuse(500, "InternalError")
    )
    follower = follow(kubelet)
    eventually(lambda: follower.snapshot() == kubelet.text)
    kubelet.lines += [(BASE * 10**9 + 10**10 + index, b"late %d\n" % index) for index in range(9)]
    kubelet.first = 15  # five late lines went with the old file
    kubelet.state = "terminated"
    stream = follower.finish(5)
    assert (stream.is_complete, stream.has_gap) == (True, True)
    assert follower.problem.code == "log-gap"
    assert stream.data.endswith(
        b"late 5\n"
        + stamp(BASE * 10**9 + 10**10 + 6)
        + b"late 6\n"
        + stamp(BASE * 10**9 + 10**10 + 7)
        + b"late 7\n"
        + stamp(BASE * 10**9 + 10**10 + 8)
        + b"late 8\n"
    )
    assert b"late 4" not in stream.data


def test_rotation_that_lost_nothing_is_a_gap_all_the_same_for_nothing_proves_it(follow, eventually):
    kubelet = Kubelet(lines_of(100, per_second=200))
    kubelet.on_follow = lambda reply, body: (
        reply.chunks([body]) if kubelet.follows == 1 else reply.refuse(500, "InternalError")
    )
    follower = follow(kubelet)
    eventually(lambda: follower.snapshot() == kubelet.text)
    kubelet.lines += lines_of(150, per_second=200)[100:]
    kubelet.first = 60
    kubelet.state = "terminated"
    stream = follower.finish(5)
    assert stream.data == kubelet.text
    assert stream.has_gap
    assert follower.problem.code == "log-gap"


def test_log_without_a_byte_is_whole_and_asked_for_by_no_limit_of_nothing(serve):
    kubelet = Kubelet([], state="terminated")
    server = serve(kubelet)
    stream = LogFollower(server.client(), SOURCE, TIMING).finish(5)

    assert (stream.data, stream.is_complete, stream.has_gap) == (b"", True, False)
    assert all(each.query.get("limitBytes") != "0" for each in server.requests)


@pytest.mark.parametrize("start_s", [0, 1])
def test_identical_lines_that_were_rotated_are_doubted(follow, eventually, start_s):
    instant = (BASE + 1) * 10**9
    start = [((BASE + start_s) * 10**9, b"start\n")]
    kubelet = Kubelet(start + [(instant, b"same\n")] * 300)
    kubelet.on_follow = lambda reply, body: (
        reply.chunks([body]) if kubelet.follows == 1 else reply.refuse(500, "InternalError")
    )
    follower = follow(kubelet)
    eventually(lambda: follower.snapshot() == kubelet.text)
    kubelet.lines += [(instant, b"same\n")] * 200
    kubelet.first = 101
    kubelet.state = "terminated"
    stream = follower.finish(5)
    assert stream.data != kubelet.text
    assert stream.has_gap
    assert follower.problem.code == "log-gap"


def test_identical_lines_that_were_not_rotated_are_not_doubted(follow, eventually):
    kubelet = Kubelet([(BASE * 10**9, b"same\n")] * 300)
    ends = iter([5000])
    kubelet.on_follow = lambda reply, body: reply.chunks([body[: next(ends, len(body))]])
    follower = follow(kubelet)
    eventually(lambda: kubelet.follows > 1)
    kubelet.state = "terminated"
    assert_whole(follower, kubelet)


def test_a_follow_that_goes_on_after_rotation_joins_at_the_last_line_known(follow, eventually):
    kubelet = Kubelet(lines_of(100, per_second=200))
    kubelet.on_follow = lambda reply, body: reply.chunks([body])
    follower = follow(kubelet)
    eventually(lambda: follower.snapshot() == kubelet.text)
    kubelet.first = 60
    kubelet.lines += lines_of(150, per_second=200)[100:]
    eventually(lambda: follower.snapshot() == kubelet.text)
    kubelet.state = "terminated"
    stream = follower.finish(5)
    assert stream.data == kubelet.text
    assert stream.has_gap


def test_a_silent_container_is_not_a_dead_one(follow, eventually):
    kubelet = Kubelet([])
    follower = follow(kubelet, LogTiming(silence_s=0.05, first_pause_s=0.001, longest_pause_s=0.01))
    kubelet.on_follow = lambda reply, body: reply.chunks([body, 0.1])
    eventually(lambda: kubelet.follows > 3)
    kubelet.on_follow = None
    kubelet.lines += lines_of(3)
    eventually(lambda: follower.snapshot() == kubelet.text)
    kubelet.state = "terminated"
    assert_whole(follower, kubelet)


def test_a_restarted_container_is_read_as_the_previous_one(serve):
    kubelet = Kubelet(lines_of(5), state="terminated", restart_count=1)
    server = serve(kubelet)
    follower = LogFollower(server.client(), SOURCE, TIMING)
    assert follower.finish(5).data == kubelet.text
    reads = [each.query for each in server.requests if each.path.endswith("/log")]
    assert all(query["previous"] == "true" for query in reads)


def test_a_container_that_restarted_twice_has_lost_its_first_log(serve):
    kubelet = Kubelet(lines_of(5), state="running", restart_count=2)
    follower = LogFollower(serve(kubelet).client(), SOURCE, TIMING)
    stream = follower.finish(5)
    assert (stream.data, stream.is_complete) == (b"", False)
    assert follower.problem.code == "log-unavailable"


def test_an_evicted_pod_has_no_log_left(serve):
    class Evicted(Kubelet):
        def pod(self):
            status = {"phase": "Failed", "reason": "Evicted"}
            return {"metadata": {"name": "p", "uid": "u"}, "status": status}

    follower = LogFollower(serve(Evicted(lines_of(3))).client(), SOURCE, TIMING)
    started = time.monotonic()
    assert not follower.finish(5).is_complete
    assert time.monotonic() - started < 2
    assert follower.problem.code == "log-unavailable"


def test_hostile_bytes_pass_unharmed(follow, eventually):
    texts = [
        b"\xff\xfe caf\xe9\n",
        b"\x00\x1b[31m\r50%\r100%\n",
        b"x" * 40_000 + b"\n",
        b"\n",
        b"\xe2\x80\xa8\n",
    ]
    kubelet = Kubelet([(BASE * 10**9 + index, text) for index, text in enumerate(texts)])
    kubelet.on_follow = lambda reply, body: reply.chunks([body[: kubelet.follows * 9001]])
    follower = follow(kubelet)
    eventually(lambda: follower.snapshot() == kubelet.text)
    kubelet.state = "terminated"
    assert_whole(follower, kubelet)


def test_a_log_larger_than_memory_allows_goes_to_disk_and_stays_exact(follow, eventually):
    kubelet = Kubelet(lines_of(1200, per_second=400, text=b"%d " + b"y" * 500 + b"\n"))
    size = len(kubelet.text)
    kubelet.on_follow = lambda reply, body: reply.chunks(
        [body[at : at + 10_000] for at in range(0, len(body), 10_000)]
    )
    follower = follow(kubelet)
    eventually(lambda: follower.size_bytes == size)
    kubelet.state = "terminated"
    assert_whole(follower, kubelet)


def test_stop_ends_a_silent_stream_at_once(follow, eventually):
    kubelet = Kubelet(lines_of(3))
    follower = follow(kubelet, LogTiming())
    eventually(lambda: follower.size_bytes)
    started = time.monotonic()
    follower.stop()
    assert time.monotonic() - started < 1
    assert follower.snapshot() == kubelet.text


def test_finish_twice_gives_the_same_stream(follow):
    kubelet = Kubelet(lines_of(3), state="terminated")
    follower = follow(kubelet)
    assert follower.finish(5) is follower.finish(5)
    assert follower.snapshot() == kubelet.text

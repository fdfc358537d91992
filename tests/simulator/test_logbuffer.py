import asyncio
from itertools import count

import pytest

from pytest_cre.simulator.logbuffer import RECORD_BYTES, LogBuffer, LogOptions

SECOND_NS = 1_000_000_000


def buffer(**more):
    ticks = count(1_700_000_000 * SECOND_NS, SECOND_NS)
    return LogBuffer(lambda: next(ticks), **more)


def read(log, **options):
    async def all_of_it():
        return b"".join([piece async for piece in log.read(LogOptions(**options))])

    return asyncio.run(all_of_it())


def test_log_of_lines_comes_back_as_written():
    log = buffer()
    log.write(b"a\nb\n")
    assert read(log) == b"a\nb\n"


def test_log_with_unfinished_line_shows_it_once_it_is_finished():
    log = buffer()
    log.write(b"par")
    assert read(log) == b""
    log.write(b"tial\n")
    assert read(log) == b"partial\n"


def test_log_that_ends_without_newline_keeps_its_last_line():
    log = buffer()
    log.write(b"one\nRESULT 480.1")
    log.close()
    assert read(log) == b"one\nRESULT 480.1"


def test_log_with_timestamps_has_nine_digits_before_each_line():
    log = buffer()
    log.write(b"a\nb\n")
    stamp = b"2023-11-14T22:13:20.000000000Z "
    assert read(log, has_timestamps=True) == stamp + b"a\n" + stamp + b"b\n"


@pytest.mark.parametrize(
    ("length", "records"),
    [(RECORD_BYTES - 1, 1), (RECORD_BYTES, 1), (RECORD_BYTES + 1, 2), (40000, 3)],
)
def test_log_splits_long_lines_into_records(length, records):
    log = buffer()
    log.write(b"x" * length + b"\n")
    assert read(log) == b"x" * length + b"\n"
    assert read(log, has_timestamps=True).count(b"2023-11-14T22:13:20") == records


def test_log_since_a_time_leaves_out_what_is_older():
    log = buffer()
    for line in (b"a\n", b"b\n", b"c\n"):
        log.write(line)
    assert read(log, since_ns=(1_700_000_000 + 1) * SECOND_NS) == b"b\nc\n"


@pytest.mark.parametrize(
    ("lines", "text"), [(0, b""), (1, b"c\n"), (2, b"b\nc\n"), (9, b"a\nb\nc\n")]
)
def test_log_tail_gives_the_last_lines(lines, text):
    log = buffer()
    log.write(b"a\nb\nc\n")
    assert read(log, tail_lines=lines) == text


def test_log_limit_cuts_in_the_middle_of_a_line():
    log = buffer()
    log.write(b"abcdef\nghi\n")
    assert read(log, limit_bytes=9) == b"abcdef\ngh"


def test_log_rotation_serves_the_current_file_only():
    log = buffer(rotation_bytes=40)
    for number in range(10):
        log.write(b"line %05d\n" % number)  # 11 bytes
    assert read(log) == b"line 00009\n"


def test_log_follower_sees_what_rotation_takes_from_new_readers():
    async def scene():
        log = buffer(rotation_bytes=40)

        async def follow():
            return b"".join([piece async for piece in log.read(LogOptions(is_following=True))])

        follower = asyncio.create_task(follow())
        for number in range(10):
            log.write(b"line %05d\n" % number)
            await asyncio.sleep(0)
        log.close()
        return await follower

    assert asyncio.run(scene()) == b"".join(b"line %05d\n" % number for number in range(10))


def test_log_follower_ends_when_the_container_does():
    async def scene():
        log = buffer()
        log.write(b"a\n")

        async def follow():
            return b"".join([piece async for piece in log.read(LogOptions(is_following=True))])

        follower = asyncio.create_task(follow())
        await asyncio.sleep(0)
        assert not follower.done()
        log.write(b"b\n")
        log.close()
        return await asyncio.wait_for(follower, 2)

    assert asyncio.run(scene()) == b"a\nb\n"


def test_log_that_is_stuck_starves_followers_but_not_new_reads():
    async def scene():
        log = buffer()
        log.write(b"a\n")
        stream = log.read(LogOptions(is_following=True))
        assert await anext(stream) == b"a\n"
        log.is_stuck = True
        waiting = asyncio.create_task(anext(stream))
        log.write(b"b\n")
        log.close()
        done, _ = await asyncio.wait((waiting,), timeout=0.05)
        waiting.cancel()
        fresh = b"".join([piece async for piece in log.read(LogOptions())])
        return done, fresh

    done, fresh = asyncio.run(scene())
    assert not done
    assert fresh == b"a\nb\n"

"""Faults of logs, as a reader of the kubelet sees them."""

import pytest


def faults(*stanzas):
    return "faults:\n" + "".join(f"- {each}\n" for each in stanzas)


@pytest.fixture
def logged(play):
    """Run a script and read its log: code and text of each reading, in turn."""

    def run(script, more, *queries):
        async def scene(cluster):
            await cluster.create("p", script)
            await cluster.ended("p")
            return [await cluster.logs("p", **query) for query in queries or ({},)]

        return play(scene, more)

    return run


def test_burst_is_many_lines_alike_of_the_same_time(logged):
    ((_, text),) = logged(
        "sleep 0.1", faults("{action: log-burst, lines: 500, message: x}"), {"timestamps": "true"}
    )
    lines = text.splitlines()
    assert len(lines) == 500
    assert len(set(lines)) == 1


def test_rotation_leaves_new_readers_only_what_came_after(logged):
    more = faults("{action: log-rotate, after: {seconds: 0.1}}")
    assert logged("echo early; sleep 0.2; echo late", more) == [(200, "late\n")]


def test_small_log_files_rotate_in_the_middle_of_a_burst(logged):
    more = faults(
        "{action: log-size, bytes: 1K}", "{action: log-burst, lines: 500, message: twelve bytes}"
    )
    ((_, text),) = logged("sleep 0.1", more)
    assert 0 < len(text) <= 1024


@pytest.mark.parametrize(("size", "records"), [(16384, 1), (16385, 2), (40000, 3)])
def test_long_line_becomes_records_with_a_time_each(logged, size, records):
    ((_, text), (_, stamped)) = logged(
        "sleep 0.1", faults(f"{{action: log-line, bytes: {size}}}"), {}, {"timestamps": "true"}
    )
    assert text == "x" * size + "\n"
    assert stamped.count("Z ") == records


def test_last_line_has_no_newline(logged):
    assert logged("echo a", faults("{action: log-tail}")) == [(200, "a\nRESULT 480.1")]


def test_garbage_is_no_utf8(play):
    async def scene(cluster):
        await cluster.create("p", "sleep 0.1")
        await cluster.ended("p")
        import aiohttp

        url = f"{await cluster.kubelet_url()}/containerLogs/default/p/main"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as response:
            return await response.read()

    data = play(scene, faults("{action: log-garbage}"))
    assert b"\x00" in data
    with pytest.raises(UnicodeDecodeError):
        data.decode()


def test_reading_that_ends_early_says_nothing_of_it_and_the_next_is_whole(logged):
    script = "echo " + "a" * 3000
    short, whole = logged(script, faults("{action: log-eof, reads: 1}"), {}, {})
    assert short[0] == whole[0] == 200
    assert len(short[1]) < len(whole[1]) == 3001


def test_refused_reading_has_the_code_and_the_next_is_answered(logged):
    first, second = logged("echo a", faults("{action: log-refuse, code: 500, reads: 1}"), {}, {})
    assert first[0] == 500
    assert second == (200, "a\n")


def test_lost_log_is_gone_for_everybody(logged):
    more = faults("{action: log-lose, after: {seconds: 0.1}}")
    assert logged("echo early; sleep 0.2; echo late", more) == [(200, "late\n")]

"""Which pod caused a failure."""

from dataclasses import replace

from pytest_cre.evidence.blame import failed_on_their_own, failed_pods, was_ended_from_outside
from pytest_cre.evidence.model import LogStream, PodFacts


def pod(name, *, exit_code=1, reason="Error", finished_ns=1, phase="Failed", index=None):
    return PodFacts(
        name=name,
        uid=name,
        node=None,
        completion_index=index,
        attempt=0,
        phase=phase,
        reason=reason,
        exit_code=exit_code,
        finished_ns=finished_ns,
    )


def names(pods, **given):
    return [each.name for each in failed_pods(pods, **given)]


def test_pod_killed_for_memory_comes_first_whenever_it_ended():
    pods = [pod("a", finished_ns=1), pod("b", exit_code=137, reason="OOMKilled", finished_ns=9)]
    assert names(pods) == ["b", "a"]


def test_first_exit_code_of_its_own_comes_before_those_ended_from_outside():
    pods = [
        pod("ended", exit_code=143, finished_ns=1),
        pod("late", exit_code=2, finished_ns=5),
        pod("early", exit_code=1, finished_ns=3),
    ]
    assert names(pods) == ["early", "late", "ended"]


def test_blamed_pod_comes_first_and_blameless_ones_are_left_out():
    pods = [pod("a", finished_ns=1), pod("b", finished_ns=2), pod("c", finished_ns=3)]
    assert names(pods, blamed={"c"}, blameless={"a"}) == ["c", "b"]


def test_pods_that_did_well_and_pods_without_an_end_are_told_apart():
    pods = [
        pod("well", exit_code=0, phase="Succeeded"),
        pod("evicted", exit_code=None, finished_ns=None),
        pod("restarted", phase="Running"),
    ]
    assert names(pods) == ["restarted", "evicted"]


def test_equal_ends_go_by_completion_index_then_name():
    assert names([pod("b", index=0), pod("a", index=1), pod("d"), pod("c")]) == ["b", "a", "c", "d"]


def test_exit_codes_that_say_only_that_somebody_ended_it():
    assert was_ended_from_outside(pod("a", exit_code=143))
    assert not was_ended_from_outside(pod("a", exit_code=137, reason="OOMKilled"))
    assert not was_ended_from_outside(pod("a", exit_code=1))


def own(pods, **logs):
    streams = [LogStream(pod=name, data=text) for name, text in logs.items()]
    return [each.name for each in failed_on_their_own(pods, streams)]


def test_pod_that_lost_its_peer_did_not_fail_on_its_own():
    pods = [pod("a", finished_ns=1), pod("b", finished_ns=9)]
    lost = b"ncclRemoteError: connection to b closed by remote peer\n"

    assert own(pods, a=lost, b=b"CUDA error: an illegal memory access") == ["b"]
    assert own(pods, a=lost, b=lost) == []


def test_pods_that_failed_together_all_failed_on_their_own():
    second_ns = 10**9

    assert own([pod("a", finished_ns=second_ns), pod("b", finished_ns=2 * second_ns)]) == ["a", "b"]
    assert own([pod("a", finished_ns=60 * second_ns), pod("b", finished_ns=second_ns)]) == ["b"]


def test_pod_that_was_ended_failed_on_its_own_only_where_it_alone_was_restarted():
    lost = b"remote process exited or there was a network error\n"
    restarted = replace(pod("b", exit_code=137), restart_count=1)

    assert own([pod("a"), restarted, pod("c", exit_code=143)], a=lost) == ["b"]
    assert own([pod("a"), pod("b", exit_code=137)], a=lost) == []


def test_launcher_tells_nothing_of_its_node():
    assert own([replace(pod("a"), role="launcher")]) == []

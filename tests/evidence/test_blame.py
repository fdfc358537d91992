"""Which pod caused a failure."""

from pytest_cre.evidence.blame import failed_pods, was_ended_from_outside
from pytest_cre.evidence.model import PodFacts


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

import pytest

from pytest_cre.cluster.retry import RetryPolicy


@pytest.fixture
def clock():
    class Clock:
        now_s = 0.0
        slept: list[float]

        def __init__(self):
            self.slept = []

        def time(self):
            return self.now_s

        def sleep(self, seconds):
            self.slept.append(seconds)
            self.now_s += seconds

    return Clock()


def policy(clock, **more):
    return RetryPolicy(clock=clock.time, sleep=clock.sleep, **more)


def test_pauses_grow_to_their_limit(clock):
    pauses = policy(clock, first_pause_s=1.0, longest_pause_s=4.0, jitter=lambda: 1.0).pauses()
    assert [pauses.wait() for _ in range(5)] == [True] * 5
    assert clock.slept == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_pauses_are_jittered_down_to_half(clock):
    pauses = policy(clock, first_pause_s=1.0, jitter=lambda: 0.0).pauses()
    pauses.wait()
    assert clock.slept == [0.5]


def test_a_pause_asked_for_is_kept_even_when_it_is_longer(clock):
    pauses = policy(clock, first_pause_s=1.0, jitter=lambda: 1.0).pauses()
    pauses.wait(30.0)
    assert clock.slept == [30.0]


def test_no_pause_goes_beyond_the_budget(clock):
    pauses = policy(clock, budget_s=10.0, first_pause_s=4.0, jitter=lambda: 1.0).pauses()
    assert [pauses.wait(), pauses.wait()] == [True, False]
    assert clock.slept == [4.0]


def test_a_budget_of_nothing_tries_once(clock):
    assert policy(clock, budget_s=0.0).pauses().wait() is False
    assert clock.slept == []

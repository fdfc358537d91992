import asyncio
from datetime import datetime

from pytest_cre.simulator.generators import plannedtime
from pytest_cre.simulator.generators.plannedtime import PlannedTime


class Machine:
    """A clock of the machine, and a loop that wakes up as late as it is told."""

    def __init__(self, monkeypatch, late_s):
        self.now_s, self.late_s, self.slept_s = 100.0, late_s, []
        monkeypatch.setattr(plannedtime.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(plannedtime.asyncio, "sleep", self.sleep)

    async def sleep(self, seconds):
        self.slept_s.append(round(seconds, 6))
        self.now_s += seconds + self.late_s


def stamps_of(steps_s):
    async def run():
        clock, found = PlannedTime(), []
        for seconds in steps_s:
            await clock.spend(seconds)
            found.append(datetime.fromisoformat(clock.stamp(6)))
        return found

    found = asyncio.run(run())
    return [(each - found[0]).total_seconds() for each in found]


def test_time_that_is_told_is_that_of_the_plan_however_late_a_machine_wakes(monkeypatch):
    machine = Machine(monkeypatch, late_s=1.5)

    assert stamps_of([0.5, 0.5, 0.5, 2.0, 0.5]) == [0.0, 0.5, 1.0, 3.0, 3.5]
    # Two seconds are gone after the first half: no waiting until the plan is ahead again.
    assert machine.slept_s == [0.5, 1.5]


def test_plan_never_runs_ahead_of_the_machine(monkeypatch):
    machine = Machine(monkeypatch, late_s=0.0)

    stamps_of([0.5, 0.001, 0.001, 0.001])
    assert machine.slept_s == [0.5, 0.003]


def test_stamp_has_as_many_decimals_as_asked_for():
    clock = PlannedTime()
    assert [len(clock.stamp(decimals)) for decimals in (0, 3, 6)] == [19, 23, 26]

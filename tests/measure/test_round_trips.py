"""From ledgers to events and back, from one way of writing a log to another, from one way of reading to another."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.measurement import Meter
from tests.measure.histories import events_of, ledger_s, ns
from tests.measure.histories import measured as of_script
from tests.measure.megatron import EPOCH_NS, clock, logs_of, read_back, seconds
from tests.measure.reading import measured
from tests.measure.test_streams import begin, joined, ledger, load, save, steps

quick = settings(derandomize=True, max_examples=15, database=None)
lasting = st.integers(0, 500)


@quick
@given(
    st.fixed_dictionaries(
        {
            **dict.fromkeys(
                ("schedule", "init", "load", "warmup", "straggler", "checkpoint_blocking"), lasting
            ),
            **dict.fromkeys(("eval", "hang", "reschedule", "other"), lasting),
            "useful": st.integers(4, 300),
            "rework": st.integers(1, 200),
        }
    )
)
def test_ledger_told_as_events_is_the_same_ledger(wanted):
    # A hang is what a silence lasts longer than the step in flight.
    in_flight = int(wanted["hang"] > 0)
    kept = wanted["useful"] - 2
    script = (
        "open; pass {schedule}; start; pass {init}; load {load} 0; run 1 x {first}; run 1 x {slow};"
        "run {more}; save {checkpoint_blocking}; eval {eval}; run {lost}; pass {silence}; crash;"
        "pass {reschedule}; start; ready {kept}; run 2; pass {other}; end"
    ).format(
        **wanted,
        first=1 + wanted["warmup"],
        slow=1 + wanted["straggler"],
        more=kept - 2,
        lost=wanted["rework"] - in_flight,
        silence=wanted["hang"] + in_flight,
        kept=kept,
    )
    run = of_script(script)
    assert ledger_s(run) == {name: lasted for name, lasted in wanted.items() if lasted}
    assert run.window_ns == ns(sum(wanted.values()))


SCRIPT = "open; start; pass 5; load 5 0; run 40; save 3; run 25; crash; pass 4; start; load 6 40; run 60; save 3; end"
EXPECTED = ledger_s(of_script(SCRIPT))


@quick
@given(
    st.integers(-56, 56),
    st.lists(
        st.tuples(
            st.integers(-56, 56),
            st.integers(0, 9),
            st.sampled_from((".", ",")),
            st.sampled_from(("Z", "")),
        ),
        min_size=1,
        max_size=7,
    ),
)
def test_same_instants_in_any_zone_and_dialect_give_the_same_ledger(zone, dialects):
    # Instants are whole seconds, so that any number of digits tells them.
    told = iter(range(10**9))

    def written(stamp, text):
        quarters, digits, separator, utc = dialects[next(told) % len(dialects)]
        at = datetime.fromisoformat(stamp + "+00:00")
        if utc:
            kubelet = f"{at:%Y-%m-%dT%H:%M:%S}{'.' + '0' * digits if digits else ''}Z"
        else:
            local = at.astimezone(timezone(timedelta(minutes=15 * quarters)))
            kubelet = local.isoformat(timespec="microseconds" if digits else "seconds")
        fraction = separator + "0" * digits if digits else ""
        return f"{kubelet} {text.replace('.000000]', f'{fraction}]', 1)}\n"

    logs = logs_of(events_of(SCRIPT), zone_s=900 * zone, written=written)
    read = read_back(events_of(SCRIPT), LedgerParams(reference_step_s=1, log_interval=1), logs=logs)
    assert seconds(read) == pytest.approx(EXPECTED, abs=1e-6)
    assert not {"zone_unknown", "no_timestamps"} & set(read.flags)


FIRST = [*begin(0), *load(0, 0, 0), *steps(1, 100, 1), *save(100, 100), *steps(101, 130, 111)]
SECOND = [*begin(170), *load(100, 170, 10), *steps(101, 200, 181)]
LINES = [*FIRST, *SECOND]
WHOLE = measured(joined(LINES))


@quick
@given(st.integers(-3600, 3600).filter(lambda skew: abs(skew) > 1))
def test_clock_of_a_pod_that_is_any_time_off_is_put_right(skew):
    """Saves and loads leave a second of doubt, for a save comes before its step in no log."""
    pairs = [(0, begin(0)), (0, load(0, 0, 0)), (100, save(100, 100)), (170, begin(170))]
    moved = [line for _, part in [*pairs, (170, load(100, 170, 10))] for line in part]
    shifted = []
    for line in moved:
        at_ns = EPOCH_NS + round(_second_of(line) * 10**9)
        own = line[31:].replace(clock(at_ns), clock(at_ns + skew * 10**9))
        shifted.append(f"{clock(at_ns + skew * 10**9).replace(' ', 'T')}000Z {own}")
    told = [line for line in LINES if "elapsed time" in line]
    run = measured(joined(shifted), joined(told)).training
    assert run.skews_s == {"pod-0": pytest.approx(-skew, abs=1.01)}
    assert sum(run.ledger_s.values()) == pytest.approx(run.window_s)
    for name in ("useful", "rework", "checkpoint_blocking"):
        assert run.ledger_s[name] == pytest.approx(WHOLE.training.ledger_s[name], abs=2)


def _second_of(line):
    minute, second = line[14:16], line[17:26]
    return int(minute) * 60 + float(second)


class Reader(RuleBasedStateMachine):
    """Reads a log in pieces of any size, looks at any time, begins again, and reads some of it twice."""

    def __init__(self) -> None:
        super().__init__()
        self.data = joined(LINES)
        self.read = 0
        self.begin_again()

    def begin_again(self):
        self.meter = Meter()
        self.stream = self.meter.open("pod-0")
        self.stream.feed(self.data[: self.read])

    @precondition(lambda self: self.read < len(self.data))
    @rule(size=st.one_of(st.integers(1, 300), st.integers(300, 20_000)))
    def feed(self, size):
        self.stream.feed(self.data[self.read : self.read + size])
        self.read = min(self.read + size, len(self.data))

    @rule()
    def look(self):
        first, second = self.meter.result(), self.meter.result()
        assert first == second

    @rule()
    def restart(self):
        self.begin_again()

    @rule(size=st.integers(1, 40))
    def read_lines_again(self, size):
        """Read the newest whole lines once more, as a window does that overlaps with the one before."""
        whole = self.data[: self.read].splitlines(keepends=True)[:-1]
        again = self.meter.open(f"again-{len(self.meter.streams)}")
        again.feed(b"".join(whole[-size:]))
        again.close()

    def teardown(self):
        self.stream.feed(self.data[self.read :])
        found = self.meter.result()
        assert ledger(found) == ledger(WHOLE)
        assert found.training.summary == WHOLE.training.summary


Reader.TestCase.settings = settings(
    derandomize=True, max_examples=15, stateful_step_count=15, database=None
)
TestReader = Reader.TestCase

"""Which streams are believed, which framework, and in which year."""

from dataclasses import replace

import pytest

from pytest_cre.catalog.loader import load_catalog, shipped_profiles
from pytest_cre.measure.clocks import Clock
from pytest_cre.measure.frameworks.recorder import LineCounter, Recorder
from pytest_cre.measure.instants import NO_YEAR, parse_rfc3339, yearless_ns
from pytest_cre.measure.logtext import clean_line
from tests.measure.megatron import EPOCH_NS, step_line
from tests.measure.reading import measured
from tests.measure.tables import stamped, text

SECOND = 10**9
BRIDGE = load_catalog(suites=[], profiles=[shipped_profiles()]).log_profiles["megatron-bridge"]
STEPS = [step_line(n, EPOCH_NS + n * SECOND, SECOND, total=30) for n in range(1, 31)]
SAVE = [
    "2026-01-05T00:00:10.500000000Z [2026-01-05 00:00:10.100000] saving checkpoint at iteration 10 to /c",
    "2026-01-05T00:00:10.600000000Z [2026-01-05 00:00:10.600000] scheduled an async checkpoint save at iteration 10 to /c",
]


def pod(rate, *more):
    return text([*stamped([each.replace("400.0", rate) for each in STEPS]), *more])


def rate_of(profile, *logs):
    return measured(*logs, profile=profile).training.summary.avg_tflops_per_gpu


@pytest.mark.parametrize(("chosen", "rate"), [("first", 300), ("last", 500)])
def test_profile_of_several_workers_takes_steps_from_the_pod_it_names(chosen, rate):
    profile = replace(BRIDGE, training_step_pod=chosen)
    assert rate_of(profile, pod("300.0"), pod("400.0"), pod("500.0")) == rate


def test_pod_without_steps_is_not_followed():
    profile = replace(BRIDGE, training_step_pod="first")
    assert rate_of(profile, text(["nothing"]), pod("400.0")) == 400


@pytest.mark.parametrize(("chosen", "blocked_s"), [("first", 0.5), ("last", 0.25)])
def test_profile_of_several_workers_takes_saves_from_the_pod_it_names(chosen, blocked_s):
    late = [each.replace("00:00:10.100000", "00:00:10.350000") for each in SAVE]
    profile = replace(BRIDGE, lifecycle_pod=chosen)
    run = measured(pod("400.0", *SAVE), pod("400.0", *late), profile=profile).training
    assert run.ledger_s["checkpoint_blocking"] == pytest.approx(blocked_s)


@pytest.mark.parametrize("chosen", ["first", "last"])
def test_parts_of_a_log_are_all_read_whatever_pod_the_profile_names(chosen):
    profile = replace(BRIDGE, training_step_pod=chosen, lifecycle_pod=chosen)
    lines = stamped(STEPS)
    lines.insert(10, SAVE[0])
    lines.insert(11, SAVE[1])
    whole = measured(text(lines), profile=profile).training
    for cut in (5, 11, 20):
        parts = measured(text(lines[:cut]), text(lines[cut:]), profile=profile).training
        assert parts.steps == whole.steps
        assert parts.ledger_s == whole.ledger_s
    assert whole.ledger_s["checkpoint_blocking"] == 0.5


def test_profile_of_one_worker_reads_every_pod():
    profile = replace(BRIDGE, strategy="Single")
    first, last = text(stamped(STEPS[:15])), text(stamped(STEPS[15:], first=15))
    assert len(measured(first, last, profile=profile).training.steps) == 30


def test_single_line_like_another_frameworks_does_not_hide_a_run():
    stray = "completed step: 3, seconds: 1.0, TFLOP/s/device: 1.0, loss: 9"
    found = measured(text([*STEPS[:10], stray, *STEPS[10:]])).training
    assert (found.framework, len(found.steps)) == ("megatron-lm", 30)


def test_zone_of_a_stream_with_few_lines_is_that_of_the_others():
    local = [step_line(n, EPOCH_NS + (n + 3600) * SECOND, SECOND, total=30) for n in range(1, 31)]
    log = [f"2026-01-05T00:00:{n:02d}.100000000Z {each}" for n, each in enumerate(local, start=1)]
    whole = measured(text(log)).training
    parts = measured(text(log[:28]), text(log[28:])).training
    assert parts.steps == whole.steps
    assert parts.ledger_s == whole.ledger_s
    assert "zone_unknown" not in parts.flags


@pytest.mark.parametrize(
    ("near", "expected"),
    [
        ("2026-03-01T00:00:00Z", "2026-01-02T15:04:05.5Z"),
        ("2026-12-31T23:59:00Z", "2027-01-02T15:04:05.5Z"),
        (None, f"{NO_YEAR}-01-02T15:04:05.5Z"),
    ],
)
def test_time_without_a_year_is_of_the_nearest_one(near, expected):
    near_ns = None if near is None else parse_rfc3339(near)
    assert yearless_ns(b"0102 15:04:05.500000", near_ns) == parse_rfc3339(expected)


@pytest.mark.parametrize("written", [b"1332 15:04:05.0", b"0230 00:00:00.0", b"0102 25:00:00.0"])
def test_time_without_a_year_that_is_no_date_is_none(written):
    assert yearless_ns(written, None) is None


def test_absl_prefix_gives_the_time_of_its_line():
    line = clean_line(b"2026-12-31T23:59:59.9Z I0101 00:00:00.250000 1234 train.py:1] words")
    assert line.text == b"words"
    assert line.app_ns == parse_rfc3339("2027-01-01T00:00:00.25Z")


@pytest.mark.parametrize(
    ("near", "years"),
    [("2027-01-01T00:00:00Z", (2026, 2027)), ("2024-12-31T00:00:00Z", (2024, 2025))],
)
def test_new_year_in_a_log_without_years_is_no_step_back(near, years):
    recorder = Recorder(LineCounter())
    written = (b"1231 23:59:50.000000", b"0101 00:00:10.000000", b"0301 00:00:00.000000")
    for number, each in enumerate(written, start=1):
        line = clean_line(b"I" + each + b" 1 train.py:1] x")
        recorder.step(line, number)
    times, _ = Clock([recorder], near_ns=parse_rfc3339(near)).steps(recorder)
    first, second = years
    assert list(times) == [
        parse_rfc3339(f"{first}-12-31T23:59:50Z"),
        parse_rfc3339(f"{second}-01-01T00:00:10Z"),
        parse_rfc3339(f"{second}-03-01T00:00:00Z"),
    ]

"""Against Google's ml-goodput-measurement, fed its log entries in memory: the same where both define alike.

Where they differ on purpose, the figures of both stand in `DIFFERENCES` and on the page of the docs.
"""

import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.events import TrainingEvent
from pytest_cre.measure.goodput import account, window_ratios
from tests.measure.generated import Life, Move, Plan, Told
from tests.measure.histories import data, events_of, ledger_s, measured, ns

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the packages that it brings
    library = pytest.importorskip(
        "ml_goodput_measurement.src.goodput",
        reason="needs ml-goodput-measurement: pip install -e '.[differential]'",
        exc_type=ImportError,
    )

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "differences-from-ml-goodput.md"
HISTORIES = {history["name"]: history for history in data("training-histories.yaml")["histories"]}
FIRST_S = 1_000_000.0  # the library takes a time of 0 for none
SAVE = ("wait_for_prev", "checkpointer_blocking", "get_old_steps", "checkpoint_manager_blocking")


def entries_of(
    events: list[TrainingEvent], *, in_flight: bool = False
) -> Iterator[dict[str, object]]:
    """Yield what a training loop would have recorded with the library.

    Steps count from 0 and are recorded when they start, after saves and evaluations. `in_flight`: the step that
    an abort interrupts was recorded as well.
    """

    def entry(**fields: object) -> dict[str, object]:
        return {"job_name": "train", **fields}

    def began(step: int, t_s: float) -> dict[str, object]:
        return entry(step_count=step, step_start_time=t_s)

    step, free_s, opened_s = 0, 0.0, 0.0
    started: dict[str, float] = {}
    is_initialising = is_ready = False
    for event in events:
        t_s = FIRST_S + (event.t_ns or 0) / 1e9
        match event.kind:
            case "proc_start":
                yield entry(job_start_time=t_s)
                yield entry(tpu_init_start_time=t_s)
                is_initialising, is_ready, free_s, opened_s = True, False, t_s, 0.0
            case "load_start" | "load_end":
                if is_initialising:
                    yield entry(tpu_init_end_time=t_s)
                    is_initialising = False
                if event.kind == "load_start":
                    opened_s = t_s
                    continue
                step, free_s, is_ready = event.step or 0, t_s, True
                if opened_s:
                    yield entry(
                        event_type="restore",
                        directory="gs://c",
                        step=step,
                        checkpoint_manager_start_time=opened_s,
                        checkpointer_duration_secs=t_s - opened_s,
                        checkpoint_manager_duration_secs=t_s - opened_s,
                    )
                opened_s = 0.0
            case "step":
                if is_initialising:  # no line tells when it was over
                    free_s = t_s - 1.0
                yield began((event.step or 0) - 1, free_s)
                step, free_s, is_initialising = event.step or 0, t_s, False
            case "save_start" | "eval_start":
                started[event.kind] = t_s
            case "save_unblock":
                begun_s = started["save_start"]
                yield entry(
                    event_type="save",
                    directory="gs://c",
                    step=event.step,
                    checkpoint_manager_blocking_start_time=begun_s,
                    **{f"{name}_duration_secs": t_s - begun_s for name in SAVE},
                )
                free_s = t_s
            case "eval_end":
                yield entry(
                    custom_badput_event_type="eval",
                    custom_badput_event_start_time=started["eval_start"],
                )
                yield entry(custom_badput_event_type="eval", custom_badput_event_end_time=t_s)
                free_s = t_s
            case "abort" if in_flight and is_ready:
                yield began(step, free_s)
            case "end":
                yield entry(job_end_time=t_s)


class Entries:
    """What stands in for the logging service."""

    def __init__(self, entries: list[dict[str, object]]) -> None:
        self.entries = entries

    def read_cloud_logging_entries(
        self,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        last_entry_info: object = None,
    ) -> tuple[list[dict[str, object]], tuple[datetime | None, str]]:
        def is_inside(entry: dict[str, object]) -> bool:
            at = library.get_timestamp_from_log_entry(entry)
            return (
                at is not None
                and (start_time is None or at > start_time)
                and (end_time is None or at <= end_time)
            )

        found = self.entries if start_time is None else [e for e in self.entries if is_inside(e)]
        return found, (datetime.now(UTC), "last")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The library's figures: seconds by kind of lost time, 0 left out."""

    goodput: float
    lost_s: Mapping[str, float]
    disruptions: int


def judged(entries: list[dict[str, object]]) -> Judged:
    with tempfile.TemporaryDirectory() as folder:
        calculator = library.GoodputCalculator("train", "log", Entries(entries), cache_dir=folder)
        percent, shares, _ = calculator.get_job_goodput(include_badput_breakdown=True)
    times = [float(e[k]) for e in entries for k in ("job_start_time", "job_end_time") if k in e]
    total_s = max(times) - min(times)
    flat = {
        kind.name: sum(value.values()) if isinstance(value, dict) else value
        for kind, value in shares.items()
    }
    return Judged(
        goodput=percent / 100,
        lost_s={name: share * total_s / 100 for name, share in flat.items() if abs(share) > 1e-9},
        disruptions=calculator._number_of_interruptions,
    )


def judged_window(events: list[TrainingEvent], start_s: float, end_s: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        calculator = library.GoodputCalculator(
            "train", "log", Entries(list(entries_of(events))), cache_dir=folder
        )
        bounds = (datetime.fromtimestamp(FIRST_S + t_s, UTC) for t_s in (start_s, end_s))
        return calculator.get_job_goodput_interval(*bounds)[0] / 100


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


millis = st.integers(1, 5000)


@st.composite
def alike(draw: st.DrawFn) -> Plan:
    """Draw a run that both define alike.

    Every restart resumes from the newest durable step, which is not 0; saves are synchronous; the first step of
    a process is not slower than the others; no evaluation or save stands in what is lost or after the last step
    but one; every process makes a save; the job ends right after its last one.
    """
    lives = []
    count = draw(st.integers(1, 4))
    for at in range(count):
        moves = [Move("run", steps=1)]
        is_last = at == count - 1
        saves = draw(st.integers(1, 3))
        for save in range(saves):
            extra = draw(st.sampled_from((0, 0, 300)))
            moves.append(Move("run", steps=draw(st.integers(1, 6)), extra=extra))
            if draw(st.booleans()) and not (is_last and save == saves - 1):
                moves.append(Move("eval", lasts=draw(millis)))
            moves.append(Move("save", lasts=draw(millis)))
        if not is_last and (lost := draw(st.integers(0, 5))):
            moves.append(Move("run", steps=lost))
        lives.append(
            Life(
                wait=draw(millis),
                init=draw(millis),
                load=draw(st.one_of(st.just(0), millis)),
                resume=0,
                moves=tuple(moves),
                tail=0 if is_last else draw(st.integers(0, 20_000)),
            )
        )
    return Plan(lives=tuple(lives), step=draw(st.sampled_from((250, 1000, 1333))), succeeds=True)


@settings(max_examples=60, derandomize=True, database=None)
@given(alike())
def test_library_and_ledger_agree_in_every_category_that_both_have(plan):
    told = Told(plan)
    events = [event for event in told.events if event.kind != "window_open"]
    run = told.account(events)
    ours = {name: t_ns / 1e9 for name, t_ns in run.ledger_ns.items()}
    found = judged(list(entries_of(events, in_flight=True)))
    assert found.goodput == pytest.approx(run.ratios["runtime"], abs=1e-6)
    assert found.disruptions == run.interruptions
    lost_steps_s = sum(row.lost_steps for row in run.attempts) * plan.step / 1000
    expected = {
        "TPU_INITIALIZATION": ours["init"],
        "UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME": ours["load"],
        "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME": ours["checkpoint_blocking"],
        "CUSTOM_BADPUT_EVENTS": ours["eval"],
        "WASTED_PROGRESS_FROM_DISRUPTION": lost_steps_s,
        # What was in flight counts as recovery there.
        "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": ours["rework"]
        - lost_steps_s
        + ours["hang"]
        + ours["reschedule"],
    }
    for name, lasted_s in expected.items():
        assert found.lost_s.get(name, 0) == pytest.approx(lasted_s, abs=1e-5), name
    assert found.lost_s.keys() <= expected.keys()
    assert ours["schedule"] == ours["warmup"] == ours["other"] == 0


@settings(max_examples=20, derandomize=True, database=None)
@given(st.integers(2, 40), st.integers(0, 30_000), st.sampled_from((250, 1000)))
def test_library_and_ledger_agree_on_a_slow_first_step(steps, slow, step):
    moves = (Move("run", steps=1, extra=slow), Move("run", steps=steps))
    life = Life(wait=0, init=5, load=0, resume=0, moves=moves, tail=0)
    told = Told(Plan(lives=(life,), step=step, succeeds=True))
    found = judged(list(entries_of(told.events)))
    run = told.account()
    assert found.goodput == pytest.approx(run.ratios["runtime"], abs=1e-6)
    assert found.lost_s.get("PROGRAM_STARTUP", 0) == pytest.approx(
        run.ledger_ns["warmup"] / 1e9, abs=1e-5
    )


@pytest.mark.parametrize(
    "name",
    [
        "clean-1000",
        "seed-all-reschedule",
        "seed-all-resume",
        "seed-split-40-20",
        "hang-600s-until-abort",
        "stall-recovered",
        "straggler-25pct",
        "missing-resume-line",
        "eval-interval",
        "seed-ledger-64gpu-24h",
        "success-no-final-save",
        "frequent-saves-sampled-60s",
    ],
)
def test_library_gives_the_runtime_ratio_of_an_exact_history(name):
    history = HISTORIES[name]
    found = judged(list(entries_of(events_of(history["script"]))))
    assert found.goodput == pytest.approx(history["ratios"]["runtime"], abs=1e-6)


# Name, library's figure, runtime ratio here.
DIFFERENCES = {
    "crash-right-after-save": (0.923077, 0.769231),
    "async-save-clean": (0.982906, 0.854701),
    "fallback-to-older-checkpoint": (0.537037, 0.555556),
    "counter-restarts-at-1-no-load-line": (0.441860, 0.465116),
    "slow-first-step": (0.513080, 0.512821),
    "seed-print-every-10": (0.076923, 0.769231),
}


def shown(history: str, theirs: float, ours: float) -> str:
    return f"| `{history}` | {theirs:.6f} | {ours:.6f} |"


@pytest.mark.parametrize("name", DIFFERENCES)
def test_known_difference_has_both_figures_here_and_on_the_page(name):
    theirs, ours = DIFFERENCES[name]
    history = HISTORIES[name]
    events = events_of(history["script"])
    assert judged(list(entries_of(events))).goodput == pytest.approx(theirs, abs=2e-6)
    assert account(events, LedgerParams(**history["params"])).ratios["runtime"] == pytest.approx(
        ours, abs=1e-6
    )
    assert shown(name, theirs, ours) in PAGE.read_text(encoding="utf-8")


def test_crash_before_the_first_save_has_no_wasted_steps_there():
    events = events_of(HISTORIES["crash-before-first-save"]["script"])
    found = judged(list(entries_of(events)))
    assert found.goodput == pytest.approx(0.454545, abs=1e-6)
    assert "WASTED_PROGRESS_FROM_DISRUPTION" not in found.lost_s
    assert found.lost_s["OTHER"] == pytest.approx(49)  # 50 with the step in flight
    assert account(events, LedgerParams(reference_step_s=1)).ledger_ns["rework"] == ns(50)


def test_evaluation_that_is_not_recorded_is_productive_there():
    events = events_of(HISTORIES["eval-interval"]["script"])
    unrecorded = [event for event in events if not event.kind.startswith("eval")]
    assert judged(list(entries_of(unrecorded))).goodput == pytest.approx(0.956522, abs=1e-6)
    assert account(events, LedgerParams(reference_step_s=1)).ratios["runtime"] == pytest.approx(
        0.869565, abs=1e-6
    )


def test_lines_more_sparse_than_saves_are_an_error_there():
    script = HISTORIES["seed-print-every-50"]["script"]
    with pytest.raises(ValueError, match="Productive training time is invalid"):
        judged(list(entries_of(events_of(script))))
    assert measured(script, log_interval=50).ratios["runtime"] == pytest.approx(0.769231, abs=1e-6)


def test_evaluation_after_the_last_step_is_productive_there():
    script = "start; ready 0; run 10; eval 5; end"
    assert judged(list(entries_of(events_of(script)))).goodput == 1
    assert measured(script).ratios["runtime"] == pytest.approx(10 / 15)


def test_failed_job_is_divided_by_the_time_until_somebody_asks_there():
    events = events_of(HISTORIES["final-failure-no-resume"]["script"])
    entries = list(entries_of(events))
    with tempfile.TemporaryDirectory() as folder:
        calculator = library.GoodputCalculator("train", "log", Entries(entries), cache_dir=folder)
        percent, _, _ = calculator.get_job_goodput()
    assert percent < 0.01  # decades later
    assert account(events, LedgerParams(reference_step_s=1)).ratios["runtime"] == 0.625


def test_process_that_dies_in_its_load_initialises_twice_there():
    script = "start; ready 0; run 10; save 1; run 5; crash; pass 5; start; pass 7; loading; pass 3; crash; pass 2; start; pass 7; ready 10; run 10; save 1; end"
    events = events_of(script)
    found = judged(list(entries_of(events, in_flight=True)))
    run = measured(script)
    assert found.goodput == pytest.approx(run.ratios["runtime"], abs=1e-6)
    assert (found.disruptions, run.interruptions) == (1, 2)
    assert sum(found.lost_s.values()) + found.goodput * 51 == pytest.approx(51 + 7)
    assert sum(ledger_s(run).values()) == 51


def test_second_restore_of_the_same_step_does_not_count_there():
    twice = "crash; start; load 4 10; run 5; "
    script = f"start; ready 0; run 10; save 1; run 5; {twice}crash; start; load 4 10; run 10; save 1; end"
    found = judged(list(entries_of(events_of(script), in_flight=True)))
    assert found.lost_s["UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME"] == pytest.approx(4)
    assert ledger_s(measured(script))["load"] == 8


@pytest.mark.parametrize(
    ("name", "start_s", "end_s", "theirs", "ours"),
    [
        ("hang-600s-until-abort", 100, 700, 1.0, 0.0),
        ("seed-split-40-20", 0, 300, 0.925424, 0.666667),
    ],
)
def test_window_is_divided_by_what_lies_between_entries_there(name, start_s, end_s, theirs, ours):
    events = events_of(HISTORIES[name]["script"])
    assert judged_window(events, start_s, end_s) == pytest.approx(theirs, abs=5e-3)
    window = window_ratios(
        account(events, LedgerParams(reference_step_s=1)), ns(start_s), ns(end_s)
    )
    assert window.ratios["ledger"] == pytest.approx(ours, abs=1e-6)


def test_window_without_entries_is_an_error_there():
    events = events_of(HISTORIES["hang-600s-until-abort"]["script"])
    with pytest.raises(ValueError, match="No log entries found"):
        judged_window(events, 200, 500)
    window = window_ratios(account(events, LedgerParams(reference_step_s=1)), ns(200), ns(500))
    assert window.ratios["ledger"] == 0

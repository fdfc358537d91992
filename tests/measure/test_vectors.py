"""Exact histories, with the figures that each definition gives for them, to 1e-8."""

from itertools import pairwise
from pathlib import Path

import pytest

from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.advice import (
    daly_interval_s,
    expected_ettr,
    wasted_per_failure_s,
    young_interval_s,
)
from pytest_cre.measure.event_file import read_event_file
from pytest_cre.measure.formula import FormulaTerms, formula_ratio
from pytest_cre.measure.goodput import account, window_ratios
from tests.measure.histories import SECOND, data, events_of, ledger_s, ns

TRAINING = data("training-histories.yaml")
HISTORIES = {history["name"]: history for history in TRAINING["histories"]}
EVENT_FILE = Path(__file__).parents[1] / "data" / "events.yaml"


@pytest.fixture(params=HISTORIES)
def history(request):
    return HISTORIES[request.param]


def accounted(history):
    return account(events_of(history["script"]), LedgerParams(**history["params"]))


def test_account_of_an_exact_history_gives_every_figure(history):
    run = accounted(history)
    assert ledger_s(run) == history["ledger_s"]
    assert run.window_ns == ns(history["window_s"]) == sum(run.ledger_ns.values())
    assert {name: getattr(run.terms, name) / SECOND for name in history["terms_s"]} == history[
        "terms_s"
    ]
    assert run.ratios == pytest.approx(history["ratios"], abs=1e-8)
    assert (run.executed_steps, run.useful_steps) == (
        history["steps"]["executed"],
        history["steps"]["useful"],
    )
    assert run.interruptions == run.summary.interruptions == history["interruptions"]
    assert run.ettr_with_queue == pytest.approx(history["ratios"]["runtime"], abs=1e-8)
    held = sum(run.gpu_hours.values())
    assert held == pytest.approx(history["gpu_hours"]["held"], abs=1e-8)
    assert held - run.gpu_hours["useful"] == pytest.approx(history["gpu_hours"]["lost"], abs=1e-8)


@pytest.mark.parametrize("name", ["seed-split-40-20", "straggler-25pct", "slow-first-step"])
def test_intervals_of_a_history_tile_its_window(name):
    run = accounted(HISTORIES[name])
    assert run.intervals[0].start_ns == run.start_ns
    assert run.intervals[-1].end_ns == run.end_ns
    for before, after in pairwise(run.intervals):
        assert before.end_ns == after.start_ns
        assert before.start_ns < before.end_ns


@pytest.mark.parametrize("terms", TRAINING["formula"], ids=str)
def test_formula_ratio_is_exact(terms):
    *seconds, expected = terms
    t_w, t_ch, t_rm, t_re, t_save = (ns(s) for s in seconds)
    ratio = formula_ratio(FormulaTerms(t_w=t_w, t_ch=t_ch, t_rm=t_rm, t_re=t_re, t_save=t_save))
    assert ratio is None if expected is None else ratio == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    "windows", TRAINING["windows"], ids=lambda w: f"{w['history']}-{len(w['rows'])}"
)
def test_window_ratios_know_the_whole_run(windows):
    run = accounted(HISTORIES[windows["history"]])
    for start_s, end_s, useful_s, ratio in windows["rows"]:
        window = window_ratios(run, ns(start_s), ns(end_s))
        assert window.ledger_ns["useful"] == ns(useful_s)
        assert window.ratios["ledger"] == pytest.approx(ratio, abs=1e-8)
        assert sum(window.ledger_ns.values()) == ns(end_s - start_s)


def test_ettr_with_queue_counts_the_wait_as_held():
    run = account(events_of("open; start; ready 0; run 100; end"), LedgerParams(queue_s=100))
    assert run.ratios["runtime"] == 1
    assert run.ettr_with_queue == 0.5


def test_intervals_by_young_and_daly_are_the_published_ones():
    assert young_interval_s(10, 650) == pytest.approx(114.01754251, abs=1e-8)
    assert daly_interval_s(10, 650) == pytest.approx(107.448326734, abs=1e-8)
    assert daly_interval_s(100, 50) == 50


@pytest.mark.parametrize(
    ("mtbf_s", "restart_s", "interval_s", "blocking_s", "expected"),
    [
        (86400 / (2048 * 0.0065), 300, 300, 0, 0.930666667),
        (86400 / (2048 * 0.0065), 300, 3600, 0, 0.676444444),
        (650, 60, 100, 10, 0.755244755),
    ],
)
def test_expected_ettr_is_the_closed_form(mtbf_s, restart_s, interval_s, blocking_s, expected):
    ettr = expected_ettr(
        mtbf_s=mtbf_s, restart_s=restart_s, interval_s=interval_s, blocking_s=blocking_s
    )
    assert ettr == pytest.approx(expected, abs=1e-8)


def test_wasted_per_failure_is_write_half_interval_and_read():
    assert wasted_per_failure_s(blocking_s=10, interval_s=100, retrieval_s=60) == 120


def test_event_file_of_several_sequences_gives_the_same_accounts():
    sequences = read_event_file(EVENT_FILE.read_text(encoding="utf-8"), "events.yaml")
    assert [name for name, _, _ in sequences] == [
        "crash-right-after-save",
        "async-save-clean",
        "no-steps-at-all",
    ]
    for name, events, params in sequences:
        expected = HISTORIES[name]
        run = account(events, params)
        assert ledger_s(run) == expected["ledger_s"]
        assert run.ratios == pytest.approx(expected["ratios"], abs=1e-8)

"""The exact histories as Megatron logs, read back."""

import pytest

from pytest_cre.measure.account import LedgerParams
from tests.measure.histories import data, events_of
from tests.measure.megatron import read_back, seconds

HISTORIES = {h["name"]: h for h in data("training-histories.yaml")["histories"]}


@pytest.mark.parametrize("name", HISTORIES)
def test_history_written_as_a_log_gives_the_same_ledger_and_ratios(name):
    history = HISTORIES[name]
    read = read_back(events_of(history["script"]), LedgerParams(**history["params"]))
    assert seconds(read) == pytest.approx(history["ledger_s"], abs=1e-6)
    assert read.ratios == pytest.approx(history["ratios"], abs=1e-8)
    assert read.summary.interruptions == history["interruptions"]
    assert read.window_s == history["window_s"]
    assert sum(read.ledger_s.values()) == pytest.approx(read.window_s, abs=1e-9)

"""Every failure mode keeps the seconds that were written down for it."""

import pytest

from tests import modes


@pytest.mark.parametrize("mode", modes.MODES, ids=lambda mode: f"{mode.number:02d}")
def test_mode_has_its_ledger_and_flags(mode):
    run = mode.run()
    assert modes.seconds(run) == pytest.approx(mode.ledger_s, abs=1e-6)
    assert run.flags == tuple(sorted(mode.flags))
    for path, expected in mode.figures.items():
        assert modes.figure(run, path) == (
            expected if expected is None else pytest.approx(expected)
        )


def test_modes_are_all_thirty_six():
    assert sorted(mode.number for mode in modes.MODES) == list(range(1, 37))


def test_modes_are_printed_with_their_seconds(capsys, monkeypatch):
    monkeypatch.setattr(modes, "MODES", [m for m in modes.MODES if m.number in (20, 36)])
    modes.main()
    assert capsys.readouterr().out == (
        "20  a hang, seen while it lasts\n"
        "    useful 150  rework 1  hang 600  checkpoint_blocking 10\n"
        "36  the save of the last step is never confirmed\n"
        "    useful 200  checkpoint_blocking 12  [last_steps_not_durable, save_unconfirmed]\n"
    )

import os
import signal
import threading

import pytest

from pytest_cre.interrupt import INTERRUPTS, QUIET_S, turn_signals_into_interrupts


@pytest.fixture(autouse=True)
def handled():
    former = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    restore = turn_signals_into_interrupts()
    yield restore
    INTERRUPTS.reset()
    restore()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, former)


def send(number=signal.SIGINT):
    signal.raise_signal(number)


def state():
    return INTERRUPTS.count, INTERRUPTS.is_hastened, INTERRUPTS.is_given_up


def test_first_is_raised_the_second_hastens_and_the_third_waits_for_nothing():
    with pytest.raises(KeyboardInterrupt):
        send()
    assert state() == (1, False, False)
    send()
    assert state() == (2, True, False)
    send(signal.SIGTERM)
    assert state() == (3, True, True)


def test_other_signals_are_named():
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        send(signal.SIGTERM)


def test_none_is_raised_while_reports_are_written():
    INTERRUPTS.be_quiet()
    send()

    assert state() == (1, False, False)


def test_what_hangs_for_long_can_be_interrupted_again(monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        send()
    monkeypatch.setattr("pytest_cre.interrupt.QUIET_S", -1.0)

    with pytest.raises(KeyboardInterrupt):
        send()
    assert QUIET_S >= 60


def test_next_is_the_first_again_after_a_reset():
    with pytest.raises(KeyboardInterrupt):
        send()
    INTERRUPTS.reset()

    with pytest.raises(KeyboardInterrupt):
        send()


def test_end_of_pytest_after_an_interrupt_is_not_disturbed_by_another(handled, monkeypatch):
    at_exit = []
    monkeypatch.setattr("atexit.register", lambda *call: at_exit.append(call))
    with pytest.raises(KeyboardInterrupt):
        send()
    handled()
    send()

    assert INTERRUPTS.count == 2
    assert (signal.signal, signal.SIGINT, signal.SIG_IGN) in at_exit


def test_other_threads_change_no_handler():
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=turn_signals_into_interrupts)
    thread.start()
    thread.join()

    assert signal.getsignal(signal.SIGINT) is before


def test_ignored_ctrl_c_of_a_background_job_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    restore = turn_signals_into_interrupts()
    try:
        os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        restore()
        signal.signal(signal.SIGINT, signal.default_int_handler)

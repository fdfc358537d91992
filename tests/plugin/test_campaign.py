"""One run against one cluster: what it says while it waits, and how an interrupt ends it."""

import os
import signal
import threading
from types import SimpleNamespace

import pytest

from pytest_cre import campaign
from pytest_cre.campaign import Campaign
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.news import TerminalNews
from pytest_cre.options import Settings
from pytest_cre.seat import Seat

CASE = SimpleNamespace(entry=SimpleNamespace(name="communication/nccl-all-reduce"))


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=(shipped_suites(),), profiles=(shipped_profiles(),))


@pytest.fixture
def told():
    return []


@pytest.fixture
def make(catalog, told, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def make_it(work=None, **settings):
        if work is not None:

            def run(self, *given):
                work(self, next(each for each in given if isinstance(each, threading.Event)))

            monkeypatch.setattr(Campaign, "_run", run)
        news = TerminalNews(told.append)
        return Campaign(Settings(cluster="kubernetes", **settings), catalog, news, Seat.new())

    return make_it


def test_interrupt_is_raised_only_after_the_clean_up(make):
    running, ticker, steps = threading.Event(), threading.Event(), []

    def work(_, stop):
        running.set()
        stop.wait(10)
        ticker.wait(0.3)
        steps.append("cleaned up")

    def interrupt():
        running.wait(10)
        ticker.wait(0.1)  # let the main thread come to its waiting
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        make(work).run(CASE, lambda _: None, None)

    assert steps == ["cleaned up"]


def test_cluster_that_falls_silent_is_told_once_with_problem_and_patience(
    make, told, slow, monkeypatch
):
    monkeypatch.setattr(campaign, "SILENCE_S", 0.3)
    pid = slow.cluster.pid
    wake = threading.Timer(1.5, os.kill, (pid, signal.SIGCONT))

    def work(run, _):
        client = run.client
        os.kill(pid, signal.SIGSTOP)
        wake.start()
        client.version()

    make(work, kubeconfig=str(slow.cluster.kubeconfig)).run(CASE, lambda _: None, None)
    wake.join()

    (line,) = told
    assert line.startswith(f"{slow.client.server}: does not answer; no answer for ")
    assert line.endswith("each request is tried again for 300 s")


def test_cluster_that_answers_is_not_told(make, told, slow, monkeypatch):
    monkeypatch.setattr(campaign, "SILENCE_S", 5.0)
    make(lambda run, _: run.client.version(), kubeconfig=str(slow.cluster.kubeconfig)).run(
        CASE, lambda _: None, None
    )

    assert told == []

"""A few schedules of the campaign, and proof that it notices a harness that does not look."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import get_args

import pytest

from pytest_cre.simulator.apifaults import ApiAction
from pytest_cre.simulator.faults import Action
from tests.campaign.clusters import Clusters
from tests.campaign.kinds import KINDS
from tests.campaign.mutations import without
from tests.campaign.playing import play
from tests.campaign.schedules import BURN_IN, draw_schedule
from tests.campaign.series import play_series, report_lines

# Faults leave connections that nobody closes; they end with the process.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_twenty_random_schedules_break_no_rule(tmp_path):
    every_fourth_kind = range(0, 80, 4)
    series = play_series(every_fourth_kind, seed=7, workers=8, folder=tmp_path)

    assert series.broken == [], "\n".join(report_lines(series))


def test_same_seed_draws_the_same_schedule_and_every_kind_comes_first_once():
    numbers = range(len(KINDS))
    assert draw_schedule(3, 5) == draw_schedule(3, 5)
    assert draw_schedule(3, 5) != draw_schedule(4, 5)
    assert [draw_schedule(1, number).kinds[0] for number in numbers] == list(KINDS)


@pytest.mark.parametrize(("where", "known"), [("faults", Action), ("apiFaults", ApiAction)])
def test_every_fault_that_the_simulator_knows_is_drawn(where, known):
    drawn = {kind.action for kind in KINDS.values() if kind.where == where}

    assert drawn == set(get_args(known))


def test_kinds_that_do_not_show_together_are_not_planted_together():
    for number in range(1000):
        schedule = draw_schedule(1, number)
        planted = [KINDS[name] for name in schedule.kinds]
        for kind in planted:
            assert any(fnmatchcase(schedule.entry, each) for each in kind.entries), schedule
            scale = {"one": "intra-node", "several": "full-scale"}.get(kind.nodes)
            assert scale in (None, schedule.scale), schedule


def test_harmless_fault_lets_every_domain_pass(tmp_path):
    name, domains = "unknown-fields", ("communication", "compute", "diagnostics", "training")
    schedules = [
        draw_schedule(1, number, {name: replace(KINDS[name], entries=(f"{domain}/*",))})
        for number, domain in enumerate(domains)
    ]
    # Its goodput is one of real time: a slow start on a busy machine must not matter.
    schedules[-1] = replace(schedules[-1], options={"maxSteps": "60"})
    with Clusters() as clusters, ThreadPoolExecutor(len(domains)) as pool:
        jobs = [
            pool.submit(play, clusters, each, tmp_path / str(each.number)) for each in schedules
        ]
        outcomes = [(job.result().code, job.result().text) for job in jobs]

    assert [schedule.entry.split("/")[0] for schedule in schedules] == list(domains)
    assert outcomes == [("pass", "")] * len(domains)


ALL_REDUCE, TRAINING = "communication/nccl-all-reduce", "training/nemotron5-8b"


def planned(entry, *stanzas, table_s=0.5):
    """Return a schedule on one node with these faults and no others."""
    schedule = draw_schedule(1, 0)
    scenario = json.loads(schedule.scenario) | {"apiFaults": [], "faults": [*stanzas]}
    scenario["nodes"][0]["count"] = 1
    scenario["tableTime"] = table_s
    options = {
        ALL_REDUCE: {"minBytes": "16G", "stepFactor": "2", "numIterations": "20", "numCycles": "9"},
        BURN_IN: {"numSamples": "8"},
        TRAINING: {"maxSteps": "60"},
    }
    return replace(
        schedule,
        scenario=json.dumps(scenario),
        entry=entry,
        scale="intra-node",
        options=options[entry],
        kinds=(),
    )


QUIT = {"action": "crash", "exitCode": 0, "message": "bye", "after": {"seconds": 0.9}}
# The stream falls silent, and what comes before the next one is lost.
LOST_IN_SILENCE = (
    {"action": "log-stuck", "after": {"seconds": 0.6}},
    {"action": "log-lose", "after": {"seconds": 1.1}},
)
# All that was written before the log can be read for the first time is lost.
LOST_UNREAD = (
    {"action": "log-lose", "after": {"step": 6}},
    {"action": "log-refuse", "code": 500, "reads": 5},
)


@pytest.mark.parametrize(
    ("check", "schedule", "words"),
    [
        ("footer", planned(ALL_REDUCE, QUIT, table_s=1.5), "passed in spite of crash"),
        ("log-gap", planned(ALL_REDUCE, *LOST_IN_SILENCE, table_s=1.5), "called whole"),
        ("header", planned(BURN_IN, *LOST_UNREAD), "passed otherwise than with the whole logs"),
        ("start", planned(TRAINING, *LOST_UNREAD), "without the beginning of the training"),
    ],
    ids=["footer", "log-gap", "header", "start"],
)
def test_harness_that_does_not_look_is_caught(tmp_path, check, schedule, words):
    caught = False
    with Clusters() as clusters:
        for number in range(5):  # on a busy machine a fault may strike a moment too late
            sound = play(clusters, schedule, tmp_path / f"sound-{number}")
            assert sound.broken == []
            assert sound.code != "pass"
            with without(check):
                blind = play(clusters, schedule, tmp_path / f"blind-{number}")
            caught = any(words in each for each in blind.broken)
            if caught:
                break
    assert caught, (blind.code, blind.text)

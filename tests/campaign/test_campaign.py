"""A few schedules of the campaign, and proof that it notices a harness that does not look."""

import json
from dataclasses import replace

import pytest

from tests.campaign.clusters import Clusters
from tests.campaign.mutations import without
from tests.campaign.playing import play
from tests.campaign.schedules import KINDS, draw_schedule
from tests.campaign.series import play_series, report_lines

# Faults leave connections that nobody closes; they end with the process.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_twenty_random_schedules_break_no_rule(tmp_path):
    series = play_series(range(20), seed=7, workers=8, folder=tmp_path)

    assert series.broken == [], "\n".join(report_lines(series))


def test_same_seed_draws_the_same_schedule_and_every_kind_comes_first_once():
    numbers = range(len(KINDS))
    assert draw_schedule(3, 5) == draw_schedule(3, 5)
    assert draw_schedule(3, 5) != draw_schedule(4, 5)
    assert [draw_schedule(1, number).kinds[0] for number in numbers] == list(KINDS)


def planned(entry, *stanzas, **options):
    """Return a schedule on one node with these faults and no others."""
    schedule = draw_schedule(1, 0)
    scenario = json.loads(schedule.scenario) | {"apiFaults": [], "faults": [*stanzas]}
    scenario["nodes"][0]["count"] = 1
    options = {"minBytes": "16G", "numCycles": "9", **options}
    return replace(
        schedule,
        scenario=json.dumps(scenario),
        entry=entry,
        scale="intra-node",
        options=options,
        kinds=(),
    )


QUIT = {"action": "crash", "exitCode": 0, "message": "bye", "after": {"seconds": 0.3}}
LOSE = {"action": "log-lose", "after": {"seconds": 0.22}}


@pytest.mark.parametrize(
    ("check", "stanza", "words"),
    [("footer", QUIT, "passed in spite of crash"), ("log-gap", LOSE, "called whole")],
)
def test_harness_that_does_not_look_is_caught(tmp_path, check, stanza, words):
    schedule = planned("communication/nccl-all-reduce", stanza)
    if check == "log-gap":
        scenario = json.loads(schedule.scenario)
        flood = {"action": "log-burst", "lines": 20_000, "after": {"seconds": 0.2}}
        # The stream breaks within the flood, and what comes before the next one is lost.
        scenario["faults"] += [flood, {"action": "log-reset", "reads": 1}]
        schedule = replace(schedule, scenario=json.dumps(scenario))
    with Clusters() as clusters:
        sound = play(clusters, schedule, tmp_path / "sound")
        with without(check):
            blind = play(clusters, schedule, tmp_path / "blind")

    assert sound.broken == []
    assert sound.code != "pass"
    assert any(words in each for each in blind.broken), (blind.code, blind.text)

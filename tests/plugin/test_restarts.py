"""A training that ends early goes on from its checkpoint, on simulated nodes; the ledger charges it."""

import json

import pytest

STEP_S = 0.06  # of the simulated H100; a line is printed every 10 steps, a checkpoint saved at 25
SCENARIO = """\
extends: h100-2
faults:
- match: {entry: training/*}
  after: {step: AFTER}
  action: ACTION
  times: TIMES
limits:
- {metric: goodput, operator: ">=", value: LIMIT, unit: ratio, entry: training/*, statistic: value, date: "2026-11-30"}
"""
# Silence is borne for two minutes; here for a moment.
IMPATIENT = """\
from pytest_cre.lookout import Lookout

Lookout.__init__.__kwdefaults__["grace_s"] = 0.5
"""


@pytest.fixture
def train(certify, tmp_path):
    def run(after, action, times, *arguments, limit=0.1):
        text = SCENARIO.replace("AFTER", str(after)).replace("ACTION", action)
        text = text.replace("TIMES", str(times)).replace("LIMIT", str(limit))
        (tmp_path / "scenario.yaml").write_text(text)
        (tmp_path / "impatient.py").write_text(IMPATIENT)
        done = certify(
            *("--pyargs", "pytest_cre.suites", "-k", "nemotron5-8b", "-p", "impatient"),
            *("--cre-scenario=scenario.yaml", "--cre-evidence=evidence"),
            *arguments,
        )
        (item,) = done.json()["items"]
        assert certify.rejudged() == (tmp_path / "r.json").read_text()
        return done, item, item["groups"][0]

    return run


def seconds(group, category):
    return group["figures"][f"ledger_{category}"]["value"]


def test_training_that_crashes_after_a_save_goes_on_and_its_lost_steps_are_charged(train):
    done, item, group = train(38, "crash", 2, "--cre-option=enableCheckpoint=true")

    assert (done.code, item["code"]) == (0, "pass")
    assert (group["restarts"], group["figures"]["interruptions"]["value"]) == (1, 1)
    assert group["figures"]["highest_step"]["value"] == 50
    (warning,) = [each for each in group["warnings"] if each.startswith("restarted")]
    assert warning.startswith("restarted from the checkpoint of step 25 (restart 1 of 1) after: ")
    assert "ended with exit code 1" in warning
    assert "restarted from the checkpoint of step 25" in done.output
    # Steps 26 to 30 were printed and lost. What came after the last line counts up to ten steps; the
    # API tells the exit to the second only.
    assert 5 * STEP_S * 0.9 < seconds(group, "rework") < 15 * STEP_S * 1.1
    assert seconds(group, "useful") < 50 * STEP_S * 1.1
    ledger = [
        each["value"] for name, each in group["figures"].items() if name.startswith("ledger_")
    ]
    assert sum(ledger) == pytest.approx(group["figures"]["window"]["value"])
    xml = (done.folder / "r.xml").read_text()
    assert '<property name="cre.restarts" value="1"' in xml
    logs = sorted((done.folder / "evidence").rglob("*.log"))
    assert len(logs) == 4  # of two pods in each of two lives
    spec = json.loads(next((done.folder / "evidence").rglob("spec.json")).read_text())
    assert [each["kind"] for each in spec] == ["PersistentVolumeClaim", "Service", "Job"]
    assert not item["reasons"]


def test_training_that_crashes_before_its_first_save_is_not_restarted_and_fails(train):
    done, item, group = train(14, "crash", 2, "--cre-option=enableCheckpoint=true")

    assert (done.code, item["code"], group["restarts"]) == (1, "fail", 0)
    assert "not restarted: the logs prove no checkpoint" in group["reasons"]
    assert seconds(group, "useful") == 0.0


def test_stalled_training_goes_on_from_its_checkpoint_and_fails_by_its_ledger(train):
    done, item, group = train(38, "hang", 1, "--cre-option=enableCheckpoint=true", limit=0.75)

    assert (done.code, item["code"], group["restarts"]) == (1, "fail", 1)
    assert "below the simulated h100 limit 0.75" in item["text"].splitlines()[0]
    (warning,) = [each for each in group["warnings"] if each.startswith("restarted")]
    assert warning.endswith("after: stalled: the workload makes no progress any more")
    # It is looked at every 5 s; from the last line on, at most ten steps count as under way.
    assert seconds(group, "hang") > 2.0
    assert seconds(group, "rework") <= 15 * STEP_S * 1.1

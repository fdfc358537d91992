"""What a run may cost: what does not fit is never started, and the run is not green for it."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.home import home_in
from tests.warm.runs import run_pytest


def certify(folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], dict]:
    asked = ("--pyargs", "pytest_cre.suites", "-m", "certification", "-p", "no:cacheprovider")
    files = ("--cre-json=r.json", "--cre-scenario=h100-2")
    done = run_pytest([*asked, *files, *arguments], cwd=folder, env=home_in(folder))
    path = folder / "r.json"
    return done, json.loads(path.read_text()) if path.exists() else {}


@pytest.mark.parametrize("option", ["--cre-deadline=5m", "--cre-gpu-minutes=30"])
def test_entry_that_costs_more_than_the_run_may_is_unmet_and_the_run_incomplete(tmp_path, option):
    # 12 minutes on 16 GPUs.
    done, report = certify(tmp_path, "-k", "nccl-all-reduce and not intra", option)

    [item] = report["items"]
    assert (done.returncode, report["result"], item["code"]) == (10, "INCOMPLETE", "unmet")
    assert option.partition("=")[0] in item["text"]
    assert item["groups"] == []


def test_run_that_fits_its_bounds_is_not_touched_by_them(tmp_path):
    done, report = certify(
        tmp_path,
        *("-k", "nccl-all-reduce and not intra", "--cre-option", "minBytes=1G"),
        *("--cre-deadline=1h", "--cre-gpu-minutes=1000"),
    )

    assert (done.returncode, [item["code"] for item in report["items"]]) == (0, ["pass"])
    assert report["settings"]["deadline_s"] == 3600


def test_deadline_that_passes_while_an_entry_runs_ends_it_inconclusive(tmp_path):
    (tmp_path / "own/mine").mkdir(parents=True)
    (tmp_path / "own/mine/long.yaml").write_text(
        "extends: training/nemotron5-8b\ndescription: longer than it says\ncost: 1s\n"
    )
    done, report = certify(
        tmp_path,
        *("-k", "test_entry", "--cre-catalog=own", "--cre-option", "maxSteps=100000"),
        "--cre-deadline=15s",
    )

    [item] = report["items"]
    assert (done.returncode, item["code"]) == (1, "inconclusive")
    assert "the run's deadline has passed (--cre-deadline)" in item["text"]
    assert report["leftovers"] == []


@pytest.mark.parametrize("value", ["soon", "0s", "-5m"])
def test_deadline_that_is_none_is_a_usage_error(tmp_path, value):
    done, _ = certify(tmp_path, f"--cre-deadline={value}")

    assert done.returncode == 4
    assert "--cre-deadline" in done.stdout

"""Evidence of a run judged again: the same bytes, other limits, killed runs, damage."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_cre.cli import main
from pytest_cre.evidence.manifest import sealed

SUITES = ("--pyargs", "pytest_cre.suites")
CERTIFY = (*SUITES, "--cre-evidence=evidence")
SMALL = ("--cre-option", "maxBytes=64M", "--cre-option", "numIterations=2")


class Again(NamedTuple):
    code: int
    stdout: str
    stderr: str


@pytest.fixture
def rejudge(capsys, monkeypatch):
    """Run the command in a folder; return its exit code and what it wrote."""

    def run(folder, *arguments):
        monkeypatch.chdir(folder)
        code = main(["rejudge", *arguments])
        return Again(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module", params=["h100-2", "slow-node"])
def finished(request, tmp_path_factory, certify_in) -> tuple[Path, int]:
    certify = certify_in(tmp_path_factory.mktemp(request.param))
    done = certify(*CERTIFY, "--cre-scenario", request.param, "-k", "nccl-all-reduce", *SMALL)
    return done.folder, done.code


def test_rejudge_gives_the_bytes_and_the_exit_code_of_the_run(finished, certify_in):
    folder, code = finished

    # in an interpreter of its own: with other hashes, the order of sets is another one
    again = subprocess.run(
        [sys.executable, "-m", "pytest_cre.cli", "rejudge", "evidence", "--format", "json"],
        cwd=folder,
        env=certify_in(folder).environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert again.stdout == (folder / "r.json").read_text()
    assert again.returncode == code
    assert code in (0, 1)


def test_rejudge_as_text_ends_with_the_result(rejudge, finished):
    folder, _ = finished

    again = rejudge(folder, "evidence")

    result = json.loads((folder / "r.json").read_text())["result"]
    assert again.stdout.splitlines()[-1].startswith(f"certification {result}: ")


def test_rejudge_with_a_raised_limit_fails_the_entry_that_it_is_for(rejudge, finished, tmp_path):
    folder, _ = finished
    shutil.copytree(folder / "evidence", tmp_path / "evidence")
    manifest = json.loads((tmp_path / "evidence/run.json").read_text())
    for node, text in manifest["simulated_limits"].items():
        limits = json.loads(text)
        for limit in limits:
            if limit.get("maxNodes") == 1 and limit["metric"] == "busbw":
                limit["value"] = 999
        manifest["simulated_limits"][node] = json.dumps(limits)
    (tmp_path / "evidence/run.json").write_text(json.dumps(manifest))
    refused = rejudge(tmp_path, "evidence", "--format", "json")
    assert refused.code == 3
    assert "run.json: was changed after the run (checksum differs)" in refused.stderr
    (tmp_path / "evidence/run.json").write_text(json.dumps(sealed(manifest)))

    again = rejudge(tmp_path, "evidence", "--format", "json")

    assert (again.stderr, again.code) == ("", 1)
    before = {item["node_id"]: item for item in manifest["report"]["items"]}
    after = {item["node_id"]: item for item in json.loads(again.stdout)["items"]}
    changed = {name for name in after if after[name] != before[name]}
    assert [after[name]["scale"] for name in changed] == ["intra-node"]
    [text] = [after[name]["text"] for name in changed]
    assert "below the simulated h100 limit 999 GB/s" in text.splitlines()[0]


SITE_LIMITS = """\
architecture: h100
limits:
- {metric: busbw, operator: ">=", value: 9999, unit: GB/s, statistic: max, entry: communication/nccl-all-reduce,
   scale: full-scale, tier: site, source: ours, date: "2026-01-31"}
"""


def test_rejudge_by_limits_of_a_site_judges_simulated_nodes_only_where_that_is_asked_for(
    rejudge, finished, tmp_path
):
    folder, code = finished
    limits = tmp_path / "profiles/limits/site.yaml"
    limits.parent.mkdir(parents=True)
    limits.write_text(SITE_LIMITS)
    given = ("evidence", "--profiles", str(tmp_path / "profiles"), "--format", "json")

    plain = rejudge(folder, *given)
    asked = rejudge(folder, *given, "--simulated-by", "published")

    assert plain.code == code
    assert plain.stderr.startswith("pytest-cre rejudge: the nodes are simulated and judged by")
    assert (asked.code, asked.stderr) == (1, "")
    items = {item["scale"]: item for item in json.loads(asked.stdout)["items"]}
    assert items["full-scale"]["code"] == "fail"
    assert "below the site h100 limit 9999 GB/s" in items["full-scale"]["text"].splitlines()[0]


def test_rejudge_of_changed_evidence_is_refused_in_one_line(rejudge, finished):
    folder, _ = finished
    log = next((folder / "evidence").rglob("*.log"))
    kept = log.read_bytes()
    log.write_bytes(kept.replace(b"1", b"9"))
    try:
        again = rejudge(folder, "evidence")
    finally:
        log.write_bytes(kept)

    assert again.code == 3
    assert "was changed after the run" in again.stderr
    assert again.stderr.count("\n") == 1


def test_rejudge_of_a_folder_without_evidence_says_so(rejudge, tmp_path):
    again = rejudge(tmp_path, str(tmp_path))

    assert again.code == 3
    assert "holds no run.json" in again.stderr


def test_rejudge_of_a_killed_run_is_inconclusive_with_the_figures_so_far(
    rejudge, certify, tmp_path
):
    files = [tmp_path / name for name in ("killed.json", "killed.xml", "killed.html")]
    for file in files:
        file.write_text("PASSED, says an earlier run")
    options = ("--cre-json", "--cre-junit", "--cre-html")
    told = [f"{option}={file}" for option, file in zip(options, files, strict=True)]
    training = ("-k", "nemotron5-8b", "--cre-option", "maxSteps=100000")
    running = certify.start(*CERTIFY, "--cre-scenario", "h100-2", *training, *told)
    try:
        deadline = time.monotonic() + 60
        while not any(
            log.read_bytes().count(b" iteration ") > 20 for log in tmp_path.rglob("*.log")
        ):
            assert running.poll() is None
            assert time.monotonic() < deadline, "no log reached the disk"
            time.sleep(0.1)
    finally:
        running.kill()
        running.communicate()

    assert not any("PASSED" in file.read_text() for file in files)
    unfinished = json.loads(files[0].read_text())
    assert (unfinished["result"], unfinished["items"]) == ("INCOMPLETE", [])

    again = rejudge(tmp_path, "evidence", "--format", "json")

    report = json.loads(again.stdout)
    [item] = report["items"]
    assert (item["code"], report["result"], again.code) == ("inconclusive", "FAILED", 1)
    assert any("the run was killed" in reason for reason in item["groups"][0]["reasons"])
    assert item["groups"][0]["figures"]["step_time"]["value"] > 0

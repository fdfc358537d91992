"""A run on the embedded cluster, saved as a recording, and the run that replays it."""

import json

import pytest

SUITES = ("--pyargs", "pytest_cre.suites")
CHOSEN = ("-k", "nccl-all-reduce or nemotron5-8b or dcgm-level1 or gemm")
SMALL = ("--cre-option", "maxBytes=64M", "--cre-option", "numIterations=2")
# The API tells times in whole seconds, so what depends on a Job's length is not the same twice.
BY_THE_CLOCK = ("goodput", "window", "ledger_", "throughput_fraction")


def told(report):
    """Return every figure of a run that does not depend on when pods started."""
    found = {}
    for item in report["items"]:
        for group in item["groups"]:
            place = (item["entry"], item["scale"], group["group"])
            for check in group["checks"]:
                found[*place, check["metric"], check["limit"]] = check["measured"]
            for name, figure in group["figures"].items():
                found[*place, name] = figure["value"]
    return {key: value for key, value in found.items() if not str(key[3]).startswith(BY_THE_CLOCK)}


@pytest.fixture(scope="module")
def replayed(certify_in, tmp_path_factory):
    """The report of a run, and that of its replay."""
    first = certify_in(tmp_path_factory.mktemp("first"))
    second = certify_in(tmp_path_factory.mktemp("second"))
    scenario = ("--cre-scenario", "h100-2", "--cre-save-recording", "rec", "--cre-html=r.html")
    ran = first(*SUITES, *CHOSEN, *scenario)
    assert ran.json()["result"] == "PASSED", ran.output
    recorded = f"--cre-scenario={first.folder}/rec/scenario.yaml"
    again = second(*SUITES, *CHOSEN, recorded)
    return ran, again


def test_replay_gives_the_same_figures_and_verdicts(replayed):
    figures, again = (told(run.json()) for run in replayed)
    assert len(figures) > 40
    assert again == figures
    # A short training's clock may be too coarse to be sure of, on a machine that is busy.
    verdicts = {item["entry"]: item["code"] for item in replayed[1].json()["items"]}
    assert verdicts.pop("training/nemotron5-8b") in ("pass", "inconclusive")
    assert set(verdicts.values()) == {"pass"}


def test_recording_has_no_name_of_the_run(replayed):
    ran, _ = replayed
    folder = ran.folder / "rec"
    text = "".join(path.read_text() for path in folder.rglob("*.*") if path.is_file())
    assert [name for name in ("h100-0", "h100-1", ran.json()["run_id"]) if name in text] == []
    assert "node-0" in text


def test_evidence_was_kept_only_for_the_recording(replayed):
    ran, _ = replayed
    assert {item["evidence"] for item in ran.json()["items"]} == {None}
    assert not list(ran.folder.rglob("workflow.json"))


def test_page_is_written_too(replayed):
    ran, _ = replayed
    page = (ran.folder / "r.html").read_text()
    assert "certification PASSED: 5 passed" in page
    assert "simulated hardware, not a certification" in page


def test_replay_of_what_was_not_recorded_fails_and_says_so(certify, replayed):
    ran, _ = replayed
    scenario = f"--cre-scenario={ran.folder}/rec/scenario.yaml"
    done = certify(*SUITES, "-k", "nccl-all-gather and not intra-node", *SMALL, scenario)
    assert done.code == 1
    assert "no recording of the scenario matches this container" in done.output
    (item,) = done.json()["items"]
    assert item["code"] == "fail"


def test_recording_that_fits_nothing_is_told_where_figures_are_generated(certify, tmp_path):
    (tmp_path / "a.log").write_text("# table\n")
    (tmp_path / "s.yaml").write_text(
        "extends: h100-2\nrecordings: [{match: {entry: communcation/*}, file: a.log}]\n"
    )
    chosen = ("-k", "nccl-all-reduce and not intra-node", "--cre-scenario", "s.yaml")
    done = certify(*SUITES, *SMALL, *chosen)
    words = "no recording of the scenario matches this container, so its output is generated"
    (item,) = done.json()["items"]
    assert item["groups"][0]["warnings"] == [f"{words} (scenario s)"]
    assert "warning: no recording of the scenario matches" in " ".join(done.output.split())


def test_recording_through_workers_is_that_of_the_whole_run(certify):
    chosen = ("-k", "dcgm-level1 or dcgm-level2", "--cre-scenario", "h100-2", "-n2")
    done = certify(*SUITES, *chosen, "--cre-save-recording=rec")
    assert done.code == 0, done.output
    places = sorted(path.name for path in (done.folder / "rec").iterdir())
    assert places == [
        "diagnostics.dcgm-level1@intra-node",
        "diagnostics.dcgm-level2@intra-node",
        "scenario.yaml",
    ]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--cre-save-recording=full",), "is not empty and holds no recording"),
        (("--cre-save-recording=file",), "is a file, not a folder"),
        (("--cre-save-recording=a", "--cre-evidence=a"), "must be apart from the folder of"),
        (("--cre-save-recording=a", "--cre-evidence=a/b"), "must be apart from the folder of"),
        (("--cre-save-recording=a/b", "--cre-evidence=a"), "must be apart from the folder of"),
    ],
)
def test_folder_that_a_recording_may_not_replace_is_usage(certify, arguments, line):
    (certify.folder / "full").mkdir()
    (certify.folder / "full/mine").touch()
    (certify.folder / "file").touch()
    done = certify(*SUITES, "--collect-only", "-q", *arguments)
    assert done.code == 4
    assert f"--cre-save-recording: {line}" in done.output
    assert (certify.folder / "full/mine").exists()


def test_failure_log_is_in_evidence_and_report_and_made_again_from_disk(certify):
    chosen = ("-k", "nccl-all-reduce and not intra-node", "--cre-scenario", "s.yaml")
    (certify.folder / "s.yaml").write_text(
        "extends: h100-2\n"
        "faults: [{match: {node: h100-1}, action: crash, exitCode: 134, message: 'CUDA error: x'}]\n"
    )
    done = certify(*SUITES, *SMALL, *chosen, "--cre-evidence=e", "--cre-html=r.html")
    assert done.code == 1
    (item,) = done.json()["items"]
    log = item["groups"][0]["failure_log"]
    assert (log["node"], log["exit_code"]) == ("h100-1", 134)
    assert "CUDA error: x" in log["text"]
    kept = json.loads((certify.folder / "e/run.json").read_text())["report"]["items"]
    assert kept[0]["groups"][0]["failure_log"] == log
    assert f"log of pod {log['pod']} on node h100-1, exit code 134" in done.output
    assert certify.rejudged("e", "json") == (certify.folder / "r.json").read_text()
    assert certify.rejudged("e", "html") == (certify.folder / "r.html").read_text()

"""The folder of a recording: what is in it, what is not, and why."""

from dataclasses import replace

import pytest
import yaml

from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.errors import EvidenceProblem
from pytest_cre.evidence.model import Restart
from pytest_cre.measure.measurement import measure_group
from pytest_cre.recording.save import figures, save_recording
from pytest_cre.recording.scenario import RecordedRun
from pytest_cre.simulator.scenario import load_scenario
from tests.recording.conftest import JOB, START_NS, log, pod, stamped, table_lines

RUN = RecordedRun(
    nodes=("falcon-gpu-1", "falcon-gpu-2"), products={"h100": "NVIDIA-H100-80GB-HBM3"}
)
SITE = ("falcon", "10.20.30", "site.example", "0a1b2c3d4e-", JOB, "x0y")
RULE_POD = "cre-*-nccl-all-reduce-g0-7076f7-*"


@pytest.fixture(scope="module")
def measure():
    profiles = load_catalog(suites=(shipped_suites(),), profiles=(shipped_profiles(),)).log_profiles
    return lambda group: measure_group(group, profiles["nccl-bandwidth"])


@pytest.fixture
def save(tmp_path, measure):
    def run(*workflows, about=RUN):
        folder = tmp_path / "rec"
        notes = save_recording(
            folder, [lambda each=each: each for each in workflows], about, measure
        )
        return folder, notes

    return run


def text_of(folder):
    return "".join(path.read_text() for path in sorted(folder.rglob("*")) if path.is_file())


def test_recording_holds_a_scenario_and_the_log_of_each_pod(save, group, workflow):
    folder, notes = save(workflow(group()))
    files = sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())
    place = "communication.nccl-all-reduce@full-scale/group-0-attempt-0"
    assert files == [f"{place}/0.jsonl", f"{place}/1.jsonl", "scenario.yaml"]
    assert notes == ()

    document = yaml.safe_load((folder / "scenario.yaml").read_text())
    assert document["nodes"] == [
        {"name": "node-0", "gpu": "h100"},
        {"name": "node-1", "gpu": "h100"},
    ]
    assert document["hardware"]["h100"]["product"] == "NVIDIA-H100-80GB-HBM3"
    assert document["recordings"] == [
        {"match": {"entry": "communication/nccl-all-reduce", "pod": RULE_POD}, "file": place}
    ]


def test_recording_tells_nothing_of_the_site(save, group, workflow):
    folder, _ = save(workflow(group()))
    told = text_of(folder)
    assert [name for name in SITE if name in told] == []


def test_recording_is_a_scenario_that_the_simulator_takes(save, group, workflow):
    folder, _ = save(workflow(group()))
    scenario = load_scenario(str(folder / "scenario.yaml"))
    assert scenario.only_recordings
    assert [(each.name, each.gpus) for each in scenario.nodes] == [("node-0", 8), ("node-1", 8)]
    (rule,) = scenario.recordings
    assert sorted(rule.recordings) == [0, 1]
    assert rule.recordings[0][0].exit_code == 0


def test_same_evidence_gives_the_same_bytes(save, group, workflow):
    first = text_of(save(workflow(group()))[0])
    assert text_of(save(workflow(group()))[0]) == first


def test_container_that_failed_and_the_one_after_it_are_replayed_in_this_order(
    save, group, workflow
):
    of = pod(0, "falcon-gpu-1", restart_count=1)
    logs = (
        log(of, ["Killed"]),
        log(of, table_lines(), restart_count=1),
    )
    folder, notes = save(workflow(group(pods=(of,), logs=logs)))
    assert notes == ()
    (rule,) = load_scenario(str(folder / "scenario.yaml")).recordings
    assert [each.exit_code for each in rule.recordings[0]] == [1, 0]
    assert rule.recordings[0][0].outputs[0].data == b"Killed\n"


def test_workload_that_was_restarted_counts_from_the_start_of_each_life(save, group, workflow):
    later_ns = START_NS + 60 * 10**9
    lives = (pod(0, "falcon-gpu-1"), pod(0, "falcon-gpu-1", name="again", attempt=1))
    lives = (lives[0], replace(lives[1], started_ns=later_ns, finished_ns=later_ns + 10**9))
    logs = (
        log(lives[0], ["stalled"]),
        log(lives[1], [], attempt=1, data=stamped(table_lines(), later_ns)),
    )
    first = Restart(job=group().job, problems=(), step=5, last_attempt=0)
    folder, _ = save(workflow(group(pods=lives, logs=logs, restarts=(first,))))
    (rule,) = load_scenario(str(folder / "scenario.yaml")).recordings
    assert [each.started_ns for each in rule.recordings[0]] == [
        START_NS // 10**9 * 10**9,
        later_ns,
    ]
    assert rule.recordings[0][1].outputs[0].offset_s == 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"is_complete": False}, "its log is not whole"),
        ({"has_gap": True}, "its log is not whole"),
    ],
)
def test_group_whose_log_is_not_whole_is_left_out_and_told(save, group, workflow, change, reason):
    torn = group()
    torn = replace(torn, group="group-1", logs=(replace(torn.logs[0], **change), torn.logs[1]))
    folder, notes = save(workflow(group(), torn))
    assert notes == (
        f"recording: communication/nccl-all-reduce@full-scale group-1 attempt 1 is not in it: {reason}",
    )
    assert not (folder / "communication.nccl-all-reduce@full-scale/group-1-attempt-0").exists()


def test_group_without_an_end_is_left_out_and_told(save, group, workflow):
    folder, notes = save(workflow(group(job=None)))
    assert "its Job has not come to an end" in notes[0]
    assert notes[1] == f"recording: nothing of the run can be replayed, so {folder} was not written"
    assert not folder.exists()


def test_group_whose_figures_need_a_name_is_left_out_and_told(save, group, workflow):
    # The average stands behind this word.
    folder, notes = save(workflow(group()), about=replace(RUN, nodes=("bandwidth", *RUN.nodes)))
    assert any("its figures would be others without the names in its log" in each for each in notes)
    assert not folder.exists()


def test_name_too_short_to_be_replaced_is_told(save, group, workflow):
    _, notes = save(workflow(group()), about=replace(RUN, nodes=("7", *RUN.nodes)))
    assert notes == ("recording: the name '7' is too short to be replaced and stays in it",)


def test_second_item_of_one_entry_and_scale_is_told(save, group, workflow):
    _, notes = save(workflow(group()), workflow(group()))
    assert len(notes) == 1
    assert "another item of the same entry and scale is" in notes[0]


def test_groups_within_racks_make_racks_of_the_nodes(save, group, workflow):
    seen = group(scale="intra-rack")
    folder, _ = save(workflow(seen))
    document = yaml.safe_load((folder / "scenario.yaml").read_text())
    assert [each["rack"] for each in document["nodes"]] == ["rack-0", "rack-0"]


def test_limits_of_simulated_nodes_are_kept(save, group, workflow):
    limit = (
        '[{"metric":"busbw","operator":">=","value":300,"unit":"GB/s","entry":"*","statistic":"max",'
        '"date":"2026-01-01","tier":"simulated","source":"scenario x"}]'
    )
    folder, _ = save(workflow(group()), about=replace(RUN, limits_json=limit))
    scenario = load_scenario(str(folder / "scenario.yaml"))
    assert '"source":"scenario scenario"' in scenario.limits_json
    assert '"value":300' in scenario.limits_json


def test_former_recording_is_replaced_as_a_whole(save, group, workflow):
    folder, _ = save(workflow(group()))
    (folder / "old").touch()
    save(workflow(group()))
    assert not (folder / "old").exists()


def test_disk_that_refuses_is_a_problem_in_one_line(tmp_path, measure, group, workflow):
    (tmp_path / "file").touch()
    with pytest.raises(EvidenceProblem, match="cannot be written"):
        save_recording(tmp_path / "file" / "rec", [lambda: workflow(group())], RUN, measure)


def test_figures_are_numbers_without_any_name(measure, group):
    measured = measure(group())
    assert figures(replace(measured, profile="other")) == figures(measured)
    assert figures(measure(replace(group(), logs=()))) != figures(measured)

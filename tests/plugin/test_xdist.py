"""Workers of pytest-xdist: one cluster, one report, and nothing left by a worker that died."""

import json
import os
import signal
from xml.etree import ElementTree

import pytest

from pytest_cre.cluster.objects import CONFIG_MAP, JOB, LEASE
from pytest_cre.run.ledger import Ledger, read_ledger
from pytest_cre.run.owner import create_owner

SMALL = ("--cre-option", "maxBytes=64M", "--cre-option", "numIterations=2")
LONG = ("--cre-option", "maxSteps=100000")
ONE_SCALE = ("--cre-scale", "full-scale")
TIMES = ("duration_s", "queue_s", "start_s", "run_s")  # of the wall clock, whatever the seed
OF_ONE_RUN = (*TIMES, "run_id", "pod")  # names of pods are drawn by the cluster

MIXED = """
import pytest


@pytest.mark.certification("communication/nccl-all-reduce")
def test_small(cre_bandwidth, cre_check):
    cre_check(cre_bandwidth)


@pytest.mark.certification("communication/nccl-all-reduce")
def test_strict(cre_bandwidth):
    assert cre_bandwidth.at(64 << 20).in_place.busbw_gbs > 10_000


@pytest.mark.certification("communication/nccl-all-reduce")
def test_idle(cre_entry):
    pass


@pytest.mark.certification("communication/nccl-all-reduce")
def test_recording(cre_bandwidth, cre_record):
    cre_record("own", cre_bandwidth.at(1 << 20).in_place.busbw_gbs, "GB/s")
"""

TRAINING = """
import pytest


@pytest.mark.certification("training/nemotron5-8b")
def test_training(cre_goodput, cre_check):
    cre_check(cre_goodput)
"""
BANDWIDTH = """
import pytest


@pytest.mark.certification("communication/nccl-all-reduce")
def test_bandwidth(cre_bandwidth, cre_check):
    cre_check(cre_bandwidth)


@pytest.mark.certification("communication/nccl-all-reduce")
def test_figure(cre_bandwidth):
    assert cre_bandwidth.max_busbw_gbs["in_place"] > 1
"""


def timeless(value):
    """Return a report without what differs from run to run of the same seed."""
    if isinstance(value, dict):
        known = {key: each for key, each in value.items() if key not in OF_ONE_RUN}
        if "exit_code" in known and "reason" in known:
            known.pop("text", None)  # of a log, with its times
        if "text" in known:  # below its first line it quotes logs, with their times
            known["text"] = known["text"].partition("\n")[0]
        return {key: timeless(each) for key, each in known.items()}
    if isinstance(value, list):
        return [timeless(each) for each in value]
    return value


def junit_cases(path):
    cases = {}
    for case in ElementTree.parse(path).iter("testcase"):
        properties = {each.get("name"): each.get("value") for each in case.iter("property")}
        properties = {
            name: value for name, value in properties.items() if not name.endswith(OF_ONE_RUN)
        }
        outcome = [
            (each.tag, each.get("message").partition("\n")[0])
            for each in case
            if each.tag != "properties"
        ]
        cases[case.get("classname"), case.get("name")] = (properties, outcome)
    return cases


def metric_cases(path):
    return sorted(
        (case.get("classname"), case.get("name"), [each.tag for each in case])
        for case in ElementTree.parse(path).iter("testcase")
    )


@pytest.fixture(scope="module")
def alone_and_together(tmp_path_factory, certify_in):
    done = []
    for name, workers in (("alone", "0"), ("together", "4")):
        certify = certify_in(tmp_path_factory.mktemp(name))
        (certify.folder / "test_mine.py").write_text(MIXED)
        options = ("--cre-scenario", "h100-2", "--cre-simulated-seed", "7", *SMALL)
        more = ("--cre-scale", "intra-node", "--cre-evidence", "evidence")
        done.append(certify("-n", workers, *options, *more))
    return done


def test_workers_give_the_report_of_one_process(alone_and_together):
    alone, together = alone_and_together

    assert (alone.code, together.code) == (1, 1), together.output
    assert timeless(together.json()) == timeless(alone.json())
    assert [item["code"] for item in alone.json()["items"]] == [
        "fail", "fail", "unmet", "pass"
    ]  # fmt: skip


def test_workers_give_the_junit_files_of_one_process(alone_and_together):
    alone, together = (done.folder for done in alone_and_together)

    assert junit_cases(together / "r.xml") == junit_cases(alone / "r.xml")
    assert metric_cases(together / "m.xml") == metric_cases(alone / "m.xml")


def test_workers_give_the_summary_of_one_process(alone_and_together):
    def summary(output):
        lines = output.partition("= certification =")[2].splitlines()
        return [line for line in lines if line and ", run " not in line and " in " not in line]

    alone, together = (done.output for done in alone_and_together)
    end = next(i for i, line in enumerate(summary(alone)) if line.startswith("certification "))

    assert summary(together)[: end + 1] == summary(alone)[: end + 1]


def test_workers_write_one_evidence_folder_with_one_manifest(alone_and_together):
    alone, together = (done.folder / "evidence" for done in alone_and_together)

    def files(root):
        return sorted(str(path.relative_to(root)) for path in root.rglob("workflow.json"))

    manifest = json.loads((together / "run.json").read_text())
    assert files(together) == files(alone)
    assert manifest["is_finished"] is True
    assert len(manifest["report"]["items"]) == 4


def test_workers_leave_no_ledger(alone_and_together):
    for done in alone_and_together:
        assert list((done.folder / "state").rglob("*.jsonl")) == []


def worker_with_the_job(folder, entry):
    """Return the process id of the worker that has a Job of this entry."""
    for path in folder.joinpath("state").rglob("*-gw*.ledger.jsonl"):
        objects = read_ledger(path)
        if any(
            each.kind == "Job" and entry in each.name and not each.is_deleted for each in objects
        ):
            return json.loads(path.read_text().splitlines()[0])["pid"]
    raise AssertionError("no worker has such a Job")


def test_killed_worker_is_an_error_everywhere_and_its_job_is_deleted(
    slow, certify, eventually, tmp_path
):
    other = Ledger(tmp_path / "other.ledger.jsonl", "other")
    name, uid = create_owner(slow.client, other)
    (tmp_path / "test_training.py").write_text(TRAINING)
    (tmp_path / "test_bandwidth.py").write_text(BANDWIDTH)
    process = certify.start("-n", "2", *slow.options, *ONE_SCALE, *LONG, *SMALL)
    training = "cre.pytest.org/entry=training.nemotron5-8b"
    eventually(lambda: slow.runs_pods() and slow.client.list(JOB, label_selector=training).items)
    pid = worker_with_the_job(tmp_path, "nemotron")
    os.kill(pid, signal.SIGKILL)
    done = certify.end(process)

    assert done.code == 1, done.output
    *others, crashed = done.json()["items"]
    assert crashed["entry"] == "training/nemotron5-8b"
    assert crashed["code"] == "error"
    assert "crashed while running" in crashed["text"]
    assert done.json()["result"] == "ERROR"
    cases = {name: case for (_, name), case in junit_cases(tmp_path / "r.xml").items()}
    properties, outcome = cases["test_training[nemotron5-8b]"]
    assert [tag for tag, _ in outcome] == ["error"]
    assert properties["cre.verdict"] == "error"
    assert "training/nemotron5-8b: error: worker" in done.output
    assert len(others) == 2
    assert all(item["groups"] for item in others), done.output
    assert slow.ours() == [name]
    slow.client.delete(CONFIG_MAP, name, uid=uid)


@pytest.mark.parametrize("to_all", [False, True], ids=["to-the-controller", "to-the-terminal"])
def test_ctrl_c_reports_the_items_in_flight_and_leaves_nothing(
    slow, certify, eventually, tmp_path, to_all
):
    (tmp_path / "test_training.py").write_text(TRAINING)
    process = certify.start("-n", "2", *slow.options, *LONG, new_session=True)
    eventually(slow.runs_pods)
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    done = certify.end(process)

    assert done.code == pytest.ExitCode.INTERRUPTED, done.output
    (item,) = done.json()["items"]
    assert item["text"].startswith("INCONCLUSIVE: interrupted after")
    assert done.json()["result"] == "FAILED"
    ((_, outcome),) = junit_cases(tmp_path / "r.xml").values()
    assert [tag for tag, _ in outcome] == ["failure"]
    assert slow.ours() == []
    assert list((tmp_path / "state").rglob("*.jsonl")) == []


def test_workers_whose_controller_was_killed_delete_what_they_made(
    slow, certify, eventually, tmp_path
):
    (tmp_path / "test_training.py").write_text(TRAINING)
    process = certify.start("-n", "1", *slow.options, *LONG)
    eventually(slow.runs_pods)
    process.kill()

    eventually(lambda: slow.ours() == [])


def test_lease_of_another_campaign_is_told_once_for_all_workers_and_waited_for(
    slow, certify, tmp_path
):
    (tmp_path / "test_bandwidth.py").write_text(BANDWIDTH)
    lease = slow.client.create_or_adopt(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "pytest-cre", "namespace": "default", "labels": {"cre.pytest.org/run": "other"}},
            "spec": {"holderIdentity": "other-campaign", "leaseDurationSeconds": 3600},
        }
    )  # fmt: skip
    process = certify.start("-n", "2", *slow.options, *ONE_SCALE, *SMALL)
    waited = []
    for line in process.stdout:
        waited.append(line)
        if "is held by other-campaign" in line:
            break
    slow.client.delete(LEASE, "pytest-cre", uid=lease["metadata"]["uid"])
    done = certify.end(process)

    line = "cre: lease pytest-cre in namespace default is held by other-campaign"
    assert ("".join(waited) + done.output).count(line) == 1
    assert len(done.json()["items"]) == 2
    assert all(item["groups"] for item in done.json()["items"])


def test_selection_of_nothing_keeps_its_exit_code(certify, tmp_path):
    (tmp_path / "test_training.py").write_text(TRAINING)

    assert certify("-n", "2", "--cre-scenario", "h100-2", "-k", "no-such-item").code == 5

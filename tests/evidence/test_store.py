import json
import subprocess

import pytest

from pytest_cre.errors import EvidenceProblem
from pytest_cre.evidence.manifest import (
    RunManifest,
    plan_folders,
    read_manifest,
    write_manifest,
)
from pytest_cre.evidence.masking import MASK
from pytest_cre.evidence.model import (
    DiagnosisSetup,
    Exclusion,
    GroupEvidence,
    JobFacts,
    LogStream,
    PodFacts,
    Problem,
    WorkflowEvidence,
)
from pytest_cre.evidence.store import folder_name, masked, read_workflow, write_workflow

JOB = {
    "kind": "Job",
    "spec": {
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "env": [
                            {"name": "NCCL_DEBUG", "value": "INFO"},
                            {"name": "HF_TOKEN", "value": "hf_verysecret"},
                            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"key": "k"}}},
                        ],
                    }
                ]
            }
        }
    },
}
SECRET = {"kind": "Secret", "data": {"token": "c2VjcmV0"}, "stringData": {"other": "alsosecret"}}


def group(name="group-0", attempt=0, **changes):
    facts = {
        "entry": "communication/nccl-all-reduce",
        "scale": "full-scale",
        "group": name,
        "attempt": attempt,
        "nodes": ("n1", "n2"),
        "gpus_per_node": 8,
        "ranks_planned": 16,
        "architecture": "h100",
        "is_simulated": True,
        "job": JobFacts(kind="Job", name="j", uid="u", terminal="failed", terminal_ns=2**62),
        "pods": (
            PodFacts(
                name="j-0-abc",
                uid="p",
                node="n1",
                completion_index=0,
                attempt=0,
                phase="Failed",
                exit_code=1,
                started_ns=1_700_000_000_000_000_001,
            ),
        ),
        "logs": (
            LogStream(
                pod="j-0-abc",
                data=b"2026-01-01T00:00:00Z \xff\x00\x1b[31mred\r\nend",
                container="main",
                node="n1",
                completion_index=0,
                is_complete=True,
            ),
            LogStream(pod="j-1-abc", data=b"", has_gap=True),
        ),
        "problems": (Problem(code="job-failed", message="exit code 1", node="n1", pod="j-0-abc"),),
        "events": (
            {
                "type": "Normal",
                "reason": "Scheduled",
                "message": "m",
                "object": "Pod/j-0-abc",
                "count": "1",
            },
        ),
        "manifests": (JOB, SECRET),
        "options": {"maxBytes": "16G"},
        "queue_s": 0.25,
        "run_s": None,
    }
    return GroupEvidence(**(facts | changes))


def workflow(*groups, **changes):
    return WorkflowEvidence(
        entry="communication/nccl-all-reduce",
        scale="full-scale",
        groups=groups or (group(),),
        excluded=(Exclusion(node="n9", reason="cordoned", message="spec.unschedulable is true"),),
        problems=(Problem(code="interrupted", message="stopped"),),
        leftovers=("Job/x",),
        **changes,
    )  # fmt: skip


def write(root, evidence):
    folder = root / folder_name(evidence.entry, evidence.scale)
    write_workflow(folder, evidence)
    return folder


def test_store_written_evidence_reads_back_equal(tmp_path):
    evidence = workflow(group(), group(attempt=1), group("group-1"))

    folder = write(tmp_path, evidence)

    assert read_workflow(folder) == masked(evidence)


def test_store_keeps_what_a_diagnosis_began_with(tmp_path):
    setup = DiagnosisSetup(domains={"n2": "r", "n1": "r"}, nvlink_domains=("r",), min_group_size=4)
    folder = write(tmp_path, workflow(diagnosis=setup))

    assert read_workflow(folder).diagnosis == setup


def test_store_layout_is_one_folder_per_entry_scale_group_and_attempt(tmp_path):
    write(tmp_path, workflow(group(attempt=1)))

    folder = tmp_path / "communication.nccl-all-reduce@full-scale/group-0/attempt-1"
    assert sorted(path.name for path in folder.iterdir()) == [
        "SHA256SUMS", "clocks.json", "events.json", "group.json", "logs", "logs.json", "pods.json",
        "problems.json", "spec.json",
    ]  # fmt: skip
    assert (folder / "logs/0000-j-0-abc.log").read_bytes() == group().logs[0].data


def test_store_never_holds_environment_values_or_secrets(tmp_path):
    folder = write(tmp_path, workflow())

    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (b"hf_verysecret", b"c2VjcmV0", b"alsosecret"):
        assert secret not in everything
    kept = read_workflow(folder)
    env = kept.groups[0].manifests[0]["spec"]["template"]["spec"]["containers"][0]["env"]
    assert env[:2] == [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "HF_TOKEN", "value": MASK}]


def test_store_same_evidence_gives_the_same_bytes(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    for root in (first, second):
        write(root, workflow())

    def content(root):
        return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}

    assert content(first) == content(second)


def test_store_checksums_are_accepted_by_sha256sum(tmp_path):
    folder = write(tmp_path, workflow())

    for place in (folder, folder / "group-0/attempt-0"):
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=place, check=True)


@pytest.mark.parametrize(
    "name",
    ["workflow.json", "group-0/attempt-0/group.json", "group-0/attempt-0/logs/0000-j-0-abc.log",
     "group-0/attempt-0/SHA256SUMS"],
)  # fmt: skip
@pytest.mark.parametrize("is_removed", [True, False])
def test_read_of_changed_or_missing_file_names_it(tmp_path, name, is_removed):
    folder = write(tmp_path, workflow())
    path = folder / name
    if is_removed:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() + b"x")

    with pytest.raises(EvidenceProblem, match=str(path)):
        read_workflow(folder)


def rewrite(path, change):
    facts = json.loads(path.read_text())
    path.write_text(json.dumps(change(facts)))


def resum(folder):
    names = [line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()]
    result = subprocess.run(["sha256sum", *names], cwd=folder, check=True, capture_output=True)
    (folder / "SHA256SUMS").write_bytes(result.stdout)


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts | {"schema": "other/9"},
        lambda facts: facts | {"groups": ["../../etc"]},
        lambda facts: facts | {"groups": 7},
        lambda facts: facts | {"entry": 7},
        lambda _: [],
        lambda facts: {key: facts[key] for key in facts if key != "scale"},
    ],
    ids=["schema", "path", "number-for-groups", "number-for-entry", "list", "missing-scale"],
)
def test_read_of_malformed_evidence_is_one_line(tmp_path, change):
    folder = write(tmp_path, workflow())
    rewrite(folder / "workflow.json", change)
    resum(folder)

    with pytest.raises(EvidenceProblem) as caught:
        read_workflow(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_read_of_log_outside_the_folder_is_refused(tmp_path):
    folder = write(tmp_path, workflow())
    rewrite(
        folder / "group-0/attempt-0/logs.json", lambda logs: [logs[0] | {"file": "/etc/passwd"}]
    )
    resum(folder / "group-0/attempt-0")
    resum(folder)

    with pytest.raises(EvidenceProblem, match="each log must name its file"):
        read_workflow(folder)


def test_write_again_replaces_the_item_as_a_whole(tmp_path):
    write(tmp_path, workflow(group(), group("group-1")))

    folder = write(tmp_path, workflow(group()))

    kept = read_workflow(folder)
    assert [each.group for each in kept.groups] == ["group-0"]
    assert [path.name for path in tmp_path.iterdir()] == [
        "communication.nccl-all-reduce@full-scale"
    ]


def test_write_that_fails_keeps_what_was_there(tmp_path, monkeypatch):
    folder = write(tmp_path, workflow())

    def full_disk(*_args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full_disk)
        with pytest.raises(EvidenceProblem, match="No space left"):
            write(tmp_path, workflow(group("group-1")))

    assert read_workflow(folder) == masked(workflow())
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_write_of_hostile_pod_name_stays_inside_the_folder(tmp_path):
    evidence = workflow(group(logs=(LogStream(pod="../../../x\n", data=b"1"),)))

    folder = write(tmp_path / "root", evidence)

    assert read_workflow(folder) == masked(evidence)
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_items_of_one_entry_and_scale_have_folders_of_their_own():
    planned = plan_folders(
        [("a", "x/y", "full-scale"), ("b", "x/y", "full-scale"), ("c", "x/y", "intra-node")]
    )

    assert {node_id: each.folder for node_id, each in planned.items()} == {
        "a": "x.y@full-scale", "b": "x.y@full-scale.2", "c": "x.y@intra-node",
    }  # fmt: skip


def test_manifest_reads_back_equal(tmp_path):
    manifest = RunManifest(
        report={"run_id": "r", "items": []},
        is_finished=False,
        planned=plan_folders([("a", "x/y", "full-scale")]),
        simulated_limits={"n1": "[]"},
        catalogs=("/own",),
    )

    write_manifest(tmp_path, manifest)

    assert read_manifest(tmp_path) == manifest


@pytest.mark.parametrize(
    "text", [None, "[]", "{", '{"schema": "cre.run/9"}', '{"schema": "cre.run/1"}']
)
def test_read_of_no_or_malformed_manifest_is_one_line(tmp_path, text):
    if text is not None:
        (tmp_path / "run.json").write_text(text)

    with pytest.raises(EvidenceProblem, match=r"run\.json") as caught:
        read_manifest(tmp_path)
    assert "\n" not in str(caught.value)

import dataclasses
from pathlib import Path

import pytest

from pytest_cre.errors import EvidenceProblem
from pytest_cre.evidence.journal import CUT_OFF, Journal, has_partial, read_partial
from pytest_cre.evidence.model import GroupEvidence, JobFacts, LogStream

ENTRY = {"entry": "x/y", "scale": "full-scale"}
GROUP = GroupEvidence(
    **ENTRY,
    group="group-0",
    attempt=0,
    nodes=("n1",),
    gpus_per_node=8,
    ranks_planned=8,
    architecture="h100",
    is_simulated=True,
    job=JobFacts(kind="Job", name="j", uid="u", terminal="none"),
    manifests=({"kind": "Secret", "data": {"token": "c2VjcmV0"}},),
)


class Growing:
    def __init__(self, pod="p", restart_count=0):
        self.stream = LogStream(pod=pod, data=b"", node="n1", restart_count=restart_count)
        self.data = b""

    @property
    def whole_bytes(self):
        return self.data.rfind(b"\n") + 1

    def read(self, start, end):
        return self.data[start:end]


def read(folder):
    return read_partial(folder, **ENTRY)


def test_journal_holds_the_whole_lines_of_the_last_flush(tmp_path):
    folder, log = tmp_path / "x.y", Growing()
    journal = Journal(folder)
    log.data = b"one\ntw"
    journal.flush(GROUP, [log])
    log.data = b"one\ntwo\nthr"
    journal.flush(dataclasses.replace(GROUP, queue_s=1.5), [log, Growing("q")])

    [group] = read(folder).groups

    assert [(each.pod, each.data) for each in group.logs] == [("p", b"one\ntwo\n"), ("q", b"")]
    assert group.queue_s == 1.5
    assert group.problems == (CUT_OFF,)
    assert not any(each.is_complete for each in group.logs)


def test_journal_cut_off_between_log_and_facts_reads_as_the_flush_before(tmp_path):
    folder, log = tmp_path / "x.y", Growing()
    log.data = b"one\n"
    Journal(folder).flush(GROUP, [log])
    [path] = Path(f"{folder}.partial").rglob("*.log")
    with path.open("ab") as file:
        file.write(b"two, half wri")

    assert read(folder).groups[0].logs[0].data == b"one\n"


def test_journal_of_two_containers_of_one_pod_keeps_both_logs(tmp_path):
    folder, first, second = tmp_path / "x.y", Growing(), Growing(restart_count=1)
    first.data, second.data = b"first\n", b"second\n"

    Journal(folder).flush(GROUP, [first, second])

    logs = read(folder).groups[0].logs
    assert [(each.restart_count, each.data) for each in logs] == [(0, b"first\n"), (1, b"second\n")]


def test_journal_that_is_discarded_leaves_nothing(tmp_path):
    journal = Journal(tmp_path / "x.y")
    journal.flush(GROUP, [Growing()])
    assert has_partial(tmp_path / "x.y")

    journal.discard()

    assert list(tmp_path.iterdir()) == []


def test_journal_of_a_new_run_forgets_that_of_a_killed_one(tmp_path):
    Journal(tmp_path / "x.y").flush(GROUP, [Growing()])

    Journal(tmp_path / "x.y")

    assert not has_partial(tmp_path / "x.y")


def test_journal_never_holds_secrets(tmp_path):
    Journal(tmp_path / "x.y").flush(GROUP, [])

    texts = [path.read_bytes() for path in tmp_path.rglob("*.json")]
    assert texts
    assert not any(b"c2VjcmV0" in text for text in texts)


def test_journal_before_the_first_whole_flush_is_an_item_without_groups(tmp_path):
    Path(tmp_path / "x.y.partial/group-0/attempt-0/logs").mkdir(parents=True)

    evidence = read(tmp_path / "x.y")

    assert (evidence.groups, evidence.problems) == ((), (CUT_OFF,))


def test_journal_with_a_changed_log_is_refused(tmp_path):
    folder, log = tmp_path / "x.y", Growing()
    log.data = b"one\n"
    Journal(folder).flush(GROUP, [log])
    [path] = tmp_path.rglob("*.log")
    path.write_bytes(b"two\n")

    with pytest.raises(EvidenceProblem, match="was changed after the run"):
        read(folder)


def test_journal_on_a_full_disk_is_one_line(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    log = Growing()
    log.data = b"one\n"

    with pytest.raises(EvidenceProblem, match="No space left"):
        Journal(tmp_path / "x.y").flush(GROUP, [log])

import json
import os
import platform
import signal
import subprocess
import sys

import pytest

from pytest_cre.errors import EvidenceProblem
from pytest_cre.run.ledger import (
    Ledger,
    Recorded,
    ended_runs,
    has_kept,
    ledger_folder,
    ledgers_of,
    read_ledger,
    read_ledgers,
)

JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ns"}}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "ns"}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "k3f2a-1.ledger.jsonl"


def recorded(manifest, **changes):
    return Recorded(
        api_version=manifest["apiVersion"], kind=manifest["kind"], namespace="ns",
        name=manifest["metadata"]["name"], run_id="k3f2a", **changes,
    )  # fmt: skip


def test_ledger_knows_an_object_before_it_is_created(path):
    ledger = Ledger(path, "k3f2a")

    ledger.announce(JOB)

    assert read_ledger(path) == (recorded(JOB),)


def test_ledger_keeps_the_uid_and_forgets_what_was_deleted(path):
    ledger = Ledger(path, "k3f2a")
    job = ledger.created(ledger.announce(JOB), "uid-1")
    ledger.created(ledger.announce(MAP), "uid-2")
    ledger.deleted(job)

    assert read_ledger(path) == (
        recorded(JOB, uid="uid-1", is_deleted=True),
        recorded(MAP, uid="uid-2"),
    )
    assert read_ledgers([path], "k3f2a") == (recorded(MAP, uid="uid-2"),)
    assert read_ledgers([path], "other") == ()


def test_ledger_object_created_again_has_only_its_new_uid(path):
    ledger = Ledger(path, "k3f2a")
    ledger.deleted(ledger.created(ledger.announce(JOB), "uid-1"))
    ledger.announce(JOB)

    assert read_ledgers([path], "k3f2a") == (recorded(JOB),)


@pytest.mark.parametrize(
    "garbage", [b'{"step": "create", "kin', b"[]", b"7", b"\xff\xfe", b'{"step": 1}', b"[" * 9999]
)
def test_ledger_torn_or_foreign_line_is_ignored(path, garbage):
    Ledger(path, "k3f2a").announce(JOB)
    path.write_bytes(path.read_bytes() + garbage)

    assert read_ledger(path) == (recorded(JOB),)


def test_ledger_survives_kill_of_its_process(path):
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from pytest_cre.run.ledger import Ledger\n"
        f"Ledger(Path(sys.argv[1]), 'k3f2a').announce({JOB!r})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    ended = subprocess.run([sys.executable, "-c", script, str(path)], check=False)

    assert ended.returncode == -signal.SIGKILL
    assert read_ledger(path) == (recorded(JOB),)


def test_ledger_is_readable_by_its_user_only(path):
    Ledger(path, "k3f2a").announce(JOB)

    assert path.stat().st_mode & 0o077 == 0


def test_object_to_keep_is_known_by_its_uid_and_as_kept(path):
    ledger = Ledger(path, "k3f2a")
    ledger.created(ledger.announce(JOB), "uid-1")
    assert not has_kept([path])

    ledger.keep([JOB])

    (kept,) = read_ledger(path)
    assert (kept.uid, kept.is_kept, kept.is_deleted) == ("uid-1", True, False)
    assert has_kept([path])


def test_ledger_after_close_refuses_to_lose_a_line(path):
    ledger = Ledger(path, "k3f2a")
    ledger.close()

    with pytest.raises(EvidenceProblem, match="cannot be written"):
        ledger.announce(JOB)


def test_ledger_that_cannot_be_opened_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(EvidenceProblem, match=r"ledger .* cannot be opened"):
        Ledger(tmp_path / "file" / "x", "k3f2a")
    with pytest.raises(EvidenceProblem, match="cannot be read"):
        read_ledger(tmp_path / "none")


@pytest.mark.parametrize(
    ("environ", "folder"),
    [({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/pytest-cre"), ({"HOME": "/h"}, "/h/.local/state/pytest-cre")],
)  # fmt: skip
def test_ledger_folder_is_the_users_state_folder(environ, folder):
    assert str(ledger_folder(environ)) == folder


def write_header(path, **changes):
    header = {"step": "open", "run": "k3f2a", "host": platform.node(), "pid": 2**22 + 1} | changes
    path.write_text(json.dumps(header) + "\n")


def test_ended_runs_are_those_of_dead_processes_of_this_host(tmp_path):
    write_header(tmp_path / "a.ledger.jsonl", run="dead")
    write_header(tmp_path / "b.ledger.jsonl", run="elsewhere", host="another-host")
    write_header(tmp_path / "c.ledger.jsonl", run="half")
    write_header(tmp_path / "d.ledger.jsonl", run="half", pid=os.getpid())
    (tmp_path / "e.ledger.jsonl").write_text("no ledger")
    Ledger(tmp_path / "f.ledger.jsonl", "mine")

    assert ended_runs(tmp_path) == ["dead"]


def test_ledgers_of_a_run_are_those_of_all_its_processes(tmp_path):
    for name, run in (("a", "one"), ("b", "two"), ("c", "one")):
        write_header(tmp_path / f"{name}.ledger.jsonl", run=run)

    assert [path.name[0] for path in ledgers_of(tmp_path, "one")] == ["a", "c"]
    assert ledgers_of(tmp_path / "none", "one") == ()

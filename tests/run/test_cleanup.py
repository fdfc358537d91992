import itertools

import pytest

from pytest_cre.cli import cleanup as command
from pytest_cre.cluster.client import ApiProblem
from pytest_cre.cluster.objects import JOB
from pytest_cre.run.cleanup import labelled_runs, sweep, sweep_process
from pytest_cre.run.ledger import Ledger
from pytest_cre.run.owner import create_owner

LABELS = {"app.kubernetes.io/managed-by": "pytest-cre", "cre.pytest.org/run": "k3f2a"}


def manifest(kind, name, *, owner=None, labels=LABELS):
    metadata = {"name": name, "namespace": "ns", "labels": dict(labels)}
    if owner is not None:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": owner["kind"], "name": owner["metadata"]["name"],
             "uid": owner["metadata"]["uid"]}
        ]  # fmt: skip
    version = {"Job": "batch/v1", "Lease": "coordination.k8s.io/v1"}.get(kind, "v1")
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


@pytest.fixture
def left_behind(cluster, client, ledger):
    """A run that died with a Job, two pods and what they mount."""
    create_owner(client, ledger)
    (owner,) = cluster.find("ConfigMap")
    job = cluster.put(manifest("Job", "j", owner=owner), "ADDED")
    for kind, name, parent in (
        ("Pod", "j-0", job),
        ("Pod", "j-1", job),
        ("Service", "j", owner),
        ("ConfigMap", "j", owner),
    ):
        cluster.put(manifest(kind, name, owner=parent), "ADDED")
    cluster.put(manifest("Lease", "pytest-cre"), "ADDED")
    return job


def names(cluster):
    return sorted(f"{each['kind']}/{each['metadata']['name']}" for each in cluster.objects.values()
                  if each["kind"] != "Node")  # fmt: skip


def test_sweep_deletes_everything_of_the_run_and_says_what(cluster, client, ledger, left_behind):
    swept = sweep(client, "k3f2a", [ledger.path])

    assert names(cluster) == []
    assert swept.leftovers == ()
    assert swept.problem is None
    assert swept.deleted == (
        "ConfigMap/cre-k3f2a", "ConfigMap/j", "Job/j", "Lease/pytest-cre", "Pod/j-0", "Pod/j-1", "Service/j",
    )  # fmt: skip


def test_sweep_without_a_ledger_finds_what_the_runs_owner_owns(cluster, client, left_behind):
    assert sweep(client, "k3f2a").leftovers == ()
    assert names(cluster) == []


def test_sweep_of_a_clean_cluster_does_nothing(cluster, client):
    swept = sweep(client, "k3f2a")

    assert (swept.deleted, swept.leftovers, swept.problem) == ((), (), None)
    assert "delete" not in {verb for verb, _, _ in cluster.requests}


def test_sweep_of_one_process_spares_what_the_run_shares_and_what_others_made(
    cluster, client, ledger, tmp_path
):
    create_owner(client, ledger)
    (owner,) = cluster.find("ConfigMap")
    dead = Ledger(tmp_path / "dead.ledger.jsonl", "k3f2a")
    create_owner(client, dead)
    cluster.put(manifest("Lease", "pytest-cre"), "ADDED")
    for name in ("dead", "kept", "other"):
        job = cluster.put(manifest("Job", name, owner=owner), "ADDED")
        cluster.put(manifest("Pod", f"{name}-0", owner=job), "ADDED")
        writer = ledger if name == "other" else dead
        writer.created(writer.announce(job), job["metadata"]["uid"])
    dead.keep([manifest("Job", "kept")])

    swept = sweep_process(client, "k3f2a", dead.path)

    assert swept.deleted == ("Job/dead", "Pod/dead-0")
    assert swept.leftovers == ()
    assert names(cluster) == [
        "ConfigMap/cre-k3f2a", "Job/kept", "Job/other", "Lease/pytest-cre", "Pod/kept-0", "Pod/other-0",
    ]  # fmt: skip


def test_sweep_touches_neither_other_runs_nor_copies_of_our_labels(cluster, client, left_behind):
    other = cluster.put(
        manifest("Job", "other", labels=LABELS | {"cre.pytest.org/run": "zzz"}), "ADDED"
    )
    copied = cluster.put(manifest("Job", "copied"), "ADDED")  # our label, but nobody's we know
    plain = cluster.put(manifest("ConfigMap", "plain", labels={}), "ADDED")

    swept = sweep(client, "k3f2a")

    assert list(cluster.objects.values())[-3:] == [other, copied, plain]
    assert swept.leftovers == ()


def test_sweep_deletes_what_the_ledger_announced_though_its_create_was_never_answered(
    cluster, client, ledger
):
    announced = manifest("Job", "unanswered")
    ledger.announce(announced)
    cluster.put(announced, "ADDED")

    sweep(client, "k3f2a", [ledger.path])

    assert names(cluster) == []


def test_sweep_object_of_the_ledger_that_lost_our_label_is_not_ours_any_more(
    cluster, client, ledger
):
    job = cluster.put(manifest("Job", "j", labels={}), "ADDED")
    ledger.created(ledger.announce(job), job["metadata"]["uid"])

    sweep(client, "k3f2a", [ledger.path])

    assert names(cluster) == ["Job/j"]


def test_sweep_deletes_the_job_before_its_pods_and_the_owner_after_the_workload(
    cluster, client, left_behind
):
    sweep(client, "k3f2a")

    order = [f"{kind}/{name}" for verb, kind, name in cluster.requests if verb == "delete"]
    assert order.index("Job/j") < order.index("Pod/j-0") < order.index("ConfigMap/cre-k3f2a")


def test_sweep_pods_that_will_not_go_are_left_over_with_their_node(cluster, client, left_behind):
    for pod in cluster.find("Pod"):
        pod["spec"] = {"nodeName": "n7"}
    cluster.stuck_pods = True
    clock = itertools.count()

    swept = sweep(
        client,
        "k3f2a",
        patience_s=lambda: 3,
        clock=lambda: float(next(clock)),
        sleep=lambda _: None,
    )

    assert swept.leftovers == ("Pod/j-0 on node n7", "Pod/j-1 on node n7")
    assert "Job/j" in swept.deleted


def test_sweep_pods_that_keep_their_gpus_are_told_with_node_and_number(
    cluster, client, left_behind
):
    for pod in cluster.find("Pod"):
        container = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
        pod["spec"] = {"nodeName": "n7", "containers": [container]}
    cluster.stuck_pods = True

    swept = sweep(client, "k3f2a", patience_s=lambda: 0.0, sleep=lambda _: None)

    assert swept.leftovers == tuple(f"8 GPUs of n7 still held by ns/j-{each}" for each in (0, 1))
    assert "Job/j" in swept.deleted
    assert not any("GPUs" in name for name in swept.deleted)


def test_sweep_pod_that_holds_gpus_under_our_label_is_left_over_though_it_may_not_be_deleted(
    cluster, client, ledger
):
    pod = manifest("Pod", "orphan")
    container = {"resources": {"limits": {"nvidia.com/gpu": "4"}}}
    pod["spec"] = {"nodeName": "n7", "containers": [container]}
    cluster.put(pod, "ADDED")

    swept = sweep(client, "k3f2a", [ledger.path], patience_s=lambda: 0.0)

    assert swept.leftovers == ("4 GPUs of n7 still held by ns/orphan",)
    assert names(cluster) == ["Pod/orphan"]


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_sweep_takes_no_404_for_proof_that_nothing_is_left(
    cluster, client, ledger, left_behind, kind
):
    cluster.fail("list", kind, ApiProblem("no such page", status=404, reason="", may_pass=True))

    swept = sweep(client, "k3f2a", [ledger.path])

    assert swept.leftovers == ("ConfigMap/cre-k3f2a",)
    assert not swept.was_answered


def test_sweep_of_a_kind_that_the_cluster_lacks_finds_none(cluster, client, left_behind):
    cluster.fail("list", "JobSet", ApiProblem("no such page", status=404, reason=""))

    assert sweep(client, "k3f2a").leftovers == ()


def test_sweep_of_a_kind_that_the_run_made_wants_it_served(cluster, client, ledger, left_behind):
    job_set = manifest("JobSet", "s") | {"apiVersion": "jobset.x-k8s.io/v1alpha2"}
    ledger.announce(job_set)
    cluster.fail("list", "JobSet", ApiProblem("no such page", status=404, reason=""))

    assert "JobSet/s" in sweep(client, "k3f2a", [ledger.path]).leftovers


def test_sweep_with_a_refused_delete_names_object_and_reason(cluster, client, ledger):
    service = manifest("Service", "j")
    ledger.announce(service)
    cluster.put(service, "ADDED")
    cluster.fail("delete", "Service", ApiProblem("services is forbidden", status=403, reason=""))

    swept = sweep(client, "k3f2a", [ledger.path], patience_s=lambda: 0.0)

    assert swept.leftovers == ("Service/j",)
    assert swept.problem == "services is forbidden"


def test_sweep_with_a_dead_api_lists_what_the_ledger_knows(cluster, client, ledger, left_behind):
    cluster.fail("list", "*", ApiProblem("unavailable", status=503, reason=""))

    swept = sweep(client, "k3f2a", [ledger.path])

    assert swept.leftovers == ("ConfigMap/cre-k3f2a",)
    assert swept.problem == "unavailable"


def test_sweep_tells_the_terminating_pod_of_a_job_that_is_gone(cluster, client, ledger):
    create_owner(client, ledger)
    (owner,) = cluster.find("ConfigMap")
    recorded = ledger.announce(manifest("Job", "j", owner=owner))
    job = cluster.put(manifest("Job", "j", owner=owner), "ADDED")
    pod = cluster.put(manifest("Pod", "j-0", owner=job), "ADDED")
    pod["status"] = {"phase": "Failed"}
    pod["spec"] = {"nodeName": "n7"}
    ledger.created(recorded, job["metadata"]["uid"])
    cluster.stuck_pods = True
    client.delete(JOB, "j", uid=job["metadata"]["uid"])
    ledger.deleted(recorded)

    swept = sweep(client, "k3f2a", [ledger.path], patience_s=lambda: 0.0, sleep=lambda _: None)

    assert swept.leftovers == ("Pod/j-0 on node n7",)


def test_sweep_tells_a_terminating_pod_that_nothing_proves_to_be_ours(cluster, client):
    pod = cluster.put(manifest("Pod", "stray"), "ADDED")
    pod["status"] = {"phase": "Failed"}
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    swept = sweep(client, "k3f2a", patience_s=lambda: 0.0, sleep=lambda _: None)

    assert (swept.leftovers, swept.deleted) == (("Pod/stray",), ())


def test_labelled_runs_counts_objects_by_run(cluster, client, left_behind):
    cluster.put(manifest("Job", "other", labels=LABELS | {"cre.pytest.org/run": "zzz"}), "ADDED")

    assert labelled_runs(client) == {"k3f2a": 7, "zzz": 1}


# The command


@pytest.fixture
def cleanup(client, monkeypatch, tmp_path):
    import argparse

    client.preflight = lambda: "v1"
    monkeypatch.setattr("pytest_cre.cluster.client.connect", lambda **_: client)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def call(*arguments):
        parser = argparse.ArgumentParser()
        command.add_parser(parser.add_subparsers(dest="command"))
        return command.run(parser.parse_args(["cleanup", *arguments]))

    return call


def test_cleanup_of_a_named_run_deletes_it(cluster, cleanup, left_behind, capsys):
    assert cleanup("--run", "k3f2a") == 0

    assert names(cluster) == []
    assert "run k3f2a: deleted Job/j\n" in capsys.readouterr().out


def test_cleanup_without_a_run_only_lists_runs_it_knows_nothing_of(
    cluster, cleanup, left_behind, capsys
):
    assert cleanup() == 0

    assert len(names(cluster)) == 7
    assert capsys.readouterr().out == "run k3f2a: 7 objects, not touched; it may be running\n"


def test_cleanup_without_a_run_deletes_runs_of_dead_processes_of_this_machine(
    cluster, cleanup, left_behind, ledger, tmp_path, capsys
):
    import json
    import platform

    state = tmp_path / "state" / "pytest-cre"
    state.mkdir(parents=True)
    header = {"step": "open", "run": "k3f2a", "host": platform.node(), "pid": 2**22 + 1}
    path = state / "k3f2a-1.ledger.jsonl"
    path.write_text(json.dumps(header) + "\n" + ledger.path.read_text().split("\n", 1)[1])

    assert cleanup() == 0

    assert names(cluster) == []
    assert not path.exists()


def test_cleanup_spares_a_run_whose_process_lives(cluster, cleanup, left_behind, tmp_path):
    Ledger(tmp_path / "state" / "pytest-cre" / "k3f2a-1.ledger.jsonl", "k3f2a")

    assert cleanup() == 0
    assert len(names(cluster)) == 7


def test_cleanup_of_a_run_whose_objects_are_not_proven_tells_them_and_ends_with_10(
    cluster, cleanup, capsys
):
    cluster.put(manifest("Pod", "copied"), "ADDED")

    assert cleanup("--run", "k3f2a") == 10

    assert names(cluster) == ["Pod/copied"]
    told = capsys.readouterr().out
    assert told == "run k3f2a: 1 objects with its label, not proven to be its own: left\n"


def test_cleanup_that_meets_a_terminating_pod_tells_it_and_ends_with_10(
    cluster, cleanup, capsys, monkeypatch
):
    pod = cluster.put(manifest("Pod", "stray"), "ADDED")
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    monkeypatch.setattr("pytest_cre.run.cleanup.PATIENCE_S", 0.0)

    assert cleanup("--run", "k3f2a") == 10

    assert capsys.readouterr().out == "run k3f2a: left behind Pod/stray\n"


def test_cleanup_that_leaves_something_ends_with_10(
    cluster, cleanup, left_behind, capsys, monkeypatch
):
    cluster.fail("list", "*", ApiProblem("unavailable", status=503, reason=""), times=100)

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr("pytest_cre.run.cleanup.labelled_runs", lambda _: {})
    assert cleanup("--run", "k3f2a") == 10
    assert "run k3f2a: unavailable" in capsys.readouterr().out


def test_cleanup_with_nothing_to_do_says_so(cleanup, capsys):
    assert cleanup() == 0
    assert capsys.readouterr().out == "nothing of pytest-cre in namespace ns\n"


def test_cleanup_of_a_run_that_is_not_on_this_cluster_keeps_its_ledger(cleanup, tmp_path, capsys):
    ledger = Ledger(tmp_path / "state" / "pytest-cre" / "k3f2a-1.ledger.jsonl", "k3f2a")
    ledger.close()

    assert cleanup("--run", "k3f2a") == 0

    assert "nothing of it in namespace" in capsys.readouterr().out
    assert ledger.path.exists()

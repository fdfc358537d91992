"""A person looks at a run with kubectl."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.integration.running import until

OURS = ("-l", "app.kubernetes.io/managed-by=pytest-cre")
TRAINING = ("-k", "nemotron5-8b", "--cre-option=maxSteps=150")


@pytest.fixture(scope="module")
def kubectl(plane, programs, tmp_path_factory):
    """Run the kubectl that was built with the control plane."""
    home = tmp_path_factory.mktemp("home")

    def call(*arguments, timeout_s=60):
        return subprocess.run(
            [programs / "kubectl", f"--kubeconfig={plane.admin_kubeconfig}", *arguments],
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    yield call
    shutil.rmtree(home)


@pytest.fixture(scope="module")
def run(start_certifying, kubectl):
    """Start a training that keeps its objects; give it once its pods run; clean up after."""
    started = start_certifying(*TRAINING, "--cre-keep=always")
    ready = "-o=jsonpath={.items[*].status.phase}"

    def are_running():
        assert started.process.poll() is None, started.result().output
        return kubectl("get", "pods", ready).stdout.split() == ["Running"] * 2

    until(are_running, poll_s=0.2)
    return started


@pytest.fixture(scope="module")
def job(run, kubectl):
    return kubectl("get", "jobs", "-o=name").stdout.strip()


def test_get_shows_the_job_and_its_pods_with_their_labels(kubectl, job):
    assert job.startswith("job.batch/cre-")
    shown = kubectl("get", "jobs,pods", *OURS)
    lines = shown.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("pod/cre-")] == ["1/1"] * 2
    entry = kubectl("get", job, "-o", r"jsonpath={.metadata.labels.cre\.pytest\.org/entry}")
    assert entry.stdout == "training.nemotron5-8b"


def test_describe_tells_what_happened_to_a_pod(kubectl, job):
    pods = kubectl("get", "pods", "-o=name").stdout.split()
    text = kubectl("describe", pods[0]).stdout
    assert "Controlled By:" in text
    assert "nvidia.com/gpu:" in text
    assert "Scheduled" in text
    assert "Created pod: " in kubectl("describe", job).stdout


def test_logs_follow_to_the_end_and_wait_sees_the_completion(kubectl, job, run):
    followed = kubectl("logs", "-f", job, "--all-pods=true")
    assert followed.returncode == 0, followed.stderr
    assert "iteration      150/     150" in followed.stdout
    waited = kubectl("wait", "--for=condition=complete", job, "--timeout=60s")
    assert waited.stdout == f"{job} condition met\n"
    done = run.result()
    assert done.code == 0, done.output


def test_delete_takes_the_pods_with_the_job_and_cleanup_the_rest(plane, kubectl, job, run):
    run.result()
    gone = kubectl("delete", job, "--wait=true", "--cascade=foreground")
    assert gone.returncode == 0, gone.stderr
    assert kubectl("get", "pods", "-o=name").stdout == ""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest_cre.cli",
            "cleanup",
            f"--run={run.result().report['run_id']}",
            f"--kubeconfig={plane.harness_kubeconfig}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert kubectl("get", "services,configmaps", *OURS, "-o=name").stdout == ""

"""A restart from a checkpoint on genuine Kubernetes: the claim stays, everything is gone at the end."""

import pytest

from pytest_cre.cluster.objects import JOB, PERSISTENT_VOLUME_CLAIM
from tests.integration.running import until

VOLUMES = "/api/v1/persistentvolumes"
RUN = "cre.pytest.org/run"


@pytest.fixture
def storage_class(plane):
    """Offer one volume by hand, as storage that every node can write to would."""
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "shared"},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "shared",
            "persistentVolumeReclaimPolicy": "Retain",
            "nfs": {"server": "10.0.0.1", "path": "/shared"},
        },
    }
    plane.api.call("POST", VOLUMES, volume)
    yield "shared"
    plane.api.call("DELETE", f"{VOLUMES}/shared")


def test_training_whose_job_was_deleted_goes_on_from_its_checkpoint(
    admin, start_certifying, storage_class
):
    options = {
        "enableCheckpoint": "true",
        "storageClassName": storage_class,
        "storageSize": "1Gi",
        "maxSteps": "300",
    }
    running = start_certifying(
        *("-k", "nemotron5-8b", "--cre-kind=indexedJob"),
        *(f"--cre-option={name}={value}" for name, value in options.items()),
    )
    saved = b"successfully saved checkpoint from iteration      25"
    until(lambda: any(saved in log.read_bytes() for log in running.logs()), timeout_s=90)
    (claim,) = admin.list(PERSISTENT_VOLUME_CLAIM, label_selector=RUN).items
    (job,) = admin.list(JOB, label_selector=RUN).items
    admin.delete(JOB, job["metadata"]["name"], uid=job["metadata"]["uid"])
    until(
        lambda: any(
            each["metadata"]["uid"] != job["metadata"]["uid"]
            for each in admin.list(JOB, label_selector=RUN).items
        )
    )
    (kept,) = admin.list(PERSISTENT_VOLUME_CLAIM, label_selector=RUN).items

    done = running.result()

    assert claim["status"]["phase"] == "Bound"
    assert kept["metadata"]["uid"] == claim["metadata"]["uid"]
    (group,) = done.item("nemotron5-8b")["groups"]
    assert group["restarts"] == 1, done.output
    assert "vanished while it ran" in " ".join(group["warnings"])
    assert group["figures"]["highest_step"]["value"] == 300
    # What a deleted pod wrote at last may not have been read; then nothing passes.
    assert group["code"] in ("pass", "inconclusive"), done.output
    assert done.report["leftovers"] == []
    assert admin.list(PERSISTENT_VOLUME_CLAIM, label_selector=RUN).items == ()

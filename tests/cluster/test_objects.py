import pytest

from pytest_cre.cluster.objects import (
    JOB,
    LEASE,
    NODE,
    TRAIN_JOB,
    condition,
    entries,
    kind_of,
    parse_time_ns,
)
from pytest_cre.errors import UsageProblem

NEW_YEAR_NS = 1_767_225_600 * 10**9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-01T00:00:00Z", NEW_YEAR_NS),
        ("2026-01-01T00:00:00.5Z", NEW_YEAR_NS + 500_000_000),
        ("2026-01-01T00:00:00.000000001Z", NEW_YEAR_NS + 1),
        ("2026-01-01T00:00:00.123456789Z", NEW_YEAR_NS + 123_456_789),
        ("2026-01-01T01:30:00+01:30", NEW_YEAR_NS),
        ("2025-12-31T19:00:00.25-05:00", NEW_YEAR_NS + 250_000_000),
        ("1970-01-01T00:00:00Z", 0),
    ],
)
def test_time_is_exact_to_the_nanosecond(text, expected):
    assert parse_time_ns(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "now",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-13-01T00:00:00Z",
        "٢٠٢٦-01-01T00:00:00Z",
        5,
    ],
)
def test_time_that_is_none_is_none(text):
    assert parse_time_ns(text) is None


def test_condition_counts_only_where_its_status_is_true():
    job = {
        "status": {
            "conditions": [
                {"type": "Failed", "status": "False"},
                None,
                "x",
                {"type": "Complete", "status": "True", "reason": "r"},
            ]
        }
    }
    assert condition(job, "Failed") is None
    assert condition(job, "Failed", "Complete")["reason"] == "r"


@pytest.mark.parametrize("status", [None, [], "x", {"conditions": None}, {"conditions": 3}])
def test_condition_of_a_misshapen_object_is_none(status):
    assert condition({"status": status}, "Ready") is None


def test_entries_leaves_out_what_is_no_object():
    assert entries({"items": [{"a": 1}, None, 3]}, "items") == ({"a": 1},)
    assert entries({"items": None}, "items") == ()


def test_paths_are_those_of_the_api():
    assert NODE.path(None, "n") == "/api/v1/nodes/n"
    assert JOB.path("ns") == "/apis/batch/v1/namespaces/ns/jobs"
    assert LEASE.path("ns", "l") == "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"
    assert TRAIN_JOB.path() == "/apis/trainer.kubeflow.org/v1alpha1/trainjobs"


def test_kind_of_a_manifest_that_no_run_makes_is_one_line():
    assert kind_of({"apiVersion": "batch/v1", "kind": "Job"}) is JOB
    with pytest.raises(UsageProblem, match=r"apps/v1 Deployment.*choices: .*Job"):
        kind_of({"apiVersion": "apps/v1", "kind": "Deployment"})

"""A workload kind that was asked for."""

SUITES = ("--pyargs", "pytest_cre.suites", "-k", "nccl-all-reduce and not intra-node", "-rs")


def test_kind_that_the_cluster_does_not_serve_is_unmet_and_never_replaced(certify):
    done = certify(*SUITES, "--cre-kind=jobSet")

    assert done.code == 10, done.output
    (item,) = done.json()["items"]
    assert (item["code"], item["kind"]) == ("unmet", "jobSet")
    assert "jobSet was asked for; the cluster serves indexedJob" in done.output
    assert done.json()["settings"]["kind"] == "jobSet"


def test_kind_that_does_not_exist_is_a_usage_error(certify):
    done = certify(*SUITES, "--cre-kind=pod")

    assert done.code == 4, done.output
    assert "--cre-kind" in done.output
    assert "'indexedJob', 'jobSet', 'mpiJob', 'trainJob'" in done.output

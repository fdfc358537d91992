"""The printed role is the least one: with it everything runs, without any verb of it a run says so."""

import json
import os
import signal
import subprocess
import sys

import pytest

from pytest_cre.cluster.client import connect
from pytest_cre.cluster.objects import JOB, POD, kind_named
from pytest_cre.cluster.rbac import CLUSTER_RULES, NAMESPACED_RULES
from tests.integration.running import until

CLEANUP = (sys.executable, "-m", "pytest_cre.cli", "cleanup")
HARNESS = "system:serviceaccount:default:pytest-cre"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/pytest-cre"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles/pytest-cre"
SMALL = ("--cre-option=maxBytes=1M", "--cre-option=numIterations=2")
# Some 14 s of training: the lease is renewed after 10 s.
LONG = ("-k", "nemotron5-8b", "--cre-kind=indexedJob", "--cre-option=maxSteps=230")

# Verbs of the role that no run of these tests needs, and why the role has them all the same.
UNUSED_HERE = {
    ("computedomains", "namespace"): "made for nodes with NVLink between them; not served here",
    ("resourceclaimtemplates", "namespace"): "made for nodes whose GPUs DRA drivers hand out",
    ("persistentvolumeclaims", "namespace"): "made for checkpoints, where storage provides volumes",
    ("resourceslices", "cluster"): "read where no node carries a product label",
    ("resourceclaims", "cluster"): "read where pods on the nodes have such claims",
}
# What every account may do, so no role grants it.
EVERYBODY = {("create", "authorization.k8s.io", "selfsubjectaccessreviews", "cluster")}


def granted():
    """Return everything that the roles allow: verb, group, resource, and where."""
    return {
        (verb, group, resource, where)
        for rules, where in ((NAMESPACED_RULES, "namespace"), (CLUSTER_RULES, "cluster"))
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def right_of(line):
    """Return the right that a request needed, in the same form."""
    about = line.get("objectRef") or {}
    resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    where = "namespace" if about.get("namespace") else "cluster"
    return line["verb"], about.get("apiGroup", ""), resource, where


@pytest.fixture(scope="module")
def audited(plane, start_certifying, admin, tmp_path_factory):
    """Run entries as each kind, a long one, and a killed one that is cleaned up; return the audit."""
    start = plane.audit_log.stat().st_size
    done = [
        start_certifying("-k", "nccl-all-reduce and not intra", f"--cre-kind={kind}", *SMALL).result()
        for kind in ("indexedJob", "jobSet", "mpiJob", "trainJob")
    ]  # fmt: skip
    done.append(start_certifying(*LONG).result())
    killed = start_certifying(*LONG)
    until(lambda: admin.list(POD, label_selector="cre.pytest.org/run").items)
    os.kill(killed.process.pid, signal.SIGKILL)
    killed.process.wait()
    (job,) = admin.list(JOB, label_selector="cre.pytest.org/run").items
    run = job["metadata"]["labels"]["cre.pytest.org/run"]
    cleaned = subprocess.run(
        [*CLEANUP, "--run", run, "--kubeconfig", str(plane.harness_kubeconfig)],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("state"))},
        capture_output=True,
        text=True,
        check=False,
    )
    with plane.audit_log.open("rb") as log:
        log.seek(start)
        lines = [json.loads(line) for line in log]
    return done, cleaned, lines


def test_with_the_printed_role_everything_runs(audited):
    runs, cleaned, _ = audited

    for run in runs:
        assert run.report["result"] in ("PASSED", "FAILED"), run.output
        assert not [item["text"] for item in run.report["items"] if item["code"] == "error"]
        assert run.report["leftovers"] == []
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr


def test_no_request_of_the_harness_was_forbidden(audited):
    forbidden = {
        right_of(line)
        for line in audited[2]
        if line["user"]["username"] == HARNESS
        # Not by the code: a webhook refuses with the same one what it does not know yet.
        and line["annotations"]["authorization.k8s.io/decision"] != "allow"
    }

    assert forbidden == set()


def test_role_holds_no_verb_that_is_never_used_and_none_is_missing(audited):
    used = {
        right_of(line)
        for line in audited[2]
        if line["user"]["username"] == HARNESS and line.get("objectRef", {}).get("resource")
    }
    excused = {each for each in granted() if each[2:] in UNUSED_HERE}

    assert sorted(granted() - used - excused) == []
    assert sorted(used - granted() - EVERYBODY) == []


def test_every_request_of_the_harness_was_made_as_its_own_account(audited):
    agents = {
        line["user"]["username"] for line in audited[2] if line.get("userAgent") == "pytest-cre"
    }

    assert agents <= {HARNESS, admin_name(audited[2])}


def admin_name(lines):
    """Return the account of the tests' own client, which only lists."""
    others = {
        line["user"]["username"]: set()
        for line in lines
        if line.get("userAgent") == "pytest-cre" and line["user"]["username"] != HARNESS
    }
    for line in lines:
        if line["user"]["username"] in others and line.get("userAgent") == "pytest-cre":
            others[line["user"]["username"]].add(line["verb"])
    (name,) = others
    assert others[name] == {"list"}
    return name


@pytest.fixture
def without(plane):
    """Take a verb out of the harness's roles, and put it back at the end."""
    before = {path: plane.api.call("GET", path) for path in (ROLES, CLUSTER_ROLES)}
    client = connect(kubeconfig=str(plane.harness_kubeconfig), context=None, namespace=None)

    def allows(verb, resource, where):
        plural, _, subresource = resource.partition("/")
        (kind,) = [each for each in KINDS_ASKED if each.plural == plural]
        is_everywhere = where == (CLUSTER_ROLES,)
        return client.can_i(verb, kind, subresource=subresource, all_namespaces=is_everywhere)

    def put(path, rules):
        current = plane.api.call("GET", path)
        plane.api.call("PUT", path, current | {"rules": rules})

    def take(verb, resource, where=(ROLES, CLUSTER_ROLES)):
        for path in where:
            rules = []
            for rule in before[path]["rules"]:
                for each in rule["resources"]:
                    verbs = [v for v in rule["verbs"] if (v, each) != (verb, resource)]
                    rules.append({**rule, "resources": [each], "verbs": verbs})
            put(path, [rule for rule in rules if rule["verbs"]])
        until(lambda: not allows(verb, resource, where))
        removed.append((verb, resource, where))

    removed = []
    yield take
    for path, role in before.items():
        put(path, role["rules"])
    for right in removed:
        until(lambda right=right: allows(*right))


KINDS_ASKED = [
    kind_named(*each)
    for each in (
        ("v1", "Pod"), ("batch/v1", "Job"), ("coordination.k8s.io/v1", "Lease"), ("v1", "Node"),
        ("v1", "ConfigMap"), ("v1", "Event"), ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    )
]  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("get", "pods/log"),
        ("create", "jobs"),
        ("update", "leases"),
        ("list", "nodes"),
        ("delete", "pods"),
        ("watch", "events"),
    ],
)
def test_without_a_verb_the_run_ends_in_error_and_names_it(
    without, start_certifying, admin, verb, resource
):
    without(verb, resource)

    done = start_certifying("-k", "nccl-all-reduce and not intra", *SMALL).result()

    assert done.code == 1, done.output
    assert done.report["result"] == "ERROR"
    assert f"may not {verb} {resource} (namespace default)" in done.output
    assert "pytest-cre rbac" in done.output
    assert admin.list(JOB, label_selector="cre.pytest.org/run").items == ()


def test_without_the_right_to_see_other_tenants_the_run_ends_in_error_and_names_it(
    without, start_certifying
):
    without("list", "pods", where=(CLUSTER_ROLES,))

    done = start_certifying("-k", "nccl-all-reduce and not intra", *SMALL).result()

    assert done.code == 1, done.output
    assert done.report["result"] == "ERROR"
    assert "may not list pods of all namespaces (namespace default)" in done.output
    assert "pytest-cre rbac" in done.output


def test_without_a_verb_on_an_operators_kind_the_run_as_that_kind_names_it(
    without, start_certifying
):
    without("create", "jobsets")

    done = start_certifying(
        "-k", "nccl-all-reduce and not intra", "--cre-kind=jobSet", *SMALL
    ).result()

    assert done.code == 1, done.output
    assert done.report["result"] == "ERROR"
    assert "create jobsets default/" in done.output
    assert "403 Forbidden" in done.output

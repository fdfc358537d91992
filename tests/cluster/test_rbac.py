from pathlib import Path

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.cluster.objects import KINDS
from pytest_cre.cluster.rbac import CLUSTER_RULES, NAMESPACED_RULES, missing_rights, rbac_manifests
from pytest_cre.cluster.workloads import WORKLOADS


def test_roles_are_bound_to_the_account_they_come_with():
    manifests = {each["kind"]: each for each in rbac_manifests("gpu-tests")}
    account = manifests["ServiceAccount"]
    assert account["metadata"]["namespace"] == "gpu-tests"
    for binding, role in (("RoleBinding", "Role"), ("ClusterRoleBinding", "ClusterRole")):
        assert manifests[binding]["roleRef"]["kind"] == role
        assert manifests[binding]["roleRef"]["name"] == manifests[role]["metadata"]["name"]
        (subject,) = manifests[binding]["subjects"]
        assert subject == {
            "kind": "ServiceAccount",
            "name": account["metadata"]["name"],
            "namespace": "gpu-tests",
        }


def test_two_namespaces_bind_the_cluster_role_under_names_of_their_own():
    first, second = (
        {each["kind"]: each["metadata"]["name"] for each in rbac_manifests(name)}
        for name in ("a", "b")
    )
    assert first["ClusterRoleBinding"] != second["ClusterRoleBinding"]
    assert first["ClusterRole"] == second["ClusterRole"]


def test_nothing_outside_the_namespace_is_written():
    assert {verb for rule in CLUSTER_RULES for verb in rule["verbs"]} <= {"get", "list", "watch"}


def test_no_rule_is_a_wildcard_or_reaches_for_secrets():
    for rule in (*NAMESPACED_RULES, *CLUSTER_RULES):
        values = {value for name in rule for value in rule[name]}
        assert "*" not in values
        assert not values & {"secrets", "escalate", "bind", "impersonate", "deletecollection"}


class Asked:
    """A client whose cluster refuses some rights, or to answer."""

    def __init__(self, *refused, problem=None):
        self.refused, self.problem = set(refused), problem

    def can_i(self, verb, kind, *, subresource="", all_namespaces=False):
        if self.problem is not None:
            raise self.problem
        where = " everywhere" if all_namespaces and kind.is_namespaced else ""
        return (
            verb,
            "/".join(filter(None, (kind.plural, subresource))) + where,
        ) not in self.refused


def test_missing_rights_are_named_by_verb_and_resource():
    client = Asked(("get", "pods/log"), ("list", "nodes"), ("update", "leases"))

    assert missing_rights(client) == ("get pods/log", "list nodes", "update leases")


def test_right_to_see_the_pods_of_other_tenants_is_asked_for_apart():
    assert missing_rights(Asked(("list", "pods everywhere"))) == ("list pods of all namespaces",)


def test_rights_on_what_a_cluster_may_lack_are_not_demanded():
    assert missing_rights(Asked(("create", "jobsets"), ("list", "resourceslices"))) == ()


def test_cluster_that_does_not_answer_about_rights_is_not_refused():
    assert missing_rights(Asked(problem=ApiProblem("no", status=404, reason=""))) == ()


def test_every_rule_is_about_a_kind_that_the_harness_knows():
    known = {(kind.group, kind.plural) for kind in KINDS} | {("", "pods/log")}
    found = {
        (group, resource)
        for rule in (*NAMESPACED_RULES, *CLUSTER_RULES)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert found == known


def test_every_workload_kind_can_be_created_watched_and_deleted():
    verbs = {
        (group, resource): set(rule["verbs"])
        for rule in NAMESPACED_RULES
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    for workload in WORKLOADS.values():
        found = verbs[workload.kind.group, workload.kind.plural]
        assert found == {"create", "delete", "get", "list", "watch"}
    runtimes = verbs["trainer.kubeflow.org", "trainingruntimes"]
    assert runtimes == {"create", "delete", "get", "list"}


def test_every_right_is_explained_in_the_documentation():
    text = (Path(__file__).parents[2] / "docs/reference/rights.md").read_text()
    for rule in (*NAMESPACED_RULES, *CLUSTER_RULES):
        for resource in rule["resources"]:
            rows = [row for row in text.splitlines() if row.startswith("|") and resource in row]
            assert any(all(verb in row for verb in rule["verbs"]) for row in rows), resource

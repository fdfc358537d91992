from pytest_cre.cluster.objects import kind_named
from pytest_cre.cluster.rbac import CLUSTER_RULES, NAMESPACED_RULES, rbac_manifests


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


def test_every_rule_is_about_a_kind_that_the_harness_knows():
    known = {("batch", "jobs"), ("", "configmaps"), ("", "services"), ("", "pods"), ("", "nodes")}
    known |= {("", "pods/log"), ("", "events"), ("coordination.k8s.io", "leases")}
    found = {
        (group, resource)
        for rule in (*NAMESPACED_RULES, *CLUSTER_RULES)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert found == known
    assert kind_named("batch/v1", "Job") is not None

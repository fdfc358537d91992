"""The least rights that a run needs, as data and as manifests."""

from collections.abc import Mapping, Sequence
from typing import Any

NAME = "pytest-cre"

Rule = Mapping[str, Sequence[str]]

# In the namespace of the run. `list` and `delete` are what clean-up finds and removes by label.
NAMESPACED_RULES: tuple[Rule, ...] = (
    {
        "apiGroups": ("batch",),
        "resources": ("jobs",),
        "verbs": ("create", "delete", "get", "list", "watch"),
    },
    {
        "apiGroups": ("",),
        "resources": ("configmaps", "services"),
        "verbs": ("create", "delete", "get", "list"),
    },
    {"apiGroups": ("",), "resources": ("pods",), "verbs": ("delete", "get", "list", "watch")},
    {"apiGroups": ("",), "resources": ("pods/log",), "verbs": ("get",)},
    {"apiGroups": ("",), "resources": ("events",), "verbs": ("list", "watch")},
    {
        "apiGroups": ("coordination.k8s.io",),
        "resources": ("leases",),
        "verbs": ("create", "delete", "get", "list", "update"),
    },
)

# Nodes are only read. Pods of all namespaces tell who holds GPUs; without that right a run does
# not know of busy nodes and says so.
CLUSTER_RULES: tuple[Rule, ...] = (
    {"apiGroups": ("",), "resources": ("nodes",), "verbs": ("list", "watch")},
    {"apiGroups": ("",), "resources": ("pods",), "verbs": ("list",)},
)


def rbac_manifests(namespace: str) -> tuple[dict[str, Any], ...]:
    """Return a service account, the roles and their bindings, in the order to apply them."""
    # A ClusterRole has one name in the whole cluster; campaigns in two namespaces share it.
    cluster_binding = f"{NAME}-{namespace}"
    return (
        _manifest("v1", "ServiceAccount", NAME, namespace),
        _manifest("rbac.authorization.k8s.io/v1", "Role", NAME, namespace)
        | {"rules": _plain(NAMESPACED_RULES)},
        _binding("RoleBinding", NAME, "Role", namespace, namespace),
        _manifest("rbac.authorization.k8s.io/v1", "ClusterRole", NAME, None)
        | {"rules": _plain(CLUSTER_RULES)},
        _binding("ClusterRoleBinding", cluster_binding, "ClusterRole", namespace, None),
    )


def _binding(
    kind: str, name: str, role_kind: str, account_namespace: str, namespace: str | None
) -> dict[str, Any]:
    return _manifest("rbac.authorization.k8s.io/v1", kind, name, namespace) | {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": account_namespace}],
    }


def _manifest(api_version: str, kind: str, name: str, namespace: str | None) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    labels = {"app.kubernetes.io/name": NAME}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata | {"labels": labels},
    }


def _plain(rules: Sequence[Rule]) -> list[dict[str, list[str]]]:
    return [{name: list(values) for name, values in rule.items()} for rule in rules]

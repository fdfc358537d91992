"""The least rights that a run needs, as data and as manifests."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pytest_cre.cluster.exchange import ApiProblem
from pytest_cre.cluster.objects import EVERY_CLUSTER, KINDS, ResourceKind

if TYPE_CHECKING:
    from pytest_cre.cluster.client import Client

NAME = "pytest-cre"
_THREADS = 8

Rule = Mapping[str, Sequence[str]]
_SELDOM = ("persistentvolumeclaims",)  # missed only by those who use it

# In the namespace of the run. `list` and `delete` are what clean-up finds and removes by label.
# Where the cluster does not serve an operator's kinds, the rules on them allow nothing.
_WORKLOAD_VERBS = ("create", "delete", "get", "list", "watch")
NAMESPACED_RULES: tuple[Rule, ...] = (
    {"apiGroups": ("batch",), "resources": ("jobs",), "verbs": _WORKLOAD_VERBS},
    {"apiGroups": ("jobset.x-k8s.io",), "resources": ("jobsets",), "verbs": _WORKLOAD_VERBS},
    {"apiGroups": ("kubeflow.org",), "resources": ("mpijobs",), "verbs": _WORKLOAD_VERBS},
    {"apiGroups": ("trainer.kubeflow.org",), "resources": ("trainjobs",), "verbs": _WORKLOAD_VERBS},
    {
        "apiGroups": ("trainer.kubeflow.org",),
        "resources": ("trainingruntimes",),
        "verbs": ("create", "delete", "get", "list"),
    },
    # What overrides create: NVLink between nodes, and devices that are claimed.
    {
        "apiGroups": ("resource.nvidia.com",),
        "resources": ("computedomains",),
        "verbs": ("create", "delete", "get", "list"),
    },
    {
        "apiGroups": ("resource.k8s.io",),
        "resources": ("resourceclaimtemplates",),
        "verbs": ("create", "delete", "get", "list"),
    },
    {
        "apiGroups": ("",),
        "resources": ("configmaps", "services"),
        "verbs": ("create", "delete", "get", "list"),
    },
    # Where checkpoints have a volume of their own.
    {
        "apiGroups": ("",),
        "resources": ("persistentvolumeclaims",),
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

# Outside its namespace a run only reads.
CLUSTER_RULES: tuple[Rule, ...] = (
    {"apiGroups": ("",), "resources": ("nodes",), "verbs": ("list", "watch")},
    # Pods of other tenants hold GPUs, and those of DRA drivers by claims.
    {"apiGroups": ("",), "resources": ("pods",), "verbs": ("list",)},
    {"apiGroups": ("resource.k8s.io",), "resources": ("resourceclaims",), "verbs": ("list",)},
    # Where no node carries a product label, DRA drivers say which GPUs there are.
    {"apiGroups": ("resource.k8s.io",), "resources": ("resourceslices",), "verbs": ("list",)},
)


def missing_rights(client: "Client") -> tuple[str, ...]:
    """Return what every run needs and our credentials may not do, such as `get pods/log`, sorted.

    The cluster itself is asked, before anything runs: a right that is missing would come up late,
    that to renew the lease after ten seconds. Empty where it does not answer such questions.
    """
    needed = [
        (verb, resource, _kind(group, resource), rules is CLUSTER_RULES)
        for rules in (NAMESPACED_RULES, CLUSTER_RULES)
        for rule in rules
        for group in rule["apiGroups"]
        if group in EVERY_CLUSTER
        for resource in rule["resources"]
        if resource not in _SELDOM
        for verb in rule["verbs"]
    ]

    def is_allowed(each: tuple[str, str, ResourceKind, bool]) -> bool:
        verb, resource, kind, is_everywhere = each
        return client.can_i(
            verb, kind, subresource=resource.partition("/")[2], all_namespaces=is_everywhere
        )

    try:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="cre-rights") as pool:
            answers = list(pool.map(is_allowed, needed))
    except ApiProblem:
        return ()
    refused = [each for each, allowed in zip(needed, answers, strict=True) if not allowed]
    return tuple(sorted(_right_words(*each) for each in refused))


def _right_words(verb: str, resource: str, kind: ResourceKind, is_everywhere: bool) -> str:
    where = " of all namespaces" if is_everywhere and kind.is_namespaced else ""
    return f"{verb} {resource}{where}"


def _kind(group: str, resource: str) -> ResourceKind:
    plural = resource.partition("/")[0]
    return next(each for each in KINDS if (each.group, each.plural) == (group, plural))


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

"""The harness's own account: a service account bound to exactly the manifests that are given."""

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_cre.controlplane.api import Api

_PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
_TOKEN_LIFETIME_S = 7 * 24 * 3600


def grant(api: Api, manifests: Iterable[Mapping[str, Any]]) -> str:
    """Create the manifests and return a token of the first service account among them."""
    account: str | None = None
    for manifest in manifests:
        kind = manifest.get("kind")
        if kind not in _PATHS:
            raise ValueError(f"grants: unknown kind {kind!r}; choices: {', '.join(_PATHS)}")
        path = _PATHS[kind].format(namespace=manifest["metadata"].get("namespace"))
        api.create(path, manifest)
        if kind == "ServiceAccount" and account is None:
            account = f"{path}/{manifest['metadata']['name']}"
    if account is None:
        raise ValueError("grants: no ServiceAccount among the manifests")
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_LIFETIME_S},
    }
    return str(api.call("POST", f"{account}/token", request)["status"]["token"])

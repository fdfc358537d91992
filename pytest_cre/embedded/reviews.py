"""Reviews of one's own identity and rights: everyone who has the token may do everything."""

from pytest_cre.embedded.kinds import Json

_GROUPS = ["system:masters", "system:authenticated"]
_AUTHORIZATION = "/apis/authorization.k8s.io/v1/"
_AUTHENTICATION = "/apis/authentication.k8s.io/v1/"


def answer_review(path: str, body: Json, user: str) -> Json | None:
    """Give the filled-in review for a path, None where it is not one."""
    spec = body.get("spec")
    if path == f"{_AUTHORIZATION}selfsubjectaccessreviews":
        return {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": spec if isinstance(spec, dict) else {},
            "status": {"allowed": True},
        }
    if path == f"{_AUTHORIZATION}selfsubjectrulesreviews":
        rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        return {
            "kind": "SelfSubjectRulesReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": {},
            "status": {
                "resourceRules": rules,
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            },
        }
    if path == f"{_AUTHENTICATION}selfsubjectreviews":
        return {
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "status": {"userInfo": {"username": user, "groups": _GROUPS}},
        }
    return None

"""Reviews of one's own identity and rights: everyone who has the token may do everything."""

from pytest_cre.embedded.kinds import REVIEWS, Json, Kind
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.status import ApiError, causes_as_json, invalid_value

_GROUPS = ["system:masters", "system:authenticated"]


def review_kind(path: str) -> Kind | None:
    """Give the kind of review that is asked for under a path, None where it is none."""
    return next(
        (kind for kind in REVIEWS if path == f"/apis/{kind.api_version}/{kind.plural}"), None
    )


def answer_review(kind: Kind, body: Json, user: str, registry: Registry) -> Json:
    """Give the filled-in review."""
    answer: Json = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {}}
    spec = body.get("spec") or {}
    if kind.kind == "SelfSubjectReview":
        info = {"username": user, "uid": user, "groups": _GROUPS}
        metadata = {"creationTimestamp": registry.now_text()}
        return {**answer, "metadata": metadata, "status": {"userInfo": info}}
    if kind.kind == "SelfSubjectAccessReview":
        if ("resourceAttributes" in spec) == ("nonResourceAttributes" in spec):
            text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            causes = [invalid_value("spec", None, text)]
            details = {"group": kind.group, "causes": causes_as_json(causes)}
            message = f'.{kind.group} "" is invalid: spec: {causes[0].message}'
            raise ApiError(422, "Invalid", message, details)
        return {**answer, "spec": spec, "status": {"allowed": True}}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    anywhere = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    status = {"resourceRules": [everything], "nonResourceRules": [anywhere], "incomplete": False}
    return {**answer, "spec": {}, "status": status}

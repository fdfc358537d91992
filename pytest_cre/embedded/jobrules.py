"""Defaults and rules of batch/v1 Jobs."""

from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.metarules import dns_label_problem, label_causes
from pytest_cre.embedded.podrules import default_pod_spec, pod_spec_causes
from pytest_cre.embedded.status import (
    Cause,
    forbidden_value,
    invalid_value,
    required,
    unsupported_value,
)

_RESTART_POLICIES = ("OnFailure", "Never")
_INT32_MAX = 2**31 - 1
# Fields of a Job's spec that stay as they were created.
_FIXED = (
    "completions",
    "completionMode",
    "selector",
    "template",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "manualSelector",
    "podReplacementPolicy",
)
_COUNTS = (
    "parallelism",
    "completions",
    "backoffLimit",
    "backoffLimitPerIndex",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
)
TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"


def prepare_job(job: Json) -> None:
    """Bring a Job that a client creates into the form that is stored; needs name and uid."""
    spec = job.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _INT32_MAX if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault(
        "podReplacementPolicy",
        "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
    )
    template = spec.setdefault("template", {})
    metadata = template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))
    if not spec["manualSelector"]:
        uid, name = job["metadata"]["uid"], job["metadata"]["name"]
        metadata["labels"] = {
            **metadata.get("labels", {}),
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    if not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(metadata.get("labels", {}))
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        for pattern in rule.get("onPodConditions", []):
            pattern.setdefault("status", "True")
    job["status"] = {}


def job_causes(job: Json) -> list[Cause]:
    """Check a new Job."""
    spec = job["spec"]
    causes = [
        invalid_value(f"spec.{field}", spec[field], "must be greater than or equal to 0")
        for field in _COUNTS
        if spec.get(field, 0) < 0
    ]
    mode = spec["completionMode"]
    if mode not in ("NonIndexed", "Indexed"):
        causes.append(unsupported_value("spec.completionMode", mode, ("Indexed", "NonIndexed")))
    if mode == "Indexed":
        if "completions" not in spec:
            causes.append(required("spec.completions", "when completion mode is Indexed"))
        # The longest pod host name must fit a DNS label.
        longest = f"{job['metadata']['name']}-{max(spec.get('completions', 1) - 1, 0)}"
        problem = dns_label_problem(longest)
        if problem:
            causes.append(
                invalid_value(
                    "metadata.name",
                    job["metadata"]["name"],
                    f"will not able to create pod with invalid DNS label: {longest}",
                )
            )
    else:
        causes += [
            forbidden_value(f"spec.{field}", "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if field in spec
        ]
    limit, completions = spec.get("maxFailedIndexes"), spec.get("completions")
    if limit is not None and completions is not None and limit > completions:
        text = "must be less than or equal to completions"
        causes.append(invalid_value("spec.maxFailedIndexes", limit, text))
    template = spec["template"]
    causes += label_causes(template.get("metadata", {}).get("labels", {}), "spec.template.labels")
    causes += _failure_policy_causes(spec)
    return causes + pod_spec_causes(template["spec"], "spec.template.spec", _RESTART_POLICIES)


def job_update_causes(new: Json, old: Json) -> list[Cause]:
    """Check an update of a Job: what makes its pods is fixed."""
    causes: list[Cause] = []
    for field in _FIXED:
        if field == "completions" and new["spec"]["completionMode"] == "Indexed":
            if new["spec"].get("completions") not in (
                old["spec"].get("completions"),
                new["spec"].get("parallelism"),
            ):
                text = "can only be modified in tandem with spec.parallelism"
                causes.append(invalid_value("spec.completions", new["spec"].get(field), text))
            continue
        if field == "template" and old["spec"].get("suspend") and "startTime" not in old["status"]:
            # Queueing systems place a job that has not started by changing its template.
            continue
        if new["spec"].get(field) != old["spec"].get(field):
            shown = new["spec"].get(field)
            causes.append(invalid_value(f"spec.{field}", _go_value(shown), "field is immutable"))
    return causes


def _go_value(value: object) -> object:
    return value if isinstance(value, (str, int)) else ("null" if value is None else "{...}")


def _failure_policy_causes(spec: Json) -> list[Cause]:
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    causes: list[Cause] = []
    if spec["template"]["spec"].get("restartPolicy") != "Never":
        causes.append(
            invalid_value(
                "spec.template.spec.restartPolicy",
                spec["template"]["spec"].get("restartPolicy", ""),
                'only "Never" is supported when podFailurePolicy is specified',
            )
        )
    for index, rule in enumerate(policy.get("rules", [])):
        at = f"spec.podFailurePolicy.rules[{index}]"
        action = rule.get("action", "")
        if action not in ("Count", "FailIndex", "FailJob", "Ignore"):
            causes.append(
                unsupported_value(
                    f"{at}.action", action, ("Count", "FailIndex", "FailJob", "Ignore")
                )
            )
        if ("onExitCodes" in rule) == ("onPodConditions" in rule):
            causes.append(
                invalid_value(
                    at, "{...}", "specifying one of OnExitCodes and OnPodConditions is required"
                )
            )
        codes = rule.get("onExitCodes", {})
        if codes and codes.get("operator") not in ("In", "NotIn"):
            causes.append(
                unsupported_value(
                    f"{at}.onExitCodes.operator", codes.get("operator", ""), ("In", "NotIn")
                )
            )
    return causes

"""Defaults and rules of batch/v1 Jobs."""

from pytest_cre.embedded.jobpolicies import failure_policy_causes, success_policy_causes
from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.metarules import dns_label_problem, label_causes
from pytest_cre.embedded.poddefaults import default_pod_spec
from pytest_cre.embedded.podrules import pod_spec_causes
from pytest_cre.embedded.status import Cause, invalid_value, required, unsupported_value

_RESTART_POLICIES = ("OnFailure", "Never")
_MODES = ("NonIndexed", "Indexed")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_INT32_MAX = 2**31 - 1
# Fields of a Job's spec that stay as they were created, beside completions and template.
_FIXED = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
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
CONTROLLER_UID_LABEL = "batch.kubernetes.io/controller-uid"
OWN_CONTROLLER = "kubernetes.io/job-controller"


def prepare_job(job: Json, _now: str) -> None:
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
            CONTROLLER_UID_LABEL: uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        selector = spec.setdefault("selector", {})
        selector["matchLabels"] = {**selector.get("matchLabels", {}), CONTROLLER_UID_LABEL: uid}
    if not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(metadata.get("labels", {}))
    for rule in spec.get("podFailurePolicy", {}).get("rules") or []:
        for pattern in rule.get("onPodConditions") or []:
            pattern["status"] = pattern.get("status") or "True"
    job["status"] = {}


def job_causes(job: Json) -> list[Cause]:
    """Check a new Job."""
    spec = job["spec"]
    causes = _selector_causes(job)
    causes += [
        invalid_value(f"spec.{field}", spec[field], "must be greater than or equal to 0")
        for field in _COUNTS
        if spec.get(field, 0) < 0
    ]
    causes += _mode_causes(spec)
    if spec["podReplacementPolicy"] not in _REPLACEMENTS:
        policy = spec["podReplacementPolicy"]
        causes.append(unsupported_value("spec.podReplacementPolicy", policy, _REPLACEMENTS))
    manager = spec.get("managedBy")
    if manager is not None and "/" not in manager:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        causes.append(invalid_value("spec.managedBy", manager, text))
    template = spec["template"]
    labels = template.get("metadata", {}).get("labels", {})
    causes += label_causes(labels, "spec.template.labels")
    causes += failure_policy_causes(spec)
    causes += success_policy_causes(spec)
    causes += pod_spec_causes(template["spec"], "spec.template.spec", _RESTART_POLICIES)
    return causes + _host_name_causes(job)


def job_update_causes(new: Json, old: Json) -> list[Cause]:
    """Check an update of a Job: what makes its pods is fixed."""
    spec, before = new["spec"], old["spec"]
    causes = _mismatch_causes(spec)
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    if completions != before.get("completions"):
        if spec["completionMode"] != "Indexed":
            causes.append(invalid_value("spec.completions", completions, "field is immutable"))
        elif completions != parallelism:
            text = "can only be modified in tandem with spec.parallelism"
            causes.append(invalid_value("spec.completions", completions, text))
    for field in _FIXED:
        if spec.get(field) != before.get(field):
            causes.append(invalid_value(f"spec.{field}", spec.get(field), "field is immutable"))
    if _fixed_template(spec, old) != _fixed_template(before, old):
        shown = spec["template"]["spec"]
        causes.append(invalid_value("spec.template.spec", shown, "field is immutable"))
    return causes


def _fixed_template(spec: Json, old: Json) -> Json:
    """Give what of the template may not be changed: where pods go may be, until they are made."""
    template: Json = spec["template"]
    if not old["spec"].get("suspend") or "startTime" in old.get("status", {}):
        return template
    placing = ("affinity", "nodeSelector", "schedulingGates", "tolerations")
    return {key: value for key, value in template["spec"].items() if key not in placing}


def _selector_causes(job: Json) -> list[Cause]:
    spec = job["spec"]
    if spec["manualSelector"]:
        causes = [] if spec.get("selector") else [required("spec.selector")]
    else:
        uid = job["metadata"]["uid"]
        is_own = spec["selector"] == {"matchLabels": {CONTROLLER_UID_LABEL: uid}}
        text = "`selector` not auto-generated"
        causes = [] if is_own else [invalid_value("spec.selector", spec["selector"], text)]
    return causes + _mismatch_causes(spec)


def _mismatch_causes(spec: Json) -> list[Cause]:
    """Check that the pods to be made are those that the selector finds."""
    labels = spec["template"].get("metadata", {}).get("labels", {})
    wanted = (spec.get("selector") or {}).get("matchLabels", {})
    if wanted and all(labels.get(key) == value for key, value in wanted.items()):
        return []
    shown = dict(sorted(labels.items()))
    text = "`selector` does not match template `labels`"
    return [invalid_value("spec.template.metadata.labels", shown, text)]


def _mode_causes(spec: Json) -> list[Cause]:
    causes: list[Cause] = []
    mode, limit = spec["completionMode"], spec.get("maxFailedIndexes")
    if mode not in _MODES:
        causes.append(unsupported_value("spec.completionMode", mode, _MODES))
    if mode == "Indexed" and "completions" not in spec:
        causes.append(required("spec.completions", "when completion mode is Indexed"))
    if limit is not None and "backoffLimitPerIndex" not in spec:
        text = "when maxFailedIndexes is specified"
        causes.append(required("spec.backoffLimitPerIndex", text))
    if mode == "NonIndexed":
        causes += [
            invalid_value(f"spec.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if field in spec
        ]
    elif limit is not None and limit > spec.get("completions", limit):
        text = "must be less than or equal to completions"
        causes.append(invalid_value("spec.maxFailedIndexes", limit, text))
    return causes


def _host_name_causes(job: Json) -> list[Cause]:
    """Check that the longest pod host name fits a DNS label."""
    spec, name = job["spec"], job["metadata"]["name"]
    if spec["completionMode"] != "Indexed" or spec.get("completions", 0) < 1:
        return []
    longest = f"{name}-{spec['completions'] - 1}"
    if dns_label_problem(longest) is None:
        return []
    text = f"will not able to create pod with invalid DNS label: {longest}"
    return [invalid_value("metadata.name", name, text)]

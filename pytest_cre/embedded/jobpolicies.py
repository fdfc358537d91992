"""Rules of a Job's podFailurePolicy and successPolicy."""

from pytest_cre.embedded.indexes import parse_indexes
from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.status import Cause, invalid_value, required, unsupported_value

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")


def failure_policy_causes(spec: Json) -> list[Cause]:
    """Check what a Job says about failed pods."""
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    causes: list[Cause] = []
    restart_policy = spec["template"]["spec"].get("restartPolicy", "")
    if restart_policy != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        causes.append(invalid_value("spec.template.spec.restartPolicy", restart_policy, text))
    for index, rule in enumerate(policy.get("rules") or []):
        causes += _failure_rule_causes(rule, f"spec.podFailurePolicy.rules[{index}]", spec)
    return causes


def _failure_rule_causes(rule: Json, at: str, spec: Json) -> list[Cause]:
    causes: list[Cause] = []
    action = rule.get("action", "")
    if action not in _ACTIONS:
        causes.append(unsupported_value(f"{at}.action", action, _ACTIONS))
    if action == "FailIndex" and "backoffLimitPerIndex" not in spec:
        text = "requires the backoffLimitPerIndex to be set"
        causes.append(invalid_value(f"{at}.action", action, text))
    codes = rule.get("onExitCodes")
    if (codes is not None) == bool(rule.get("onPodConditions")):
        text = "Invalid value: specifying one of OnExitCodes and OnPodConditions is required"
        causes.append(Cause(reason="FieldValueInvalid", message=text, field=at))
    if codes is not None:
        operator = codes.get("operator", "")
        if operator not in ("In", "NotIn"):
            field = f"{at}.onExitCodes.operator"
            causes.append(unsupported_value(field, operator, ("In", "NotIn")))
        for index, code in enumerate(codes.get("values") or []):
            if operator == "In" and code == 0:
                field = f"{at}.onExitCodes.values[{index}]"
                causes.append(invalid_value(field, code, "must not be 0 for the In operator"))
    return causes


def success_policy_causes(spec: Json) -> list[Cause]:
    """Check what a Job says about when it has succeeded."""
    policy = spec.get("successPolicy")
    if policy is None:
        return []
    at = "spec.successPolicy.rules"
    if spec["completionMode"] != "Indexed":
        text = "requires indexed completion mode"
        return [invalid_value("spec.successPolicy", policy, text)]
    if not policy.get("rules"):
        return [
            required(at, "at least one rules must be specified when the successPolicy is specified")
        ]
    causes: list[Cause] = []
    completions = spec.get("completions") or 0
    for place, rule in enumerate(policy["rules"]):
        indexes = rule.get("succeededIndexes")
        too_large = [index for index in parse_indexes(indexes or "") if index >= completions]
        if too_large:
            text = f'error parsing succeededIndexes: too large index: "{max(too_large)}"'
            causes.append(invalid_value(f"{at}[{place}].succeededIndexes", indexes, text))
    return causes

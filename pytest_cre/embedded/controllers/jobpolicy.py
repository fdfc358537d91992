"""What a failed pod means for its Job: the rules of podFailurePolicy."""

from dataclasses import dataclass
from typing import Literal

from pytest_cre.embedded.kinds import Json
from pytest_cre.embedded.store import Record

Action = Literal["Count", "FailIndex", "FailJob", "Ignore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How one failure is to be taken; the message says why when the Job is to fail."""

    action: Action
    message: str = ""


def judge_failure(pod: Record, policy: Json | None) -> Judgement:
    """Apply the first rule that matches a failed pod; without one the failure counts."""
    for index, rule in enumerate((policy or {}).get("rules", [])):
        action: Action = rule.get("action", "Count")
        what = _match_exit_codes(pod, rule) or _match_conditions(pod, rule)
        if what:
            return Judgement(
                action=action, message=f"{what} matching {action} rule at index {index}"
            )
    return Judgement(action="Count")


def _match_exit_codes(pod: Record, rule: Json) -> str:
    wanted = rule.get("onExitCodes")
    if wanted is None:
        return ""
    status: Json = pod.obj.get("status", {})
    for container in (
        *(status.get("containerStatuses") or []),
        *(status.get("initContainerStatuses") or []),
    ):
        name = container.get("name", "")
        terminated = (container.get("state") or {}).get("terminated") or {}
        code = terminated.get("exitCode", 0)
        if code == 0 or wanted.get("containerName") not in (None, name):
            continue
        if (code in wanted.get("values", [])) == (wanted.get("operator") == "In"):
            return f"Container {name} for pod {'/'.join(pod.key)} failed with exit code {code}"
    return ""


def _match_conditions(pod: Record, rule: Json) -> str:
    conditions: list[Json] = pod.obj.get("status", {}).get("conditions") or []
    for pattern in rule.get("onPodConditions") or []:
        for condition in conditions:
            if (condition.get("type"), condition.get("status")) == (
                pattern.get("type"),
                pattern.get("status", "True"),
            ):
                return f"Pod {'/'.join(pod.key)} has condition {condition['type']}"
    return ""

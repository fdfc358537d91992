"""What the genuine controllers answered: top objects at each stage, what they own, their pods."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

RECORDED = Path(__file__).parents[2] / "data" / "workloads"


@dataclass(frozen=True)
class Recorded:
    """One workload from its creation on. `pods` are in their last state."""

    stages: list[dict[str, Any]]
    owned: list[dict[str, Any]]
    pods: list[dict[str, Any]]

    @property
    def uid(self) -> str:
        return self.stages[-1]["metadata"]["uid"]

    @property
    def owners(self) -> dict[str, dict[str, Any]]:
        return {each["metadata"]["uid"]: each for each in self.owned}


@pytest.fixture
def recorded():
    def read(kind: str, case: str) -> Recorded:
        cases = json.loads((RECORDED / f"{kind}.json").read_text())["cases"]
        return Recorded(**cases[case])

    return read

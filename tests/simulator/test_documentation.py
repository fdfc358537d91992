from pathlib import Path

import pytest

from pytest_cre.simulator.apifaultfile import ApiFaultDocument, ApiMatchDocument
from pytest_cre.simulator.apifaults import API_ACTIONS
from pytest_cre.simulator.faults import CONDITIONS, EVENTS
from pytest_cre.simulator.scenario import shipped_scenarios
from pytest_cre.simulator.scenariofile import HardwareDocument, NodesDocument, ScenarioDocument

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scenarios.md"


@pytest.mark.parametrize(
    "names",
    [
        shipped_scenarios(),
        EVENTS,
        CONDITIONS,
        [field.alias for field in ScenarioDocument.model_fields.values()],
        [field.alias for field in NodesDocument.model_fields.values()],
        [field.alias for field in HardwareDocument.model_fields.values()],
        API_ACTIONS,
        [field.alias for field in ApiFaultDocument.model_fields.values()],
        [field.alias for field in ApiMatchDocument.model_fields.values()],
        [key for keys in API_ACTIONS.values() for key in keys],
        [key for keys in (*EVENTS.values(), *CONDITIONS.values()) for key in keys],
    ],
)
def test_documentation_names_everything_a_scenario_may_hold(names):
    text = PAGE.read_text()
    assert [name for name in names if f"`{name}`" not in text] == []

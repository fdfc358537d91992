import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from pytest_cre.catalog.schema import FORMS, json_schema
from pytest_cre.cli import main
from pytest_cre.formats.yaml import parse_yaml

ROOT = Path(__file__).parents[2]
FILES = {
    "entry": "suites/*/*.yaml",
    "log-profile": "profiles/logs/*.yaml",
    "architecture": "profiles/architectures/*.yaml",
    "platform": "profiles/platforms/*.yaml",
}


def mistakes(kind, data):
    return [each.message for each in Draft202012Validator(json_schema(kind)).iter_errors(data)]


@pytest.mark.parametrize("kind", FORMS)
def test_command_prints_a_valid_schema(kind, capsys):
    assert main(["schema", kind]) == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    assert schema == json_schema(kind)


@pytest.mark.parametrize("kind", FILES)
def test_every_shipped_file_fits_its_schema(kind):
    paths = sorted(ROOT.glob(FILES[kind]))
    assert paths
    for path in paths:
        assert mistakes(kind, parse_yaml(path.read_text(), str(path)).data) == [], path


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("entry", {"description": "x"}, "'image' is a required property"),
        ("entry", {"extends": "a/b", "imgae": "x"}, "'imgae' was unexpected"),
        ("entry", {"extends": "a/b", "measures": "speed"}, "'speed' is not one of"),
        ("entry", {"extends": "a/b", "timeout": ["1h"]}, "['1h'] is not"),
        ("platform", {"detect": []}, "'hardware' is a required property"),
        ("site", {"queue": 5}, "5 is not"),
        ("architecture", {"productLabels": [], "gpusPerNode": 1}, "[] should be non-empty"),
    ],
)
def test_schema_finds_what_reading_would_refuse(kind, data, words):
    assert any(words in each for each in mistakes(kind, data)), mistakes(kind, data)


def test_entry_that_extends_need_not_be_whole():
    assert mistakes("entry", {"extends": "a/b", "timeout": "5m", "env": {"A": 1}}) == []
    assert mistakes("entry", {"extends": "a/b", "workloads": {"mpiJob": {"args": ["-n", 5]}}}) == []

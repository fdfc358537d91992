"""The embedded server answers as the genuine one does, known differences aside."""

from pathlib import Path

import pytest

from tests.conformance.differences import (
    ABSENT,
    Difference,
    as_text,
    compare,
    known_differences,
)
from tests.conformance.table import all_exchanges, read_records

RECORDS = read_records()
KNOWN, WORDS = known_differences()
EXCHANGES = [(chapter, name) for chapter, named in all_exchanges().items() for name in named]
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "reference" / "embedded-cluster.md"


def found_differences(transcripts, chapter, name):
    """Give where an exchange's answers differ from the record; raises what kept it from being played."""
    found = transcripts[chapter][name]
    if isinstance(found, Exception):
        raise found
    return compare(RECORDS[chapter][name], found)


@pytest.mark.parametrize(("chapter", "name"), EXCHANGES, ids=map(".".join, EXCHANGES))
def test_embedded_server_answers_as_recorded_but_for_known_differences(played, chapter, name):
    exchange = f"{chapter}.{name}"
    found = found_differences(played, chapter, name)
    known = KNOWN.get(exchange, {})
    new = {p: value for p, value in found.items() if p not in known or known[p] != value}
    assert not new, f"differs from the record:\n{as_text(exchange, new)}"
    gone = {p: value for p, value in known.items() if p not in found}
    assert not gone, f"listed as different, and is not:\n{as_text(exchange, gone)}"


def test_record_is_of_the_exchanges_that_there_are():
    recorded = [(chapter, name) for chapter, named in RECORDS.items() for name in named]
    assert sorted(recorded) == sorted(EXCHANGES)
    assert set(KNOWN) <= {f"{chapter}.{name}" for chapter, name in EXCHANGES}


@pytest.mark.parametrize("words", WORDS)
def test_known_difference_is_told_in_the_documentation(words):
    text = " ".join(DOCUMENTATION.read_text().split())
    assert words in text.partition("## Known differences")[2]


@pytest.mark.parametrize(
    ("planted", "exchange", "place"),
    [
        (
            "import pytest_cre.embedded.registry as r; real = r.already_exists\n"
            "def spoilt(kind, name):\n"
            "    error = real(kind, name); error.code = 400; return error\n"
            "r.already_exists = spoilt",
            "objects.create_twice",
            Difference(0, "code"),
        ),
        (
            "import pytest_cre.embedded.jobrules as j; real = j.default_pod_spec\n"
            "j.default_pod_spec = lambda spec: spec.setdefault('hostNetwork', True) and real(spec)",
            "jobs.defaults",
            Difference(0, "body/spec/template/spec/hostNetwork"),
        ),
        (
            "import pytest_cre.embedded.store as s; real = s.event_line\n"
            "s.event_line = lambda kind, text: real(kind.replace('MODIFIED', 'UPDATED'), text)",
            "watches.from_a_version",
            Difference(0, "events/1/type"),
        ),
    ],
    ids=["code", "default", "event"],
)
def test_difference_planted_in_the_embedded_server_is_found(
    play_embedded, planted, exchange, place
):
    chapter, name = exchange.split(".")
    transcripts = play_embedded(lambda *names: names == (chapter, name), planted)
    assert place in found_differences(transcripts, chapter, name)
    assert place not in KNOWN.get(exchange, {})


def test_comparison_finds_what_is_missing_added_changed_and_of_another_type():
    old = [{"code": 200, "body": {"a": 1, "b": [1, 2], "c": {"d": "x"}}}, {"code": 404}]
    new = [{"code": 200, "body": {"a": True, "b": [1], "c": {"e": "x"}}}]
    assert compare(old, new) == {
        Difference(0, "body/a"): True,
        Difference(0, "body/b"): [1],
        Difference(0, "body/c/d"): ABSENT,
        Difference(0, "body/c/e"): "x",
        Difference(1, ""): ABSENT,
    }
    assert compare(old, old) == {}

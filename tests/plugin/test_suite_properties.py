"""The run as a whole in pytest's own JUnit file: cases that are all well do not tell it."""

import signal
from pathlib import Path
from xml.etree import ElementTree

import pytest
from _pytest.junitxml import LogXML, xml_key

from pytest_cre.suiteproperties import SuiteProperties

SUITES = ("--pyargs", "pytest_cre.suites", "-k", "nccl-all-gather", "--cre-scale=full-scale")
TAINTED = """
extends: h100-2
nodes:
- {name: "good-{index}", count: 2, gpu: h100}
- {name: seven, count: 1, gpu: h100, gpusPerNode: 7}
- {name: odd, count: 1, gpu: h100, taints: [{key: a/b, value: "<&\\x07>", effect: NoSchedule}]}
derivedLimits: {margin: 0.06}
"""


def properties_of(path: Path) -> dict[str, str]:
    """Return the properties of the one suite; each name once."""
    (suite,) = ElementTree.parse(path).getroot().iter("testsuite")
    found = [(each.get("name"), each.get("value")) for each in suite.findall("properties/property")]
    assert len(dict(found)) == len(found)
    return dict(found)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two-workers"])
def test_incomplete_run_of_passing_cases_says_so_in_the_file(certify, tmp_path, workers):
    (tmp_path / "mix.yaml").write_text(TAINTED)

    done = certify(*SUITES, *workers, "--cre-scenario=mix.yaml")

    assert done.code == 10, done.output
    (suite,) = ElementTree.parse(tmp_path / "r.xml").getroot().iter("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "0")
    found = properties_of(tmp_path / "r.xml")
    report = done.json()
    assert found["cre.run_id"] == report["run_id"]
    assert found["cre.result"] == report["result"] == "INCOMPLETE"
    assert found["cre.excluded"] == "2"
    assert found["cre.excluded.seven"] == "few-gpus: 7 of 8 GPUs allocatable"
    assert found["cre.excluded.odd"].startswith("tainted: ")
    assert "<&" in found["cre.excluded.odd"]


def test_interrupted_run_says_so_in_the_file(slow, certify, eventually, tmp_path):
    process = certify.start(
        *("--pyargs", "pytest_cre.suites", "-k", "nemotron5-8b or nccl-all-gather"),
        *slow.options,
        *("--cre-option=maxSteps=100000", "--cre-scale=full-scale"),
    )
    eventually(slow.runs_pods)
    process.send_signal(signal.SIGINT)
    done = certify.end(process)

    found = properties_of(tmp_path / "r.xml")
    report = done.json()
    assert found["cre.result"] == report["result"] != "PASSED"
    assert found["cre.not_run"] == str(len(report["not_run"]))


def test_run_without_certification_tests_has_no_properties(pytester):
    pytester.makepyfile("def test_own(): pass")

    pytester.runpytest("--junitxml=r.xml")

    assert properties_of(pytester.path / "r.xml") == {}


@pytest.fixture
def told(tmp_path, monkeypatch, pytestconfig):
    """A file that pytest has written with what was known before the end."""
    log = LogXML(str(tmp_path / "r.xml"), None)
    monkeypatch.setitem(pytestconfig.stash._storage, xml_key, log)
    suite = SuiteProperties(pytestconfig)
    log.pytest_sessionstart()
    log.add_global_property("own", "kept")
    suite.tell([("cre.result", "PASSED"), ("cre.leftovers", "0")])
    log.add_global_property("late", "kept")
    log.pytest_sessionfinish()
    return suite


def test_file_is_written_again_where_the_end_of_the_run_changed_its_result(told, tmp_path):
    told.correct([("cre.result", "ERROR"), ("cre.leftovers", "3"), ("cre.warning.0", "\x01")])

    assert properties_of(tmp_path / "r.xml") == {
        "own": "kept",
        "late": "kept",
        "cre.result": "ERROR",
        "cre.leftovers": "3",
        "cre.warning.0": "#x01",
    }


def test_file_is_not_written_again_where_nothing_changed(told, tmp_path):
    (tmp_path / "r.xml").write_text("mine")

    told.correct([("cre.result", "PASSED"), ("cre.leftovers", "0")])

    assert (tmp_path / "r.xml").read_text() == "mine"

"""Who opted in to certification, and what a run that did not pays for it."""

import os
from pathlib import Path

import pytest

from pytest_cre.items import marker_is_asked_for
from tests.warm.runs import run_pytest

REPOSITORY = Path(__file__).parents[2]
HEAVY = ("kubernetes", "aiohttp", "pydantic", "yaml", "tabulate", "jinja2", "re2")


@pytest.mark.parametrize(
    ("expression", "is_asked"),
    [
        ("certification", True),
        ("certification and slow", True),
        ("slow or certification", True),
        ("not (not certification)", True),
        ("", False),
        ("slow", False),
        ("not slow", False),
        ("not certification", False),
        ("slow and not certification", False),
        ("((", False),
    ],
)
def test_marker_is_asked_for_only_where_it_makes_the_difference(expression, is_asked):
    assert marker_is_asked_for(expression) is is_asked


def collected(*arguments: str, cwd: Path = REPOSITORY) -> str:
    asked = ("--collect-only", "-q", "-p", "no:cacheprovider")
    return run_pytest([*asked, *arguments], cwd=cwd, env=os.environ).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (".", "--ignore=tests"),
        ("-o", "testpaths=suites"),
        ("-o", "testpaths=suites", "-m", "not certification"),
    ],
    ids=["parent-folder", "bare", "not-certification"],
)
def test_suites_not_asked_for_stay_out(arguments):
    output = collected(*arguments)

    assert "suites/" not in output
    assert "no tests" in output


@pytest.mark.parametrize(
    "arguments",
    [
        ("suites",),
        ("suites/test_communication.py",),
        ("-m", "certification", "-o", "testpaths=suites"),
    ],
    ids=["folder", "file", "marker"],
)
def test_suites_asked_for_come_in(arguments):
    assert "suites/test_communication.py::test_bandwidth[nccl-all-reduce]" in collected(*arguments)


def test_suites_by_package_from_an_empty_folder_have_the_same_ids(tmp_path):
    output = collected("--pyargs", "pytest_cre.suites", "-m", "certification", cwd=tmp_path)

    assert {
        "suites/test_communication.py::test_bandwidth[nccl-all-reduce]",
        "suites/test_communication.py::test_bandwidth[nccl-all-reduce@intra-node]",
        "suites/test_compute.py::test_gpus[gemm@intra-node]",
        "suites/test_diagnostics.py::test_gpus[dcgm-level1@intra-node]",
        "suites/test_training.py::test_goodput[nemotron5-8b]",
    } <= set(output.splitlines())


def test_user_test_not_asked_for_is_deselected_and_reads_nothing(pytester):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.certification("no/such-entry")
        def test_mine(cre_bandwidth):
            assert False

        def test_other():
            pass
        """
    )

    result = pytester.runpytest("-p", "no:cacheprovider")

    result.assert_outcomes(passed=1, deselected=1)


def test_run_without_certification_imports_nothing_heavy(pytester):
    pytester.makepyfile(
        f"""
        import sys

        def test_imports():
            assert not [name for name in {HEAVY!r} if name in sys.modules]
        """
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=1)


def test_clone_is_read_without_what_only_its_own_tests_need(tmp_path, monkeypatch):
    (tmp_path / "hypothesis.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    output = collected("-m", "certification", "-p", "no:hypothesispytest")
    assert "suites/test_training.py::test_goodput[nemotron5-8b]" in output

"""Option values after a blank and after `=`: the same run, whatever exists under that name."""

import os
import re

import pytest
from _pytest.config.argparsing import Parser

from pytest_cre.commandline import expanded, is_misread, joined
from pytest_cre.options import add_options
from tests.home import home_in
from tests.warm.runs import run_pytest

MINE = """
import pytest

@pytest.mark.certification("communication/nccl-all-reduce")
def test_mine(cre_bandwidth):
    pass

def test_plain():
    pass
"""
ENDED = re.compile(r" in \d+\.\d\ds")
FOLDERS = (
    *("--cre-controlplane", "--cre-catalog", "--cre-profiles", "--cre-evidence"),
    "--cre-save-recording",
)
FILES = (
    *("--cre-kubeconfig", "--cre-certification", "--cre-workload", "--cre-site", "--cre-json"),
    *("--cre-junit", "--cre-html", "--cre-scenario"),
)
NAMES = ("--cre-namespace", "--cre-node-selector", "--cre-nodes", "--cre-arch", "--cre-context")


@pytest.fixture(autouse=True)
def _no_cluster_configured(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # The last one: these runs are no workers, whoever runs this test.
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(pytester):
    """A project whose ini file and conftest matter, run from its root."""
    pytester.makeini(
        "[pytest]\ntestpaths = mine\naddopts = -p no:cacheprovider --cre-scale=full-scale\n"
    )
    pytester.makeconftest("def pytest_addoption(parser):\n    parser.addoption('--own')\n")
    pytester.mkdir("mine").joinpath("test_mine.py").write_text(MINE)
    pytester.mkdir("other").joinpath("test_other.py").write_text(MINE)
    return pytester


def path_options():
    parser = Parser(_ispytest=True)
    add_options(parser)
    return {
        name
        for option in parser.getgroup("cre").options
        for name in option.names()
        if option.attrs()["metavar"] in ("DIR", "FILE", "PATH", "NAME_OR_FILE")
    }


def test_every_option_that_takes_a_path_is_tried_here():
    assert path_options() == {*FOLDERS, *FILES}


def value_of(option, folder):
    """Return a value of the option that exists, outside the project."""
    place = folder / "place"
    place.mkdir() if option in FOLDERS else place.touch()
    return place


def collected(project, *arguments):
    result = project.runpytest("--collect-only", "--own=1", *arguments)
    lines = [line for line in result.outlines if not ENDED.search(line)]
    return result.ret, lines, result.errlines


@pytest.mark.parametrize("option", [*FOLDERS, *FILES])
def test_both_forms_collect_the_same_in_a_project(project, tmp_path, option):
    value = value_of(option, tmp_path)
    with_sign = collected(project, f"{option}={value}")
    assert collected(project, option, str(value)) == with_sign
    assert f"rootdir: {project.path}" in with_sign[1]
    assert "configfile: tox.ini" in with_sign[1]
    assert "testpaths: mine" in with_sign[1]
    assert [line.strip() for line in with_sign[1]].count("<Function test_plain>") == 1


def test_both_forms_certify_the_same(project, tmp_path):
    value = value_of("--cre-evidence", tmp_path)
    with_sign = collected(project, "-m", "certification", f"--cre-evidence={value}")
    assert collected(project, "-m", "certification", "--cre-evidence", str(value)) == with_sign
    assert any("test_mine[nccl-all-reduce]" in line for line in with_sign[1])


@pytest.mark.parametrize("option", NAMES)
def test_name_that_is_also_a_folder_is_a_name(project, option):
    with_sign = collected(project, f"{option}=other")
    assert collected(project, option, "other") == with_sign


def test_options_from_the_environment_and_from_files_too(project, tmp_path, monkeypatch):
    value = value_of("--cre-evidence", tmp_path)
    with_sign = collected(project, f"--cre-evidence={value}")
    (project.path / "args.txt").write_text(f"--cre-evidence\n{value}\n")
    assert collected(project, "@args.txt") == with_sign
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--cre-evidence '{value}'")
    assert collected(project) == with_sign
    assert os.environ["PYTEST_ADDOPTS"] == f"--cre-evidence '{value}'"


def test_test_paths_beside_them_stay_test_paths(project, tmp_path):
    value = value_of("--cre-evidence", tmp_path)
    code, lines, _ = collected(project, "--cre-evidence", str(value), "other")
    assert code == 0
    assert any("test_other.py" in line for line in lines)
    assert not any("test_mine.py" in line for line in lines)


def test_mistake_is_told_once(project, tmp_path):
    value = value_of("--cre-evidence", tmp_path)
    result = project.runpytest("--cre-evidence", str(value), "--cre-max-nodes=0")
    assert result.ret == 4
    assert result.stderr.str().count("must be a whole number of at least 1, got '0'") == 1


def test_plugins_given_to_pytest_main_are_there_once(project, tmp_path):
    value = value_of("--cre-evidence", tmp_path)
    seen = []

    class Plugin:
        def pytest_configure(self, config):
            seen.append(config.rootpath)

    project.inline_run(
        *("--collect-only", "--cre-evidence", str(value)),
        plugins=[Plugin()],
    )
    assert seen == [project.path]


def test_both_forms_are_the_same_from_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    option, value = "--cre-evidence", value_of("--cre-evidence", tmp_path)

    def run(*arguments):
        suites = ("--pyargs", "pytest_cre.suites", "-q", "-m", "certification", "--collect-only")
        done = run_pytest(
            (*suites, "-p", "no:cacheprovider", *arguments),
            cwd=tmp_path / "empty",
            env=home_in(tmp_path),
        )
        return done.returncode, [
            each for each in done.stdout.splitlines() if not ENDED.search(each)
        ]

    with_sign = run(f"{option}={value}")
    assert with_sign[0] == 0
    assert run(option, str(value)) == with_sign


OPTIONS = {"--cre-json", "--cre-nodes"}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["--cre-json", "a", "b"], ["--cre-json=a", "b"]),
        (["--cre-json=a", "b"], ["--cre-json=a", "b"]),
        (["--cre-json", "-x"], ["--cre-json", "-x"]),
        (["--cre-json"], ["--cre-json"]),
        (["--", "--cre-json", "a"], ["--", "--cre-json", "a"]),
        (["--cre-json", "--cre-nodes", "a"], ["--cre-json", "--cre-nodes=a"]),
        (["--other", "a"], ["--other", "a"]),
    ],
)
def test_joined_values(given, wanted):
    assert joined(given, OPTIONS) == wanted


def test_only_what_exists_is_misread(tmp_path):
    (tmp_path / "there").touch()
    assert is_misread(["--cre-json", f"{tmp_path}/there"], OPTIONS)
    assert is_misread(["--cre-json", f"{tmp_path}/there::x"], OPTIONS)
    assert not is_misread(["--cre-json", f"{tmp_path}/missing"], OPTIONS)
    assert not is_misread(["--cre-json", "\0", "--cre-nodes", "x" * 9000], OPTIONS)
    assert not is_misread([f"{tmp_path}/there"], OPTIONS)


def test_files_of_arguments_are_read_in_place(tmp_path):
    (tmp_path / "b").write_text("y\n")
    (tmp_path / "a").write_text(f"x\n@{tmp_path}/b\n")
    assert expanded(["w", f"@{tmp_path}/a", "z"]) == ["w", "x", "y", "z"]


def test_paths_of_another_project_are_not_searched_for_modules(project, tmp_path):
    other = tmp_path / "other-project"
    other.mkdir()
    (other / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (other / "scenario.yaml").write_text("extends: h100-2\n")
    project.mkdir("plain").joinpath("test_path.py").write_text(
        f"import sys\n\ndef test_path():\n    assert {str(other)!r} not in sys.path\n"
    )
    result = project.runpytest_subprocess(
        "--cre-scenario", str(other / "scenario.yaml"), "plain", "-o", "addopts="
    )
    result.assert_outcomes(passed=1)

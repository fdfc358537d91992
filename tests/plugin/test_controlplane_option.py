"""`--cre-cluster controlplane` and the folder of its programs."""

import pytest

from pytest_cre.controlplane.recipe import OPERATORS, PROGRAMS

MINE = """
import pytest

@pytest.mark.certification("training/nemotron5-8b")
def test_mine(cre_goodput):
    pass
"""


@pytest.fixture(autouse=True)
def _no_cluster_configured(monkeypatch, tmp_path):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def certify(pytester, *arguments):
    pytester.makepyfile(MINE)
    return pytester.runpytest("-m", "certification", "-p", "no:cacheprovider", *arguments)


def test_control_plane_that_was_not_built_is_usage_and_says_how_to(pytester):
    result = certify(pytester, "--cre-cluster", "controlplane")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*no control plane in */cache/*pytest-cre controlplane build*"])


def test_folder_of_programs_is_a_choice_of_the_cluster(pytester, tmp_path):
    result = certify(pytester, "--cre-controlplane", str(tmp_path))
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{tmp_path} lacks jobset, *"])


def test_folder_of_programs_with_another_cluster_is_usage(pytester, tmp_path):
    result = certify(pytester, "--cre-controlplane", str(tmp_path), "--cre-cluster", "embedded")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--cre-controlplane belongs to --cre-cluster controlplane*"])


def test_scenario_belongs_to_it_too(pytester, tmp_path):
    (tmp_path / "manifests").mkdir()
    for name in PROGRAMS:
        (tmp_path / name).touch()
    for name in OPERATORS:
        (tmp_path / "manifests" / f"{name}.json").write_text("[]")
    options = ("--cre-controlplane", str(tmp_path), "--cre-scenario", "moon")
    result = certify(pytester, *options)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*scenario 'moon' is unknown; choices: *"])


def test_plan_can_be_looked_at_without_any_program(pytester):
    result = certify(pytester, "--cre-cluster", "controlplane", "--collect-only", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*[[]nemotron5-8b[]]*"])

import re
from pathlib import Path

import pytest

from pytest_cre.controlplane import recipe as recipes
from pytest_cre.controlplane.recipe import built_folder, check_programs, read_recipe
from pytest_cre.errors import UsageProblem


def test_version_stands_in_one_place_the_module_file():
    recipe = read_recipe()
    assert recipe.kubernetes == "1.37.2"
    assert recipe.is_pinned
    package = Path(recipes.__file__).parent
    told = [path.name for path in package.glob("*.py") if "1.37" in path.read_text()]
    assert told == []


def test_staging_modules_have_the_version_of_kubernetes():
    text = read_recipe().files["kubernetes"]["go.mod"]
    versions = set(re.findall(r"^\s+k8s\.io/\S+ => k8s\.io/\S+ (v\S+)$", text, re.MULTILINE))
    assert versions == {"v0.37.2"}


def test_oldest_go_is_that_of_the_newest_module():
    assert read_recipe().go_version == (1, 26)


@pytest.mark.parametrize("text", ["1.36.3", "v1.36.3"])
def test_another_version_is_another_build(text):
    other = read_recipe(text)
    assert other.kubernetes == "1.36.3"
    assert not other.is_pinned
    assert other.digest != read_recipe().digest


def test_pinned_version_by_name_is_the_same_build():
    assert read_recipe("1.37.2").digest == read_recipe().digest


@pytest.mark.parametrize("text", ["1.36", "latest", "2.0.0", "1.36.3; rm", "../1.36.3", ""])
def test_what_is_no_version_is_usage(text):
    if not text:
        assert read_recipe(text).is_pinned
        return
    with pytest.raises(UsageProblem, match=r"--kubernetes: must be a version such as 1\.37\.2"):
        read_recipe(text)


def test_programs_are_built_into_the_users_cache_under_the_recipes_digest(tmp_path):
    recipe = read_recipe()
    folder = built_folder(recipe, {"XDG_CACHE_HOME": str(tmp_path)})
    assert folder == tmp_path / "pytest-cre" / "controlplane" / recipe.digest
    assert built_folder(recipe, {"XDG_CACHE_HOME": "relative"}).is_relative_to(Path.home())


def test_folder_with_everything_is_fine(programs):
    check_programs(programs)


def test_folder_that_is_not_there_says_how_to_build_it(tmp_path):
    with pytest.raises(
        UsageProblem, match=r"no control plane in .*: pytest-cre controlplane build"
    ):
        check_programs(tmp_path / "none")


def test_folder_that_lacks_programs_names_them(programs):
    (programs / "server").unlink()
    (programs / "manifests" / "jobset.json").unlink()
    with pytest.raises(
        UsageProblem, match=r"lacks server, manifests/jobset\.json; make a whole one"
    ):
        check_programs(programs)

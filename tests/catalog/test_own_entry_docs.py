import re
from pathlib import Path

from pytest_cre.catalog.lint import lint_files
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.catalog.options import resolve_options
from pytest_cre.catalog.pattern import compile_pattern

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```yaml\n# (\S+)\n(.*?)```", re.DOTALL)


def write_files(root):
    text = (DOCS / "how-to" / "own-entry.md").read_text(encoding="utf-8")
    for name, content in BLOCK.findall(text):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n{content}")
    return root / "my-catalog", root / "my-profiles"


def test_files_of_the_guide_load_beside_the_shipped_ones(tmp_path):
    suites, profiles = write_files(tmp_path)
    catalog = load_catalog(
        suites=[shipped_suites(), suites], profiles=[shipped_profiles(), profiles]
    )
    entry = catalog.entry("fabric/x1-ring")
    assert resolve_options(entry, {"maxBytes": "1G"}) == {"maxBytes": "1G"}
    regex = catalog.log_profile(entry.log_profile).patterns["bandwidthResult"].regex
    found = compile_pattern(regex).search("ring size=1048576 alg=9.81 bus=18.40")
    assert found.groupdict() == {"size": "1048576", "algBW": "9.81", "busBW": "18.40"}
    assert catalog.architecture("x1").limits[0].value == 90
    variation = catalog.entry("fabric/all-reduce-small")
    assert variation.options["maxBytes"].default == "1M"
    assert variation.test == "all_reduce"


def test_files_of_the_guide_have_nothing_to_mend(tmp_path):
    assert lint_files(write_files(tmp_path)) == (4, ())


def test_mistake_of_the_guide_is_told_as_the_guide_says(tmp_path, monkeypatch):
    folders = write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    entry = folders[0] / "fabric" / "x1-ring.yaml"
    entry.write_text(entry.read_text().replace("timeout: 20m", "timeout: 20 min"))
    (line,) = lint_files(folders)[1]
    assert f"\n{line}\n" in (DOCS / "how-to" / "own-entry.md").read_text(encoding="utf-8")

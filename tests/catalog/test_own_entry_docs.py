"""The guide to an entry of one's own, followed to the letter in an empty folder."""

import re
import shlex
from pathlib import Path

import pytest

from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.catalog.options import resolve_options
from pytest_cre.catalog.pattern import compile_pattern
from pytest_cre.cli import main
from tests.home import home_in
from tests.warm.runs import run_pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-entry.md"
TEXT = PAGE.read_text(encoding="utf-8")
FILE = re.compile(r"```(?:yaml|python)\n((?:# (\S+)\n).*?)```", re.DOTALL)
LOG = re.compile(r"The log, `(\S+)` beside it:\n\n```text\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)
CHECK, TRY, VARIATION = "## 4. Check", "## 5. Try", "## A variation"
RAISED = re.compile(r"raise `value` in `(\S+)` to (\d+)")


def write_files(folder, *, before=""):
    """Write the files that the page shows, or those before a heading."""
    text = TEXT[: TEXT.index(before)] if before else TEXT
    files = [(name, content) for content, name in FILE.findall(text)]
    for name, content in (*files, *LOG.findall(text)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def commands(heading):
    section = TEXT[TEXT.index(heading) :].split("\n## ")[0]
    return [shlex.split(line.replace("\\\n", " ")) for line in COMMAND.findall(section)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_of_the_guide_load_beside_the_shipped_ones(folder):
    write_files(folder)
    catalog = load_catalog(
        suites=[shipped_suites(), folder / "my-catalog"],
        profiles=[shipped_profiles(), folder / "my-profiles"],
    )
    entry = catalog.entry("fabric/x1-ring")
    assert resolve_options(entry, {"maxBytes": "1G"}) == {"maxBytes": "1G"}
    regex = catalog.log_profile(entry.log_profile).patterns["bandwidthResult"].regex
    found = compile_pattern(regex).search("ring size=1048576 alg=9.81 bus=18.40")
    assert found.groupdict() == {"size": "1048576", "algBW": "9.81", "busBW": "18.40"}
    assert catalog.architecture("x1").limits[0].value == 90
    variation = catalog.entry("fabric/all-reduce-rings")
    assert variation.options["minBytes"].default == "1M"
    assert variation.options["maxBytes"].default == "16G"
    assert variation.test == "all_reduce"


def test_files_of_the_guide_have_nothing_to_mend(folder, capsys):
    write_files(folder)
    assert main(["lint", "my-catalog", "my-profiles"]) == 0, capsys.readouterr().out


def test_commands_of_the_check_print_what_the_guide_says(folder, capsys):
    write_files(folder, before=CHECK)
    lint, render = commands(CHECK)

    assert main(lint[1:]) == 0
    assert f"$ {shlex.join(lint)}\n{capsys.readouterr().out}" in TEXT
    assert main(render[1:]) == 0
    assert "--max=4G" in capsys.readouterr().out


def test_mistake_of_the_guide_is_told_as_the_guide_says(folder, capsys):
    write_files(folder, before=CHECK)
    entry = folder / "my-catalog" / "fabric" / "x1-ring.yaml"
    entry.write_text(entry.read_text().replace("timeout: 20m", "timeout: 20 min"))

    assert main(commands(CHECK)[0][1:]) == 1

    (line,) = (each for each in capsys.readouterr().out.splitlines() if each.startswith("my-"))
    assert f"\n{line}\n" in TEXT


def certify(folder, command):
    assert command[0] == "pytest"
    return run_pytest(command[1:], cwd=folder, env=home_in(folder))


def test_run_of_the_guide_passes_and_fails_once_the_limit_is_raised(folder):
    write_files(folder, before=VARIATION)
    (command,) = commands(TRY)
    table = re.search(r"```text\n(entry .*?)```", TEXT, re.DOTALL)[1]
    name, value = RAISED.search(TEXT).groups()
    shortfall = re.search(r"^busbw .* below the site .*$", TEXT, re.MULTILINE)[0]

    passed = certify(folder, command)
    limits = folder / name
    limits.write_text(limits.read_text().replace("value: 90", f"value: {value}"))
    failed = certify(folder, command)

    assert passed.returncode == 0, passed.stdout
    assert table in passed.stdout
    assert failed.returncode == 1
    assert shortfall in failed.stdout

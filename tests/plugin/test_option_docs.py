"""The reference names every option of the plugin, and marks those that have an ini key."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
ROW = re.compile(r"^\| ((?:`--cre-[a-z-]+`(?: \*)?(?:, )?)+) \|", re.MULTILINE)
NAME = re.compile(r"`--(cre-[a-z-]+)`( \*)?")


def test_reference_names_every_option_and_its_ini_key(pytester):
    told = {
        name: bool(mark)
        for row in ROW.findall(PAGE.read_text(encoding="utf-8"))
        for name, mark in NAME.findall(row)
    }

    text = pytester.runpytest("--help").stdout.str()

    group = text[text.index("GPU cluster certification:") :]
    options = set(re.findall(r"--(cre-[a-z-]+)=", group[: group.index("\n\n")]))
    ini = {
        name.replace("_", "-") for name in re.findall(r"^  (cre_[a-z_]+) \(", text, re.MULTILINE)
    }
    assert told == {name: name in ini for name in options}

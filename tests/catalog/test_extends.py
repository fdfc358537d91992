import pytest

from .conftest import ENTRY

OWN = """\
extends: mine/bench
description: Another bench
options:
  maxBytes: {default: 1G}
env:
  NCCL_DEBUG: WARN
  NCCL_ALGO: Ring
"""


def test_entry_takes_what_it_does_not_say_from_the_other_one(folder):
    folder.entry()
    folder.entry(OWN, name="mine/other")
    base, own = folder.load().entry("mine/bench"), folder.load().entry("mine/other")
    assert (own.description, own.extends) == ("Another bench", "mine/bench")
    assert own.env == {"NCCL_ALGO": "Ring", "NCCL_DEBUG": "WARN"}
    option = own.options["maxBytes"]
    assert (option.default, option.pattern) == ("1G", "[0-9]+[KMGT]?")
    assert own.workloads == base.workloads
    assert list(own.workloads) == ["mpiJob", "indexedJob"]
    assert own.timeout_s == base.timeout_s


def test_null_takes_away_what_the_other_one_has(folder):
    folder.entry()
    folder.entry(OWN + "workloads:\n  mpiJob: null\nscripts: null\n", name="mine/other")
    own = folder.load().entry("mine/other")
    assert (list(own.workloads), own.scripts) == (["indexedJob"], ())


def test_arguments_are_replaced_and_the_command_stays(folder):
    folder.entry()
    folder.entry(OWN + 'workloads:\n  mpiJob:\n    args: ["${maxBytes}"]\n', name="mine/other")
    workload = folder.load().entry("mine/other").workloads["mpiJob"]
    assert (workload.command, workload.args) == (("mpirun",), ("${maxBytes}",))


def test_entry_may_extend_one_that_extends(folder):
    folder.entry()
    folder.entry(OWN, name="mine/other")
    folder.entry("extends: mine/other\ndescription: Third\ntimeout: 9m\n", name="mine/third")
    third = folder.load().entry("mine/third")
    assert (third.timeout_s, third.env["NCCL_ALGO"]) == (540, "Ring")


def test_mistake_in_what_is_inherited_is_told_where_it_is_taken(folder):
    folder.entry(OWN.replace("1G", "1X"), name="mine/other")
    folder.entry()
    assert folder.problem() == (
        "catalog/mine/other.yaml:4:23: default '1X' of option maxBytes must match its own pattern "
        "[0-9]+[KMGT]?"
    )


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("mine/bnch", "1:10: extends 'mine/bnch' is unknown; did you mean 'mine/bench'? choices: "),
        ("mine/other", "1:10: entries extend each other in a circle: mine/other -> mine/other"),
    ],
)
def test_entry_that_extends_nothing_or_itself_is_refused(folder, name, line):
    folder.entry()
    folder.entry(OWN.replace("extends: mine/bench", f"extends: {name}"), name="mine/other")
    assert folder.problem().startswith(f"catalog/mine/other.yaml:{line}")


def test_circle_of_several_entries_is_refused(folder):
    folder.entry(ENTRY + "extends: mine/c\n", name="mine/b")
    folder.entry(ENTRY + "extends: mine/b\n", name="mine/c")
    assert "extend each other in a circle" in folder.problem()


def test_extends_that_is_no_text_is_a_mistake_of_form(folder):
    folder.entry(ENTRY + "extends: [a]\n")
    assert folder.problem().endswith("extends must be a text, got a list")

import argparse

import pytest

from pytest_cre.catalog.lint import lint_files
from pytest_cre.cli import lint as command
from pytest_cre.errors import UsageProblem

from .conftest import ARCHITECTURE, ENTRY, PROFILE


def lines_of(*paths):
    return list(lint_files(paths)[1])


def test_shipped_suites_and_profiles_have_nothing_to_mend(capsys):
    assert command.run(argparse.Namespace(paths=[])) == 0
    assert capsys.readouterr().out.endswith(" files checked, nothing to mend\n")


def test_right_files_have_nothing_to_mend(folder):
    folder.entry()
    folder.profile()
    folder.architecture()
    assert lint_files([folder.suites, folder.profiles]) == (3, ())


def test_every_mistake_of_every_file_is_told_in_order(folder, capsys):
    text = ENTRY.replace("timeout: 1h\n", "timeout: long\n").replace("image: ", "imgae: ")
    folder.entry(text, name="b/two")
    folder.entry(ENTRY.replace("16G", "x").replace("INFO", "${nope}"), name="a/one")
    assert command.run(argparse.Namespace(paths=[str(folder.suites)])) == 1
    told = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in told] == [
        "catalog/a/one.yaml:11:14:",
        "catalog/a/one.yaml:15:15:",
        "catalog/b/two.yaml:1:1:",
        "catalog/b/two.yaml:4:1:",
        "catalog/b/two.yaml:7:10:",
        "2",
    ]
    assert told[-1] == "2 files checked, 5 to mend"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("test: all_reduce\n", "", "1:1: any collective's table would be taken; add test: all_red"),
        (
            '[-e, "${maxBytes}", "$(JOB_COMPLETION_INDEX)"]',
            "[]",
            "10:3: option maxBytes has no effect as indexedJob; put ${maxBytes} into the command "
            "or take the option out",
        ),
        (
            '[-e, "${maxBytes}", "$(JOB_COMPLETION_INDEX)"]',
            '["--e=${maxBytes}", --e=8]',
            "23:31: --e is given 2 times and only the last counts; keep one",
        ),
        ("nccl-bandwidth", "nccl", "1:1: logProfile 'nccl' is unknown; choices: dcgm"),
    ],
)
def test_entry_that_would_not_do_what_it_says_is_told_with_the_remedy(folder, old, new, line):
    assert old in ENTRY
    folder.entry(ENTRY.replace(old, new))
    (told,) = lines_of(folder.suites)
    assert told.startswith(f"catalog/mine/bench.yaml:{line}")


def test_option_that_only_the_environment_takes_has_effect(folder):
    text = ENTRY.replace('-e, "${maxBytes}", ', "").replace("INFO", "${maxBytes}")
    assert "${maxBytes}" in text.partition("workloads")[0]
    folder.entry(text)
    assert lines_of(folder.suites) == []


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "      example: 8 1.0 2.0\n",
            "",
            "9:5: pattern bandwidthResult has no example; add a line of a log that it must match",
        ),
        (
            "(?P<busBW>",
            "(?P<latency>x?)(?P<busBW>",
            "10:14: group 'latency' of bandwidthResult is not read; choices: algBW, busBW, size",
        ),
    ],
)
def test_profile_that_reads_less_than_it_says_is_told_with_the_remedy(folder, old, new, line):
    assert old in PROFILE
    folder.profile(PROFILE.replace(old, new))
    assert lines_of(folder.profiles) == [f"profiles/logs/my-bench.yaml:{line}"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "entry: communication/nccl-all-reduce",
            "entry: comunication/*",
            "the limit's entry 'comunication/*' matches none; did you mean 'communication/nccl-",
        ),
        (
            "entry: communication/nccl-all-reduce",
            "entry: training/*",
            "training/nemotron5-56b, training/nemotron5-8b does not measure busbw; choices: goodput",
        ),
        (
            "scale: full-scale",
            "scale: intra-node",
            "at scale intra-node a group has one node, so minNodes 2 never applies; take it out",
        ),
    ],
)
def test_limit_that_can_never_judge_is_told_with_the_remedy(folder, old, new, line):
    assert old in ARCHITECTURE
    folder.architecture(ARCHITECTURE.replace(old, new))
    (told,) = lines_of(folder.profiles)
    assert told.startswith(f"profiles/architectures/x1.yaml:6:5: {line}")


def test_limit_that_stands_twice_is_told_with_both_places(folder):
    head, _, limit = ARCHITECTURE.partition("limits:\n")
    folder.architecture(f"{head}limits:\n{limit}{limit.replace('90', '80')}")
    assert lines_of(folder.profiles) == [
        "profiles/architectures/x1.yaml:21:5: the limit judges the same as the one in "
        "profiles/architectures/x1.yaml:6:5; keep one"
    ]


def test_name_of_a_shipped_profile_is_told(folder):
    folder.profile(PROFILE.replace("my-bench", "nccl-bandwidth"))
    (told,) = lines_of(folder.profiles)
    assert told.startswith("profiles/logs/my-bench.yaml:4:9: the name 'nccl-bandwidth' stands also")


def test_file_alone_is_recognised_by_what_it_says(folder, tmp_path):
    for name, text in (("p", PROFILE), ("a", ARCHITECTURE.replace("limits:", "limts:"))):
        (tmp_path / f"{name}.yaml").write_text(text)
    assert lines_of(tmp_path / "p.yaml") == []
    (told,) = lines_of(tmp_path / "a.yaml")
    assert told.startswith("a.yaml:5:1: limts is an unknown key; did you mean 'limits'?")


def test_file_that_is_not_read_for_its_ending_is_told(folder):
    folder.entry().rename(folder.suites / "mine" / "bench.yml")
    assert lines_of(folder.suites) == [
        "catalog/mine/bench.yml:1:1: is not read; rename it to bench.yaml"
    ]


def test_file_that_is_named_twice_is_checked_once(folder):
    path = folder.entry()
    assert lint_files([path, folder.suites, path]) == (1, ())


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_path_without_yaml_is_a_usage_problem(folder, tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageProblem, match=f"^{name}: no YAML file here; name a file or a folder$"):
        lint_files([tmp_path / name])


def test_name_is_not_called_unknown_while_a_file_that_may_hold_it_cannot_be_read(folder):
    folder.entry(ENTRY.replace("nccl-bandwidth", "my-bench"))
    folder.profile(PROFILE.replace("regex:", "regexp:"))
    told = lines_of(folder.suites, folder.profiles)
    subjects = [line.split(" ")[1].rpartition(".")[2] for line in told]
    assert subjects == ["regex", "regexp"]

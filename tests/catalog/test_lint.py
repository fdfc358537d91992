import argparse
import datetime

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
    assert lint_files([folder.suites, folder.profiles]) == (3, (), ())


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
    assert told[-1] == (
        "2 files checked, 5 to mend; overrides and limits of catalog/b/two.yaml were not checked: "
        "mend the above first"
    )


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
        ("nccl-bandwidth", "nccl", "6:13: logProfile 'nccl' is unknown; choices: dcgm"),
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
    assert lint_files([path, folder.suites, path]) == (1, (), ())


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


OVERRIDE = """\
overrides:
  - name: rings
    when: {gpuArchitecture: {equals: h100}}
    env: {NCCL_ALGO: Ring}
"""


def test_file_that_cannot_be_read_leaves_the_others_checked(folder):
    folder.entry(ENTRY.replace("timeout: 1h\n", ""), name="mine/broken")
    folder.entry(ENTRY + OVERRIDE + "architectures: [b200]\n")

    assert lint_files([folder.suites]) == (
        2,
        (
            "catalog/mine/bench.yaml:25:5: override rings never applies: when.gpuArchitecture allows "
            "none of architectures (b200)",
            "catalog/mine/broken.yaml:1:1: timeout is missing",
        ),
        ("catalog/mine/broken.yaml",),
    )


def test_name_that_a_file_may_hold_that_cannot_be_read_is_not_called_unknown(folder):
    folder.architecture(ARCHITECTURE.replace("gpusPerNode", "gpusPerNod"))
    folder.entry(ENTRY + OVERRIDE.replace("h100", "x1") + "architectures: [x1]\n")

    told = lines_of(folder.suites, folder.profiles)
    assert [line.partition(":")[0] for line in told] == ["profiles/architectures/x1.yaml"] * 2


SCENARIO = "extends: h100-2\nlinks:\n  - {match: {node: h100-1}, factor: 0.8}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SCENARIO, "1 file checked, nothing to mend\n"),
        (
            SCENARIO + "hardware: {zephyr9: {product: A}}\n",
            "s.yaml:4:21: new GPU model 'zephyr9' needs device too\n1 file checked, 1 to mend\n",
        ),
        (
            SCENARIO.replace("h100-2", "nowhere"),
            "s.yaml:1:10: scenario 'nowhere' is unknown; choices: ",
        ),
    ],
)
def test_scenario_is_told_by_its_keys_and_checked_as_a_run_would(
    tmp_path, monkeypatch, capsys, text, told
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(text)

    command.run(argparse.Namespace(paths=["s.yaml"]))
    assert capsys.readouterr().out.startswith(told)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "example: 8 1.0 2.0",
            "example: 8 1.0 2..0",
            "11:16: example of bandwidthResult: busBW '2..0' is no number, so the line would not be "
            "read",
        ),
        (
            "(?P<size>\\d+)",
            "(?P<size>\\S+)",
            "11:16: example of bandwidthResult: size 'abc' is no whole number, so the line would not "
            "be read",
        ),
        (
            '"2006-01-02 15:04:05"',
            '"%Y-%m-%d"',
            "7:13: layout '%Y-%m-%d' is no Go layout, so no time would be read; write "
            "2006-01-02 15:04:05 the way the log writes its times",
        ),
        (
            "    bandwidthResult:",
            "    trainingStep: {regex: 'step (?P<globalStep>\\d+)', example: step 1}\n"
            "    bandwidthResult:",
            "9:5: trainingStep is never used, for the profile reads bandwidth by bandwidthResult; "
            "make it a profile of its own",
        ),
    ],
)
def test_profile_that_could_not_read_its_own_example_is_told(folder, old, new, line):
    assert old in PROFILE
    text = PROFILE.replace(old, new)
    folder.profile(text.replace("example: 8 ", "example: abc ") if "\\S" in new else text)
    assert lines_of(folder.profiles) == [f"profiles/logs/my-bench.yaml:{line}"]


STEPS = (
    PROFILE.partition("    bandwidthResult")[0]
    + """\
    trainingStep:
      regex: '^(?P<timestamp>\\S+ \\S+) step (?P<globalStep>\\d+)'
      example: 2026-01-01 10:00:00 step 7
"""
)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("x", "x", None),
        (
            "2006-01-02 15",
            "2006/01/02 15",
            "11:16: example of trainingStep: timestamp '2026-01-01 10:00:00' is not in the layout "
            "'2006/01/02 15:04:05', so it would not be read",
        ),
        (
            "?P<globalStep>",
            "",
            "10:14: trainingStep reads no step number, so steps are counted and a resume is not seen; "
            "add a group (?P<globalStep>...)",
        ),
    ],
)
def test_steps_without_time_or_number_are_told(folder, old, new, line):
    folder.profile(STEPS.replace(old, new))
    expected = [] if line is None else [f"profiles/logs/my-bench.yaml:{line}"]
    assert lines_of(folder.profiles) == expected


@pytest.mark.parametrize(
    ("date", "is_future"),
    [("2026-11-30", False), ("2026-12-01", True), ("2026-12", True), ("2027", True),
     ("2026", False), ("unknown, read 2027-01", True)],
)  # fmt: skip
def test_limit_that_is_dated_in_the_future_is_told(folder, date, is_future):
    folder.architecture(ARCHITECTURE.replace("date: 2026-11-30", f"date: '{date}'"))
    told = lint_files([folder.profiles], today=datetime.date(2026, 11, 30)).lines
    line = (
        f"profiles/architectures/x1.yaml:6:5: date {date} is in the future; "
        "give the day of the source"
    )
    assert told == ((line,) if is_future else ())

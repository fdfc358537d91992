import pytest

from .conftest import PROFILE

PLACE = "profiles/logs/my-bench.yaml"
REGEX = r"'^(?P<size>\d+) (?P<algBW>[\d.]+) (?P<busBW>[\d.]+)'"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            REGEX,
            r"'^(?P<size>\d+)(?=x)'",
            "10:14: regex of bandwidthResult is refused by RE2: invalid perl operator: (?=",
        ),
        (REGEX, "'((?P<size>a)*)'", "10:14: regex of bandwidthResult matches the empty text"),
        (
            REGEX,
            r"'^(?P<size>\d+) (?P<algBW>[\d.]+)'",
            "10:14: regex of bandwidthResult needs a group (?P<busBW>...)",
        ),
        (
            "example: 8 1.0 2.0",
            "example: 8 1.0",
            "11:16: example of bandwidthResult is not matched by its regex",
        ),
        (
            "bandwidthResult:",
            "bandwithResult:",
            "9:5: spec.patterns.bandwithResult is an unknown key; did you mean 'bandwidthResult'?",
        ),
        ("kind: LogProfile", "kind: Profile", "2:7: kind must be one of LogProfile, got 'Profile'"),
        ("v1alpha1", "v9", "1:13: apiVersion must be one of nvcre.nvidia.com/v1alpha1, got"),
        ("name: my-bench", "name: My", "4:9: metadata.name must be a name of a-z, 0-9 and inner"),
        ("    layout: ", "    layuot: ", "7:5: spec.timestamp.layuot is an unknown key; did you"),
        (
            "example: 8 1.0 2.0",
            "units: {time: ms}",
            "10:14: regex of bandwidthResult has no group 'time' for its unit; choices: algBW,",
        ),
        (
            "example: 8 1.0 2.0",
            "units: {size: min}",
            "11:21: spec.patterns.bandwidthResult.units.size must be one of s, ms, us, got 'min'",
        ),
        (
            "spec:\n",
            "spec:\n  workerStrategy: {type: Both}\n",
            "6:26: spec.workerStrategy.type must be one of Single, Multi, got 'Both'",
        ),
        ("spec:\n", "spec:\n  warmupSteps: -1\n", "6:16: spec.warmupSteps must be at least 0"),
    ],
)
def test_mistake_in_a_log_profile_is_one_line_with_its_place(folder, old, new, line):
    assert old in PROFILE
    folder.entry()
    folder.profile(PROFILE.replace(old, new, 1))
    assert folder.problem().startswith(f"{PLACE}:{line}")


def test_transport_pattern_without_its_group_is_refused(folder):
    folder.entry()
    folder.profile(PROFILE + "    networkTransport:\n      regex: Using network (.+)\n")
    assert folder.problem() == (
        f"{PLACE}:13:14: regex of networkTransport needs a group (?P<transport>...)"
    )


def test_log_profile_without_a_pattern_is_refused(folder):
    folder.entry()
    folder.profile(PROFILE.partition("    bandwidthResult")[0].replace("patterns:", "patterns: {}"))
    assert folder.problem() == f"{PLACE}:8:13: spec.patterns must hold at least one"


@pytest.mark.parametrize("regex", [r"(?<size>\d+)", r"\pL\z", "[[:alpha:]]x", r"\Qa.b\E", "(?i:A)"])
def test_syntax_that_only_go_has_is_taken_where_re2_takes_it(folder, regex):
    folder.entry()
    lines = f"    warmupStep:\n      regex: '{regex}'\n"
    folder.profile(PROFILE + lines)
    assert folder.load().log_profile("my-bench").patterns["warmupStep"].regex == regex


def test_refused_pattern_writes_nothing_to_stderr(folder, capfd):
    folder.entry()
    folder.profile(PROFILE.replace(REGEX, "'(?=x)'"))
    folder.problem()
    assert capfd.readouterr() == ("", "")


def test_pattern_that_would_hang_a_backtracking_engine_is_tried_at_once(folder):
    folder.entry()
    text = PROFILE + "    warmupStep:\n      regex: '(a+)+$'\n      example: " + "a" * 40 + "b\n"
    folder.profile(text)
    assert "example of warmupStep is not matched by its regex" in folder.problem()

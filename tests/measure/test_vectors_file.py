"""Event files: every mistake is one line with its place."""

from contextlib import suppress

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cre.formats.yaml import YamlProblem
from pytest_cre.measure.event_file import read_event_file

ONE = "params: {{s_ref: 1}}\nevents:\n- {event}\n"


def test_event_file_of_one_sequence_is_named_after_its_source():
    ((name, events, params),) = read_event_file("events: [{e: open, t: 0.5}]", "run.yaml")
    assert name == "run.yaml"
    assert (events[0].kind, events[0].t_ns) == ("window_open", 500_000_000)
    assert params.reference_step_s is None


def test_event_file_reads_sparse_runs_and_gaps():
    text = """
events:
- {e: steps, first: 8, last: 21, t: 1, dt: 0.5, every: 10, log_first: true}
- {e: gap, t: 3, until: 4, reason: rotated}
- {e: save_end, t: 9, n: 20}
"""
    ((_, events, _),) = read_event_file(text, "run.yaml")
    assert [(e.step, e.t_ns) for e in events[:3]] == [
        (8, 1_000_000_000),
        (10, 2_000_000_000),
        (20, 7_000_000_000),
    ]
    assert (events[3].until_ns, events[3].reason) == (4_000_000_000, "rotated")
    assert [e.kind for e in events[4:]] == ["save_unblock", "save_commit"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "run.yaml:1:1: expected a mapping with params and events, or with vectors"),
        ("vectors: []", "run.yaml:1:10: vectors must be a list of at least one sequence"),
        ("vectors: [3]", "run.yaml:1:11: expected a mapping with params and events"),
        ("params: {}", "run.yaml:1:1: events must be a list"),
        (
            "events: [3]",
            "run.yaml:1:10: an event must be a mapping such as {e: step, t: 12.5, n: 3}",
        ),
        (
            ONE.format(event="{e: stop, t: 0}"),
            "run.yaml:3:7: unknown event 'stop': one of open, close",
        ),
        (
            ONE.format(event="{e: step, n: 1}"),
            "run.yaml:3:3: t must be a number of seconds below 4e9, got None",
        ),
        (
            ONE.format(event="{e: step, t: .inf, n: 1}"),
            "t must be a number of seconds below 4e9, got inf",
        ),
        (
            ONE.format(event="{e: step, t: true, n: 1}"),
            "t must be a number of seconds below 4e9, got True",
        ),
        (
            ONE.format(event="{e: step, t: 1, n: 1.5}"),
            "n must be a whole number of at least 0 below 4e9, got 1.5",
        ),
        (
            ONE.format(event="{e: open, t: 1, x: 2}"),
            "run.yaml:3:22: unknown field 'x': one of e, t, n",
        ),
        (ONE.format(event="{e: steps, first: 5, last: 4, t: 1, dt: 1}"), "last not below first"),
        (
            ONE.format(event="{e: steps, first: 1, last: 9e8, t: 1, dt: 1}"),
            "more than 1000000 steps",
        ),
        ("params: {s_ref: 0}\nevents: []", "reference_step_s must be a number above 0, got 0"),
        (
            "params: {speed: 1}\nevents: []",
            "run.yaml:1:17: unknown parameter 'speed': one of s_ref",
        ),
        ("params: {step_counter: mine}\nevents: []", "step_counter must be global or local"),
        ("params: {succeeded: 1}\nevents: []", "succeeded must be true or false, got 1"),
        ("events: [", "run.yaml:2:1: malformed YAML"),
    ],
)
def test_event_file_with_a_mistake_names_it_and_its_place(text, message):
    with pytest.raises(ValueError, match=r"^run\.yaml:\d+:\d+: ") as caught:
        read_event_file(text, "run.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3))


@settings(derandomize=True, max_examples=60, database=None)
@given(
    st.dictionaries(
        st.sampled_from(("e", "t", "n", "first", "last", "dt", "every", "until", "gpus")),
        st.one_of(
            values, st.sampled_from(("step", "steps", "gap", "save_end")), st.integers(0, 50)
        ),
    )
)
def test_event_file_of_any_values_is_read_or_refused_in_one_line(item):
    with suppress(YamlProblem):
        assert read_event_file(yaml.safe_dump({"events": [item]}), "run.yaml")

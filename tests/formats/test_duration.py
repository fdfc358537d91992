import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.formats.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1h30m", 5400), ("250ms", 0.25), ("1h1m1s1ms", 3661.001), ("0s", 0)],
)
def test_duration_is_read_in_seconds(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", "90", "1 h", "1.5h", "-1s", "1d", "s", "1h 30m", "1S", "\u0661s", 90, None, "1s" * 99],
    ids=repr,
)
def test_duration_of_another_form_is_refused(text):
    with pytest.raises(ValueError, match="must be a duration such as 90s or 1h30m, got"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["99999999999h", "1h0000000001ms"])
def test_duration_with_too_many_digits_is_told_as_too_long(text):
    with pytest.raises(ValueError, match=r"^is too long: a number in it has 9 digits at most, got"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *[(0, "0.0 s"), (0.84, "0.8 s"), (9.96, "10 s"), (42, "42 s"), (59.4, "59 s")],
        *[(59.6, "1m"), (60, "1m"), (125, "2m 5s"), (3599.7, "1h"), (5400, "1h 30m")],
        *[(3661, "1h 1m"), (86400, "24h")],
    ],
)
def test_duration_is_shown_short(seconds, text):
    assert format_duration(seconds) == text


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_refused(text):
    told = "one line"
    try:
        assert parse_duration(text) >= 0
    except ValueError as problem:
        told = str(problem)
    assert len(told.splitlines()) == 1

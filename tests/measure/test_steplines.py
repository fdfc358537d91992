"""Many step lines at once give what they give one by one."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cre.measure import logtext
from tests.measure.reading import measured

NUMBER = st.one_of(
    st.sampled_from(
        ["0", "0.0", "1.000000E+00", "-2.5E-03", "1.0E+999", "nan", "inf", "1e5", "+3"]
    ),
    st.sampled_from(["1,000", "1_0", "", "5 7", "1.2.3", "0x1", ".5", "7.", "1E0005", "²"]),
    st.floats(0.1, 99999.0).map("{:.1f}".format),
    st.floats(1e-9, 1e9).map("{:.6E}".format),
    st.integers(0, 10**6).map(str),
)
LABELS = (
    "consumed samples",
    "elapsed time per iteration (ms)",
    "throughput per GPU (TFLOP/s/GPU)",
    "learning rate",
    "lm loss",
    "grad norm",
    "mtp_1 loss",
    "number of skipped iterations",
    "number of nan iterations",
    "CUDA error",
)


def stamp(at: int, fraction: str) -> str:
    return f"2026-01-05T{at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}{fraction}Z"


@st.composite
def logs(draw):
    """A log of step lines, of which most are like the others."""
    labels = draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=6))
    usual = {label: draw(NUMBER) for label in labels}
    has_stamp, has_clock, last = draw(st.booleans()), draw(st.booleans()), draw(st.integers(1, 120))
    lines = []
    for at in range(draw(st.integers(1, 60))):
        odd = draw(
            st.sampled_from(["", "", "", "", "value", "second", "date", "text", "end", "label"])
        )
        number = draw(NUMBER) if odd == "value" else None
        fields = "".join(
            f" {'loss' if odd == 'label' else label}: {number or value:>8} |"
            for label, value in usual.items()
        )
        clock = f"[2026-01-05 {at // 60:02d}:{at % 60:02d}:{60 if odd == 'second' else 5:02d}.5] "
        head = f"{stamp(at * 60, '.25')} " if has_stamp else ""
        if odd == "date":
            head, clock = head.replace("01-05", "02-30"), clock.replace("01-05", "13-05")
        line = f"{head} {clock if has_clock else ''}iteration {at + 1:8d}/{last:8d} |{fields}"
        lines.append(line + {"text": " Traceback (most recent call last)", "end": " "}.get(odd, ""))
    return "".join(f"{line}\n" for line in lines).encode()


@settings(max_examples=40)
@given(logs(), st.sampled_from([None, 700, 3000]))
def test_stretches_of_step_lines_read_as_line_by_line(log, chunk):
    assert measured(log, chunk=chunk) == measured(log, is_prefiltered=False)


def regular(count, *, width="{:.1f}", apart_s=1, clock=True):
    lines = []
    for at in range(count):
        second = at * apart_s
        app = f"[{stamp(second, '.123456')[:-1].replace('T', ' ')}] " if clock else ""
        lines.append(
            f"{stamp(second, '.500000000')}  {app}iteration {at + 1:8d}/  900000 |"
            f" consumed samples: {(at + 1) * 8:12d} |"
            f" elapsed time per iteration (ms): {width.format(990.0 + at % 23)} |"
            f" throughput per GPU (TFLOP/s/GPU): {400 + at % 7}.5 | lm loss: {1 + 1 / (at + 1):.6E} |"
            " number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
    return "".join(lines).encode()


@pytest.mark.parametrize(
    "log",
    [
        regular(1500),
        regular(1500, apart_s=13),
        regular(1500, width="{:.3f}"),
        regular(1500, clock=False),
        regular(1500).replace(b"T00:", b"T23:"),
    ],
    ids=["second", "slow", "widths", "no-clock", "last-hour"],
)
def test_regular_step_lines_are_not_read_one_by_one(log, monkeypatch):
    reference = measured(log, is_prefiltered=False)
    calls = []
    clean = logtext.clean_line
    monkeypatch.setattr(logtext, "clean_line", lambda raw: calls.append(1) or clean(raw))
    assert measured(log) == reference
    assert len(reference.training.steps) == 1500
    assert len(calls) < 300


LINE_300 = "iteration      300/  900000"


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        (r"(?m)^2026-01-05T00:04:59", "2026-01-05T00:04:79"),
        (r"(?m)^2026-01-05T00:04:59", "2026-01-05T00:74:59"),
        (r"(?m)^2026-01-05T00:04:59", "2026-02-30T00:04:59"),
        (r"(?m)^2026-01-05T00:04:59", "2027-01-05T00:04:59"),
        (r"(?m)^2026-01-05", "2026-02-30"),
        (r"\[2026-01-05 00:04:59", "[2026-01-05 00:04:69"),
        (r"\[2026-01-05 00:04:59", "[2026-13-05 00:04:59"),
        (LINE_300, "iteration      300/  900001"),
        (LINE_300, "iteration      300/     300"),
        (LINE_300, "iteration      200/  900000"),
        (LINE_300, "iterations     300/  900000"),
        (r"(300/  900000 .*) 405.5 ", r"\1 -10.5 "),
        (r"(300/  900000 .*) 1.003333E", r"\1 1.003333F"),
        (r"(300/  900000 .*)lm loss:", r"\1CUDA error: loss:"),
        (r"(300/  900000 .*)nan iterations:   0", r"\1nan iterations:   2"),
        (r"(300/  900000 .*)nan iterations:   0 \|", r"\1nan iterations:   0 | Test failure a:1"),
        (r"\(ms\): ([0-9.]+)", r"(ms): \1E-1"),
        (r"\(ms\): [0-9.]+", "(ms): 0.000"),
        (r"lm loss: .............", "lm loss: 1.000000E+999"),
        ("lm loss", "exitcode"),
        (r"\[2026-01-05 ........\.123456\] ", ""),
        (r"Z  \[", "Z [rank3]: ["),
        (r" \| number of nan iterations:   0 \|", " |"),
    ],
)
def test_odd_lines_among_regular_ones_are_read_as_they_would_be_alone(usual, odd):
    text, count = re.subn(usual, odd, regular(400).decode())
    assert count in (1, 400)
    assert measured(text.encode()) == measured(text.encode(), is_prefiltered=False)


def test_line_with_skipped_iterations_among_regular_ones_is_counted():
    log = regular(400).replace(b"nan iterations:   0", b"nan iterations:   2", 300)
    log = log.replace(b"nan iterations:   2", b"nan iterations:   0", 299)
    measurement = measured(log)
    assert len(measurement.training.steps) == 400
    assert "skipped_steps" in measurement.training.flags


def test_last_step_of_a_run_among_regular_lines_ends_it():
    log = regular(400).replace(b"900000", b"   400")
    assert measured(log) == measured(log, is_prefiltered=False)
    assert measured(log).training.flags == measured(log, chunk=50).training.flags
    assert "exit_unknown" not in measured(log).training.flags

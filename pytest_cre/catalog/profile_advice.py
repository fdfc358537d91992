"""What a log profile would better say otherwise: one line per finding, with the remedy."""

import re
from collections.abc import Iterator

from pytest_cre.catalog.logprofile import KINDS, EventPattern, LogProfile
from pytest_cre.catalog.pattern import compile_pattern
from pytest_cre.formats.choices import choices_words
from pytest_cre.formats.golayout import FLOAT, WHOLE, layout_pattern, tells_a_date
from pytest_cre.formats.yaml import YamlDocument

# The groups that measurements read; any other is matched and forgotten.
_STEP = ("timestamp", "path", "step", "saveDuration")
READ_GROUPS = {
    "trainingStep": (
        *("timestamp", "globalStep", "iteration", "epoch"),
        *("stepTiming", "elapsedTime", "loss", "tflops"),
    ),
    "checkpointSave": _STEP,
    "checkpointDone": _STEP,
    "checkpointRestore": _STEP[:3],
    "checkpointLoaded": _STEP[:3],
    "applicationStart": ("timestamp",),
    "warmupStep": (),
    "bandwidthResult": ("size", "algBW", "busBW"),
    "networkTransport": ("transport",),
    "gemmResult": (
        *("gpu", "sample", "dtype", "m", "n", "k"),
        *("products", "seconds", "tflops", "wrong"),
    ),
    "diagnosticReport": (),
}
# How the values of groups are read; all others are texts.
_NUMBERS = (
    *((name, WHOLE, "whole number") for name in ("size", "globalStep", "step", "iteration", "gpu")),
    *(
        (name, FLOAT, "number")
        for name in (
            "algBW",
            "busBW",
            "stepTiming",
            "elapsedTime",
            "saveDuration",
            "loss",
            "tflops",
        )
    ),
)
_STEP_NUMBERS = ("globalStep", "iteration")


def profile_advice(profile: LogProfile, document: YamlDocument) -> Iterator[str]:
    """Yield what a log profile would better say otherwise."""
    layout = profile.timestamp_layout
    is_layout = tells_a_date(layout)
    if not is_layout:
        yield (
            f"{document.place(('spec', 'timestamp', 'layout'))}: layout {layout!r} is no Go layout, "
            "so no time would be read; write 2006-01-02 15:04:05 the way the log writes its times"
        )
    for name, pattern in profile.patterns.items():
        if pattern.example is None:
            place = document.place(("spec", "patterns", name), of_key=True)
            yield f"{place}: pattern {name} has no example; add a line of a log that it must match"
        for group in sorted(compile_pattern(pattern.regex).groupindex):
            if group not in READ_GROUPS[name]:
                words = choices_words(group, READ_GROUPS[name])
                yield f"{pattern.place}: group {group!r} of {name} is not read{words}"
        place = document.place(("spec", "patterns", name, "example"))
        for words in _example_words(pattern, layout if is_layout else None):
            yield f"{place}: example of {name}: {words}"
    yield from _step_advice(profile)
    yield from _unread_advice(profile, document)


def _example_words(pattern: EventPattern, layout: str | None) -> Iterator[str]:
    """Yield what of an example's values could not be read."""
    found = compile_pattern(pattern.regex).search(pattern.example) if pattern.example else None
    if found is None:
        return  # said where mistakes are
    values = {name: (text or "").strip() for name, text in found.groupdict().items()}
    for name, form, words in _NUMBERS:
        if values.get(name) and re.fullmatch(form, values[name]) is None:
            yield f"{name} {values[name][:40]!r} is no {words}, so the line would not be read"
    written = values.get("timestamp")
    if written and layout is not None and layout_pattern(layout).fullmatch(written) is None:
        yield f"timestamp {written[:40]!r} is not in the layout {layout!r}, so it would not be read"


def _step_advice(profile: LogProfile) -> Iterator[str]:
    step = profile.patterns.get("trainingStep")
    if step is not None:
        groups = compile_pattern(step.regex).groupindex
        if not any(name in groups for name in _STEP_NUMBERS):
            yield (
                f"{step.place}: trainingStep reads no step number, so steps are counted and a resume "
                "is not seen; add a group (?P<globalStep>...)"
            )


def _unread_advice(profile: LogProfile, document: YamlDocument) -> Iterator[str]:
    """Yield the patterns of another kind of measurement: a profile reads one."""
    of_kind = [name for name in KINDS if KINDS[name] == profile.reads]
    for name in profile.patterns:
        if name in KINDS and name not in of_kind:
            place = document.place(("spec", "patterns", name), of_key=True)
            words = f"the profile reads {profile.reads} by {of_kind[0]}"
            yield f"{place}: {name} is never used, for {words}; make it a profile of its own"

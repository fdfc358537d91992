"""Event sequences written by hand: YAML with `params` and `events`, or a list of such under `vectors`.

Times are seconds from any origin; the order of the list does not matter. A `proc_start` begins an attempt.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_cre.formats.yaml import YamlDocument, YamlProblem, parse_yaml
from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.events import EventKind, TrainingEvent

EventSequence = tuple[str, tuple[TrainingEvent, ...], LedgerParams]

MAXIMUM_STEPS = 1_000_000  # a typing error in `last` must not fill the memory
_FARTHEST_S = 4e9  # beyond 2096: more does not fit into nanoseconds, nor into any run

_KINDS: Mapping[str, tuple[EventKind, ...]] = {
    "open": ("window_open",),
    "close": ("window_close",),
    "proc_start": ("proc_start",),
    "load_start": ("load_start",),
    "load_end": ("load_end",),
    "train_ready": ("train_ready",),
    "step": ("step",),
    "save_start": ("save_start",),
    "save_end": ("save_unblock", "save_commit"),  # a synchronous save blocks until it is durable
    "save_unblock": ("save_unblock",),
    "save_commit": ("save_commit",),
    "eval_start": ("eval_start",),
    "eval_end": ("eval_end",),
    "abort": ("abort",),
    "end": ("end",),
    "gap": ("gap",),
}
_PARAMS = {
    "s_ref": "reference_step_s",
    "print_every": "log_interval",
    "step_counter": "step_counter",
    "gpus": "gpus",
    "queue_s": "queue_s",
    "succeeded": "succeeded",
    "peak_tflops": "peak_tflops_per_gpu",
    "warmup_steps": "warmup_steps",
}
_WHOLE = ("print_every", "gpus", "warmup_steps")
_NEEDS_STEP = ("step", "load_end", "save_start", "save_end", "save_unblock", "save_commit")
_FIELDS = (
    "e",
    "t",
    "n",
    "m",
    "reason",
    "until",
    "first",
    "last",
    "dt",
    "every",
    "log_first",
    "gpus",
)


def read_event_file(text: str, source: str) -> tuple[EventSequence, ...]:
    """Return name, events and parameters of each sequence; a single one without a name gets `source`.

    Raises YamlProblem, a ValueError whose text is one line that starts with `source:line:column`.
    """
    document = parse_yaml(text, source)
    whole = document.data
    if not isinstance(whole, dict):
        raise _problem(document, (), "expected a mapping with params and events, or with vectors")
    if "vectors" not in whole:
        return (_Sequence(document, (), whole).read(source),)
    vectors = whole["vectors"]
    if not isinstance(vectors, list) or not vectors:
        raise _problem(document, ("vectors",), "vectors must be a list of at least one sequence")
    return tuple(
        _Sequence(document, ("vectors", at), vector).read(f"{source}[{at}]")
        for at, vector in enumerate(vectors)
    )


def _problem(document: YamlDocument, path: tuple[str | int, ...], text: str) -> YamlProblem:
    return YamlProblem(f"{document.place(path)}: {text}")


def _step(number: int, t_ns: int) -> TrainingEvent:
    return TrainingEvent(kind="step", t_ns=t_ns, step=number)


class _Sequence:
    """One sequence of a document, with the place of everything in it."""

    def __init__(self, document: YamlDocument, path: tuple[str | int, ...], data: Any) -> None:
        self.document = document
        self.path = path
        self.data = data
        self.steps_left = MAXIMUM_STEPS

    def read(self, default_name: str) -> EventSequence:
        """Return the sequence."""
        if not isinstance(self.data, dict):
            raise self.problem((), "expected a mapping with params and events")
        events = self.data.get("events")
        if not isinstance(events, list):
            raise self.problem(("events",), "events must be a list")
        name = self.data.get("name", default_name)
        if not isinstance(name, str):
            raise self.problem(("name",), f"name must be a text, got {name!r}")
        params = self.params(self.data.get("params") or {})
        read: list[TrainingEvent] = []
        for at, item in enumerate(events):
            read.extend(self.event(("events", at), item))
        return name, tuple(read), params

    def params(self, data: Any) -> LedgerParams:
        """Return the parameters."""
        if not isinstance(data, dict):
            raise self.problem(("params",), "params must be a mapping")
        values: dict[str, Any] = {}
        for key, value in data.items():
            if key not in _PARAMS:
                choices = ", ".join(_PARAMS)
                raise self.problem(("params", key), f"unknown parameter {key!r}: one of {choices}")
            if key == "succeeded":
                if value is not None and not isinstance(value, bool):
                    raise self.problem(
                        ("params", key), f"succeeded must be true or false, got {value!r}"
                    )
            elif key != "step_counter" and value is not None:
                self.number(("params", key), key, value, whole=key in _WHOLE)
            values[_PARAMS[key]] = value
        try:
            return LedgerParams(**values)
        except ValueError as problem:
            raise self.problem(("params",), str(problem)) from None

    def event(self, path: tuple[str | int, ...], item: Any) -> Iterator[TrainingEvent]:
        """Yield what one entry of the file stands for."""
        if not isinstance(item, dict):
            raise self.problem(path, "an event must be a mapping such as {e: step, t: 12.5, n: 3}")
        for key in item:
            if key not in _FIELDS:
                choices = ", ".join(_FIELDS)
                raise self.problem((*path, key), f"unknown field {key!r}: one of {choices}")
        name = item.get("e")
        if name == "steps":
            yield from self.steps(path, item)
            return
        if not isinstance(name, str) or name not in _KINDS:
            choices = ", ".join((*_KINDS, "steps"))
            raise self.problem((*path, "e"), f"unknown event {name!r}: one of {choices}")
        t_ns = self.time(path, item, "t")
        step = item.get("n")
        if step is not None or name in _NEEDS_STEP:
            step = self.whole(path, item, "n")
        reason = item.get("reason")
        if reason is not None and not isinstance(reason, str):
            raise self.problem((*path, "reason"), f"reason must be a text, got {reason!r}")
        for kind in _KINDS[name]:
            yield TrainingEvent(
                kind=kind,
                t_ns=t_ns,
                step=step,
                reason=reason,
                until_ns=self.time(path, item, "until") if name == "gap" else None,
                gpus=self.whole(path, item, "gpus") if "gpus" in item else None,
            )

    def steps(self, path: tuple[str | int, ...], item: Any) -> Iterator[TrainingEvent]:
        """Yield a run of steps: step i completes at `t + (i - first) * dt`."""
        first, last = self.whole(path, item, "first"), self.whole(path, item, "last")
        every = self.whole(path, item, "every") if "every" in item else 1
        start_ns, apart_ns = self.time(path, item, "t"), self.time(path, item, "dt")
        log_first = item.get("log_first", False)
        if not isinstance(log_first, bool):
            raise self.problem(
                (*path, "log_first"), f"log_first must be true or false, got {log_first!r}"
            )
        if every < 1 or last < first:
            raise self.problem(path, "steps need every of at least 1 and last not below first")
        numbers = range(first + -first % every, last + 1, every)
        if log_first and (not numbers or numbers[0] != first):
            yield _step(first, start_ns)
        self.steps_left -= len(numbers)
        if self.steps_left < 0:
            raise self.problem(path, f"more than {MAXIMUM_STEPS} steps in one sequence")
        if abs(start_ns + (last - first) * apart_ns) > _FARTHEST_S * 1e9:
            raise self.problem(path, "the last step is more than 4e9 seconds away")
        for number in numbers:
            yield _step(number, start_ns + (number - first) * apart_ns)

    def time(self, path: tuple[str | int, ...], item: Mapping[str, Any], key: str) -> int:
        """Return seconds of the file as nanoseconds."""
        return round(self.number((*path, key), key, item.get(key)) * 1_000_000_000)

    def whole(self, path: tuple[str | int, ...], item: Mapping[str, Any], key: str) -> int:
        """Return a count or step number."""
        return int(self.number((*path, key), key, item.get(key), whole=True))

    def number(
        self, path: tuple[str | int, ...], key: str, value: Any, *, whole: bool = False
    ) -> float:
        """Check a number: finite, in a range that a run can have, and whole where asked."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not abs(value) <= _FARTHEST_S or (whole and (value % 1 or value < 0)):
            kind = "a whole number of at least 0" if whole else "a number of seconds"
            raise self.problem(path, f"{key} must be {kind} below 4e9, got {value!r}"[:200])
        return float(value) if isinstance(value, float) else value

    def problem(self, path: tuple[str | int, ...], text: str) -> YamlProblem:
        """Return the problem with the nearest place."""
        return _problem(self.document, (*self.path, *path), text)

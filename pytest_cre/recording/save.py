"""The folder of `--cre-save-recording`: a scenario that replays a run, and the logs that it replays.

DIR/scenario.yaml
   /<domain>.<variant>@<scale>/<group>-attempt-<n>/<completion index>.jsonl
                                                  /launcher.jsonl
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

from pytest_cre.errors import EvidenceProblem
from pytest_cre.evidence.files import file_name, replacing, write_bytes
from pytest_cre.evidence.model import GroupEvidence, LogStream, PodFacts, WorkflowEvidence
from pytest_cre.evidence.store import folder_name
from pytest_cre.measure.model import Measurement
from pytest_cre.recording.lines import first_time_ns, recorded, replayed
from pytest_cre.recording.naming import names_of_group
from pytest_cre.recording.scenario import SCENARIO_FILE, RecordedRun, rule_of, scenario_text
from pytest_cre.recording.scrub import Names, Scrubber

Measure = Callable[[GroupEvidence], Measurement]
Workflows = Sequence[Callable[[], WorkflowEvidence]]


class _NothingToReplay(Exception):
    pass


def save_recording(
    folder: Path, workflows: Workflows, run: RecordedRun, measure: Measure
) -> tuple[str, ...]:
    """Write the recording of a run; return what is not in it, and why, one line each.

    `workflows` read an item's evidence each, twice. The folder is replaced as a whole. Left out are groups
    whose log is not whole and those whose figures would be others without their names.
    Raises `EvidenceProblem` when the disk refuses.
    """
    names = Names()
    for node in run.nodes:
        names.add("node", node)
    for read in workflows:
        for group in read().groups:
            names_of_group(group, names)
    scrubber = names.scrubber()
    notes = [
        f"recording: the name {name!r} is too short to be replaced and stays in it"
        for name in sorted(names.kept)
    ]
    rules: list[dict[str, object]] = []
    kept: list[GroupEvidence] = []
    try:
        with replacing(folder) as new:
            for read in workflows:
                evidence = read()
                for group in evidence.groups:
                    place = _place(group)
                    is_double = (new / place).exists()
                    reason = (
                        "another item of the same entry and scale is"
                        if is_double
                        else _write_group(new / place, group, scrubber, measure)
                    )
                    if reason is not None:
                        notes.append(f"recording: {_title(group)} is not in it: {reason}")
                    elif (new / place).exists():
                        rules.append(rule_of(group, str(place)))
                        kept.append(replace(group, logs=(), manifests=(), events=()))
            if not rules:
                raise _NothingToReplay
            text = scenario_text(kept, rules, run, scrubber)
            write_bytes(new / SCENARIO_FILE, text.encode())
    except _NothingToReplay:
        notes.append(f"recording: nothing of the run can be replayed, so {folder} was not written")
    except OSError as error:
        raise EvidenceProblem(f"{folder}: cannot be written: {error.strerror}") from error
    return tuple(notes)


def _write_group(
    folder: Path, group: GroupEvidence, scrubber: Scrubber, measure: Measure
) -> str | None:
    """Write a group's recordings; return why it has none although it ran."""
    logs = [log for log in group.logs if not log.is_context]
    if not logs:
        return None
    if any(log.has_gap or not log.is_complete for log in logs):
        return "its log is not whole"
    if group.job is None or group.job.terminal == "none":
        return "its Job has not come to an end"
    starts_ns: dict[int, int] = {}  # one for all pods of a life: they ran side by side
    for log in logs:
        life, start_ns = _life(log, group), _started_ns(log, group)
        starts_ns[life] = min(start_ns, starts_ns.get(life, start_ns))
    texts = {
        name: (log, _recording(log, group, scrubber, starts_ns[_life(log, group)]))
        for name, log in _named(logs)
    }
    back = tuple(
        replace(log, data=replayed(text, started_ns=starts_ns[_life(log, group)]))
        for log, text in texts.values()
    )
    again = measure(replace(group, logs=back))
    if figures(again) != figures(measure(group)):
        return "its figures would be others without the names in its log"
    folder.mkdir(parents=True)
    for name, (_, text) in texts.items():
        write_bytes(folder / name, text.encode())
    return None


def _named(logs: Iterable[LogStream]) -> Iterator[tuple[str, LogStream]]:
    """Yield each log with its file's name: by completion index, containers one after the other."""
    seen: dict[str, int] = {}
    for log in sorted(logs, key=lambda each: (each.attempt, each.restart_count, each.pod)):
        pod = "launcher" if log.completion_index is None else str(log.completion_index)
        nth = seen.get(pod, 0)
        seen[pod] = nth + 1
        yield (f"{pod}.{nth}.jsonl" if nth else f"{pod}.jsonl"), log


def _recording(log: LogStream, group: GroupEvidence, scrubber: Scrubber, start_ns: int) -> str:
    pod = _pod(log, group)
    is_last = pod is not None and pod.restart_count == log.restart_count
    code = pod.exit_code if pod is not None and is_last else 1
    return recorded(
        log.data,
        scrubber.scrub,
        started_ns=start_ns,
        finished_ns=pod.finished_ns if pod is not None and is_last else None,
        exit_code=min(max(code or 0, 0), 255),
    )


def _started_ns(log: LogStream, group: GroupEvidence) -> int:
    """Return when the log's container started; where that is not known, when it wrote first."""
    pod = _pod(log, group)
    if pod is None or pod.restart_count != log.restart_count or pod.started_ns is None:
        return first_time_ns(log.data)
    return pod.started_ns


def _life(log: LogStream, group: GroupEvidence) -> int:
    """Return of which life of the workload the log is, counted from 0."""
    return sum(log.attempt > each.last_attempt for each in group.restarts)


def _pod(log: LogStream, group: GroupEvidence) -> PodFacts | None:
    return next((pod for pod in group.pods if pod.name == log.pod), None)


def _place(group: GroupEvidence) -> Path:
    attempt = f"{file_name(group.group)}-attempt-{group.attempt}"
    return Path(folder_name(group.entry, group.scale)) / attempt


def _title(group: GroupEvidence) -> str:
    return f"{group.entry}@{group.scale} {group.group} attempt {group.attempt + 1}"


def figures(value: object) -> object:
    """Return a measurement as nested tuples of its numbers, without any name or text."""
    if is_dataclass(value):
        return tuple(figures(getattr(value, each.name)) for each in fields(value))
    if isinstance(value, Mapping):
        return tuple(figures(value[key]) for key in sorted(value, key=str))
    if isinstance(value, list | tuple):
        return tuple(figures(each) for each in value)
    if isinstance(value, frozenset | set):
        return len(value)
    return value if value is None or isinstance(value, bool | int | float) else ""

"""One log to training steps and facts, whatever framework wrote it.

All frameworks read along; which of them the log is of is settled when everything was read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pytest_cre.measure.failure import Failure, Failures
from pytest_cre.measure.frameworks.deepspeed import DeepSpeed
from pytest_cre.measure.frameworks.dialect import Dialect
from pytest_cre.measure.frameworks.huggingface import HuggingFace
from pytest_cre.measure.frameworks.lightning import Lightning
from pytest_cre.measure.frameworks.maxtext import MaxText
from pytest_cre.measure.frameworks.megatron import Megatron
from pytest_cre.measure.frameworks.nemo import NeMo
from pytest_cre.measure.frameworks.recorder import Fact, LineCounter, Recorder, fact_of
from pytest_cre.measure.frameworks.torchtitan import TorchTitan
from pytest_cre.measure.logtext import Line
from pytest_cre.measure.profile import CompiledProfile, ProfileMatch

# The more special ones first: NeMo and Megatron-DeepSpeed logs also hold lines of what they build on.
DIALECTS: tuple[type[Dialect], ...] = (
    NeMo,
    TorchTitan,
    MaxText,
    DeepSpeed,
    Megatron,
    HuggingFace,
    Lightning,
)
NEEDLES = tuple(needle for dialect in DIALECTS for needle in dialect.needles)


@dataclass(slots=True, kw_only=True)
class FailureEpisode:
    """Failure lines that no progress came between, and the exit that they prove."""

    failures: Failures
    fact: Fact
    is_open: bool = True  # nothing but failures came after it


class TrainingReader:
    """Reads one log with every framework's reader, and with a profile's patterns where one is named."""

    def __init__(self, profile: CompiledProfile | None) -> None:
        self.counter = LineCounter()
        self.dialects = tuple(dialect(Recorder(self.counter)) for dialect in DIALECTS)
        self.by_profile = ProfileReader(profile, Recorder(self.counter)) if profile else None
        self.episodes: list[FailureEpisode] = []
        self._usual = next(each for each in self.dialects if isinstance(each, Megatron))

    def line(self, line: Line) -> bool:
        """Take a line; return whether something was taken from it."""
        taken = self.counter.taken
        is_matched = self.by_profile is not None and self.by_profile.line(line)
        for dialect in self.dialects:
            if dialect.line(line):
                is_matched = True
                break
        if self._has_open_episode and self.counter.taken > taken:
            self._went_on()
        return is_matched

    def fast(self, block: bytes, at: int) -> tuple[int, int]:
        """Take usual step lines in one go, where that means the same."""
        if self.by_profile is not None or self._has_open_episode:
            return at, 0
        return self._usual.fast(block, at)

    def failed(self, line: Line, failure: Failure) -> None:
        """Take a line that tells of a failure."""
        fact = fact_of("abort", line, self.counter.next(), reason=failure.text)
        if not self._has_open_episode:
            self.episodes.append(FailureEpisode(failures=Failures(), fact=fact))
        episode = self.episodes[-1]
        episode.failures.add(failure)
        episode.fact = fact
        worst = episode.failures.worst
        fact.reason = worst.text if worst else failure.text

    @property
    def _has_open_episode(self) -> bool:
        return bool(self.episodes) and self.episodes[-1].is_open

    def _went_on(self) -> None:
        """Close an episode: a caught exception is no failure when just the next step follows it."""
        episode = self.episodes[-1]
        episode.is_open = False
        if episode.failures.are_exceptions_only and _is_step_ahead(
            self.recorders, self.counter.taken
        ):
            self.episodes.pop()

    @property
    def recorders(self) -> Sequence[Recorder]:
        """Return what was recorded, by every framework's reader and by the profile."""
        recorders = [dialect.recorder for dialect in self.dialects]
        return [*recorders, self.by_profile.recorder] if self.by_profile else recorders


def _is_step_ahead(recorders: Sequence[Recorder], seq: int) -> bool:
    """Return whether what was taken last is a step above the one before it."""
    for recorder in recorders:
        if recorder.seqs and recorder.seqs[-1] == seq and len(recorder.numbers) > 1:
            return recorder.numbers[-1] > recorder.numbers[-2]
    return False


@dataclass(slots=True)
class ProfileReader:
    """Reads one log with a profile's patterns; what the profile has no pattern for it leaves alone."""

    profile: CompiledProfile
    recorder: Recorder
    warmup_numbers: list[int] = field(default_factory=list)  # steps of lines marked as warm-up
    _is_whole_save: bool = False  # the newest save line also told its duration

    def line(self, line: Line) -> bool:
        """Take a line that one of the patterns matches."""
        is_start = self.profile.is_start(line.printed)
        if is_start:
            app_ns = self.profile.start_ns(line.printed)
            timed = line if app_ns is None else replace(line, app_ns=app_ns, is_app_zoned=False)
            self.recorder.started(timed)
        found = self.profile.read(line.printed)
        if found is None:
            return is_start
        self._take(line, found)
        return True

    def _take(self, line: Line, found: ProfileMatch) -> None:
        recorder, app_ns = self.recorder, found.app_ns
        match found.kind:
            case "trainingStep":
                self._step(line, found)
            case "checkpointSave" if found.save_s is None:
                recorder.fact("save_start", line, step=found.step, app_ns=app_ns)
            case "checkpointSave":
                self._saved(line, found)
                self._is_whole_save = True
                return
            case "checkpointDone":
                # The line after which the loop goes on need not say that the write is over.
                is_scheduled = b"schedul" in line.printed or b"async" in line.printed
                self._saved(line, found, is_durable=not is_scheduled)
            case "checkpointRestore":
                recorder.fact("load_start", line, step=found.step, app_ns=app_ns)
            case _:
                recorder.fact("load_end", line, step=found.step, app_ns=app_ns)
        if found.kind != "trainingStep":
            self._is_whole_save = False

    def _step(self, line: Line, found: ProfileMatch) -> None:
        number, interval = found.step, self.profile.profile.log_interval
        if number is None or number < 0 or (interval > 1 and number % interval):
            return
        if self.profile.is_warmup(line.printed):
            self.warmup_numbers.append(number)
        self.recorder.step(
            line,
            number,
            app_ns=found.app_ns,
            seconds=found.seconds,
            tflops=found.tflops,
            loss=found.loss,
        )

    def _saved(self, line: Line, found: ProfileMatch, *, is_durable: bool = True) -> None:
        recorder, step, app_ns = self.recorder, found.step, found.app_ns
        if not self._is_whole_save:  # else the pause is over already
            recorder.fact("save_unblock", line, step=step, app_ns=app_ns, duration_s=found.save_s)
        if is_durable:
            recorder.fact("save_commit", line, step=step, app_ns=app_ns, duration_s=found.save_s)

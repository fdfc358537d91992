"""What a run may cost: what does not fit is left out before it starts, and named as untested."""

from dataclasses import dataclass

from pytest_cre.catalog.entry import CatalogEntry
from pytest_cre.errors import UnmetNeed
from pytest_cre.formats.duration import format_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of a whole run; None: no limit. The deadline counts from the run's start."""

    deadline_s: float | None = None
    gpu_minutes: float | None = None

    def admit(self, entry: CatalogEntry, *, gpus: int, ran_s: float, spent_gpu_s: float) -> None:
        """Raise `UnmetNeed` unless an entry fits into what is left of the run.

        `gpus` are those that it takes at a time, `ran_s` what has passed since the start,
        `spent_gpu_s` what was used so far. An entry that does not say what it costs counts with its
        timeout.
        """
        cost_s = entry.timeout_s if entry.cost_s is None else entry.cost_s
        says = "takes at most" if entry.cost_s is None else "takes about"
        if self.deadline_s is not None and ran_s + cost_s > self.deadline_s:
            left_s = max(0.0, self.deadline_s - ran_s)
            raise UnmetNeed(
                f"{entry.name} {says} {_words(cost_s)}; {_words(left_s)} of the run's "
                f"{_words(self.deadline_s)} are left (--cre-deadline)"
            )
        if self.gpu_minutes is not None and spent_gpu_s + cost_s * gpus > self.gpu_minutes * 60:
            left = max(0.0, self.gpu_minutes - spent_gpu_s / 60)
            raise UnmetNeed(
                f"{entry.name} {says} {cost_s * gpus / 60:.0f} GPU-minutes; {left:.0f} of the run's "
                f"{self.gpu_minutes:g} are left (--cre-gpu-minutes)"
            )

    def left_s(self, ran_s: float) -> float | None:
        """Return how long the run may still take, or None where it may take for ever."""
        return None if self.deadline_s is None else max(0.0, self.deadline_s - ran_s)


def _words(seconds: float) -> str:
    return format_duration(round(seconds))

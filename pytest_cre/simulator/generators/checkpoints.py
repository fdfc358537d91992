"""Checkpoints of a simulated training: written, found again by a later attempt."""

from typing import TYPE_CHECKING

from pytest_cre.simulator.generators.megatronoptions import TrainingOptions
from pytest_cre.simulator.generators.plannedtime import PlannedTime

if TYPE_CHECKING:
    from pytest_cre.simulator.generators.team import Team

_SYNCHRONOUS_S = 0.15
_SCHEDULING_S = 0.03
_WRITING_S = 0.2  # of an asynchronous save, in the background


class Checkpoints:
    """The checkpoints of one attempt. What is durable outlives it, on its volume or with its Job."""

    def __init__(self, team: "Team", options: TrainingOptions, clock: PlannedTime) -> None:
        self.team, self.options, self.clock = team, options, clock
        self.newest_begun: int | None = None
        self._writing: list[tuple[int, float]] = []  # steps being written, and when they are done

    def find(self) -> int:
        """Return the step to go on from, 0 for none, and write what is found."""
        path = self.options.load
        if not path:
            return 0
        step = self.team.world.checkpoints.get(self._place(path), 0)
        if step:
            self.newest_begun = step
            self.team.write(0, f" loading checkpoint from {path} at iteration {step}")
        else:
            self.team.write(
                0,
                f"WARNING: could not find the metadata file "
                f"{path}/latest_checkpointed_iteration.txt\n"
                "    will not load any checkpoints and will start from random",
            )
        return step

    def tell_loaded(self, step: int) -> None:
        """Write that the checkpoint is loaded."""
        words = f"successfully loaded checkpoint from {self.options.load}"
        self.team.write(0, f"  {words} {self._shards()} at iteration {step}")

    def begin(self, step: int) -> float:
        """Write that a save begins; return for how long it blocks the training."""
        options = self.options
        self.newest_begun = step
        self.team.write(
            0,
            f"[{self.clock.stamp(6)}] saving checkpoint at iteration {step:7d} to {options.save} in "
            f"{options.checkpoint_format} format",
        )
        return _SCHEDULING_S if options.is_async_save else _SYNCHRONOUS_S

    def end(self, step: int) -> None:
        """Write that the training goes on; an asynchronous save is durable later."""
        if not self.options.is_async_save:
            self._commit(step)
            return
        self._writing.append((step, self.clock.passed_s + _WRITING_S))
        words = f"scheduled an async checkpoint save at iteration {step:7d} to {self.options.save}"
        self.team.write(0, f"[{self.clock.stamp(6)}] {words}")

    def poll(self) -> None:
        """Commit the saves that are written by now."""
        while self._writing and self._writing[0][1] <= self.clock.passed_s:
            self._commit(self._writing.pop(0)[0])

    def left_s(self) -> float:
        """Return how long the saves being written still take."""
        last_s = max((done_s for _, done_s in self._writing), default=0.0)
        return max(0.0, last_s - self.clock.passed_s) + (0.005 if self._writing else 0.0)

    def _commit(self, step: int) -> None:
        path = self.options.save or ""
        self.team.world.checkpoints[self._place(path)] = step
        words = f"successfully saved checkpoint from iteration {step:7d} to {path}"
        self.team.write(0, f"  {words} {self._shards()}")

    def _shards(self) -> str:
        options = self.options
        return f"[ t 1/{options.tensor_parallel}, p 1/{options.pipeline_parallel} ]"

    def _place(self, path: str) -> str:
        """Return where a path lies: on a volume that lasts, else with the Job.

        A real container loses what it wrote to its own file system; that a Job's next attempt finds
        it here lets a restart be rehearsed without a storage class.
        """
        first = self.team.places[0][0]
        return f"{first.call.volume_of(path) or 'job/' + first.owner_uid}:{path}"

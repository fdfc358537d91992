"""Megatron-LM's `pretrain_gpt.py` under torchrun: step lines, checkpoints, resume."""

import math
from typing import TYPE_CHECKING

from pytest_cre.simulator.commandline import Launch, UsageExit
from pytest_cre.simulator.generators.checkpoints import Checkpoints
from pytest_cre.simulator.generators.megatronoptions import TrainingOptions, read_options
from pytest_cre.simulator.generators.mpirun import run_ranks
from pytest_cre.simulator.generators.plannedtime import PlannedTime
from pytest_cre.simulator.generators.team import Team
from pytest_cre.simulator.hardware import training_speed
from pytest_cre.simulator.noise import gauss

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun

_FIRST_STEP_FACTOR = 3.0  # compilation and allocation
_EVALUATION_S = 0.05
_LOAD_S = 0.1
_LOSS_START, _LOSS_END, _LOSS_STEPS = 11.8, 2.2, 400.0


async def generate(run: "ContainerRun", launch: Launch) -> int:
    """Train; gives the exit code."""

    async def drive(team: Team) -> int:
        try:
            options = read_options(launch.argv, team.size)
        except UsageExit as ending:
            team.write(0, ending.text, "stderr" if ending.code else "stdout")
            return ending.code
        return await Training(team, options).run()

    return await run_ranks(run, launch, drive)


class Training:
    """One attempt of a training. Checkpoint lines come from rank 0, step lines from the last."""

    def __init__(self, team: Team, options: TrainingOptions) -> None:
        self.team, self.options = team, options
        self.last_rank = team.size - 1
        self.clock = PlannedTime()
        self.checkpoints = Checkpoints(team, options, self.clock)
        self.interval_s = 0.0  # of the steps since the last printed multiple
        self.interval_steps = 0

    async def run(self) -> int:
        """Train to the end; gives the exit code."""
        options, team = self.options, self.team
        team.write(
            0,
            f"using world size: {team.size}, data-parallel size: {options.data_parallel}, "
            f"context-parallel size: {options.context_parallel}, hierarchical context-parallel "
            f"sizes: None, tensor-model-parallel size: {options.tensor_parallel}, "
            f"pipeline-model-parallel size: {options.pipeline_parallel}",
        )
        team.write(0, "> initializing torch distributed ...")
        await self.clock.spend(team.world.scenario.init_s)
        team.write_nccl_init()
        step = self.checkpoints.find()
        if step:
            await self.clock.spend(_LOAD_S)
            self.checkpoints.tell_loaded(step)
        team.write(0, f"[before the start of training step] datetime: {self.clock.stamp(0)} ")
        ending = "after training is done"
        first = step + 1
        while step < options.train_iters:
            step += 1
            await self._step(step, is_first=step == first)
            if words := self._exit_words(step):
                ending = f"exiting program {words}"
                break
        await self._finish(step, is_trained=step >= first)
        team.write(0, f"[{ending}] datetime: {self.clock.stamp(0)} ")
        return 0

    async def _step(self, step: int, *, is_first: bool) -> None:
        options, team = self.options, self.team
        await team.reach(step=step)
        group = team.participants()
        speed = training_speed(group)
        ratio = max(each.node.model.noise_ratio for each in group)
        step_s = speed.step_time_s * max(0.1, 1.0 + ratio * gauss(*team.noise_key, "step", step))
        if is_first:
            step_s *= _FIRST_STEP_FACTOR
        await self.clock.spend(step_s)
        self.interval_s += step_s
        self.interval_steps += 1
        if is_first or step % options.log_interval == 0:
            # The line of a first step does not reset the timer, as in the real program.
            self._write_step(step, speed.tflops_per_gpu * speed.step_time_s)
            if step % options.log_interval == 0:
                self.interval_s, self.interval_steps = 0.0, 0
        self.checkpoints.poll()
        if options.eval_iters and options.eval_interval and step % options.eval_interval == 0:
            await self._evaluate(step)
        if options.save and options.save_interval and step % options.save_interval == 0:
            await self.clock.spend(self.checkpoints.begin(step))
            self.checkpoints.end(step)

    def _write_step(self, step: int, work: float) -> None:
        """Write a step line; `work` is TFLOP/s times seconds of a healthy or slow step."""
        options = self.options
        elapsed_s = self.interval_s / self.interval_steps
        fields = [
            f"iteration {step:8d}/{options.train_iters:8d}",
            f"consumed samples: {step * options.global_batch:12d}",
            f"elapsed time per iteration (ms): {elapsed_s * 1000:.1f}",
        ]
        if options.is_throughput_logged:
            fields.append(f"throughput per GPU (TFLOP/s/GPU): {work / elapsed_s:.1f}")
        fields += [
            f"learning rate: {options.learning_rate(step):.6E}",
            f"global batch size: {options.global_batch:5d}",
            f"lm loss: {self._loss(step):.6E}",
            "loss scale: 1.0",
            f"grad norm: {1.5 + 20.0 / (step + 9):.3f}",
            "number of skipped iterations:   0",
            "number of nan iterations:   0",
        ]
        self.team.write(self.last_rank, f" [{self.clock.stamp(6)}] {' | '.join(fields)} |")

    def _loss(self, step: int) -> float:
        """Return the loss: the same on every hardware, so that a resume goes on where it was."""
        wobble = 0.02 * gauss(self.team.world.seed, "loss", step)
        return _LOSS_END + (_LOSS_START - _LOSS_END) * math.exp(-step / _LOSS_STEPS) + wobble

    async def _evaluate(self, step: int) -> None:
        await self.clock.spend(_EVALUATION_S)
        loss = self._loss(step)
        words = (
            f" validation loss at iteration {step} on validation set | lm loss value: {loss:.6E} | "
            f"lm loss PPL: {math.exp(min(20.0, loss)):.6E} | "
        )
        rule = "-" * (len(words) + 1)
        self.team.write(
            self.last_rank,
            f"(min, max) time across ranks (ms):\n    evaluate ........................: "
            f"({_EVALUATION_S * 1000:.2f}, {_EVALUATION_S * 1010:.2f})\n{rule}\n{words}\n{rule}",
        )

    def _exit_words(self, step: int) -> str | None:
        """Return why the program ends before its last step, None while it goes on."""
        options = self.options
        minutes = self.clock.passed_s / 60.0
        if options.exit_minutes is not None and minutes > options.exit_minutes:
            return f"after {minutes} minutes"
        if options.exit_interval and step % options.exit_interval == 0:
            return f"at iteration {step}"
        return None

    async def _finish(self, step: int, *, is_trained: bool) -> None:
        options = self.options
        if is_trained and options.save and self.checkpoints.newest_begun != step:
            await self.clock.spend(self.checkpoints.begin(step))
            self.checkpoints.end(step)
        await self.clock.spend(self.checkpoints.left_s())
        self.checkpoints.poll()
        if is_trained and options.eval_iters:
            await self._evaluate(step)

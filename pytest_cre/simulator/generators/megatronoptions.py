"""The arguments of Megatron-LM that change what it writes."""

import argparse
from dataclasses import dataclass

from pytest_cre.simulator.commandline import ProgramParser, UsageExit

_INTEGERS = {
    "train-iters": None,
    "log-interval": 100,
    "save-interval": None,
    "eval-interval": 1000,
    "eval-iters": 100,
    "exit-interval": None,
    "micro-batch-size": None,
    "global-batch-size": None,
    "tensor-model-parallel-size": 1,
    "pipeline-model-parallel-size": 1,
    "context-parallel-size": 1,
    "lr-warmup-iters": 0,
    "num-layers": None,
    "hidden-size": None,
    "ffn-hidden-size": None,
    "num-attention-heads": None,
    "seq-length": None,
    "max-position-embeddings": None,
}
_NEEDED = ("micro-batch-size", "num-layers", "hidden-size", "num-attention-heads")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What a training does, checked against its number of processes."""

    train_iters: int
    log_interval: int
    global_batch: int
    tensor_parallel: int
    pipeline_parallel: int
    context_parallel: int
    data_parallel: int
    save: str | None
    load: str | None
    save_interval: int | None
    is_async_save: bool
    checkpoint_format: str
    eval_interval: int
    eval_iters: int
    exit_interval: int | None
    exit_minutes: float | None
    is_throughput_logged: bool
    warmup_steps: int
    lr: float
    min_lr: float

    def learning_rate(self, step: int) -> float:
        """Return the rate of a step: a linear rise, then a linear fall."""
        if step < self.warmup_steps:
            return self.lr * step / self.warmup_steps
        span = max(1, self.train_iters - self.warmup_steps)
        return self.lr - (self.lr - self.min_lr) * (step - self.warmup_steps) / span


def read_options(argv: tuple[str, ...], ranks: int) -> TrainingOptions:
    """Return the options; raises `UsageExit` where the program would refuse them.

    The program has hundreds of arguments; those that change nothing in its output are passed over.
    """
    parser = ProgramParser(
        prog="pretrain_gpt.py", usage="pretrain_gpt.py [-h] [options]", allow_abbrev=False
    )
    for name, default in _INTEGERS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in ("save", "load"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--lr", type=float, default=0.0)
    parser.add_argument("--min-lr", type=float, default=0.0)
    parser.add_argument("--exit-duration-in-mins", type=int)
    parser.add_argument("--ckpt-format", default="torch_dist")
    parser.add_argument("--async-save", action="store_true")
    parser.add_argument("--log-throughput", action="store_true")
    given, _ = parser.parse_known_args(list(argv[1:]))
    for name in (*_NEEDED, "train-iters"):
        if (getattr(given, name.replace("-", "_")) or 0) < 1:
            raise _assertion(f"{name.replace('-', '_')} must be given")
    return _checked(given, ranks)


def _checked(given: argparse.Namespace, ranks: int) -> TrainingOptions:
    tensor, pipeline = given.tensor_model_parallel_size, given.pipeline_model_parallel_size
    model = tensor * pipeline * given.context_parallel_size
    if model < 1 or ranks % model:
        raise _assertion(f"world size ({ranks}) is not divisible by total_model_size ({model})")
    data_parallel = ranks // model
    step_samples = given.micro_batch_size * data_parallel
    global_batch = given.global_batch_size or step_samples
    if global_batch % step_samples:
        raise _assertion(
            f"global batch size ({global_batch}) is not divisible by micro batch size "
            f"({given.micro_batch_size}) times data parallel size ({data_parallel})"
        )
    if given.log_interval < 1:
        raise _assertion("log_interval must be positive")
    if given.save and not given.save_interval:
        raise _assertion("save_interval must be given where save is")
    return TrainingOptions(
        train_iters=given.train_iters,
        log_interval=given.log_interval,
        global_batch=global_batch,
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        context_parallel=given.context_parallel_size,
        data_parallel=data_parallel,
        save=given.save,
        load=given.load,
        save_interval=given.save_interval,
        is_async_save=given.async_save,
        checkpoint_format=given.ckpt_format,
        eval_interval=given.eval_interval,
        eval_iters=given.eval_iters,
        exit_interval=given.exit_interval,
        exit_minutes=given.exit_duration_in_mins,
        is_throughput_logged=given.log_throughput,
        warmup_steps=given.lr_warmup_iters,
        lr=given.lr,
        min_lr=given.min_lr,
    )


def _assertion(message: str) -> UsageExit:
    return UsageExit(1, f"Traceback (most recent call last):\nAssertionError: {message}\n")

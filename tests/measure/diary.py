"""Megatron logs line by line, with the time of each line in seconds after 10:00 on 1 March 2026."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

Entry = tuple[float, str]

_BEGIN = datetime(2026, 3, 1, 10, tzinfo=UTC)
_START = "using world size: 16, data-parallel size: 8, context-parallel size: 1, tensor-model-parallel size: 2, pipeline-model-parallel size: 1"
_RULE = "-" * 60


def clock(second: float, *, zone_s: float = 0) -> str:
    """Return a time as Megatron prints it."""
    return f"{_BEGIN + timedelta(seconds=second + zone_s):%Y-%m-%d %H:%M:%S.%f}"


def kubelet(second: float) -> str:
    """Return a time as the kubelet puts it before a line."""
    return f"{_BEGIN + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S.%f}000Z"


def starts(second: float) -> list[Entry]:
    return [(second, _START)]


def fresh(second: float) -> list[Entry]:
    return [
        (second, "WARNING: could not find the metadata file /c/latest_checkpointed_iteration.txt"),
        (second, "    will not load any checkpoints and will start from random"),
    ]


def loads(step: int, second: float, lasted: float) -> list[Entry]:
    return [
        (second, f" loading distributed checkpoint from /c at iteration {step}"),
        (
            second + lasted,
            f"  successfully loaded checkpoint from /c [ t 1/2, p 1/1 ] at iteration {step}",
        ),
    ]


def ready(second: float) -> list[Entry]:
    return [(second, f"[before the start of training step] datetime: {clock(second)[:19]} ")]


def steps(
    first: int, last: int, second: float, *, of: int, lasts: float = 2.0, every: int = 10
) -> list[Entry]:
    """Return the lines of steps, of which the first begins at `second`."""
    return [
        (
            at := second + (n - first + 1) * lasts,
            f" [{clock(at)}] iteration {n:8d}/{of:8d} | consumed samples: {n * 64:12d} |"
            f" elapsed time per iteration (ms): {lasts * 1000:.1f} | throughput per GPU (TFLOP/s/GPU): 412.3 |"
            f" learning rate: 6.000000E-06 | global batch size:    64 | lm loss: 9.100000E+00 |"
            f" loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 |"
            f" number of nan iterations:   0 |",
        )
        for n in range(first, last + 1)
        if n % every == 0
    ]


def saves(step: int, second: float, lasted: float) -> list[Entry]:
    return [
        (second, f"saving checkpoint at iteration {step:7d} to /c in torch_dist format"),
        (
            second + lasted,
            f"  successfully saved checkpoint from iteration {step:7d} to /c [ t 1/2, p 1/1 ]",
        ),
    ]


def saves_async(
    step: int, second: float, blocked: float, durable: float | None = None
) -> list[Entry]:
    found = [
        (second, f"saving checkpoint at iteration {step:7d} to /c in torch_dist format"),
        (second + blocked, f"  scheduled an async checkpoint save at iteration {step:7d} to /c"),
    ]
    if durable is not None:
        found.append(
            (second + durable, f"  successfully saved checkpoint from iteration {step:7d} to /c")
        )
    return found


def evaluates(step: int, second: float, lasted: float, *, has_timer: bool) -> list[Entry]:
    end = second + lasted
    timer = [
        (end, "(min, max) time across ranks (ms):"),
        (
            end,
            f"    evaluate .......................................: ({lasted * 1000 - 3:.2f}, {lasted * 1000:.2f})",
        ),
    ]
    return [
        *(timer if has_timer else []),
        (end, _RULE),
        (
            end,
            f" validation loss at iteration {step} | lm loss value: 1.0E+01 | lm loss PPL: 2E+04 | ",
        ),
        (end, _RULE),
    ]


def crashes(second: float) -> list[Entry]:
    return [
        (second, "Traceback (most recent call last):"),
        (second, '  File "/opt/megatron/pretrain_gpt.py", line 1, in <module>'),
        (second, "RuntimeError: CUDA error: an illegal memory access was encountered"),
        (second, "Worker group FAILED. 3/3 attempts left; will restart worker group"),
    ]


def watchdog(second: float) -> list[Entry]:
    words = "[Rank 3] Watchdog caught collective operation timeout: ran for 600000 milliseconds before timing out."
    return [(second, words), *crashes(second)[3:]]


def ends(second: float) -> list[Entry]:
    return [(second, f"[after training is done] datetime: {clock(second)[:19]} ")]


def is_step(entry: Entry) -> bool:
    return "elapsed time per iteration" in entry[1]


def log(
    entries: Iterable[Entry], *, tag: str = "", stamps: bool = True, zone_s: float = 0
) -> bytes:
    """Return lines in the order of time; the program's own clock is `zone_s` ahead."""
    lines = []
    for second, words in sorted(entries, key=lambda entry: entry[0]):
        own = words
        for at in {second, round(second)}:
            own = own.replace(clock(at)[:19], clock(at, zone_s=zone_s)[:19])
        lines.append(f"{kubelet(second)} {tag}{own}\n" if stamps else f"{tag}{own}\n")
    return "".join(lines).encode()

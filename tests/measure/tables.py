"""Benchmark logs written for tests, in the columns of the real tools, with averages that fit."""

from collections.abc import Sequence

HEADER = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
UNITS = "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       "


def sizes(first: int = 1024, last: int = 65536) -> list[int]:
    found = [first]
    while found[-1] * 2 <= last:
        found.append(found[-1] * 2)
    return found


def busbw(size: int, *, in_place: bool = False) -> float:
    return round(size / 1000 + (0.25 if in_place else 0), 2)


def row(
    size: int, *, wrong: Sequence[object] = (0, 0), dtype: str = "float", scale: float = 1.0
) -> str:
    cells = []
    for at, mark in enumerate(wrong):
        bus = busbw(size, in_place=bool(at)) * scale
        cells.append(f" {size / 100 + 10:8.2f} {bus / 1.5:7.2f} {bus:7.2f} {mark!s:>6}")
    return f"{size:12d} {size // 4:13d} {dtype:>9} {'sum':>7} {-1:7d}" + "".join(cells)


def device(rank: int, host: str | None = None) -> str:
    name = host or f"node-{rank // 8}"
    return f"#  Rank {rank:2d} Group  0 Pid {700 + rank:6d} on {name:>10} device {rank % 8:2d} [0000:{rank:02x}:00] NVIDIA H100 80GB HBM3"


def parameters(first: int, last: int, *, validation: int = 1) -> str:
    return (
        f"# nThread 1 nGpus 1 minBytes {first} maxBytes {last} step: 2(factor) warmup iters: 5 "
        f"iters: 20 agg iters: 1 validation: {validation} graph: 0"
    )


def footer(values: Sequence[float], *, out_of_bounds: str = "0 OK") -> list[str]:
    return [
        f"# Out of bounds values : {out_of_bounds}",
        f"# Avg bus bandwidth    : {sum(values) / len(values):g} ",
    ]


def table(
    swept: Sequence[int] | None = None,
    *,
    ranks: int = 4,
    start: str | None = "all_reduce_perf",
    rows: Sequence[str] | None = None,
    cycles: int = 1,
) -> list[str]:
    """Return the lines of a whole table."""
    swept = swept or sizes()
    lines = (
        []
        if start is None
        else ["# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807"]
    )
    if start is not None:
        lines.append(f"# Collective test starting: {start}")
    lines += [parameters(swept[0], swept[-1]), "#", "# Using devices"]
    lines += [device(rank) for rank in range(ranks)]
    lines += ["#", HEADER, UNITS]
    lines += list(rows) if rows is not None else [row(size) for size in swept] * cycles
    values = [busbw(size, in_place=half) for size in swept for half in (False, True)]
    lines += footer(values)
    if start is not None:
        lines.append(f"# Collective test concluded: {start}")
    return lines


def stamped(lines: Sequence[str], *, first: int = 0) -> list[str]:
    """Put the kubelet's timestamp before each line, a millisecond apart."""
    return [
        f"2026-01-05T00:{(first + at) // 60000:02d}:{(first + at) // 1000 % 60:02d}.{(first + at) % 1000:03d}000000Z {line}"
        for at, line in enumerate(lines)
    ]


def text(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()

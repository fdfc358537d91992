"""How fast logs are read, beside a plain `re` loop over the lines of the same bytes.

    python benchmarks/measure.py [--megabytes 200] [--folder DIR]

Two logs are made and written to files, both with the kubelet's timestamp before each line: an all-reduce
log of which one line in 400 is a row and the rest is what NCCL_DEBUG=INFO prints, and a Megatron log in
which every line is a step. Each is read by the loop and by `measure` in turn, seven times, by a process of its own
on one CPU. The median of the pairs' ratios counts, in CPU time of those processes, so that other work on the
machine tells less; what shares caches with them still does. Speeds are those of the best runs. The loop only matches: upstream's patterns on each line after
the timestamp was cut off. `measure` does all that the command does, from the file to the text it prints,
with digests.
"""

import argparse
import importlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from statistics import median

GOALS = {"all-reduce": 3.5, "megatron": 1.0}
MEMORY_GOAL_MB = 60
RECORD_GOAL_BYTES = 250
LINES_PER_ROW = 400
RUNS = 7
START = 1_771_236_000


def stamp(at_ns: int) -> str:
    """Return a kubelet timestamp."""
    seconds, rest = divmod(at_ns, 10**9)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(START + seconds))}.{rest:09d}Z"


def noise(rng: random.Random) -> str:
    """Return a line as NCCL prints it at level INFO."""
    rank = rng.randrange(16)
    head = f"node-{rank // 8}:{rng.randrange(40000)}:{rng.randrange(40000)} [{rank % 8}] NCCL INFO "
    kind = rng.randrange(5)
    to = (rank + 1) % 16
    if kind == 0:
        tail = f"Channel {rng.randrange(32):02d}/0 : {rank}[{rank % 8}] -> {to}[{to % 8}] via P2P/CUMEM/read"
        return head + tail
    if kind == 1:
        tail = f"Channel {rng.randrange(32):02d}/0 : {rank}[{rank % 8}] -> {to}[{to % 8}] [send] via NET/IB/{rank % 8}/GDRDMA"
        return head + tail
    if kind == 2:
        buffers = (
            f"sendbuff 0x7f{rng.randrange(2**40):010x} recvbuff 0x7f{rng.randrange(2**40):010x}"
        )
        return (
            f"{head}AllReduce: opCount {rng.randrange(4000):x} {buffers} acc (nil) "
            f"count {2 ** rng.randrange(31)} datatype 7 op 0 root 0 comm 0x{rng.randrange(2**44):x} "
            f"[nranks=16] stream 0x{rng.randrange(2**44):x}"
        )
    if kind == 3:
        return f"{head}Ring {rng.randrange(32):02d} : {(rank - 1) % 16} -> {rank} -> {to} comm 0x{rng.randrange(2**44):x} nRanks 16 busId {rng.randrange(2**20):x}"
    return f"{head}{rng.randrange(24)} coll channels, {rng.randrange(24)} nvls channels, 32 p2p channels, 2 p2p channels per peer"


def all_reduce_lines(rng: random.Random) -> Iterator[str]:
    """Yield a table in cycles over the sizes, with 399 other lines before each row, without end."""
    yield "# nThread 1 nGpus 1 minBytes 8 maxBytes 17179869184 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0"
    yield "#"
    for rank in range(16):
        yield f"#  Rank {rank:2d} Group  0 Pid {6000 + rank} on     node-{rank // 8} device {rank % 8:2d} [0000:{rank:02x}:00] NVIDIA H100 80GB HBM3"
    yield "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
    yield "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       "
    others = [noise(rng) for _ in range(50_000)]
    while True:
        for power in range(3, 35):
            for _ in range(LINES_PER_ROW - 1):
                yield others[rng.randrange(50_000)]
            size = 2**power
            time_us = 20 + size / 250_000
            half = f"{time_us:8.2f} {size / time_us / 1e3:7.2f} {size / time_us / 1e3 * 1.875:7.2f}      0"
            yield f"{size:12d} {size // 4:13d}     float     sum      -1 {half} {half}"


def megatron_lines(rng: random.Random) -> Iterator[str]:
    """Yield step lines without end."""
    step = 0
    while True:
        step += 1
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(START + step // 2))
        milliseconds = 495 + rng.random() * 10
        yield (
            f" [{at}.{step % 2 * 500000 + rng.randrange(9000):06d}] iteration {step:8d}/ 9000000 |"
            f" consumed samples: {step * 768:12d} | elapsed time per iteration (ms): {milliseconds:.1f} |"
            f" throughput per GPU (TFLOP/s/GPU): {267000 / milliseconds:.1f} | learning rate: 2.000000E-07 |"
            f" global batch size:   768 | lm loss: {1 + 9 / step:.6E} | loss scale: 1.0 |"
            f" grad norm: {rng.random() * 3:.3f} | num zeros: 520106016.0 | params norm: 2838.591 |"
            " number of skipped iterations:   0 | number of nan iterations:   0 |"
        )


def make(path: Path, lines: Iterator[str], megabytes: int, apart_ns: int) -> int:
    """Write lines with timestamps until the file is as large as asked; return how many."""
    written = count = 0
    with path.open("wb") as file:
        for line in lines:
            data = f"{stamp(count * apart_ns)} {line}\n".encode()
            file.write(data)
            count, written = count + 1, written + len(data)
            if written >= megabytes * 1_000_000:
                return count
    return count


def loop(path: Path) -> int:
    """Match a profile's patterns line by line in upstream's order; return how many records matched."""
    import re

    prefix = re.compile(
        rb"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2}))\s"
    ).match
    if path.stem == "all-reduce":
        record = re.compile(
            rb"^\s*(?P<size>\d+)\s+\d+\s+\w+\s+\w+\s+-?\d+\s+[\d.]+\s+(?P<algBW>[\d.]+)\s+(?P<busBW>[\d.]+)"
        ).search
        other = re.compile(rb"NCCL INFO Using network (?P<transport>.+)").search
    else:
        record = re.compile(
            rb"\[(?P<timestamp>\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(?:\.\d+)?)\]\s+iteration\s+(?P<iteration>\d+)/\s*\d+\s*\|"
            rb".*elapsed time per iteration \(ms\):\s*(?P<elapsedTime>[\d.]+)\s*\|"
            rb".*throughput per GPU \(TFLOP/s/GPU\):\s*(?P<tflops>[\d.]+)\s*\|.*lm loss:\s*(?P<loss>[\d.eE+\-]+)"
        ).search
        other = re.compile(
            rb"using world size: \d+, data-parallel size: \d+, context-parallel size: \d+,"
            rb".* tensor-model-parallel size: \d+, pipeline-model-parallel size: \d+"
        ).search
    is_start_first = path.stem != "all-reduce"
    matched = 0
    with path.open("rb") as file:
        for line in file:
            found = prefix(line)
            text = line[found.end() :] if found else line
            if is_start_first:
                other(text)
            if record(text) is not None:
                matched += 1
            elif not is_start_first:
                other(text)
    return matched


def measure(path: Path) -> int:
    """Measure the file as the command does; return how many records it holds."""
    from pytest_cre.cli.measure import measure_files
    from pytest_cre.report.measurement import measurement_text

    measured = measure_files([str(path)])
    measurement_text(measured)
    if measured.bandwidth is not None:
        return sum(len(table.rows) for table in measured.bandwidth.tables)
    return measured.training.summary.step_records if measured.training is not None else 0


def once(reader: str, path: Path) -> None:
    """Read one file in this process and print what that took as JSON."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    needed = "tabulate" if path.stem == "all-reduce" else "numpy"
    for module in ("pytest_cre.cli.measure", "pytest_cre.report.measurement", needed):
        importlib.import_module(module)  # loading is no part of reading

    started = time.process_time()
    records = {"loop": loop, "measure": measure}[reader](path)
    seconds = time.process_time() - started
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "records": records, "peak_mb": peak_kb * 1024 / 1e6}))


def run(reader: str, path: Path) -> dict[str, float]:
    """Return what one run in a process of its own took."""
    command = [sys.executable, __file__, "--reader", reader, "--path", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def report(path: Path, lines: int) -> bool:
    """Print how both readers did on a file; return whether the goals are reached."""
    megabytes = path.stat().st_size / 1e6
    pairs = [(run("loop", path), run("measure", path)) for _ in range(RUNS)]
    ratios = sorted(plain["seconds"] / ours["seconds"] for plain, ours in pairs)
    ratio = median(ratios)
    print(f"{path.stem}: {megabytes:.0f} MB, {lines} lines")
    for name, runs in zip(
        ("re loop, matching only", "measure, end to end"), zip(*pairs, strict=True), strict=True
    ):
        told = min(runs, key=itemgetter("seconds"))
        speed = megabytes / told["seconds"]
        print(
            f"  {name:<24} {speed:7.0f} MB/s {told['records'] / told['seconds']:10.0f} records/s"
            f" {told['records']:9.0f} records {told['peak_mb']:6.0f} MB peak"
        )
    goal = GOALS[path.stem]
    reached = ratio >= goal
    print(
        f"  ratio {ratio:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), goal {goal}:"
        f" {'reached' if reached else 'MISSED'}"
    )
    if path.stem == "all-reduce":
        peak_mb = max(ours["peak_mb"] for _, ours in pairs)
        fits = peak_mb <= MEMORY_GOAL_MB
        print(f"  peak {peak_mb:.0f} MB, goal {MEMORY_GOAL_MB}: {'reached' if fits else 'MISSED'}")
        return reached and fits
    return reached


def memory_per_record(small: Path, large: Path) -> bool:
    """Print by how many bytes the peak grows with each step record; return whether that is the goal."""
    few, many = run("measure", small), run("measure", large)
    grown = (many["peak_mb"] - few["peak_mb"]) * 1e6 / (many["records"] - few["records"])
    fits = grown <= RECORD_GOAL_BYTES
    print(
        f"  {grown:.0f} bytes per step record, goal {RECORD_GOAL_BYTES}: {'reached' if fits else 'MISSED'}"
    )
    return fits


def main() -> int:
    """Make the logs, read them, and return 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument(
        "--folder", type=Path, help="where the logs are made (default: a temporary one)"
    )
    parser.add_argument("--reader", choices=("loop", "measure"), help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.reader:
        once(given.reader, given.path)
        return 0
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        rng = random.Random(7)
        path = Path(folder) / "all-reduce.log"
        reached = report(path, make(path, all_reduce_lines(rng), given.megabytes, 100_000))
        path.unlink()
        path, small = Path(folder) / "megatron.log", Path(folder) / "small.log"
        lines = make(path, megatron_lines(rng), given.megabytes, 500_000_000)
        make(small, megatron_lines(random.Random(7)), given.megabytes // 8, 500_000_000)
        reached &= report(path, lines)
        reached &= memory_per_record(small, path)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

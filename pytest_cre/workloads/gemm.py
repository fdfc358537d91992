"""GEMM burn-in: every GPU of a node multiplies matrices at once, and each product is known.

One process per GPU, so that a GPU that fails does not stop the others. Needs nothing but torch. Each
GPU prints a row per sample, of about `--seconds` of products:

    gemm gpu=0 sample=1 dtype=bfloat16 m=8192 n=8192 k=8192 products=4910 seconds=10.003 tflops=539.9 wrong=0

`tflops` is 2 m n k products / seconds / 1e12, by the GPU's own clock, products alone. `wrong` is the
number of elements that were not bit for bit those of the reference, summed over the checks of the sample:
every `--check-every`th product is compared, the last one among them.

The matrices hold whole numbers, random and the same on every GPU, so small that every sum is exact in
the accumulator and only the last rounding remains. The reference is computed in double precision on the
same GPU and, for some rows, on the CPU too; rows on which the two disagree count as wrong in the first
sample. Exit code 1 when an element was wrong or a GPU did not finish.

`--plant-wrong GPU:INDEX` is a self-test: that element of that GPU's product is spoilt before it is
compared. `--device cpu` runs the same on CPUs, for rehearsals, in float or double.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DTYPES = {
    "bfloat16": torch.bfloat16,
    "half": torch.float16,
    "float": torch.float32,
    "double": torch.float64,
}
# The largest whole number in the matrices: sums of 65536 products stay far below 2**24, which float
# accumulators hold exactly, and below 65504, the largest half.
LARGEST = {"bfloat16": 127, "half": 7, "float": 127, "double": 127}
LONGEST_SUM = 65536
EXACT_ON_CPU = ("float", "double")  # CPUs round sums of the others on the way
SAME_SIZE_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
REFERENCE_ROWS = 1024  # computed at a time
CPU_ROWS = 4  # of the reference computed once more on the CPU


def at_least(lowest: int, highest: int = 1 << 30) -> Callable[[str], int]:
    """Return an argument type for whole numbers of a range."""

    def whole_number(text: str) -> int:
        if not text.isdigit() or not lowest <= int(text) <= highest:
            raise argparse.ArgumentTypeError(
                f"must be a whole number of {lowest} to {highest}, got {text!r}"
            )
        return int(text)

    return whole_number


def seconds(text: str) -> float:
    """Return a positive number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"must be seconds such as 10 or 0.5, got {text!r}")
    return value


def gpu_and_index(text: str) -> tuple[int, int]:
    """Return the GPU and the element of a text such as 3:0."""
    gpu, colon, index = text.partition(":")
    if not (colon and gpu.isdigit() and index.isdigit()):
        raise argparse.ArgumentTypeError(f"must be GPU:INDEX such as 3:0, got {text!r}")
    return int(gpu), int(index)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the arguments; a mistake ends the program with code 2 and one line."""
    parser = argparse.ArgumentParser(
        prog="gemm.py", description=__doc__.partition("\n")[0], allow_abbrev=False
    )
    add = parser.add_argument
    add("--gpus", type=at_least(1, 1024), help="GPUs that must take part; default: all visible")
    add("--device", choices=("cuda", "cpu"), default="cuda")
    add("--dtype", choices=sorted(DTYPES), default="bfloat16")
    for name in "mn":
        add(f"-{name}", type=at_least(1), default=8192)
    add("-k", type=at_least(1, LONGEST_SUM), default=8192)
    add("--samples", type=at_least(1), default=6)
    add("--seconds", type=seconds, default=10.0, help="of products in a sample")
    add("--check-every", type=at_least(1), default=10, help="products from one check to the next")
    add("--plant-wrong", type=gpu_and_index, metavar="GPU:INDEX", help="self-test: spoil a value")
    add("--worker", type=at_least(0), help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.device == "cpu":
        given.gpus = given.gpus or 1
        if given.dtype not in EXACT_ON_CPU:
            parser.error(f"--device cpu takes --dtype {' or '.join(EXACT_ON_CPU)}")
    if given.plant_wrong is not None and given.plant_wrong[1] >= given.m * given.n:
        parser.error(f"--plant-wrong must name an element of the {given.m} x {given.n} product")
    return given


class Burn:
    """The matrices of one GPU, their product's reference, and the samples."""

    def __init__(self, given: argparse.Namespace, gpu: int) -> None:
        self.given, self.gpu = given, gpu
        self.is_gpu = given.device == "cuda"
        self.dtype = DTYPES[given.dtype]
        self.device = torch.device("cuda", gpu) if self.is_gpu else torch.device("cpu")
        if self.is_gpu:
            torch.cuda.set_device(gpu)
            matmul = torch.backends.cuda.matmul
            matmul.allow_tf32 = True  # exact on these numbers, and what training runs on
            matmul.allow_fp16_reduced_precision_reduction = False
            if hasattr(matmul, "allow_bf16_reduced_precision_reduction"):
                matmul.allow_bf16_reduced_precision_reduction = False
        generator = torch.Generator().manual_seed(8191)
        left = self.random(given.m, given.k, generator)
        right = self.random(given.k, given.n, generator)
        self.left, self.right = left.to(self.device), right.to(self.device)
        self.product = torch.empty(given.m, given.n, dtype=self.dtype, device=self.device)
        self.reference = torch.empty_like(self.product)
        wide = self.right.double()
        for begin in range(0, given.m, REFERENCE_ROWS):
            rows = slice(begin, begin + REFERENCE_ROWS)
            self.reference[rows] = (self.left[rows].double() @ wide).to(self.dtype)
        rows = torch.linspace(0, given.m - 1, min(CPU_ROWS, given.m)).long()
        told = (left[rows].double() @ right.double()).to(self.dtype)
        self.doubtful = self.differing(told, self.reference[rows.to(self.device)].cpu())

    def random(self, rows: int, columns: int, generator: torch.Generator) -> torch.Tensor:
        """Return a matrix of random whole numbers."""
        largest = LARGEST[self.given.dtype]
        drawn = torch.randint(
            -largest, largest + 1, (rows, columns), generator=generator, dtype=torch.int16
        )
        return drawn.to(self.dtype)

    def differing(self, first: torch.Tensor, second: torch.Tensor) -> int:
        """Return how many elements are not the same bit for bit; 0 and -0 are the same here."""
        as_integers = SAME_SIZE_INTEGERS[first.element_size()]
        is_other = first.view(as_integers) != second.view(as_integers)
        is_other &= (first != 0) | (second != 0)
        return int(is_other.sum().item())

    def print_samples(self) -> int:
        """Run the samples and print their rows; return the wrong elements."""
        given = self.given
        per_check = 2.0 * given.m * given.n * given.k / 1e12 * given.check_every
        self.multiply()  # warm-up: libraries load and choose their kernels
        total_wrong = 0
        for sample in range(1, given.samples + 1):
            products, elapsed_s = 0, 0.0
            wrong = self.doubtful if sample == 1 else 0
            while elapsed_s < given.seconds:
                elapsed_s += self.multiply()
                products += given.check_every
                if given.plant_wrong is not None and given.plant_wrong[0] == self.gpu:
                    self.product.view(-1)[given.plant_wrong[1]] += 1
                wrong += self.differing(self.product, self.reference)
            tflops = per_check * (products // given.check_every) / elapsed_s
            total_wrong += wrong
            say(
                f"gemm gpu={self.gpu} sample={sample} dtype={given.dtype} m={given.m} n={given.n} "
                f"k={given.k} products={products} seconds={elapsed_s:.6g} tflops={tflops:.6g} "
                f"wrong={wrong}"
            )
        return total_wrong

    def multiply(self) -> float:
        """Multiply until the next check is due; return the seconds that took."""
        if not self.is_gpu:
            start = time.perf_counter()
            for _ in range(self.given.check_every):
                torch.matmul(self.left, self.right, out=self.product)
            return time.perf_counter() - start
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(self.given.check_every):
            torch.matmul(self.left, self.right, out=self.product)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3


def say(line: str) -> None:
    """Print by one write, so that no other process's output can stand inside a line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def device_words(given: argparse.Namespace, gpu: int) -> str:
    """Return the line about one GPU: what tells it from every other."""
    if given.device == "cpu":
        return f"# gemm gpu={gpu} name=CPU"
    facts = torch.cuda.get_device_properties(gpu)
    words = f"# gemm gpu={gpu}"
    if hasattr(facts, "uuid"):
        uuid = str(facts.uuid)
        words += f" uuid={uuid if uuid.startswith('GPU-') else 'GPU-' + uuid}"
    if hasattr(facts, "pci_bus_id"):
        words += f" bus={facts.pci_domain_id:04x}:{facts.pci_bus_id:02x}:{facts.pci_device_id:02x}"
    return f"{words} name={facts.name}"


def burn_all(given: argparse.Namespace, argv: Sequence[str]) -> int:
    """Start a process per GPU and wait for all; return the exit code."""
    visible = given.gpus if given.device == "cpu" else torch.cuda.device_count()
    planned = given.gpus or visible
    taking_part = min(planned, visible)
    say(
        f"# gemm starting: gpus={planned} samples={given.samples} dtype={given.dtype} m={given.m} "
        f"n={given.n} k={given.k} torch={torch.__version__}"
    )
    if visible < planned:
        say(f"# gemm problem: {visible} of {planned} GPUs are visible")
    command = [sys.executable, os.path.abspath(__file__), *argv, "--worker"]  # noqa: PTH100
    workers = [subprocess.Popen([*command, str(gpu)]) for gpu in range(taking_part)]
    codes = [worker.wait() for worker in workers]
    for gpu, code in enumerate(codes):
        if code:
            say(f"# gemm problem: gpu={gpu} ended with exit code {code}")
    finished = sum(code in (0, 1) for code in codes)
    is_well = finished == planned and not any(codes)
    say(f"# gemm concluded: gpus={finished} of {planned} {'OK' if is_well else 'FAILED'}")
    return 0 if is_well and planned else 1


def main() -> int:
    """Burn in; return the exit code: 1 for wrong elements and for GPUs that did not finish."""
    given = parse_arguments()
    if given.worker is None:
        return burn_all(given, sys.argv[1:])
    try:
        say(device_words(given, given.worker))
        return 1 if Burn(given, given.worker).print_samples() else 0
    except (RuntimeError, OSError) as problem:
        say(f"# gemm problem: gpu={given.worker} {' '.join(str(problem).split())[:300]}")
        return 3


if __name__ == "__main__":
    sys.exit(main())

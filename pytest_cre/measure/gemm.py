"""Rows of a GEMM burn-in: one per GPU and sample, as workloads/gemm.py prints them.

Other tools' rows are read through a log profile with a pattern `gemmResult`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from statistics import median

from pytest_cre.measure.logtext import Line, quoted
from pytest_cre.measure.model import GemmGpu, GemmMeasurement, GemmRow

NEEDLES = (b"gemm ",)

_NUMBER = rb"([-+]?(?:[0-9.]{1,40}(?:[eE][-+]?[0-9]{1,3})?|nan|inf))"
_ROW = re.compile(
    rb"gemm gpu=(\d{1,6}) sample=(\d{1,9}) dtype=(\w{1,20}) m=(\d{1,12}) n=(\d{1,12}) "
    rb"k=(\d{1,12}) products=(\d{1,15}) seconds=" + _NUMBER + rb" tflops=" + _NUMBER + rb" "
    rb"wrong=(\d{1,18})[ \t]*"
)
_START = re.compile(rb"# gemm starting: gpus=(\d{1,6}) samples=(\d{1,9})(?:.* torch=(\S{1,80}))?")
_GPU = re.compile(
    rb"# gemm gpu=(\d{1,6})(?: uuid=(\S{1,80}))?(?: bus=(\S{1,40}))? name=(.{1,200}?)[ \t]*"
)
_PROBLEM = re.compile(rb"# gemm problem: (.{1,400}?)[ \t]*")
_END = re.compile(rb"# gemm concluded: gpus=(\d{1,6}) of (\d{1,6}) (OK|FAILED)[ \t]*")


@dataclass(slots=True, kw_only=True)
class _Run:
    """One burn-in of one node, as far as it was read."""

    gpus: int | None = None
    samples: int | None = None
    version: str | None = None
    end: tuple[int, int, bool] | None = None  # GPUs that finished, that were asked for, is well
    facts: dict[int, tuple[str | None, ...]] = field(default_factory=dict)
    rows: list[GemmRow] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    torn: int = 0


class GemmReader:
    """Collects the rows of one stream."""

    def __init__(self, pod: str) -> None:
        self.pod = pod
        self.runs: list[_Run] = []
        self.profile_rows: list[GemmRow] = []

    @property
    def rows(self) -> int:
        """Return the number of rows read so far."""
        return sum(len(run.rows) for run in self.runs) or len(self.profile_rows)

    def line(self, line: Line) -> bool:
        """Take a line; return whether something was taken from it."""
        text = line.text
        if text.startswith(b"gemm gpu="):
            found = _ROW.fullmatch(text)
            if found is None:
                self._run().torn += 1
                return False
            self._run().rows.append(_row(self.pod, found))
            return True
        if not text.startswith(b"# gemm "):
            return False
        if found := _START.match(text):
            run = _Run(gpus=int(found[1]), samples=int(found[2]), version=_text(found[3]))
            self.runs.append(run)
        elif found := _GPU.fullmatch(text):
            self._run().facts[int(found[1])] = (_text(found[2]), _text(found[3]), _text(found[4]))
        elif found := _END.fullmatch(text):
            self._run().end = (int(found[1]), int(found[2]), found[3] == b"OK")
        elif found := _PROBLEM.fullmatch(text):
            self._run().problems.append(quoted(found[1], 400))
        else:
            return False
        return True

    def take(self, groups: Mapping[str, bytes]) -> bool:
        """Take what a log profile's own pattern captured; return whether that makes a row."""
        gpu, tflops = _whole(groups.get("gpu")), _float(groups.get("tflops"))
        if gpu is None or tflops is None:
            return False
        sizes = [_whole(groups.get(name)) for name in ("m", "n", "k")]
        self.profile_rows.append(
            GemmRow(
                pod=self.pod,
                gpu=gpu,
                sample=_whole(groups.get("sample"))
                or 1 + sum(row.gpu == gpu for row in self.profile_rows),
                dtype=groups.get("dtype", b"").decode(errors="replace"),
                m=sizes[0],
                n=sizes[1],
                k=sizes[2],
                products=_whole(groups.get("products")),
                seconds=_float(groups.get("seconds")),
                tflops=tflops,
                wrong=_whole(groups.get("wrong")),
            )
        )
        return True

    def _run(self) -> _Run:
        if not self.runs:
            self.runs.append(_Run())
        return self.runs[-1]


def assemble(
    readers: Sequence[GemmReader], *, gpus_planned: int | None, failure: str | None
) -> tuple[GemmMeasurement, frozenset[str]]:
    """Return the rows of all streams of a Job, and what is wrong with them.

    `gpus_planned` is what the plan asked for; without one, what the logs say was asked for. `failure`
    is what the logs tell besides.
    """
    reasons: set[str] = set()
    rows: list[GemmRow] = []
    gpus: list[GemmGpu] = []
    expected: list[int] = []
    problems: list[str] = []
    versions: list[str] = []
    for reader in readers:
        own = [row for run in reader.runs for row in run.rows]
        rows += own or reader.profile_rows
        for run in reader.runs:
            reasons.update(_run_reasons(run))
            problems += run.problems
            versions += [run.version] if run.version else []
            if run.gpus is not None:
                expected.append(run.gpus)
        if len(reader.runs) > 1:
            reasons.add("several-tables")
        facts = {gpu: each for run in reader.runs for gpu, each in run.facts.items()}
        gpus += _gpus(reader.pod, own or reader.profile_rows, facts)
    if any(row.wrong for row in rows):
        reasons.add("wrong-values")
    if not all(row.tflops is not None for row in rows):
        reasons.add("not-a-number")
    if len({(row.dtype, row.m, row.n, row.k) for row in rows}) > 1:
        reasons.add("mixed-shapes")
    wanted = gpus_planned if gpus_planned is not None else (sum(expected) if expected else None)
    if wanted is not None and len(gpus) < wanted:
        reasons.add("fewer-gpus")
    if len({gpu.samples for gpu in gpus}) > 1:
        reasons.add("rows-missing")
    slowest = [gpu.tflops for gpu in gpus if gpu.tflops is not None]
    is_comparable = "mixed-shapes" not in reasons
    return (
        GemmMeasurement(
            rows=tuple(rows),
            gpus=tuple(gpus),
            gpus_planned=wanted,
            min_tflops=min(slowest) if slowest and is_comparable else None,
            spread=_spread(slowest) if is_comparable else None,
            failure=problems[0] if problems else failure,
            tool_version=versions[0] if versions else None,
        ),
        frozenset(reasons),
    )


def _run_reasons(run: _Run) -> Iterable[str]:
    """Yield what is wrong with one burn-in of one node."""
    if run.torn:
        yield "torn-rows"
    if not run.rows:
        yield "no-rows"
    if run.samples is None:
        yield "no-header"
    if run.end is None:
        yield "no-footer"
    elif not run.end[2] and not any(row.wrong for row in run.rows):
        yield "failure"
    if run.samples is not None and any(
        sum(row.gpu == gpu for row in run.rows) < run.samples for gpu in {r.gpu for r in run.rows}
    ):
        yield "rows-missing"


def _gpus(
    pod: str,
    rows: Sequence[GemmRow],
    facts: Mapping[int, tuple[str | None, ...]],
) -> list[GemmGpu]:
    """Return each GPU that printed a row, by number; its figure is that of its slowest sample."""
    found = []
    for gpu in sorted({row.gpu for row in rows}):
        own = [row for row in rows if row.gpu == gpu]
        uuid, bus, name = facts.get(gpu, (None,) * 3)
        values = [row.tflops for row in own if row.tflops is not None]
        counts = [row.wrong for row in own if row.wrong is not None]
        found.append(
            GemmGpu(
                pod=pod,
                gpu=gpu,
                uuid=uuid,
                bus=bus,
                name=name,
                samples=len(own),
                tflops=min(values) if values and len(values) == len(own) else None,
                wrong=sum(counts) if counts else None,
            )
        )
    return found


def _spread(slowest: Sequence[float]) -> float | None:
    """Return by which part the slowest GPU is below the median one; None for fewer than two."""
    middle = median(slowest) if len(slowest) > 1 else 0.0
    return 1 - min(slowest) / middle if middle > 0 else None


def _row(pod: str, found: "re.Match[bytes]") -> GemmRow:
    return GemmRow(
        pod=pod,
        gpu=int(found[1]),
        sample=int(found[2]),
        dtype=found[3].decode(),
        m=int(found[4]),
        n=int(found[5]),
        k=int(found[6]),
        products=int(found[7]),
        seconds=_float(found[8]),
        tflops=_float(found[9]),
        wrong=int(found[10]),
    )


def _text(raw: bytes | None) -> str | None:
    return raw.decode(errors="replace") if raw is not None else None


def _float(text: bytes | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and isfinite(value) else None


def _whole(text: bytes | None) -> int | None:
    stripped = (text or b"").strip()
    return int(stripped) if re.fullmatch(rb"\d{1,18}", stripped) else None

"""A measurement as text for a terminal: sizes in a table, the ledger as a bar of text, doubts in words."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from pytest_cre.formats.quantity import format_bytes
from pytest_cre.measure.bandwidth import size_statistics
from pytest_cre.measure.model import (
    LEDGER_CATEGORIES,
    RATIOS,
    BandwidthMeasurement,
    BandwidthTable,
    HalfRow,
    Measurement,
    TrainingMeasurement,
)
from pytest_cre.measure.reasons import FLAGS, REASONS
from pytest_cre.report.devices import diagnostic_lines, gemm_lines
from pytest_cre.report.table import WIDTH, tabulated
from pytest_cre.report.text import brief

BAR_WIDTH = 50
ROWS_SHOWN = 200


def measurement_text(measurement: Measurement) -> str:
    """Return the whole text, lines of at most 100 columns, nothing in it that a terminal acts on."""
    lines = [_headline(measurement)]
    lines += _worded("reason", measurement.reasons, REASONS)
    if measurement.bandwidth is not None:
        lines += _bandwidth(measurement.bandwidth)
    if measurement.training is not None:
        lines += _training(measurement.training)
    if measurement.gemm is not None:
        lines += gemm_lines(measurement.gemm)
    if measurement.diagnostics is not None:
        lines += diagnostic_lines(measurement.diagnostics)
    dropped = measurement.dropped
    counts = (
        (dropped.lines_too_long, "lines too long to read"),
        (dropped.undecodable_bytes, "bytes that are no UTF-8"),
        (dropped.unmatched_lines, "lines that tell nothing"),
    )
    told = [f"{count} {words}" for count, words in counts if count]
    if told:
        lines.append("left out: " + ", ".join(told))
    return "".join(f"{part}\n" for line in lines for part in _wrapped(line))


def _wrapped(line: str) -> list[str]:
    if len(line) <= WIDTH:
        return [line]
    return wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _headline(measurement: Measurement) -> str:
    profile = f", profile {brief(measurement.profile)}" if measurement.profile else ""
    kind = "no measurement" if measurement.kind == "none" else measurement.kind
    return f"{kind}: {measurement.status}{profile}"


def _worded(name: str, codes: Sequence[str], words: Mapping[str, str]) -> list[str]:
    return [f"{name} {code}: {words.get(code, code)}" for code in codes]


def _bandwidth(bandwidth: BandwidthMeasurement) -> Iterator[str]:
    if bandwidth.failure:
        yield f"failure: {brief(bandwidth.failure)}"
    networks = ", ".join(brief(name) for name in bandwidth.transport) or "not told"
    paths = f"; paths {', '.join(bandwidth.paths)}" if bandwidth.paths else ""
    yield f"network: {networks}{paths}"
    for table in bandwidth.tables:
        yield ""
        yield from _table(table)
    largest = (
        (bandwidth.max_out_of_place_gbs, "out-of-place"),
        (bandwidth.max_in_place_gbs, "in-place"),
    )
    told = [f"{value:.2f} GB/s {half}" for value, half in largest if value is not None]
    if told:
        yield ""
        yield "largest bus bandwidth: " + ", ".join(told)


def _table(table: BandwidthTable) -> Iterator[str]:
    parts = [brief(table.test) if table.test else "collective not told"]
    if table.ranks is not None:
        parts.append(f"{table.ranks} ranks")
    if table.nccl_version:
        parts.append(f"NCCL {brief(table.nccl_version)}")
    if table.tool_version:
        parts.append(f"tool {brief(table.tool_version)}")
    parts.append("complete" if table.is_complete else "NOT complete")
    yield ", ".join(parts)
    statistics = size_statistics(table)
    if any(each.samples > 1 for each in statistics):
        yield from tabulated(
            ["size", "half", "samples", "min (GB/s)", "median (GB/s)", "max (GB/s)"],
            [
                [
                    format_bytes(each.size_bytes),
                    each.half.replace("_", "-"),
                    str(each.samples),
                    *(f"{value:.2f}" for value in (each.min_gbs, each.median_gbs, each.max_gbs)),
                ]
                for each in statistics[:ROWS_SHOWN]
            ],
            left=[1],
        )
    elif table.rows:
        half = ["time (us)", "algbw", "busbw", "wrong"]
        yield "busbw and algbw in GB/s, out-of-place and then in-place"
        yield from tabulated(
            ["size", "type", "redop", *half, *half],
            [
                [
                    format_bytes(row.size_bytes),
                    row.dtype,
                    row.redop or "-",
                    *_half(row.out_of_place),
                    *_half(row.in_place),
                ]
                for row in table.rows[:ROWS_SHOWN]
            ],
            left=[1, 2],
        )
    if len(table.rows) > ROWS_SHOWN:
        yield f"({len(table.rows)} rows; all of them are in the JSON form)"
    bounds = table.out_of_bounds
    average = "not told" if table.avg_busbw_gbs is None else f"{table.avg_busbw_gbs:g} GB/s"
    verdict = "not told"
    if bounds is not None:
        verdict = f"{bounds.count} {'OK' if bounds.is_ok else 'FAILED'}"
    yield f"average bus bandwidth {average}, values out of bounds {verdict}"


def _half(half: HalfRow | None) -> list[str]:
    if half is None:
        return ["-"] * 4
    values = (half.time_us, half.algbw_gbs, half.busbw_gbs)
    cells = ["-" if value is None else f"{value:.2f}" for value in values]
    return [*cells, "-" if half.wrong is None else str(half.wrong)]


def _training(training: TrainingMeasurement) -> Iterator[str]:
    if training.failure:
        yield f"failure: {brief(training.failure)}"
    summary = training.summary
    yield (
        f"framework {training.framework or 'not known'}, steps {_number(summary.first_step)} to "
        f"{_number(summary.last_step)} (highest {_number(summary.highest_step)}) in "
        f"{summary.step_records} lines, {training.attempts} attempts, "
        f"{summary.interruptions} interruptions"
    )
    averages = []
    if summary.avg_step_time_s is not None:
        averages.append(f"{summary.avg_step_time_s:.4g} s per step")
    if summary.avg_tflops_per_gpu is not None:
        averages.append(f"{summary.avg_tflops_per_gpu:.1f} TFLOP/s per GPU")
    if averages:
        left_out = f" (warm-up left out: {summary.warmup_records} lines)"
        yield "average " + ", ".join(averages) + (left_out if summary.warmup_records else "")
    saves = sum(each.event == "save_done" for each in training.checkpoints)
    loads = sum(each.event == "load_done" for each in training.checkpoints)
    yield f"checkpoints: {saves} saved, {loads} loaded"
    yield ""
    yield from _ledger(training)
    yield ""
    for name in RATIOS:
        ratio = training.ratios.get(name)
        yield f"ratio {name:<19} {'-' if ratio is None else f'{ratio:.4f}':>7}"
    yield from _worded("flag", training.flags, FLAGS)
    for pod, skew_s in sorted(training.skews_s.items()):
        yield f"clock of {brief(pod)} moved by {skew_s:+.3f} s"
    if training.advice:
        yield f"advice: {brief(training.advice)}"


def _ledger(training: TrainingMeasurement) -> Iterator[str]:
    window_s = training.window_s or 0.0
    if window_s <= 0:
        yield "ledger: no time to account for"
        return
    yield f"ledger of {window_s:.3f} s"
    for name in LEDGER_CATEGORIES:
        seconds = training.ledger_s.get(name, 0.0)
        if not seconds:
            continue
        share = seconds / window_s
        bar = "#" * max(1, round(share * BAR_WIDTH))
        yield f"  {name:<19} {seconds:12.3f} s {share * 100:6.2f} %  {bar}"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)

"""What NVIDIA's patterns and rules make of the same lines."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from pytest_cre.evidence.model import JobFacts
from pytest_cre.measure.lifecycle import bandwidth_status
from tests.measure.differences import FULL, ROWS, SECOND, SHIPPED, Difference, parsed, read
from tests.measure.reading import measured
from tests.measure.tables import sizes, table, text
from tests.measure.test_profile import RUN, run_lines
from tests.measure.test_streams import begin, joined, load, steps


def told(cells: str, *, before: str = "", has_root: bool = True) -> str:
    lines = [each for each in table([1048576]) if " float " not in each]
    if not has_root:
        lines = [each.replace("    root", "").replace("#wrong", " error") for each in lines]
    at = next(at for at, each in enumerate(lines) if "(elements)" in each) + 1
    lines.insert(at, f"{before}   1048576     262144     float     sum {cells}")
    found = read(lines)
    if not found.bandwidth or not found.bandwidth.tables or not found.bandwidth.tables[0].rows:
        return "no row" + ", `torn-rows`" * ("torn-rows" in found.reasons)
    half = found.bandwidth.tables[0].rows[0].out_of_place
    return f"{half.busbw_gbs:g} GB/s"


def sampled_average(values: Sequence[float]) -> str:
    """Return upstream's average where each sample brought one row: rounded every time."""
    mean = values[0]
    for count, value in enumerate(values[1:], start=1):
        mean = round((mean * count + value) / (count + 1), 2)
    return f"{mean:.2f}"


def averaged(values: Sequence[float]) -> str:
    lines = [
        f"  64  16  float  sum  -1  5.00  1.00  {value:.2f}  0  5.00  1.00  {value:.2f}  0"
        for value in values
    ]
    found = read(table([64], rows=lines)).bandwidth
    job = JobFacts(
        kind="Job", name="b", uid="u", terminal="succeeded", started_ns=0, terminal_ns=SECOND
    )
    shown = bandwidth_status(job, found).fields["results"][0]["busBW"]
    rows = [each.out_of_place.busbw_gbs for each in found.tables[0].rows]
    return f"{shown}; minimum {min(rows):.2f}, maximum {max(rows):.2f}"


def reasons(lines: Sequence[str], *, profile: str | None = None) -> str:
    found = read(lines, profile=SHIPPED[profile] if profile else None)
    return f"{found.status}: {', '.join(f'`{each}`' for each in found.reasons)}"


def two_tables() -> str:
    found = read([*table(ranks=2), *table(ranks=2)])
    return f"{len(found.bandwidth.tables)} tables, `{found.reasons[0]}`"


def saves_of_two_steps() -> str:
    lines = [
        "[2026-02-05 17:00:00] saving checkpoint at iteration     100 to /c in torch_dist format",
        "[2026-02-05 17:00:30] scheduled an async checkpoint save at iteration     200 to /c",
    ]
    recorder = measured(text([*run_lines(), *lines]), profile=SHIPPED["megatron-training"]).training
    events = [f"{each.event} {each.step}" for each in recorder.checkpoints]
    return f"{', '.join(events)}, {'save_unconfirmed' if 'save_unconfirmed' in recorder.flags else 'no commit'}"


def in_zone(hours: int) -> str:
    zone_s = hours * 3600
    log = [*begin(0), *load(0, 30, 10), *steps(1, 20, 41, zone_s=zone_s)]
    run = measured(joined(log)).training
    return f"{run.ledger_s['init'] + run.ledger_s['load'] + run.ledger_s['warmup']:g} s"


def peak_and_largest() -> tuple[float, float]:
    rows = [(1 << 20, 560.00), (1 << 34, 487.87)]
    lines = [
        f"  {size}  {size // 4}  float  sum  -1  5.00  300.00  {bus:.2f}  0  5.00  300.00  {bus:.2f}  0"
        for size, bus in rows
    ]
    found = read(table([size for size, _ in rows], rows=lines)).bandwidth
    by_size = {each.size_bytes: each.out_of_place.busbw_gbs for each in found.tables[0].rows}
    return max(by_size.values()), by_size[max(by_size)]


def reading() -> Iterator[Difference]:
    def add(
        case: str, theirs: Callable[[], str], ours: Callable[[], str], why: str = ""
    ) -> Difference:
        return Difference(table="reading", case=case, theirs=theirs, ours=ours, why=why)

    yield add(
        "Application times without a zone, 8 hours ahead; 40 s of start-up and a step of 1 s",
        lambda: f"{40 + 1 + 8 * 3600} s",
        lambda: in_zone(8),
        "shifted to the kubelet's times, in quarters of an hour",
    )
    yield add(
        "Save line of step 100, then a done line of step 200",
        lambda: "one save of 30 s, step 200",
        saves_of_two_steps,
        "they are different saves",
    )
    yield add(
        "First line of a process at a log interval of 10, of 7 lines",
        lambda: f"{sum(each[1] % 10 == 0 for each in RUN)} lines",
        lambda: (
            f"{len(read(list(run_lines())).training.steps)} lines, {len(read(list(run_lines()), profile=SHIPPED['megatron-training']).training.steps)} where that profile is named"
        ),
        "it is progress",
    )


def bandwidth() -> Iterator[Difference]:
    def add(
        case: str, theirs: Callable[[], str], ours: Callable[[], str], why: str = ""
    ) -> Difference:
        return Difference(table="bandwidth", case=case, theirs=theirs, ours=ours, why=why)

    wide = "-1    1558.51   6e+06  6e+06       0    1558.51   688.95   10.00       0"
    cut = "-1    70.00   14.97   28.0"
    old = "70.00   14.97   28.07  2e-07    70.00   14.97   28.07  2e-07"
    drift = (100.00, 100.01, 100.01, 100.01)
    yield add(
        "`6e+06` in an out-of-place column",
        lambda: parsed(wide),
        lambda: told(wide),
        "it is how the tool prints wide numbers",
    )
    yield add(
        "A row cut to `... 70.00 14.97 28.0`",
        lambda: parsed(cut),
        lambda: told(cut),
        "the number lost digits",
    )
    yield add(
        "A tag such as `[1,0]<stdout>:` before a row of 28.07 GB/s",
        lambda: (
            "no row"
            if ROWS.row(b"[1,0]<stdout>:   1048576 262144 float sum " + FULL.format(0).encode())
            is None
            else "row"
        ),
        lambda: told(FULL.format(0), before="[1,0]<stdout>:"),
        "it belongs to the launcher",
    )
    yield add(
        "A row of an old release, without root",
        lambda: parsed(old),
        lambda: told(old, has_root=False),
        "its `error` is a difference, not a count",
    )
    yield add(
        "A size measured four times, 100.00 and three times 100.01",
        lambda: f"{sampled_average(drift)} sampled, {fmean(drift):.2f} read at once",
        lambda: averaged(drift),
        "rounding once, and spread is a finding",
    )
    yield add(
        "A sweep that ended before its last size",
        lambda: "judged on what is there",
        lambda: reasons(table(sizes(1024, 65536))[:-5]),
        "the peak is in the largest sizes",
    )
    yield add(
        "Two runs in one log",
        lambda: "averaged into one",
        two_tables,
        "each used half of the ranks",
    )
    yield add(
        "Sizes of 1 MiB at 560.00 and 16 GiB at 487.87 GB/s",
        lambda: "judged {:.2f}, reported {:.2f}".format(*peak_and_largest()),
        lambda: "every row; the limit names which one it judges",
    )
    yield add(
        "Fallback to sockets",
        lambda: "recorded",
        lambda: reasons(
            [
                *table(ranks=16)[:-4],
                "n:1:2 [0] NCCL INFO Using network Socket",
                *table(ranks=16)[-4:],
            ]
        ),
        "nobody had asked for it",
    )

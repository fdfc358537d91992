"""What NVIDIA's controller makes of the same facts: the rows of docs/explanation/differences-from-upstream.md.

Both figures of each row are computed: upstream's with its formula, its patterns or its rule in a line, ours with
the code.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pytest_cre.catalog.loader import load_catalog, shipped_profiles
from pytest_cre.catalog.logprofile import LogProfile
from pytest_cre.evidence.model import JobFacts
from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.formula import FormulaTerms, formula_ratio
from pytest_cre.measure.goodput import account
from pytest_cre.measure.lifecycle import goodput_status
from pytest_cre.measure.model import Measurement
from pytest_cre.measure.profile import CompiledProfile
from tests.measure.histories import data, events_of, ledger_s, ns
from tests.measure.histories import measured as of_script
from tests.measure.megatron import EPOCH_NS, step_line
from tests.measure.reading import measured
from tests.measure.tables import stamped, table, text
from tests.measure.test_profile import RUN, run_lines
from tests.measure.test_streams import begin, joined, load, save, steps

HISTORIES = {history["name"]: history for history in data("training-histories.yaml")["histories"]}
SHIPPED = load_catalog(suites=[], profiles=[shipped_profiles()]).log_profiles
ROWS = CompiledProfile(SHIPPED["nccl-bandwidth"])
SECOND = 10**9
LAST_READ = "until the last read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One row. `trap` is the letter of the trap in upstream's arithmetic, empty for none."""

    table: str
    case: str
    theirs: Callable[[], str]
    ours: Callable[[], str]
    why: str = ""
    trap: str = ""

    @property
    def row(self) -> str:
        """Return the row of the page."""
        cells = [self.case, self.theirs(), self.ours(), self.why]
        if self.table == "training":
            cells.insert(0, self.trap)
        return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def formula(t_w: float, t_ch: float, t_rm: float, t_re: float, t_save: float) -> str:
    """Return upstream's result, which has no upper bound and is 0 for no time."""
    times = {"t_w": ns(t_w), "t_rm": ns(t_rm), "t_re": ns(t_re), "t_save": ns(t_save)}
    return f"{formula_ratio(FormulaTerms(**times, t_ch=round(t_ch * SECOND))) or 0:.6f}"


def status(script: str, ended_s: float, terminal: str = "succeeded") -> str:
    """Return result and reason of the status here."""
    job = JobFacts(
        kind="Job", name="train", uid="u", terminal=terminal, started_ns=0, terminal_ns=ns(ended_s)
    )
    found = goodput_status(
        job, events_of(script), LedgerParams(reference_step_s=1), now_ns=ns(ended_s)
    )
    return f"{found.fields.get('result', 'no result')}, {found.reason}"


def result(script: str, ended_s: float, terminal: str = "succeeded") -> str:
    return status(script, ended_s, terminal).partition(",")[0]


def seconds(script: str, category: str) -> str:
    return f"{ledger_s(of_script(script)).get(category, 0):g} s"


def history_ratio(name: str) -> str:
    history = HISTORIES[name]
    run = account(events_of(history["script"]), LedgerParams(**history["params"]))
    return f"{run.ratios['goodput']:.6f}"


def read(*logs: Sequence[str] | bytes, profile: LogProfile | None = None) -> Measurement:
    return measured(
        *(log if isinstance(log, bytes) else text(log) for log in logs), profile=profile
    )


def whole_run(last: int = 100, apart: float = 1.0, *, tflops: str = "400.0") -> list[str]:
    """Return the step lines of a run that ends well."""
    return stamped(
        [
            step_line(n, EPOCH_NS + round(n * apart * SECOND), apart * SECOND, total=last).replace(
                "400.0", tflops
            )
            for n in range(1, last + 1)
        ]
    )


def chosen_pod() -> str:
    base = SHIPPED["megatron-bridge"]
    logs = [text(whole_run(30, tflops=rate)) for rate in ("300.0", "400.0")]
    found = measured(*logs, profile=replace(base, training_step_pod="first")).training
    return f"{found.summary.avg_tflops_per_gpu:g} TFLOP/s of the first pod"


def of_a_line(at: int) -> str:
    steps_ = read(list(run_lines()), profile=SHIPPED["megatron-training"]).training.steps
    return f"{sum(each.covers * each.step_time_s for each in steps_[at:]):.6f} s"


def with_skew() -> str:
    lifecycle = [*begin(0), *load(0, 30, 10), *save(60, 100)]
    ahead = joined(steps(1, 60, 48)) + joined(steps(61, 100, 118))
    run = measured(joined(lifecycle), ahead).training
    resume_s = run.ledger_s["init"] + run.ledger_s["load"] + run.ledger_s["warmup"]
    return f"{resume_s:g} s, clock_skew {run.skews_s['pod-0']:+g} s"


def slower_at_the_end() -> str:
    lines = [step_line(n, EPOCH_NS + n * SECOND, SECOND, total=400) for n in range(1, 301)]
    lines += [
        step_line(n, EPOCH_NS + (2 * n - 300) * SECOND, 2 * SECOND, total=400)
        for n in range(301, 401)
    ]
    return f"{read(lines).training.summary.avg_step_time_s:.6f} s"


def beside_a_long_line() -> str:
    lines = whole_run(30)
    lines.insert(10, "x" * 1_100_000)
    found = read(lines)
    return f"{len(found.training.steps)} of 30 steps, {found.dropped.lines_too_long} line dropped"


def wrong_elements() -> str:
    found = read(
        table([1048576], rows=[f"   1048576     262144     float     sum      {FULL.format(7)}"])[
            :-3
        ]
    )
    assert "wrong-values" in found.reasons
    return f"{found.bandwidth.max_out_of_place_gbs}, {found.status}, wrong-values"


def parsed(cells: str) -> str:
    """Return the bus bandwidth that upstream's own pattern takes from a row."""
    found = ROWS.row(f"   1048576     262144     float     sum {cells}".encode())
    return f"{found[2]:g} GB/s" if found else "no row"


def lines_of(count: int) -> str:
    assert len(read(table()).bandwidth.tables[0].rows) == count
    return f"{count} of {count} rows"


SAVED = "start; ready 0; run 300; save 0; run 300; crash"
FULL = "-1    70.00   14.97   28.07       {0}    70.00   14.97   28.07       0"


def training() -> Iterator[Difference]:
    def add(
        trap: str, case: str, theirs: Callable[[], str], ours: Callable[[], str], why: str = ""
    ) -> Difference:
        return Difference(table="training", trap=trap, case=case, theirs=theirs, ours=ours, why=why)

    yield add(
        "A",
        "A Job succeeds after 600 s and no step ever matched",
        lambda: f"{formula(600, 0, 0, 0, 0)}, JobSucceeded",
        lambda: status("start; pass 600", 600),
        "nothing measured is not perfect",
    )
    yield add(
        "B",
        "One log (100 s of start-up, 600 s of steps), first sampled never, early, late",
        lambda: ", ".join(formula(t_w, 0, 100, 0, 0) for t_w in (600, 670, 400)),
        lambda: result("start; pass 100; ready 0; run 600", 700),
        "the window goes from the start of the Job to its terminal time, whoever looks when",
    )
    yield add(
        "C",
        "Crash after 20 min with a checkpoint 5 min old, 180 s of reschedule, 90 s of resume, Job of an hour",
        lambda: (
            f"{formula(3600, 300, 90, 180, 0)}, or {formula(2370, 300, 90, 180, 0)} where the restart moved the start"
        ),
        lambda: result(
            "start; ready 0; run 900; run 300; crash; pass 180; start; pass 90; ready 900; run 2130",
            3600,
        ),
        "losses and window have the same start",
    )
    yield add(
        "D",
        "Fails after 600 s without any checkpoint",
        lambda: formula(600, 0, 0, 0, 0),
        lambda: result("start; ready 0; run 600; crash", 600, "failed"),
        "all work is lost, not none",
    )
    yield add(
        "",
        "Fails after 600 s, checkpoint at 300 s",
        lambda: formula(600, 300, 0, 0, 0),
        lambda: result(SAVED, 600, "failed"),
    )
    yield add(
        "E",
        "Worker 0 has already succeeded at the last read: step shown of 100",
        lambda: "90",
        lambda: str(read(whole_run()).training.summary.last_step),
        "the log is read to its end once the container has ended",
    )
    yield add(
        "F",
        "Average TFLOP/s of a run that prints every 10th step",
        lambda: f"{fmean(each[3] for each in RUN[1:]):.6f}, last window, warm-up in",
        lambda: (
            f"{read(list(run_lines()), profile=SHIPPED['megatron-training']).training.summary.avg_tflops_per_gpu:.6f}, whole run, warm-up out"
        ),
        "the step time, 34.661100 s, leaves warm-up out in both",
    )
    yield add(
        "G",
        "Two saves of 10 s and 12 s within one sample",
        lambda: "12 s",
        lambda: seconds(
            "start; ready 0; run 100; save 10; run 100; save 12; end", "checkpoint_blocking"
        ),
        "each save counts",
    )
    yield add(
        "G",
        "A save of 9 s for step 150, after a restart behind 200",
        lambda: "0 s",
        lambda: seconds(
            "start; ready 0; run 200; save 0; crash; start; ready 100; run 50; save 9; end",
            "checkpoint_blocking",
        ),
        "the loop was blocked all the same",
    )
    yield add(
        "G",
        "A save of 2 s every 10 steps of 1 s, sampled every 60 s",
        lambda: formula(239, 0, 1, 0, 10),
        lambda: history_ratio("frequent-saves-sampled-60s"),
        "each save counts",
    )
    yield add(
        "H",
        "Several workers, `trainingStepPod: first`; the first prints 300, the last 400 TFLOP/s",
        lambda: "400 TFLOP/s of the last pod",
        chosen_pod,
        "the profile says so",
    )
    yield add(
        "H",
        "Several workers, a line every 10 steps: time of the steps 10 to 60",
        lambda: (
            f"{sum(each[2] / 1000 * (10 if at else 1) for at, each in enumerate(RUN[1:])):.6f} s"
        ),
        lambda: of_a_line(0),
        "the first line stands for ten steps, too",
    )
    yield add(
        "H",
        "40 s of start-up, the last worker's clock 7 s ahead: start-up",
        lambda: f"{40 + 7 + 1} s",
        with_skew,
        "a save cannot come before its step; the pods are put onto one clock, within a second",
    )
    yield add(
        "I",
        "300 steps of 1 s and 100 of 2 s between two samples: average step",
        lambda: f"{fmean([2.0] * 100):.6f} s",
        slower_at_the_end,
        "every line is read once; the first is warm-up",
    )
    yield add(
        "J",
        "A line of more than 1 MiB among 30 steps",
        lambda: "0 of 30 steps for up to 30 minutes",
        beside_a_long_line,
        "one line must not hide the rest",
    )
    yield add(
        "K",
        "Fails after 600 s, checkpoint at 300 s, with a restart in between that never got ready",
        lambda: formula(600, 600, 0, 0, 0),
        lambda: result(f"{SAVED}; start; crash", 600, "failed"),
        "a loss counts once",
    )
    yield add(
        "L",
        "A Job of 100 s whose first step came at its end: a true 0",
        lambda: f"{formula(100, 0, 100, 0, 0)}, NoDataCollected, later MeasurementTimeout",
        lambda: status("start; pass 100; ready 0; run 1 x 0", 100),
        "a zero is a measurement",
    )
    yield add(
        "M",
        "A row of 28.07 GB/s with 7 wrong elements",
        lambda: f"{parsed(FULL.format(7))}, passes",
        wrong_elements,
        "wrong results are no bandwidth",
    )
    yield add(
        "N",
        "A node's clock more than 1 s behind the controller's, 7 rows",
        lambda: f"0 of 7 rows {LAST_READ}",
        lambda: lines_of(7),
        "the whole log is read, and no clock of a reader",
    )
    yield add(
        "",
        'Asynchronous saves, "done" read at the durable line',
        lambda: formula(233, 0, 1, 0, 64),
        lambda: history_ratio("async-save-clean"),
        "blocking ends where the loop goes on",
    )
    yield add(
        "",
        "Clocks that make lost work negative: -10 of 100 s",
        lambda: f"{formula(100, -10, 0, 0, 0)}",
        lambda: (
            f"{of_script('open; start; ready 0; run 90; crash; start; ready 90; run 10; end').ratios['goodput']:.6f}"
        ),
        "the parts of one line cannot be negative",
    )
    yield add(
        "",
        "A Job ends after 600 s; step 20 is printed 0.7 s after that: last step",
        lambda: "10",
        lambda: last_step_after_the_end(0.7),
        "the API truncates times to whole seconds",
    )
    yield add(
        "",
        "A window of no length",
        lambda: f"{formula(0, 0, 0, 0, 0)}",
        lambda: str(of_script("open; start; ready 0; close").ratios["goodput"]).replace(
            "None", "no ratio"
        ),
        "nothing can be said of no time",
    )


def last_step_after_the_end(late_s: float) -> str:
    job = JobFacts(
        kind="Job", name="t", uid="u", terminal="succeeded", started_ns=0, terminal_ns=ns(600)
    )
    events = events_of(
        f"start; ready 0; run 9; pass 571; run 1 x 10; pass {late_s}; run 1 x 10; at 19"
    )
    late = [replace(event, step=20) if event.step == 11 else event for event in events]
    found = goodput_status(job, late, LedgerParams(), now_ns=ns(700))
    return str(found.fields["currentStep"])

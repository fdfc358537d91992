"""What holds for every history."""

from array import array
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_cre.measure.account import LedgerParams
from pytest_cre.measure.events import KIND_RANK, StepRun, TrainingEvent
from pytest_cre.measure.goodput import account, rolling_windows, window_ratios
from tests.measure.generated import MILLISECOND, Life, Move, Plan, Told, plans, shares

quick = settings(derandomize=True, max_examples=12, database=None)


def nonzero(run):
    return {name: t_ns for name, t_ns in run.ledger_ns.items() if t_ns}


def order_of(ratios):
    names = ("strict_durable", "ledger", "runtime", "goodput")
    return [ratios[name] for name in names]


@quick
@given(plans)
def test_ledger_of_any_history_is_what_counting_step_by_step_gives(plan):
    told = Told(plan)
    # A log that never confirms a save has a rule of its own.
    kinds = {event.kind for event in told.events}
    assume("save_commit" in kinds or "save_start" not in kinds)
    run = told.account()
    assert nonzero(run) == told.ledger_ns()
    assert sum(run.ledger_ns.values()) == run.window_ns == told.now * MILLISECOND
    assert min(run.ledger_ns.values()) >= 0
    durable_ns = told.useful(durable_only=True) * MILLISECOND
    assert run.ratios["strict_durable"] == durable_ns / run.window_ns


@quick
@given(plans)
def test_ratios_of_any_history_are_ordered_and_tied_to_the_ledger(plan):
    run = Told(plan).account()
    ratios = order_of(run.ratios)
    assert ratios == sorted(ratios)
    assert 0 <= ratios[0] <= ratios[-1] <= 1
    ledger = run.ledger_ns
    if run.executed_steps:
        kept = ledger["useful"] + ledger["straggler"] + ledger["eval"] + ledger["other"]
        held = run.window_ns - ledger["reschedule"]
        assert abs(run.ratios["goodput"] * held - kept) <= 1e-9 * held


@quick
@given(plans)
def test_steps_of_any_history_are_either_useful_or_lost(plan):
    told = Told(plan)
    run = told.account()
    assert run.executed_steps == told.executed == sum(row.executed_steps for row in run.attempts)
    assert run.useful_steps + sum(row.lost_steps for row in run.attempts) == run.executed_steps
    assert run.interruptions == len(plan.lives) - plan.succeeds
    if plan.succeeds and run.summary.last_step is not None and told.steps[-1]:
        assert run.useful_steps == told.steps[-1][-1][0]


@quick
@given(plans, st.integers(-(10**6), 10**9))
def test_shift_of_all_times_changes_nothing(plan, shift_s):
    told = Told(plan)
    shifted = [replace(e, t_ns=e.t_ns + shift_s * 10**9) for e in told.events]
    assert told.account(shifted).ledger_ns == told.account().ledger_ns


@quick
@given(plans, st.integers(2, 1000))
def test_scale_of_all_times_changes_no_ratio(plan, factor):
    told = Told(plan)
    run = told.account()
    scaled = told.account(
        [replace(e, t_ns=e.t_ns * factor) for e in told.events],
        reference_step_s=plan.step * factor / 1000,
    )
    assert shares(scaled) == shares(run)


def changed_life(data, plan, *, needs=bool):
    choices = [at for at, life in enumerate(plan.lives) if needs(life)]
    assume(choices)
    at = data.draw(st.sampled_from(choices))
    return at, plan.lives[at]


@quick
@given(plans, st.data(), st.integers(1, 100_000))
def test_longer_silence_before_an_exit_never_helps(plan, data, longer):
    plan = replace(plan, succeeds=False)
    at, life = changed_life(data, plan)
    # Commits in the silence would be later than the exit before, so keep the saves of this life synchronous.
    assume(all(move.commits_after is None for move in life.moves))
    before = Told(plan).account()
    after = Told(plan.with_life(at, replace(life, tail=life.tail + longer))).account()
    assert after.ledger_ns["useful"] == before.ledger_ns["useful"]
    assert after.ratios["ledger"] <= before.ratios["ledger"]
    assert after.ratios["runtime"] <= before.ratios["runtime"]


@quick
@given(plans, st.data(), st.integers(1, 100_000))
def test_longer_save_adds_exactly_that_time_to_blocking(plan, data, longer):
    at, life = changed_life(
        data, plan, needs=lambda life: any(m.kind == "save" for m in life.moves[:1])
    )
    assume(all(move.commits_after is None for move in life.moves))
    slower = replace(life.moves[0], lasts=life.moves[0].lasts + longer)
    moves = (slower, *life.moves[1:])
    before = Told(plan).account()
    after = Told(plan.with_life(at, replace(life, moves=moves))).account()
    expected = {**before.ledger_ns}
    expected["checkpoint_blocking"] += longer * MILLISECOND
    assert after.ledger_ns == expected
    assert after.ratios["ledger"] <= before.ratios["ledger"]


@quick
@given(plans, st.data(), st.integers(1, 100_000))
def test_longer_reschedule_lowers_the_ledger_and_leaves_the_formula(plan, data, longer):
    assume(len(plan.lives) > 1)
    at = data.draw(st.integers(1, len(plan.lives) - 1))
    life = plan.lives[at]
    before = Told(plan).account()
    after = Told(plan.with_life(at, replace(life, wait=life.wait + longer))).account()
    assert after.ratios["goodput"] == before.ratios["goodput"]
    assert after.ratios["ledger"] <= before.ratios["ledger"]
    if before.ledger_ns["useful"]:
        assert after.ratios["ledger"] < before.ratios["ledger"]


@quick
@given(plans, st.randoms(use_true_random=False))
def test_order_of_the_input_does_not_matter(plan, random):
    told = Told(plan)
    events = list(told.events)
    random.shuffle(events)
    assert told.account(events).ledger_ns == told.account().ledger_ns


@quick
@given(plans, st.data(), st.integers(1, 5000), st.integers(1, 5000))
def test_process_that_dies_in_its_load_changes_no_useful_time(plan, data, init, load):
    told = Told(plan)
    exits = [event for event in told.events if event.kind == "abort"]
    assume(exits)
    died = data.draw(st.sampled_from(exits)).t_ns
    assume(sum(event.t_ns == died and event.kind != "window_close" for event in told.events) == 1)
    starts, ends = died + init * MILLISECOND, died + (init + load) * MILLISECOND
    extra = [
        replace(exits[0], kind="proc_start", t_ns=died),
        replace(exits[0], kind="load_start", t_ns=starts),
        replace(exits[0], t_ns=ends),
    ]
    later = [
        replace(e, t_ns=e.t_ns + ends - died) if e.t_ns > died or e.kind == "window_close" else e
        for e in told.events
    ]
    before, after = told.account(), told.account([*later, *extra])
    assert after.ledger_ns["useful"] == before.ledger_ns["useful"]
    assert after.ledger_ns["init"] == before.ledger_ns["init"] + ends - died
    assert after.interruptions == before.interruptions + 1


@quick
@given(plans)
def test_every_line_twice_changes_nothing(plan):
    told = Told(plan)
    twice = told.account([event for event in told.events for _ in range(2)])
    once = told.account()
    assert (twice.ledger_ns, twice.interruptions) == (once.ledger_ns, once.interruptions)
    assert twice.summary == once.summary


@quick
@given(
    plans,
    st.dictionaries(
        st.sampled_from(("step", "save_start", "save_unblock", "save_commit")),
        st.sampled_from("abc"),
    ),
    st.integers(0, 2),
)
def test_split_over_pods_and_copies_of_other_ranks_change_nothing(plan, pods, copies):
    told = Told(plan)
    split = [replace(event, stream=pods.get(event.kind, "a")) for event in told.events]
    more = [
        replace(event, stream=f"rank-{rank}")
        for event in split
        if event.kind in ("step", "save_start", "save_unblock", "save_commit", "load_end")
        for rank in range(copies)
    ]
    assert told.account([*split, *more]).ledger_ns == told.account().ledger_ns


@quick
@given(plans, st.integers(-1000, 1000), st.sampled_from(("step", "save")))
def test_small_skew_of_one_pod_moves_each_boundary_by_no_more(plan, skew, skewed):
    spaced = replace(
        plan,
        lives=tuple(
            replace(life, wait=life.wait + 3000, init=life.init + 3000) for life in plan.lives
        ),
    )
    told = Told(spaced)
    moved = [
        replace(e, t_ns=e.t_ns + skew * MILLISECOND, stream="b") if e.kind.startswith(skewed) else e
        for e in told.events
    ]
    before, after = told.account(), told.account(moved)
    assert after.window_ns == before.window_ns == sum(after.ledger_ns.values())
    assert after.interruptions == before.interruptions
    boundaries = 2 * sum(
        len(life.moves) + sum(m.steps for m in life.moves) + 2 for life in spaced.lives
    )
    for name, t_ns in before.ledger_ns.items():
        assert abs(after.ledger_ns[name] - t_ns) <= boundaries * abs(skew) * MILLISECOND


@quick
@given(plans, st.integers(2, 5))
def test_sparse_lines_keep_window_and_interruptions_and_blur_useful_by_an_interval(plan, every):
    even = replace(
        plan,
        lives=tuple(
            replace(life, moves=tuple(replace(m, extra=0) for m in life.moves))
            for life in plan.lives
        ),
    )
    told = Told(even)
    kept = [e for e in told.events if e.kind != "step" or e.step % every == 0]
    before, after = told.account(), told.account(kept, log_interval=every)
    assert after.window_ns == before.window_ns
    assert after.interruptions == before.interruptions
    assert [row.resume_step for row in after.attempts] == [
        row.resume_step for row in before.attempts
    ]
    blur_ns = every * even.step * MILLISECOND * len(even.lives)
    assert abs(after.ledger_ns["useful"] - before.ledger_ns["useful"]) <= blur_ns


@quick
@given(plans, st.data(), st.integers(1, 3000))
def test_another_durable_save_before_an_exit_never_lowers_useful_steps(plan, data, lasts):
    newest = replace(plan, lives=tuple(replace(life, resume=0) for life in plan.lives))
    at, life = changed_life(data, newest)
    assume(all(move.commits_after is None for move in life.moves))
    saved = replace(life, moves=(*life.moves, Move("save", lasts=lasts)))
    before = Told(newest).account()
    after = Told(newest.with_life(at, saved)).account()
    assert after.useful_steps >= before.useful_steps


@quick
@given(plans, st.data(), st.integers(0, 5000), st.integers(0, 5000))
def test_failure_put_in_after_a_step_never_raises_the_ledger(plan, data, wait, init):
    told = Told(replace(plan, succeeds=True))
    steps = [event for event in told.events if event.kind == "step"]
    assume(steps)
    broken = data.draw(st.sampled_from(steps))
    assume(all(event is broken or event.t_ns != broken.t_ns for event in told.events))
    later_ns = (wait + init) * MILLISECOND
    failure = [
        replace(broken, kind="abort", step=None),
        replace(broken, kind="proc_start", t_ns=broken.t_ns + wait * MILLISECOND, step=None),
        replace(broken, kind="load_end", t_ns=broken.t_ns + later_ns),  # from that very step on
    ]
    moved = [replace(e, t_ns=e.t_ns + later_ns) if e.t_ns > broken.t_ns else e for e in told.events]
    before, after = told.account(), told.account([*moved, *failure])
    assert after.ratios["ledger"] <= before.ratios["ledger"]
    assert after.ledger_ns["useful"] == before.ledger_ns["useful"]
    assert after.interruptions == before.interruptions + 1
    if not later_ns:  # only that a slow step is now the first one of a process
        slow = ("straggler", "warmup", "rework")
        assert sum(after.ledger_ns[name] for name in slow) == sum(
            before.ledger_ns[name] for name in slow
        )
        for name in before.ledger_ns.keys() - slow:
            assert after.ledger_ns[name] == before.ledger_ns[name]


@quick
@given(st.integers(1, 50), st.integers(1, 4))
def test_run_without_loss_has_ledger_one(steps, runs):
    moves = (Move("run", steps=steps),) * runs
    life = Life(wait=0, init=0, load=0, resume=0, moves=moves, tail=0)
    run = Told(Plan(lives=(life,), step=1000, succeeds=True)).account()
    assert run.ratios["ledger"] == run.ratios["goodput"] == run.ratios["throughput_fraction"] == 1


@quick
@given(plans, st.integers(2_000, 60_000))
def test_adjacent_windows_add_up_to_the_run(plan, width):
    run = Told(plan).account()
    windows = rolling_windows(run, width * MILLISECOND)
    for name, t_ns in run.ledger_ns.items():
        assert sum(window.ledger_ns[name] for window in windows) == t_ns
    assert [w.start_ns for w in windows[1:]] == [w.end_ns for w in windows[:-1]]
    whole = window_ratios(run, run.start_ns, run.end_ns)
    assert whole.ledger_ns == run.ledger_ns
    assert whole.ratios == {name: run.ratios[name] for name in whole.ratios}


@quick
@given(plans, st.data(), st.integers(0, 100_000), st.integers(0, 100_000))
def test_provisional_ledger_never_rises_while_nothing_is_seen(plan, data, first, more):
    told = Told(plan)
    seen = data.draw(st.integers(1, len(told.events) - 1))
    events = sorted(told.events, key=lambda e: e.t_ns)[:seen]
    assume(all(event.kind not in ("window_close", "end") for event in events))
    now_ns = events[-1].t_ns + first * MILLISECOND
    earlier, later = (
        told.account([*events, TrainingEvent(kind="window_close", t_ns=t_ns)])
        for t_ns in (now_ns, now_ns + more * MILLISECOND)
    )
    assert earlier.is_provisional
    if earlier.ratios["ledger"] is not None:
        assert later.ratios["ledger"] <= earlier.ratios["ledger"]


@quick
@given(plans, st.integers(1, 4096))
def test_gpu_hours_of_a_constant_count_have_the_ratio_of_time(plan, gpus):
    run = Told(plan).account(gpus=gpus)
    held = sum(run.gpu_hours.values())
    assert held == pytest.approx(run.window_ns / 3.6e12 * gpus)
    assert run.gpu_hours["useful"] / held == pytest.approx(run.ratios["ledger"])


@quick
@given(plans)
def test_runs_of_steps_are_accounted_like_their_steps(plan):
    told = Told(plan)
    steps = [event for event in told.events if event.kind == "step"]
    others = [event for event in told.events if event.kind != "step"]
    runs = []
    for event in steps:
        if not runs or event.step <= runs[-1].numbers[-1]:
            runs.append(
                StepRun(
                    numbers=array("q"),
                    times_ns=array("q"),
                    step_times_s=array("d"),
                    tflops=array("d"),
                )
            )
        runs[-1].numbers.append(event.step)
        runs[-1].times_ns.append(event.t_ns)
        runs[-1].step_times_s.append(float("nan"))
        runs[-1].tflops.append(float("nan"))
    by_step, by_run = told.account(), told.account([*runs, *others])
    assert by_run.ledger_ns == by_step.ledger_ns
    assert by_run.attempts == by_step.attempts
    assert by_run.summary == by_step.summary


KINDS = tuple(KIND_RANK)
any_events = st.lists(
    st.builds(
        TrainingEvent,
        kind=st.sampled_from(KINDS),
        t_ns=st.one_of(st.none(), st.integers(-5, 60).map(lambda t: t * 10**9)),
        t_source=st.sampled_from(("app", "api")),
        step=st.one_of(st.none(), st.integers(0, 9)),
        attempt=st.one_of(st.none(), st.none(), st.integers(0, 2)),
        stream=st.sampled_from("ab"),
        seq=st.integers(0, 6),
        until_ns=st.one_of(st.none(), st.integers(0, 60).map(lambda t: t * 10**9)),
        step_time_s=st.one_of(st.none(), st.floats(0, 5)),
        duration_s=st.one_of(st.none(), st.floats(0, 20)),
        gpus=st.one_of(st.none(), st.integers(0, 8)),
        covers=st.one_of(st.none(), st.integers(0, 5)),
    ),
    max_size=20,
)


@settings(quick, max_examples=80)
@given(
    any_events,
    st.sampled_from((None, True, False)),
    st.sampled_from((None, 1.0)),
    st.sampled_from(("global", "local")),
)
def test_events_that_make_no_sense_still_add_up(events, succeeded, reference_step_s, step_counter):
    params = LedgerParams(
        succeeded=succeeded, reference_step_s=reference_step_s, step_counter=step_counter, gpus=8
    )
    run = account(events, params)
    assert sum(run.ledger_ns.values()) == run.window_ns >= 0
    assert min(run.ledger_ns.values()) >= 0
    assert run == account(events, params)
    assert 0 <= run.useful_steps <= run.executed_steps
    ratios = [ratio for ratio in order_of(run.ratios) if ratio is not None]
    assert len(ratios) in (0, 4)
    if run.executed_steps:
        assert ratios == sorted(ratios)
    assert all(0 <= ratio <= 1 for ratio in ratios)
    for window in rolling_windows(run, 7 * 10**9):
        assert min(window.ledger_ns.values()) >= 0

"""NVIDIA's formula at the points that a log shows, and on exact intervals."""

from collections.abc import Iterator

from tests.measure.differences import Difference, formula, history_ratio

# History and the terms that a log shows: first printed step, exit, last finished save, start line.
LOG_POINTS: tuple[tuple[str, str, tuple[float, float, float, float, float], str], ...] = (
    (
        "no failure at all, every step printed",
        "clean-1000",
        (1099, 0, 1, 0, 100),
        "the first step is work as well",
    ),
    (
        "crash before the first save",
        "crash-before-first-save",
        (219, 0, 22, 40, 10),
        "50 s of lost work are lost",
    ),
    (
        "resumed from an older checkpoint than the last one saved",
        "fallback-to-older-checkpoint",
        (539, 50, 22, 40, 30),
        "the resume step is the truth",
    ),
    (
        "counter back at 1 without a load",
        "counter-restarts-at-1-no-load-line",
        (429, 50, 22, 40, 20),
        "everything before is lost",
    ),
    (
        "first step of each process takes 31 s",
        "slow-first-step",
        (359, 50, 82, 40, 20),
        "1 s of it is work",
    ),
    (
        "a line every 50 steps",
        "seed-print-every-50",
        (1250, 80, 190, 80, 100),
        "so are the steps before the first line",
    ),
    (
        "60 s of each restart inside the process, start line after the load",
        "seed-all-resume",
        (1299, 80, 3, 120, 100),
        "the process ran before its start line",
    ),
    (
        "silence of 600 s until a watchdog",
        "hang-600s-until-abort",
        (930, 651, 22, 40, 20),
        "the first step is work as well",
    ),
)


def points() -> Iterator[Difference]:
    for case, name, terms, why in LOG_POINTS:
        yield Difference(
            table="points",
            case=case,
            theirs=lambda terms=terms: formula(*terms),
            ours=lambda name=name: history_ratio(name),
            why=why,
        )

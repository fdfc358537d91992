"""`python -m tests.campaign`: plays many fault schedules and says what came of them."""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.campaign.series import play_series, report_lines


def main() -> int:
    """Play the schedules; 1 when a rule was broken or a kind of fault never came."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=8)
    given = parser.parse_args()
    with TemporaryDirectory(prefix="pytest-cre-campaign-") as folder:
        series = play_series(
            range(given.first, given.first + given.count),
            seed=given.seed,
            workers=given.workers,
            folder=Path(folder),
            tell=_tell,
        )
    for line in report_lines(series):
        _tell(line)
    return 1 if series.broken or (given.count >= 200 and series.silent) else 0


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

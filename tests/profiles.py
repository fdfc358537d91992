"""Every embedded hardware profile against the whole catalog: `python -m tests.profiles [NAME...]`.

Each healthy scenario runs once. Its evidence is judged by the scenario's own limits, and again by
published ones alone. A line per profile and way of judging; exit code 1 where its own limits do not
end in PASSED.
"""

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_cre.catalog.loader import Catalog, load_catalog, shipped_profiles, shipped_suites
from pytest_cre.evidence.manifest import read_manifest
from pytest_cre.rejudge import rejudge
from pytest_cre.report.model import RunReport
from pytest_cre.simulator.scenario import shipped_scenarios

FAULTY = ("crash-node", "slow-node")
HEALTHY = tuple(name for name in shipped_scenarios() if name not in FAULTY)
QUICK = "extends: {name}\ntableTime: 200ms\ninitTime: 100ms\n"
COLUMNS = ("pass", "not-applicable", "no-limit", "unmet", "inconclusive", "fail", "error")
LONGEST_S = 1800


def run_profile(name: str, folder: Path) -> Path:
    """Run the whole catalog on a profile; return its evidence."""
    scenario = folder / f"{name}.yaml"
    scenario.write_text(QUICK.format(name=name))
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-m", "certification", "--pyargs"),
            *("pytest_cre.suites", "-p", "no:cacheprovider", "--cre-cluster=embedded"),
            *("--cre-scenario", str(scenario), "--cre-evidence", str(folder / name)),
        ],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        timeout=LONGEST_S,
        check=False,
    )
    return folder / name


def judged_by(evidence: Path, catalog: Catalog, way: str) -> RunReport:
    """Return the report of a run's evidence, judged by `scenario` or `published` limits."""
    manifest = read_manifest(evidence)
    settings = {**manifest.report["settings"], "simulated_by": way}
    report = {**manifest.report, "settings": settings}
    return rejudge(evidence, replace(manifest, report=report), catalog)


def line(name: str, way: str, report: RunReport) -> str:
    """Return a line of the table."""
    counts = Counter(item.code for item in report.items)
    cells = " ".join(f"{counts[code]:>14}" for code in COLUMNS)
    return f"{name:<14} {way:<10} {report.result:<11} {cells}"


def main(names: Sequence[str]) -> int:
    """Run the profiles named, or all; print the table."""
    if unknown := sorted({*names} - {*HEALTHY}):
        sys.exit(f"profile {unknown[0]!r} is unknown; choices: {', '.join(HEALTHY)}")
    catalog = load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])
    heads = " ".join(f"{code:>14}" for code in COLUMNS)
    sys.stdout.write(f"{'profile':<14} {'limits':<10} {'result':<11} {heads}\n")
    has_failed = False
    with tempfile.TemporaryDirectory(prefix="cre-profiles-") as folder:
        for name in names or HEALTHY:
            evidence = run_profile(name, Path(folder))
            for way in ("scenario", "published"):
                report = judged_by(evidence, catalog, way)
                sys.stdout.write(line(name, way, report) + "\n")
                for item in report.items:
                    if item.code not in ("pass", "no-limit"):
                        sys.stdout.write(f"    {item.title}: {item.code}: {item.text[:200]}\n")
                has_failed |= way == "scenario" and report.result != "PASSED"
            sys.stdout.flush()
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

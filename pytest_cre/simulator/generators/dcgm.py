"""`dcgmi diag`: the report of DCGM 4, one result per test and GPU of the node."""

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_cre.simulator.commandline import Launch
from pytest_cre.simulator.generators.gpus import gpu_serial, lost_gpus

if TYPE_CHECKING:
    from pytest_cre.simulator.faults import Fault
    from pytest_cre.simulator.world import ContainerRun

Json = Any

_VERSION = "4.5.2"
_DRIVER = "570.124.06"
_FAILED_EXIT = 226  # DCGM_ST_NVVS_ISOLATE_ERROR as an exit code
_UNREACHABLE_EXIT = 235  # DCGM_ST_CONNECTION_NOT_VALID
# The tests of each level, with the category they are listed under; a level has those before it.
_TESTS: tuple[tuple[int, str, str], ...] = (
    (1, "Deployment", "software"),
    (2, "Integration", "pcie"),
    (2, "Hardware", "memory"),
    (3, "Hardware", "diagnostic"),
    (3, "Integration", "nvbandwidth"),
    (3, "Stress", "memory_bandwidth"),
    (3, "Stress", "targeted_stress"),
    (3, "Stress", "targeted_power"),
    (4, "Stress", "memtest"),
    (4, "Hardware", "pulse_test"),
)
_LEVELS = {"1": 1, "short": 1, "2": 2, "medium": 2, "3": 3, "long": 3, "4": 4, "xlong": 4}
_CATEGORIES = ("Deployment", "Integration", "Hardware", "Stress")
_FLAGS = ("-j", "--json", "-v", "--verbose", "--failearly")
_VALUES = ("--host", "-r", "--run", "-p", "--parameters", "-i", "--iterations", "-g", "--group")


async def generate(run: "ContainerRun", launch: Launch) -> int:
    """Run the diagnostics; gives the exit code."""
    words = launch.argv[1:]
    if words[:1] != ("diag",):
        run.write("ERROR: Invalid subsystem. Use: dcgmi diag --run 1|2|3|4 --json", "stderr")
        return 1
    options, unknown = _options(words[1:])
    if unknown is not None:
        run.write(f"PARSE ERROR: Argument: {unknown}\n             Couldn't find match", "stderr")
        return 1
    level = _LEVELS.get(options.get("--run", ""))
    if level is None:
        run.write(f'Error: requested test "{options.get("--run", "")}" was not found', "stderr")
        return 1
    await asyncio.sleep(run.world.scenario.init_s)
    if next(run.holding("no-dcgm"), None) is not None:
        run.write(
            "Error: unable to establish a connection to the specified host: "
            f"{options.get('--host', 'localhost')}\n"
            "Error: Unable to connect to host engine. Host engine connection invalid/disconnected."
        )
        return _UNREACHABLE_EXIT
    await asyncio.sleep(run.world.scenario.table_s)
    run.reach(step=level)
    if run.is_hung or run.ending.done():
        await asyncio.Event().wait()
    faults = list(run.holding("failed-test"))
    document, has_failed = _document(run, level, options.get("-p", ""), faults)
    if "--json" in options:
        run.write(json.dumps(document, indent=1, sort_keys=True))
    else:
        run.write("simulator: only --json is written")
    return _FAILED_EXIT if has_failed else 0


def _options(words: Sequence[str]) -> tuple[dict[str, str], str | None]:
    """Return options by their usual name, and the first word that is none."""
    usual = {"-r": "--run", "-j": "--json", "-v": "--verbose", "--parameters": "-p"}
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        word, equals, value = rest.pop(0).partition("=")
        name = usual.get(word, word)
        if word in _FLAGS:
            found[name] = ""
        elif word in _VALUES and (equals or rest):
            value = value if equals else rest.pop(0)
            found[name] = f"{found[name]};{value}" if name in found and name == "-p" else value
        else:
            return found, word
    return found, None


def _document(
    run: "ContainerRun", level: int, parameters: str, faults: "Sequence[Fault]"
) -> tuple[Json, bool]:
    lost = lost_gpus(run)
    gpus = [gpu for gpu in range(run.call.gpus or run.node.gpus) if gpu not in lost]
    categories: dict[str, list[Json]] = {}
    has_failed = False
    for least, category, test in _TESTS:
        if least > level:
            continue
        is_skipped = test == "nvbandwidth" and "nvbandwidth.is_allowed=true" not in parameters
        results = [_result(test, gpu, faults, is_skipped=is_skipped) for gpu in gpus]
        statuses = {each["status"] for each in results}
        summary = "Fail" if "Fail" in statuses else "Skip" if is_skipped else "Pass"
        has_failed |= summary == "Fail"
        entry = {"name": test, "results": results, "test_summary": {"status": summary}}
        categories.setdefault(category, []).append(entry)
    return {
        "DCGM Diagnostic": {
            "test_categories": [
                {"category": name, "tests": categories[name]}
                for name in _CATEGORIES
                if name in categories
            ]
        },
        "entity_groups": [
            {
                "entity_group": "GPU",
                "entity_group_id": 1,
                "entities": [
                    {
                        "device_id": "2330",
                        "entity_id": gpu,
                        "serial_num": gpu_serial(run.node.name, gpu),
                    }
                    for gpu in gpus
                ],
            }
        ],
        "metadata": {"Driver Version Detected": _DRIVER, "version": _VERSION},
    }, has_failed


def _result(test: str, gpu: int, faults: "Sequence[Fault]", *, is_skipped: bool) -> Json:
    result: Json = {
        "entity_group": "GPU",
        "entity_group_id": 1,
        "entity_id": gpu,
        "status": "Skip" if is_skipped else "Pass",
    }
    for fault in faults:
        if fault.test in (None, test) and fault.gpu in (None, gpu):
            message = fault.message or f"{test} failed on GPU {gpu}."
            warning = {
                "error_category": 7,
                "error_id": 1,
                "error_severity": 2,
                "warning": message,
            }
            result |= {"status": "Fail", "warnings": [warning]}
    return result

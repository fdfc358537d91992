"""Values of our options after a blank, such as `--cre-json FILE`.

pytest finds its root folder, ini file and conftest files before it loads the plugins of entry
points. Until then it knows none of our options and takes a value after a blank for a test path if
there is such a file or folder: another root, no ini file, the suites found twice. That cannot be
put right in the same run, so it is given up before it has read anything, and the command line is run
again with `=` before these values.
"""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path

import pytest

ADDOPTS = "PYTEST_ADDOPTS"
AGAIN = pytest.StashKey[tuple[list[str], list[str]]]()  # arguments, those of the environment


def give_up_if_misread(config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Turn a run whose command line was misread into one that does nothing, with nothing loaded."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # the controller's command line, which was read rightly, beside files made since
    options = {name for each in parser.getgroup("cre").options for name in each.names()}
    given = expanded(config.invocation_params.args)
    variables = shlex.split(os.environ.get(ADDOPTS, ""))
    if is_misread(given, options) or is_misread(variables, options):
        config.stash[AGAIN] = joined(given, options), joined(variables, options)
        args.clear()
        config.known_args_namespace.noconftest = True


def run_again(config: pytest.Config) -> int | pytest.ExitCode | None:
    """Run a command line that was misread as it was meant; None where it was not."""
    if AGAIN not in config.stash:
        return None
    arguments, variables = config.stash[AGAIN]
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is not None:
        capture.suspend(in_=True)  # a debugger of the other run reads what is typed
    for path in map(str, config.getini("pythonpath")):
        if path in sys.path:
            sys.path.remove(path)  # of an ini file that may be another project's
    with _addopts(variables):
        return pytest.main(arguments, plugins=config.invocation_params.plugins)


def is_misread(arguments: Sequence[str], options: AbstractSet[str]) -> bool:
    """Return whether the value of an option, after a blank, is there as a file or folder."""
    return any(
        os.path.exists(arguments[index + 1].partition("::")[0])  # noqa: PTH110 - never raises
        for index in _valued(arguments, options)
    )


def joined(arguments: Sequence[str], options: AbstractSet[str]) -> list[str]:
    """Return the arguments with `=` between each option and its value."""
    valued = set(_valued(arguments, options))
    return [
        f"{argument}={arguments[index + 1]}" if index in valued else argument
        for index, argument in enumerate(arguments)
        if index - 1 not in valued
    ]


def expanded(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with those of files, given as `@FILE`, in their place."""
    found: list[str] = []
    for argument in arguments:
        if argument.startswith("@"):
            # argparse has read it already, so it is there.
            found += expanded(Path(argument[1:]).read_text(encoding="utf-8").splitlines())
        else:
            found.append(argument)
    return found


def _valued(arguments: Sequence[str], options: AbstractSet[str]) -> Iterator[int]:
    """Yield the place of each option whose value comes after a blank."""
    index = 0
    while index + 1 < len(arguments) and arguments[index] != "--":
        if arguments[index] in options and not arguments[index + 1].startswith("-"):
            yield index
            index += 1
        index += 1


@contextmanager
def _addopts(arguments: Sequence[str]) -> Iterator[None]:
    """Give pytest these arguments in the environment, where it had some; workers inherit it."""
    former = os.environ.get(ADDOPTS)
    if former is None:
        yield
        return
    os.environ[ADDOPTS] = shlex.join(arguments)
    try:
        yield
    finally:
        os.environ[ADDOPTS] = former

"""Set-up of this repository only; users of the plugin need none of it."""

import signal
from pathlib import Path

import pytest

from pytest_cre.items import marker_is_asked_for

pytest_plugins = ["pytester"]
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a shell's background, and inherited by what tests start; some of them press Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
TESTS = Path(__file__).parent / "tests"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the project's own tests out of a certification: none is one, and reading them takes long."""
    if TESTS in collection_path.parents and marker_is_asked_for(config.getoption("markexpr") or ""):
        return True
    return None

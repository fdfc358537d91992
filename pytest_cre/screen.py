"""pytest's terminal as something that progress can be drawn on."""

from typing import Any, Self

import pytest


class TerminalScreen:
    """Writes past whatever is being captured."""

    def __init__(self, terminal: pytest.TerminalReporter, capture: Any) -> None:
        self._terminal = terminal
        self._capture = capture

    @classmethod
    def of(cls, config: pytest.Config) -> Self | None:
        """Return the screen of a run that a person watches, or None for a file, a pipe, a CI job."""
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        capture = config.pluginmanager.get_plugin("capturemanager")
        if terminal is None or capture is None or not terminal.isatty or terminal.verbosity < 0:
            return None
        return cls(terminal, capture)

    @property
    def width(self) -> int:
        """Return the width in characters."""
        return int(self._terminal._tw.fullwidth)

    def fresh_line(self) -> None:
        """End the line that pytest has begun, if there is one."""
        with self._capture.global_and_fixture_disabled():
            self._terminal.ensure_newline()

    def write(self, text: str) -> None:
        """Write text at once."""
        with self._capture.global_and_fixture_disabled():
            self._terminal.write(text, flush=True)

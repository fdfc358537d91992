"""The properties of the whole run in pytest's own JUnit file, whose cases alone may all look well."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.junitxml import xml_key

Properties = Sequence[tuple[str, str]]


class SuiteProperties:
    """What the file of `--junitxml` says of the run as a whole, in the process that writes it.

    pytest writes it before fixtures, workers and the cluster have come to their end. It is given what
    is known by then; where their end changes that, the file is written again. A pipe is not: its
    reader has gone.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._log = config.stash.get(xml_key, None)
        self._start = 0
        self._told: Properties = ()

    @property
    def are_wanted(self) -> bool:
        """Return whether this process writes such a file."""
        return self._log is not None

    def tell(self, properties: Properties) -> None:
        """Give pytest the properties before it writes the file."""
        if self._log is None:
            return
        self._start, self._told = len(self._log.global_properties), properties
        for name, value in properties:
            self._log.add_global_property(name, value)

    def correct(self, properties: Properties) -> None:
        """Write the file again where the properties have become others; raises `OSError`."""
        log = self._log
        if log is None or properties == self._told or not Path(log.logfile).is_file():
            return
        del log.global_properties[self._start : self._start + len(self._told)]
        self.tell(properties)
        log.pytest_sessionfinish()

"""One stream of a Job read for everything that it can tell."""

import re

from pytest_cre.measure import bandwidth, bandwidth_json, failure, training, transport
from pytest_cre.measure.bandwidth import TableReader
from pytest_cre.measure.bandwidth_json import DocumentReader
from pytest_cre.measure.failure import FailureReader, Failures
from pytest_cre.measure.logtext import Line, LogText, Needles, compile_needles
from pytest_cre.measure.model import Kind
from pytest_cre.measure.profile import CompiledProfile
from pytest_cre.measure.training import TrainingReader
from pytest_cre.measure.transport import TransportReader


class StreamReader:
    """Reads the log of one container, or one file, fed in chunks of any size.

    `kind` limits what is read: "none" is not known yet, so that everything is. `transport` is shared by
    the streams of a Job. `is_prefiltered` False looks at every line; it changes nothing but the speed.
    """

    def __init__(
        self,
        name: str,
        *,
        kind: Kind,
        transport: TransportReader,
        profile: CompiledProfile | None = None,
        attempt: int = 0,
        restart_count: int = 0,
        is_prefiltered: bool = True,
    ) -> None:
        self.name = name
        self.attempt = attempt
        self.restart_count = restart_count
        self.text = LogText(self)
        self.tables = TableReader() if kind != "training" else None
        self.documents = DocumentReader() if kind != "training" else None
        self.transport = transport if kind != "training" else None
        self.training = TrainingReader(profile) if kind != "bandwidth" else None
        self.failures = Failures()
        self.profile_rows: list[tuple[int, float, float]] = []
        self._profile = profile
        self._failures = FailureReader()
        self._sources = self._known_sources(kind) if is_prefiltered else None
        self._needles: Needles | None = None
        self._unseen = -1

    def feed(self, data: bytes) -> None:
        """Take some bytes of the log."""
        self.text.feed(data)

    def close(self) -> None:
        """Take note that the log is over."""
        self.text.close()

    @property
    def needles(self) -> Needles | None:
        """Return what occurs in every line that can matter; None: every line can."""
        if self._sources is None:
            return None
        unseen = self.transport.unseen if self.transport else frozenset()
        if len(unseen) != self._unseen:
            self._unseen = len(unseen)
            literals = sorted(re.escape(literal) for literal in unseen)
            self._needles = compile_needles((*self._sources, *literals))
        return self._needles

    @property
    def wants_all(self) -> bool:
        """Return whether every following line is wanted, for now."""
        return self.documents is not None and self.documents.is_open

    def line(self, line: Line) -> bool:
        """Take a line; return whether something was taken from it."""
        if self.tables is not None and self.tables.line(line):
            if self.tables.has_footer:
                # What a program caught did no harm to a table that it could finish.
                self.failures.by_kind.pop("exception", None)
            return True
        is_matched = self._bandwidth(line) if self.tables is not None else False
        if self.training is not None:
            is_matched |= self.training.line(line)
        failed = self._failures.read(line)
        if failed is not None:
            self.failures.add(failed)
            if self.training is not None:
                self.training.failed(line, failed)
            return True
        return is_matched

    def fast(self, block: bytes, at: int) -> tuple[int, int]:
        """Take lines from a place on in one go; return where they end and how many they are."""
        if self.training is None or self.wants_all:
            return at, 0
        return self.training.fast(block, at)

    def _bandwidth(self, line: Line) -> bool:
        is_matched = self.documents is not None and self.documents.line(line)
        if self.transport is not None:
            is_matched |= self.transport.line(line)
        if self._profile is not None:
            name, row = self._profile.transport(line.printed), self._profile.row(line.printed)
            if name is not None and self.transport is not None:
                self.transport.add(name)
            if row is not None:
                self.profile_rows.append(row)
            is_matched |= name is not None or row is not None
        return is_matched

    def _known_sources(self, kind: Kind) -> tuple[bytes, ...] | None:
        sources: tuple[bytes, ...] = failure.NEEDLES
        if kind != "training":
            sources += bandwidth.NEEDLES + bandwidth_json.NEEDLES + transport.NEEDLES
        if kind != "bandwidth":
            sources += training.NEEDLES
        if self._profile is None:
            return sources
        own = self._profile.needles
        return None if own is None else (*sources, *own)

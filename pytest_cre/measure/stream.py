"""One stream of a Job read for everything that it can tell."""

from collections.abc import Collection, Iterator

from pytest_cre.measure import (
    bandwidth_json,
    dcgm,
    failure,
    gemm,
    logtext,
    tablelines,
    training,
    transport,
)
from pytest_cre.measure.bandwidth_json import DocumentReader
from pytest_cre.measure.dcgm import EngineReader
from pytest_cre.measure.failure import FailureReader, Failures
from pytest_cre.measure.gemm import GemmReader
from pytest_cre.measure.logtext import Line, LogText
from pytest_cre.measure.model import Kind
from pytest_cre.measure.needles import Needles, needles_of
from pytest_cre.measure.profile import CompiledProfile
from pytest_cre.measure.tablelines import TableReader
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
        is_bandwidth = kind in ("bandwidth", "none")
        self.tables = TableReader() if is_bandwidth else None
        self.documents = DocumentReader() if is_bandwidth else None
        self.transport = transport if is_bandwidth else None
        self.training = TrainingReader(profile) if kind in ("training", "none") else None
        self.gemm = GemmReader(name) if kind in ("gemm", "none") else None
        self.reports: DocumentReader | None = None
        self.engine = EngineReader()
        if kind in ("diagnostics", "none"):
            self.reports = DocumentReader(dcgm.is_report, dcgm.MARK)
        self.failures = Failures()
        self.profile_rows: list[tuple[int, float, float]] = []
        self._profile = profile
        self._failures = FailureReader()
        self._texts = self._known_texts(kind)
        self._channels = 0
        self._needles: Needles | None = None
        self.wants_all = True
        if is_prefiltered:
            self._look_for(self.transport.unseen if self.transport else ())

    def feed(self, data: bytes) -> None:
        """Take some bytes of the log."""
        self.text.feed(data)

    def close(self) -> None:
        """Take note that the log is over."""
        self.text.close()

    def places(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end, in order, of what occurs in every line that can matter.

        What tells of the network is looked for until it was seen, for all channels print it.
        """
        unseen = self.transport.unseen if self.transport else {}
        at = 0
        while at < len(block):
            if len(unseen) < self._channels:
                self._look_for(unseen)
            if self._needles is None:
                return
            for start, end in self._needles.places(block[at:] if at else block):
                yield at + start, at + end
                if len(unseen) < self._channels:
                    at += end
                    break
            else:
                return

    def line(self, line: Line) -> bool:
        """Take a line; return whether something was taken from it."""
        if self.tables is not None and self.tables.line(line):
            if "exception" in self.failures.by_kind and self.tables.has_footer:
                # What a program caught did no harm to a table that it could finish.
                del self.failures.by_kind["exception"]
            return True
        is_matched = self._bandwidth(line) if self.tables is not None else False
        is_matched |= self._devices(line)
        self._note_wants()
        if self.training is not None:
            is_matched |= self.training.line(line)
        failed = self._failures.read(line)
        if failed is not None:
            self.failures.add(failed)
            if self.training is not None:
                self.training.failed(line, failed)
            return True
        return is_matched

    def row(self, block: bytes, at: int) -> int:
        """Take the line at a place if it is a table's row as usual; return where it ends, else the place."""
        return at if self.tables is None else self.tables.row(block, at)

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

    def _devices(self, line: Line) -> bool:
        """Take what a line says of single GPUs."""
        is_matched = False
        if self.gemm is not None:
            is_matched = self.gemm.line(line)
            if not is_matched and self._profile is not None:
                groups = self._profile.gemm(line.printed)
                is_matched = groups is not None and self.gemm.take(groups)
        if self.reports is not None:
            is_matched |= self.reports.line(line)
            is_matched |= self.engine.line(line)
        return is_matched

    def _known_texts(self, kind: Kind) -> tuple[bytes, ...]:
        texts: tuple[bytes, ...] = (*logtext.NEEDLES, *failure.NEEDLES)
        if kind in ("bandwidth", "none"):
            texts += tablelines.NEEDLES + bandwidth_json.NEEDLES + transport.NEEDLES
        if kind in ("training", "none"):
            texts += training.NEEDLES
        if kind in ("gemm", "none"):
            texts += gemm.NEEDLES
        if kind in ("diagnostics", "none"):
            texts += (*dcgm.NEEDLES, *bandwidth_json.OPENINGS)
        return texts

    def _look_for(self, unseen: Collection[bytes]) -> None:
        """From now on find lines with one of the known texts, and with these of channels."""
        own = self._profile.needles if self._profile is not None else ()
        self._channels = len(unseen)
        self._needles = None if own is None else needles_of((*self._texts, *unseen), own)
        self._note_wants()

    def _note_wants(self) -> None:
        """Every line is wanted where none can be ruled out, and inside a document."""
        readers = (self.documents, self.reports)
        self.wants_all = self._needles is None or any(each and each.is_open for each in readers)

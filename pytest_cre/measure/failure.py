"""Failures that a log tells of: the line that names the cause, from the first or the last place."""

import re
from dataclasses import dataclass, field
from typing import Literal

from pytest_cre.measure.logtext import Line, quoted

FailureKind = Literal["network", "cuda", "nccl", "exception", "signal", "launcher", "test"]
MAX_TEXT_CHARACTERS = 300

# In the order of how near each is to the cause: an abort of the launcher follows from the rest.
_KINDS: tuple[tuple[FailureKind, re.Pattern[bytes]], ...] = (
    (
        "network",
        re.compile(
            rb"Got completion from peer .*(?:status=|error )|Got completion with error"
            rb"|NET/OFI .*completed with error|[Rr]equest completed with error"
        ),
    ),
    (
        "cuda",
        re.compile(
            rb"Test CUDA failure|CUDA error: |Cuda failure '?\w|an illegal memory access was"
            rb"|[Uu]ncorrectable ECC error|CUDA out of memory|HIP error: |Test HIP failure"
        ),
    ),
    (
        "nccl",
        re.compile(
            rb"Test NCCL failure|Watchdog caught collective operation timeout"
            rb"|ncclRemoteError|ncclSystemError|ncclInternalError|ncclUnhandledCudaError"
            rb"|NCCL communicator was aborted"
        ),
    ),
    ("exception", re.compile(rb"(?!)")),  # found by `_EXCEPTION` after a traceback's heading
    (
        "signal",
        re.compile(
            rb"Segmentation fault|Caught signal \d+|exited on signal \d+|Signal \d+ \(SIG[A-Z]+\)"
            rb"|\(core dumped\)|Bus error|[Oo]ut of memory: Killed process|oom[-_]kill"
            rb"|exitcode *: *-\d+|terminate called after throwing"
        ),
    ),
    (
        "launcher",
        re.compile(
            rb"MPI_ABORT was invoked|MPI_Abort|(?:mpirun|prterun|mpiexec)\S* (?:noticed|detected)"
            rb"|ORTE was unable|PRTE was unable|exited with non-zero|srun: error:"
            rb"|slurmstepd: error:|ChildFailedError|Worker group FAILED\. 0/"
        ),
    ),
    ("test", re.compile(rb"Test failure \S+:\d+")),
)
NEEDLES = (
    *(b"Got completion", b"error", b"failure", b"memory", b"Watchdog", b"was aborted"),
    *(b"Segmentation fault", b"ignal", b"(SIG", b"core dumped", b"oom-kill", b"oom_kill", b"exit"),
    *(b"terminate called", b"MPI_A", b"noticed", b"detected", b"RTE was unable"),
    *(b"Worker group FAILED", b"Traceback (most recent call last)", b'", line '),
    *(b"Error", b"Exception", b"Exit", b"Interrupt", b"Expired", b"Failure"),
)

# Its frames tell a traceback as well: its heading may stand in a part of the log that is gone.
_TRACEBACK = re.compile(
    rb"Traceback \(most recent call last\)|^\s*File \"[^\"]{1,999}\", line \d+, in "
)
_EXCEPTION = re.compile(
    rb"[ \t]*((?:\w+\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Expired|Failure)(?::.*)?)\s*$"
)
_ELASTIC = re.compile(rb"ChildFailedError|SignalException")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure line: what kind, and its text."""

    kind: FailureKind
    text: str


class FailureReader:
    """Recognises the failure lines of one stream; an exception counts only in a traceback."""

    def __init__(self) -> None:
        self._is_in_traceback = False

    def read(self, line: Line) -> Failure | None:
        """Return the failure that a line tells of, or None."""
        text = line.text
        if _TRACEBACK.search(text):
            self._is_in_traceback = True
            return None
        if self._is_in_traceback and (found := _EXCEPTION.match(text)):
            self._is_in_traceback = False
            return _failure("launcher" if _ELASTIC.search(text) else "exception", found[1])
        for kind, pattern in _KINDS:
            if pattern.search(text):
                return _failure(kind, text)
        return None


def _failure(kind: FailureKind, text: bytes) -> Failure:
    return Failure(kind=kind, text=quoted(text, MAX_TEXT_CHARACTERS))


@dataclass(slots=True)
class Failures:
    """Failures seen: of each kind the first, of exceptions the last.

    The last exception of a traceback is the one that ended the process; those before it led there.
    """

    by_kind: dict[FailureKind, Failure] = field(default_factory=dict)

    def add(self, failure: Failure) -> None:
        """Take a failure."""
        if failure.kind == "exception" or failure.kind not in self.by_kind:
            self.by_kind[failure.kind] = failure

    def join(self, other: "Failures") -> None:
        """Take the failures of another stream."""
        for failure in other.by_kind.values():
            self.by_kind.setdefault(failure.kind, failure)

    @property
    def worst(self) -> Failure | None:
        """Return the failure nearest to the cause."""
        return next((self.by_kind[kind] for kind, _ in _KINDS if kind in self.by_kind), None)

    @property
    def are_exceptions_only(self) -> bool:
        """Return whether nothing but Python exceptions was seen, which a program may have caught."""
        return self.by_kind.keys() <= {"exception"}

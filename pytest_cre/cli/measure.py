"""`pytest-cre measure`: recorded logs to numbers, without a cluster."""

import argparse
import codecs
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pytest_cre.errors import CatalogProblem, EvidenceProblem, UsageProblem
from pytest_cre.measure.instants import parse_rfc3339
from pytest_cre.measure.measurement import Meter
from pytest_cre.measure.model import InputFile, Measurement, Status
from pytest_cre.measure.surroundings import Surroundings

if TYPE_CHECKING:
    from pytest_cre.catalog.logprofile import LogProfile

READ_BYTES = 122_880
EXIT_CODES: Mapping[Status, int] = {"complete": 0, "failed": 1, "incomplete": 10, "no-data": 10}
_WORST_FIRST: tuple[Status, ...] = ("failed", "no-data", "incomplete", "complete")
# What editors and shells of other systems write before a text, and how the rest is written then.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its options."""
    parser = subparsers.add_parser(
        "measure",
        help="measure recorded logs without a cluster",
        description="Read the logs of one Job (several files are streams of it, merged by time) and "
        "print bandwidth tables or the training ledger.",
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="a log; `-` is standard input; `POD=FILE` names the stream",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME_OR_PATH",
        help="log profile (default: the format is recognised from the text)",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--start", metavar="RFC3339", help="resources were held from then on")
    parser.add_argument("--end", metavar="RFC3339", help="the Job's terminal time")
    parser.add_argument(
        "--events", metavar="FILE.yaml", help="account for a written event sequence instead of logs"
    )


def run(args: argparse.Namespace) -> int:
    """Print the measurement; return 0 complete, 1 failed, 10 incomplete or no data.

    Raises `UsageProblem` (2) and `EvidenceProblem` (3).
    """
    if args.events is not None:
        if args.files or args.profile or args.start or args.end:
            raise UsageProblem(
                "--events stands alone: it takes no FILE, --profile, --start or --end"
            )
        return _run_events(args.events, args.format)
    if not args.files:
        raise UsageProblem(
            "name at least one FILE, or `-` for standard input, or --events FILE.yaml"
        )
    around = Surroundings(
        window_start_ns=_instant("--start", args.start),
        window_end_ns=_instant("--end", args.end),
    )
    start_ns, end_ns = around.window_start_ns, around.window_end_ns
    if start_ns is not None and end_ns is not None and end_ns < start_ns:
        raise UsageProblem(f"--end {args.end} is before --start {args.start}")
    profile = _profile(args.profile) if args.profile else None
    measured = measure_files(args.files, profile=profile, around=around)
    _print(_pieces(measured, args.format))
    return EXIT_CODES[measured.status]


def measure_files(
    files: Sequence[str],
    *,
    profile: "LogProfile | None" = None,
    around: Surroundings | None = None,
) -> Measurement:
    """Measure files as the streams of one Job, in blocks; raises `EvidenceProblem` for unreadable ones."""
    meter = Meter(profile)
    inputs, names = [], set()
    for given in files:
        name, path = _named(given)
        unique, copy = name, 1
        while unique in names:
            copy += 1
            unique = f"{name}#{copy}"
        names.add(unique)
        stream = meter.open(unique)
        blocks = _Counted(_blocks(path))
        for block in in_utf8(blocks):
            stream.feed(block)
        stream.close()
        inputs.append(blocks.input_file(path))
    return replace(meter.result(around), inputs=tuple(inputs))


class _Counted:
    """Blocks of a file as they are read, with its size and digest."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = blocks
        self._digest = hashlib.sha256()
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            self._digest.update(block)
            self._size += len(block)
            yield block

    def input_file(self, path: str) -> InputFile:
        """Return what was read so far as an input of the measurement."""
        return InputFile(path=path, size_bytes=self._size, sha256=self._digest.hexdigest())


def in_utf8(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield blocks in UTF-8 without the mark at the start; where a mark says UTF-16, they are converted."""
    left = iter(blocks)
    head = b""
    for block in left:
        head += block
        if len(head) >= max(len(mark) for mark, _ in _MARKS):
            break
    mark, encoding = next(
        ((mark, encoding) for mark, encoding in _MARKS if head.startswith(mark)), (b"", "utf-8")
    )
    if encoding == "utf-8":
        yield head[len(mark) :]
        yield from left
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    yield decoder.decode(head[len(mark) :]).encode(errors="replace")
    for block in left:
        yield decoder.decode(block).encode(errors="replace")
    yield decoder.decode(b"", final=True).encode(errors="replace")


def _named(given: str) -> tuple[str, str]:
    """Return stream name and path; an argument that is an existing path is one, whatever is in it."""
    name, equals, path = given.partition("=")
    if not equals or not name or "/" in name or Path(given).exists():
        return given, given
    return name, path


def _blocks(path: str) -> Iterator[bytes]:
    try:
        if path == "-":
            if sys.stdin is None:
                raise EvidenceProblem("-: standard input is closed")
            yield from _read(sys.stdin.buffer)
            return
        with Path(path).open("rb", buffering=0) as file:
            yield from _read(file)
    except OSError as problem:
        raise EvidenceProblem(f"{path}: cannot be read: {problem.strerror or problem}") from None
    except ValueError as problem:  # a NUL in the path
        raise EvidenceProblem(f"{path!r}: cannot be read: {problem}") from None


def _read(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(READ_BYTES):
        yield block


def _instant(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_rfc3339(text)
    except ValueError as problem:
        raise UsageProblem(f"{option}: {problem}") from None


def _profile(given: str) -> "LogProfile":
    """Return a profile by the name of a shipped one, or from a file."""
    from pytest_cre.catalog.convert import profile_from
    from pytest_cre.catalog.files import read_document
    from pytest_cre.catalog.loader import load_catalog, shipped_profiles
    from pytest_cre.formats.yaml import YamlProblem

    if "/" in given or given.endswith((".yaml", ".yml")):
        path = Path(given)
        if not path.is_file():
            raise UsageProblem(f"--profile {given}: there is no such file")
        try:
            return profile_from(read_document(path), path)
        except YamlProblem as problem:
            raise CatalogProblem(str(problem)) from None
    profiles = load_catalog(suites=[], profiles=[shipped_profiles()]).log_profiles
    if given not in profiles:
        choices = ", ".join(sorted(profiles))
        raise UsageProblem(f"--profile {given}: no such profile; one of {choices}, or a file")
    return profiles[given]


def _pieces(measured: Measurement, form: str) -> Iterator[str]:
    if form == "json":
        from pytest_cre.measure.document import document_text

        yield from document_text(measured)
    else:
        from pytest_cre.report.measurement import measurement_text

        yield measurement_text(measured)


def _print(pieces: Iterator[str]) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    for piece in pieces:
        # A log may hold what the terminal's encoding cannot.
        sys.stdout.write(piece.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _run_events(given: str, form: str) -> int:
    """Account for a file of event sequences: a document for one, a line with its name for each of several.

    Returns the exit code of the worst of them.
    """
    from json import dumps

    from pytest_cre.formats.yaml import YamlProblem
    from pytest_cre.measure.document import to_document
    from pytest_cre.measure.event_file import read_event_file
    from pytest_cre.measure.written import measure_events
    from pytest_cre.report.measurement import measurement_text
    from pytest_cre.report.text import one_line

    blocks = _Counted(_blocks(given))
    data = b"".join(in_utf8(blocks))
    try:
        sequences = read_event_file(data.decode(), given)
    except UnicodeDecodeError:
        raise EvidenceProblem(f"{given}:1:1: not UTF-8 text") from None
    except YamlProblem as problem:
        raise EvidenceProblem(str(problem)) from None
    statuses: set[Status] = set()
    for name, events, params in sequences:
        measured = replace(measure_events(events, params), inputs=(blocks.input_file(given),))
        statuses.add(measured.status)
        if form == "json":
            _print(iter([dumps({"name": name, **to_document(measured)}, allow_nan=False) + "\n"]))
        else:
            title = [f"{one_line(name)}\n"] if len(sequences) > 1 else []
            _print(iter([*title, measurement_text(measured), "\n" * (len(sequences) > 1)]))
    return next(EXIT_CODES[each] for each in _WORST_FIRST if each in statuses)

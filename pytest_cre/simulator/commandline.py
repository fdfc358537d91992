"""Command lines taken apart: launchers around a program, and their own arguments."""

import argparse
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

_DURATION = re.compile(r"[0-9]+(\.[0-9]+)?[smhd]?")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


class UsageExit(Exception):
    """A program that prints a text and ends, because of its arguments."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class ProgramParser(argparse.ArgumentParser):
    """A parser that raises `UsageExit` where the real program would print and end."""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End as the program would."""
        raise UsageExit(status, message or self.format_help())

    def error(self, message: str) -> NoReturn:
        """End as argparse programs do on a mistake."""
        raise UsageExit(2, f"{self.format_usage()}{self.prog}: error: {message}\n")

    def print_help(self, file: object = None) -> None:
        """Leave the text to `exit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A program with its arguments, and how it was launched."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    launcher: str | None = None  # torchrun, mpirun
    nodes: int = 1
    processes: int | None = None  # on each node; None: one per GPU
    total_processes: int | None = None
    node_rank: int | None = None  # None: as the members come
    master: str = "localhost"
    port: int = 29500
    is_tagged: bool = False  # each line with its rank before it
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def program(self) -> str:
        """Return the program's name without its folder."""
        return posixpath.basename(self.argv[0]) if self.argv else ""


def take_apart(argv: Sequence[str], env: Mapping[str, str]) -> Launch:
    """Return the program inside a command line; raises `UsageExit` for a launcher's mistakes."""
    launch = Launch(argv=tuple(argv), env=dict(env))
    while True:
        inner = _unwrapped(launch)
        if inner is None:
            return launch
        launch = inner


def _unwrapped(launch: Launch) -> Launch | None:
    """Return the launch without its outermost wrapper, None where there is none."""
    argv, name = launch.argv, launch.program
    if not argv:
        return None
    if name in ("timeout", "stdbuf", "nice", "numactl", "exec", "env", "nohup", "time"):
        return _without(launch, _wrapper_length(name, argv))
    if name in ("torchrun", "torch.distributed.run"):
        return _torchrun(launch)
    if name in ("mpirun", "mpiexec", "orterun"):
        return _mpirun(launch)
    if re.fullmatch(r"python[0-9.]*", name):
        return _python(launch)
    if _ASSIGNMENT.match(argv[0]):
        key, _, value = argv[0].partition("=")
        return _with(launch, argv[1:], {**launch.env, key: value})
    return None


def _with(launch: Launch, argv: Sequence[str], env: Mapping[str, str]) -> Launch:
    return replace(launch, argv=tuple(argv), env=env)


def _without(launch: Launch, count: int) -> Launch:
    return _with(launch, launch.argv[count:], launch.env)


def _wrapper_length(name: str, argv: Sequence[str]) -> int:
    """Return how many words a wrapper takes before the command in it."""
    takes_value = {"timeout": ("-k", "-s"), "nice": ("-n",), "stdbuf": ("-o", "-e", "-i")}
    length = 1
    while length < len(argv) and argv[length].startswith("-"):
        length += 2 if argv[length] in takes_value.get(name, ()) else 1
    if name == "timeout" and length < len(argv) and _DURATION.fullmatch(argv[length]):
        length += 1
    return length


def _python(launch: Launch) -> Launch | None:
    words = list(launch.argv[1:])
    while words and words[0] in ("-u", "-O", "-B", "-s", "-E", "-I"):
        words.pop(0)
    if not words or words[0] == "-c":
        return None
    if words[0] == "-m":
        return _with(launch, words[1:], launch.env)
    return _with(launch, words, launch.env) if not words[0].startswith("-") else None


def _torchrun(launch: Launch) -> Launch:
    env = launch.env
    parser = ProgramParser(prog="torchrun", allow_abbrev=False)
    defaults = {"nnodes": "1:1", "nproc-per-node": "1", "node-rank": None, "master-port": "29500"}
    for name in (
        *("nnodes", "nproc-per-node", "node-rank", "master-addr", "master-port"),
        *("rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "max-restarts", "log-dir"),
        *("monitor-interval", "start-method", "event-log-handler", "role", "local-addr"),
        *("logs-specs", "local-ranks-filter", "redirects", "tee"),
    ):
        flags = [f"--{name}", f"--{name.replace('-', '_')}"]
        short = {"redirects": "-r", "tee": "-t"}.get(name)
        default = env.get(f"PET_{name.replace('-', '_').upper()}", defaults.get(name))
        parser.add_argument(*dict.fromkeys(flags), *([short] if short else []), default=default)
    for name in ("standalone", "no-python", "run-path"):
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", action="store_true")
    parser.add_argument("-m", "--module", action="store_true")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    given = parser.parse_args(list(launch.argv[1:]))
    nodes = str(given.nnodes).rpartition(":")[2]
    if not nodes.isdigit() or int(nodes) < 1:
        raise _torchrun_mistake(f"invalid literal for int() with base 10: {nodes!r}")
    per_node = str(given.nproc_per_node)
    if not per_node.isdigit() and per_node not in ("auto", "gpu", "cpu"):
        raise _torchrun_mistake(f"Unsupported nproc_per_node value: {per_node}")
    master, port = given.master_addr, str(given.master_port)
    if given.rdzv_endpoint and not given.master_addr:
        master, _, end = given.rdzv_endpoint.rpartition(":")
        port = end or port
    rank = given.node_rank
    is_static = (given.rdzv_backend or "static") == "static" and not given.standalone
    if rank is not None and not str(rank).isdigit():
        parser.error(f"argument --node-rank/--node_rank: invalid int value: {rank!r}")
    if is_static and rank is None:
        rank = "0"
    if not port.isdigit():
        parser.error(f"argument --master-port/--master_port: invalid int value: {port!r}")
    return Launch(
        argv=(given.training_script, *given.training_script_args),
        env=env,
        launcher="torchrun",
        nodes=1 if given.standalone else int(nodes),
        processes=int(per_node) if per_node.isdigit() else None,
        node_rank=int(rank) if is_static and rank is not None else None,
        master=master or "localhost",
        port=int(port),
    )


def _torchrun_mistake(message: str) -> UsageExit:
    return UsageExit(1, f"Traceback (most recent call last):\nValueError: {message}\n")


_MPI_WITH_VALUE = {
    "-np": 1,
    "-n": 1,
    "-c": 1,
    "-N": 1,
    "-npernode": 1,
    "--npernode": 1,
    "-x": 1,
    "-mca": 2,
    "--mca": 2,
    "-hostfile": 1,
    "--hostfile": 1,
    "-machinefile": 1,
    "-H": 1,
    "-host": 1,
    "--host": 1,
    "--map-by": 1,
    "-map-by": 1,
    "--bind-to": 1,
    "-bind-to": 1,
    "--rank-by": 1,
    "--prefix": 1,
    "-wdir": 1,
    "--wdir": 1,
    "--timeout": 1,
    "--output": 1,
}
_MPI_PER_NODE = ("-N", "-npernode", "--npernode")
_MPI_TOTAL = ("-np", "-n", "-c")


def _mpirun(launch: Launch) -> Launch:
    """Return what mpirun starts: options with their values come before the program."""
    words, env = list(launch.argv[1:]), dict(launch.env)
    options: dict[str, str] = {}
    while words and words[0].startswith("-"):
        word, _, glued = words.pop(0).partition("=")
        count = 0 if glued else _MPI_WITH_VALUE.get(word, 0)
        if len(words) < count:
            raise UsageExit(1, f"mpirun: Error: option {word} needs a value\n")
        values = [glued] if glued else words[:count]
        del words[:count]
        if word == "-x" and values:
            name, equals, value = values[0].partition("=")
            if equals:
                env[name] = value
        else:
            options[word] = " ".join(values)
    per_node = next((options[name] for name in _MPI_PER_NODE if name in options), None)
    total = next((options[name] for name in _MPI_TOTAL if name in options), None)
    mapping = options.get("--map-by", options.get("-map-by", "")).split(":")
    if per_node is None and mapping[0] == "ppr" and len(mapping) > 1:
        per_node = mapping[1]
    for number in (per_node, total):
        if number is not None and not number.isdigit():
            raise UsageExit(1, f"mpirun: Error: {number!r} is not a number of processes\n")
    return Launch(
        argv=tuple(words),
        env=env,
        launcher="mpirun",
        processes=int(per_node) if per_node is not None else None,
        total_processes=int(total) if total is not None else None,
        is_tagged=any(name in options for name in ("--tag-output", "-tag-output")),
        options=options,
    )

"""The few words of a shell that start scripts, tests and demonstrations use."""

import asyncio
import shlex
import string
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from pytest_cre.simulator.commandline import Launch
from pytest_cre.simulator.containercall import expand

if TYPE_CHECKING:
    from pytest_cre.simulator.world import ContainerRun

RunCommand = Callable[["ContainerRun", tuple[str, ...], dict[str, str]], Awaitable[int]]

_SHELLS = ("sh", "bash", "ash", "dash")
_SILENT = ("set", "cd", "mkdir", "ulimit", "umask", "chmod", "touch", ":", "wait", "trap")
_IDLE = ("sshd", "pause")
_SEPARATORS = (";", "&&", "||", "\n")


class Exit(Exception):
    """The script ends here."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Shell:
    """Runs simple commands one after another; knows no pipes, loops or redirections."""

    def __init__(
        self, run: "ContainerRun", env: Mapping[str, str], run_command: RunCommand
    ) -> None:
        self.run_of, self.env, self.run_command = run, dict(env), run_command

    def knows(self, launch: Launch) -> bool:
        """Return whether the command can be run here."""
        words = ("echo", "printf", "sleep", "true", "false", "exit", "export", "env", "hostname")
        return launch.program in (*_SHELLS, *_SILENT, *_IDLE, *words)

    async def run(self, launch: Launch) -> int:
        """Run a command; gives its exit code."""
        if launch.program not in _SHELLS:
            try:
                return await self._simple(list(launch.argv))
            except Exit as ending:
                return ending.code
        script = _script(launch.argv, self.run_of.call.files)
        if script is None:
            self.run_of.write(f"{launch.program}: cannot read the script", "stderr")
            return 127
        return await self._script(script)

    async def _script(self, script: str) -> int:
        code, link, stops = 0, ";", False
        try:
            for words, separator in _commands(script):
                is_wanted = link in (";", "\n") or (link == "&&") == (code == 0)
                if is_wanted and words:
                    stops = stops or (words[0] == "set" and any("e" in each for each in words[1:2]))
                    code = await self._simple(words)
                    if code and stops and separator not in ("&&", "||"):
                        return code
                link = separator
        except ValueError as problem:
            self.run_of.write(f"sh: syntax error: {problem}", "stderr")
            return 2
        except Exit as ending:
            return ending.code
        return code

    async def _simple(self, words: list[str]) -> int:
        words = [_substitute(word, self.env) for word in words]
        while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
            name, _, value = words.pop(0).partition("=")
            self.env[name] = value
        if not words:
            return 0
        name, arguments = words[0].rpartition("/")[2], words[1:]
        if name == "echo":
            is_open = arguments[:1] == ["-n"]
            text = " ".join(arguments[1:] if is_open else arguments)
            self.run_of.log.write((text + ("" if is_open else "\n")).encode())
        elif name == "printf":
            self.run_of.log.write(_printf(arguments).encode())
        elif name == "hostname":
            self.run_of.write(self.run_of.host_name)
        elif name == "sleep":
            await _sleep(arguments)
        elif name in _IDLE:
            await asyncio.Event().wait()
        elif name == "exit":
            raise Exit(int(arguments[0]) % 256 if arguments and arguments[0].isdigit() else 0)
        elif name == "export":
            for word in arguments:
                key, equals, value = word.partition("=")
                if equals:
                    self.env[key] = value
        elif name == "env":
            self.run_of.write("\n".join(f"{key}={self.env[key]}" for key in sorted(self.env)))
        elif name in ("true", "false"):
            return int(name == "false")
        elif name not in _SILENT:
            return await self.run_command(self.run_of, tuple(words), self.env)
        return 0


async def _sleep(arguments: list[str]) -> None:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    for word in arguments:
        if word in ("inf", "infinity"):
            await asyncio.Event().wait()
        number, unit = (word[:-1], units[word[-1]]) if word[-1:] in units else (word, 1)
        try:
            await asyncio.sleep(min(float(number), 1e7) * unit)
        except ValueError:
            continue


def _script(argv: tuple[str, ...], files: Mapping[str, bytes]) -> str | None:
    """Return the script of a shell's command line: after -c, or a file that is mounted."""
    words = list(argv[1:])
    while words and words[0].startswith("-"):
        flag = words.pop(0)
        if flag.endswith("c") and not flag.startswith("--"):
            return words[0] if words else None
    if words and words[0] in files:
        return files[words[0]].decode("utf-8", "replace")
    return None


def _commands(script: str) -> list[tuple[list[str], str]]:
    """Return simple commands with the separator after each; raises `ValueError`."""
    joined = script.replace("\\\n", " ")
    commands: list[tuple[list[str], str]] = []
    for line in joined.split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        words: list[str] = []
        for token in lexer:
            if token in _SEPARATORS:
                commands.append((words, token))
                words = []
            else:
                words.append(token)
        if words:
            commands.append((words, "\n"))
    return commands


def _substitute(word: str, env: Mapping[str, str]) -> str:
    """Return a word with $NAME, ${NAME} and ${NAME:-default} replaced."""
    start = word.find("${")
    while start >= 0:
        end = word.find("}", start)
        if end < 0:
            break
        name, _, default = word[start + 2 : end].partition(":-")
        value = env.get(name) or default
        word = word[:start] + value + word[end + 1 :]
        start = word.find("${", start + len(value))
    known = string.Template(expand(word, env)).safe_substitute(env)
    return known.replace("$$", "1")  # the process number


def _printf(arguments: list[str]) -> str:
    text = arguments[0].replace("\\n", "\n").replace("\\t", "\t") if arguments else ""
    for value in arguments[1:]:
        text = text.replace("%s", value, 1).replace("%d", value, 1)
    return text.replace("%%", "%")

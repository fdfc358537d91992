"""CEL expressions that say yes or no. Pure; compiled once, evaluated as often as wanted.

The engine has a budget of iterations, so that no expression can hang. It hands errors back as values
that are true to Python, hence the look at the type of every answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONGEST = 2048  # characters; what the API server allows too


class CelProblem(ValueError):
    """An expression that cannot be used or has no answer; the text is one line."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A compiled expression over named variables."""

    text: str
    _compiled: Any

    def holds(self, values: Mapping[str, object]) -> bool:
        """Return the answer for these values; raises `CelProblem` where it is neither yes nor no."""
        from cel_expr_python import cel

        try:
            found = self._compiled.eval(data=dict(values))
        except (RuntimeError, TypeError, ValueError) as problem:
            raise CelProblem(_line(str(problem))) from None
        if found.type() != cel.Type.BOOL:
            words = found.value() if found.type() == cel.Type.ERROR else f"the answer is {found}"
            raise CelProblem(f"{_line(str(words))}; it must say true or false")
        return bool(found.value())


def compile_predicate(text: str, variables: tuple[str, ...]) -> Predicate:
    """Return the compiled expression; raises `CelProblem` that ends a message about it."""
    from cel_expr_python import cel

    if len(text) > LONGEST:
        raise CelProblem(f"is longer than {LONGEST} characters")
    try:
        # Without a declared type, whole numbers compare with fractions as upstream's engine has it.
        environment = cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN))
        compiled = environment.compile(text)
    except (RuntimeError, TypeError, ValueError) as problem:
        raise CelProblem(f"is no CEL expression: {_line(str(problem))}") from None
    if compiled.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
        raise CelProblem("must say true or false, such as value >= 900")
    return Predicate(text, compiled)


def _line(text: str) -> str:
    """Return the engine's message without its drawing of the place."""
    return " ".join(text.partition("\n")[0].removeprefix("INVALID_ARGUMENT: ").split())[:200]

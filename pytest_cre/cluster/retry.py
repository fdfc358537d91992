"""What to try again, and for how long."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

# Answers that say "later": the server is overloaded, starting, or behind a restarting balancer.
PASSING_STATUSES = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long a request is repeated; the default outlives a control-plane upgrade."""

    budget_s: float = 300.0
    # For 401 and for a 404 that does not name the object: tokens rotate, extensions are restarted.
    refusal_budget_s: float = 60.0
    read_timeout_s: float = 30.0  # of one try
    first_pause_s: float = 0.2
    longest_pause_s: float = 10.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = field(default=random.random)

    def pauses(self) -> "Pauses":
        """Return the pauses of one request."""
        return Pauses(self)


class Pauses:
    """The pauses between the tries of one request; they grow, with jitter, until the budget ends."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._began_s = policy.clock()
        self._next_s = policy.first_pause_s

    def wait(self, asked_s: float | None = None, *, is_refusal: bool = False) -> bool:
        """Wait before the next try, at least as long as the server asked; False: no time left."""
        policy = self._policy
        budget_s = min(policy.budget_s, policy.refusal_budget_s) if is_refusal else policy.budget_s
        pause_s = max(asked_s or 0.0, self._next_s * (0.5 + policy.jitter() / 2))
        # At the deadline too: a clock that was stopped at infinity must end what begins after it.
        if policy.clock() + pause_s >= self._began_s + budget_s:
            return False
        policy.sleep(pause_s)
        self._next_s = min(self._next_s * 2, policy.longest_pause_s)
        return True

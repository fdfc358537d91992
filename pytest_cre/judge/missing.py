"""What to make of a figure that no limit applies to, and by which limits simulated nodes are judged."""

from typing import Literal

MissingLimit = Literal["skip", "fail", "record"]
SimulatedBy = Literal["scenario", "published"]

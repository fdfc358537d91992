"""What the items of a run have used of the GPUs, for all its processes."""

from pathlib import Path


class Spending:
    """GPU-seconds used so far; every process of the run adds a line to one file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "spent-gpu-seconds"

    def add(self, gpu_s: float) -> None:
        """Note what an item used, in GPU-seconds."""
        with self._path.open("a", encoding="ascii") as file:
            file.write(f"{gpu_s:.3f}\n")

    @property
    def gpu_s(self) -> float:
        """Return the GPU-seconds of all items that have ended."""
        return sum(map(float, self._path.read_text().split())) if self._path.exists() else 0.0

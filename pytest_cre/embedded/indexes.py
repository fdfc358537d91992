"""Sets of completion indexes as Jobs write them: `0-3,7`."""

_LONGEST_NUMBER = 9
_LONGEST_RUN = 100_000


def parse_indexes(text: str) -> set[int]:
    """Read `0-3,7`; what cannot be read is left out."""
    indexes: set[int] = set()
    for part in text.split(","):
        first, _dash, last = part.partition("-")
        bounds = (first, last or first)
        if all(b.isascii() and b.isdecimal() and len(b) <= _LONGEST_NUMBER for b in bounds):
            start, end = (int(bound) for bound in bounds)
            indexes.update(range(start, min(end, start + _LONGEST_RUN) + 1))
    return indexes


def format_indexes(indexes: set[int]) -> str:
    """Write `0-3,7`."""
    parts: list[str] = []
    ordered = sorted(indexes)
    start = 0
    for position, index in enumerate(ordered):
        if position + 1 < len(ordered) and ordered[position + 1] == index + 1:
            continue
        first = ordered[start]
        # Genuine controllers write a pair as `1,2` and a longer run as `1-3`.
        if position - start > 1:
            parts.append(f"{first}-{index}")
        else:
            parts += [str(one) for one in ordered[start : position + 1]]
        start = position + 1
    return ",".join(parts)

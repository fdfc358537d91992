"""Times that a recorded program printed, moved to the time of the replay.

The new log's own timestamps are of now. A program that prints another day beside them would look like one
whose clock is wrong.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

NS = 1_000_000_000
# Programs print the time of their own zone; what is further off is no time of this run.
_ZONES_NS = 26 * 3600 * NS
_TIME = re.compile(
    rb"(?<!\d)(?P<date>\d{4}-\d\d-\d\d)(?P<between>[T ])(?P<time>\d\d:\d\d:\d\d)"
    rb"(?:(?P<mark>[.,])(?P<digits>\d{1,9}))?(?!\d)"
    rb"|(?P<level>\b[IWEF])(?P<day>\d{4}) (?P<clock>\d\d:\d\d:\d\d)\.(?P<micros>\d{6})(?!\d)"  # glog
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """From the moment at which something was written to that at which it is written again."""

    recorded_ns: int
    replayed_ns: int
    lasted_ns: int  # how long the recorded program ran

    def moved(self, data: bytes) -> bytes:
        """Return output with the times of the recorded run moved; others stay."""
        return _TIME.sub(self._moved, data)

    def _moved(self, found: "re.Match[bytes]") -> bytes:
        is_short = found["level"] is not None
        year = str((_EPOCH + timedelta(seconds=self.recorded_ns // NS)).year).encode()
        day, clock = found["day"], found["clock"] if is_short else found["time"]
        date = year + b"-" + day[:2] + b"-" + day[2:] if is_short else found["date"]
        digits = found["micros"] if is_short else found["digits"] or b""
        at_ns = _instant_ns(date, clock, digits)
        if at_ns is None:
            return found[0]
        since_ns = at_ns - self.recorded_ns
        if abs(since_ns) > self.lasted_ns + _ZONES_NS:
            return found[0]
        new_ns = self.replayed_ns + since_ns
        moment = _EPOCH + timedelta(seconds=new_ns // NS)
        fraction = f"{new_ns % NS:09d}"[: len(digits)]
        if is_short:
            return found["level"] + f"{moment:%m%d %H:%M:%S}.{fraction}".encode()
        mark = (found["mark"] or b"").decode()
        return f"{moment:%Y-%m-%d}{found['between'].decode()}{moment:%H:%M:%S}{mark}{fraction}".encode()


def _instant_ns(date: bytes, clock: bytes, digits: bytes) -> int | None:
    try:
        moment = datetime.strptime(
            f"{date.decode()} {clock.decode()} +0000", "%Y-%m-%d %H:%M:%S %z"
        )
    except ValueError:
        return None
    return int((moment - _EPOCH).total_seconds()) * NS + int(digits.ljust(9, b"0") or 0)

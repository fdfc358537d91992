"""Short ways to measure logs in tests."""

from pytest_cre.measure.measurement import Meter
from pytest_cre.measure.surroundings import Surroundings


def measured(*logs, profile=None, is_prefiltered=True, chunk=None, around=None, **surroundings):
    """Measure logs (bytes) as the streams of one Job, fed whole or in chunks."""
    meter = Meter(profile, is_prefiltered=is_prefiltered)
    for at, log in enumerate(logs):
        stream = meter.open(f"pod-{at}")
        for start in range(0, len(log), chunk or max(1, len(log))):
            stream.feed(log[start : start + (chunk or len(log))])
        stream.close()
    return meter.result(around or Surroundings(**surroundings))

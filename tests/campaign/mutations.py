"""Checks of the harness switched off, to see that the campaign notices."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

from pytest_cre.assessment import Assessor
from pytest_cre.cluster.logread import LogReader
from pytest_cre.evidence.model import GroupEvidence
from pytest_cre.measure.model import Measurement

SWITCH = "CRE_CAMPAIGN_WITHOUT"


@contextmanager
def without(check: str | None = None) -> Iterator[None]:
    """Switch off a check, or the one that the environment names, for the time of the context."""
    name = os.environ.get(SWITCH, "") if check is None else check
    if name not in ("", *_SWITCHED_OFF):
        raise ValueError(f"{SWITCH} must be one of {', '.join(_SWITCHED_OFF)}, got {name!r}")
    if not name:
        yield
        return
    owner, attribute, value = _SWITCHED_OFF[name]
    with mock.patch.object(owner, attribute, value, create=True):
        yield


def _never_gap() -> property:
    return property(lambda _: False, lambda *_: None)


_measure_group = Assessor.measure_group


def _blind_to(reason: str) -> Callable[[Assessor, GroupEvidence], Measurement]:
    """Return a measuring that does not see such a reason against being complete, or such a flag."""

    def measure(assessor: Assessor, group: GroupEvidence) -> Measurement:
        measurement = _measure_group(assessor, group)
        training = measurement.training
        if training is not None:
            flags = tuple(each for each in training.flags if each != reason)
            return replace(measurement, training=replace(training, flags=flags))
        reasons = tuple(each for each in measurement.reasons if each != reason)
        if reasons == measurement.reasons:
            return measurement
        bandwidth = measurement.bandwidth
        if bandwidth is not None:
            tables = tuple(replace(table, is_complete=True) for table in bandwidth.tables)
            bandwidth = replace(bandwidth, tables=tables)
        return replace(measurement, reasons=reasons, status="complete", bandwidth=bandwidth)

    return measure


_SWITCHED_OFF = {
    "log-gap": (LogReader, "has_gap", _never_gap()),
    "footer": (Assessor, "measure_group", _blind_to("no-footer")),
    "header": (Assessor, "measure_group", _blind_to("no-header")),
    "start": (Assessor, "measure_group", _blind_to("start_unseen")),
}

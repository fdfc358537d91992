"""The log in the evidence is the source byte for byte, or its gap is known and the item no pass."""

import pytest

from tests.campaign.clusters import Clusters
from tests.campaign.playing import play
from tests.campaign.test_campaign import planned

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ALIKE = {"action": "log-burst", "lines": 500, "after": {"seconds": 0.3}}


@pytest.mark.parametrize(
    "stanzas",
    [
        [{"action": "log-reset", "reads": 12}],
        [{"action": "log-eof", "reads": 6}, ALIKE],
        [ALIKE, {"action": "log-rotate", "after": {"seconds": 0.35}}],
        [ALIKE, {"action": "log-size", "bytes": 4000}],
    ],
    ids=["broken", "cut-among-alike", "alike-then-rotated", "alike-over-many-files"],
)
def test_log_is_the_source_or_the_item_is_inconclusive(tmp_path, stanzas):
    schedule = planned("communication/nccl-all-reduce", *stanzas)
    with Clusters() as clusters:
        outcome = play(clusters, schedule, tmp_path / "run")

    assert outcome.broken == []
    assert outcome.code in ("pass", "inconclusive"), outcome.text

import pytest

from pytest_cre.catalog.entry import Needs

LINES = """\
needs:
  nodes: 2
  gpus: 32
  modelParallel: [maxBytes]
  expertParallel: maxBytes
  cluster: [nics, computeDomain]
cost: 12m
limits:
  - metric: busbw
    operator: ">="
    value: 100
    unit: GB/s
    statistic: max
    tier: site
    source: own runs
    date: 2026-11
"""


@pytest.fixture
def changed(folder):
    """Write the entry with the lines above, one of them changed."""
    from tests.catalog.conftest import ENTRY

    def write(old="", new=""):
        folder.entry(ENTRY + LINES.replace(old, new))

    return write


def test_needs_cost_and_limits_of_an_entry_are_read(folder, changed):
    changed()
    entry = folder.load().entry("mine/bench")

    assert entry.needs == Needs(
        nodes=2,
        gpus=32,
        model_parallel=("maxBytes",),
        expert_parallel="maxBytes",
        cluster=("nics", "computeDomain"),
    )
    assert entry.cost_s == 720
    (limit,) = entry.limits
    assert (limit.entry, limit.architecture, limit.value) == ("mine/bench", None, 100)
    assert limit.place == "catalog/mine/bench.yaml:32:5"


def test_entry_without_needs_runs_on_one_gpu_at_unknown_cost(folder):
    folder.entry()
    entry = folder.load().entry("mine/bench")

    assert (entry.needs, entry.cost_s, entry.limits) == (Needs(), None, ())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("modelParallel: [maxBytes]", "modelParallel: [size]", "27:19: 'size' is no option of"),
        ("expertParallel: maxBytes", "expertParallel: ep", "28:19: 'ep' is no option of the entry"),
        ("gpus: 32", "gpus: 0", "26:9: needs.gpus must be at least 1"),
        ("[nics, computeDomain]", "[luck]", "29:13: needs.cluster[0] must be one of nics, dcgm"),
        ("cost: 12m", "cost: 0s", "30:7: cost must be longer than nothing"),
        ("tier: site", "tier: simulated", "37:11: limits[0].tier simulated belongs to scenarios"),
        (
            "metric: busbw",
            "metric: busbw\n    entry: other/x",
            "33:12: limits[0].entry is the entry that",
        ),
    ],
)
def test_mistake_in_needs_or_limits_is_one_line_with_its_place(folder, changed, old, new, words):
    changed(old, new)
    assert words in folder.problem()

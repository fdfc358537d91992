import json

import pytest

from pytest_cre.catalog.architecture import Architecture, architecture_of
from pytest_cre.catalog.simulated import limits_from_json
from pytest_cre.errors import CatalogProblem

from .conftest import ARCHITECTURE

PLACE = "profiles/architectures/x1.yaml"
SIMULATED = {
    "metric": "busbw",
    "operator": ">=",
    "value": 300,
    "unit": "GB/s",
    "entry": "communication/*",
    "statistic": "max",
    "tier": "simulated",
    "source": "scenario h100-8",
    "date": "2026",
}


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "unit: GB/s",
            "unit: GiB/s",
            "9:11: limits[0].unit must be GB/s for metric busbw, got 'GiB/s'",
        ),
        ("metric: busbw", "metric: goodput", "9:11: limits[0].unit must be ratio for metric"),
        (
            "metric: busbw",
            "metric: speed",
            "6:13: limits[0].metric must be one of busbw, algbw, latency, dip, goodput, ",
        ),
        (
            'operator: ">="',
            'operator: "!="',
            "7:15: limits[0].operator must be one of >=, <=, >, <, got '!='",
        ),
        ("value: 90", "value: fast", "8:12: limits[0].value must be a number, got 'fast'"),
        ("value: 90", "value: 0", "8:12: limits[0].value must be above 0, got 0"),
        ("value: 90", "value: .nan", "8:12: limits[0].value must be a finite number, got nan"),
        ("size: 16G", "size: 16GB", "12:11: limits[0].size must be a size such as 8, 512M or"),
        ("    size: 16G\n", "", "6:5: limits[0] takes a size with statistic at-size, and only"),
        ("statistic: at-size", "statistic: max", "6:5: limits[0] takes a size with statistic"),
        (
            "statistic: at-size",
            "statistic: value",
            "11:16: limits[0].statistic must be max or at-size or plateau for busbw, got 'value'",
        ),
        ("scale: full-scale", "scale: rack", "13:12: limits[0].scale is unknown: 'rack'"),
        ("minNodes: 2", "minNodes: 5", "6:5: limits[0] has minNodes 5 above maxNodes 4"),
        ("minNodes: 2", "minNodes: 0", "14:15: limits[0].minNodes must be at least 1, got 0"),
        ("tier: site", "tier: given", "17:11: limits[0].tier given belongs to what a run is told"),
        (
            "tier: site",
            "confidence: sure\n    tier: site",
            "17:17: limits[0].confidence must be one of",
        ),
        ("size: 16G", "category: hang", "6:5: limits[0] takes a size with statistic at-size"),
        ("fabric: roce", "fabric: RoCE", "16:13: limits[0].fabric must be one of infiniband, roce"),
        ("tier: site", "tier: simulated", "17:11: limits[0].tier simulated belongs to scenarios"),
        ("    source: our own acceptance runs\n", "", "6:5: limits[0].source is missing"),
        ("date: 2026-11-30", "date: today", "19:11: limits[0].date must be YYYY-MM-DD, YYYY-MM"),
        ("gpusPerNode: 4", "gpusPerNode: '4'", "3:14: gpusPerNode must be a whole number, got '4'"),
        ("[EXAMPLE-X1]", "[]", "2:16: productLabels must not be empty, got a list"),
        ("nicsPerNode: 2\n", "", "1:1: nicsPerNode is missing"),
    ],
)
def test_mistake_in_an_architecture_is_one_line_with_its_place(folder, old, new, line):
    assert old in ARCHITECTURE
    folder.entry()
    folder.architecture(ARCHITECTURE.replace(old, new, 1))
    assert folder.problem().startswith(f"{PLACE}:{line}")


def test_goodput_limit_above_one_is_refused(folder):
    text = ARCHITECTURE.replace("busbw", "goodput").replace("GB/s", "ratio")
    text = text.replace("at-size\n    size: 16G", "value")
    folder.entry()
    folder.architecture(text)
    assert folder.problem() == (
        f"{PLACE}:6:5: limits[0] holds goodput 90, but a ratio is at most 1"
    )


@pytest.mark.parametrize("date", ["2026", "2026-11", "2026-11-30", "unknown, read 2026-11"])
def test_date_of_a_limit_may_be_rough_or_openly_unknown(folder, date):
    folder.entry()
    folder.architecture(ARCHITECTURE.replace("2026-11-30", date))
    assert folder.load().architecture("x1").limits[0].date == date


def test_file_name_of_an_architecture_must_be_a_name(folder):
    folder.entry()
    folder.architecture(name="X1")
    assert folder.problem().startswith("profiles/architectures/X1.yaml:1:1: file 'X1' names it")


def test_simulated_limits_have_the_form_of_all_limits():
    text = json.dumps([SIMULATED, SIMULATED | {"statistic": "at-size", "size": "8G"}])
    first, second = limits_from_json(text, "node gpu-1")
    assert (first.value, first.tier, first.statistic, first.place) == (
        300.0,
        "simulated",
        "max",
        "node gpu-1",
    )
    assert first.architecture is None
    assert second.size_bytes == 8 * 1024**3


def test_date_of_a_simulated_limit_is_free(tmp_path):
    text = json.dumps([SIMULATED | {"date": "with this package"}])
    assert limits_from_json(text, "node gpu-1")[0].date == "with this package"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "limits are not JSON: Expecting value"),
        ("[" * 100_000, "limits are not JSON: "),
        ("{}", "limits must be a list, got a map"),
        ("[5]", "limits[0] must be a map, got 5"),
        (json.dumps([SIMULATED | {"tier": "published"}]), "limits[0].tier must be simulated in a"),
        (json.dumps([SIMULATED | {"unit": "MB/s"}]), "limits[0].unit must be GB/s for metric"),
        (json.dumps([SIMULATED | {"valeu": 1}]), "limits[0].valeu is an unknown key; did you mean"),
        ('[{"metric": "busbw", "metric": "goodput"}]', "limits are not JSON: key 'metric' stands"),
        (json.dumps([SIMULATED]).replace("300", "Infinity"), "limits[0].value must be a finite"),
    ],
)
def test_simulated_limits_that_are_wrong_are_refused_in_one_line(text, words):
    with pytest.raises(CatalogProblem) as caught:
        limits_from_json(text, "node gpu-1")
    assert str(caught.value).startswith(f"node gpu-1: {words}")
    assert len(str(caught.value).splitlines()) == 1


def test_product_label_tells_the_architecture_only_when_it_is_one_of_its_own():
    known = {
        name: Architecture(name=name, product_labels=labels, gpus_per_node=8, nics_per_node=8)
        for name, labels in {"b": ("B-1", "B-2"), "a": ("A",)}.items()
    }
    assert architecture_of("B-2", known) == "b"
    assert architecture_of("B", known) is None
    assert architecture_of("A-SHARED", known) is None
    assert architecture_of(None, known) is None

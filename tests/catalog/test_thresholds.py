import pytest

from pytest_cre.catalog.thresholds import comparisons, limits_from_thresholds
from pytest_cre.errors import CatalogProblem


def limits(thresholds, measures="bandwidth"):
    return limits_from_thresholds(
        thresholds,
        entry="communication/nccl-all-reduce",
        measures=measures,
        places=dict.fromkeys(thresholds, "cert.yaml:9:7"),
        source="cert.yaml",
    )


@pytest.mark.parametrize(
    ("key", "measures", "metric", "statistic", "unit"),
    [
        ("busBandwidthGBps", "bandwidth", "busbw", "max", "GB/s"),
        ("algBandwidthGBps", "bandwidth", "algbw", "max", "GB/s"),
        ("goodputRatio", "training", "goodput", "value", "ratio"),
        ("avgTFLOPsPerGPU", "training", "tflops_per_gpu", "value", "TFLOP/s"),
        ("avgStepTimeSec", "training", "step_time", "value", "s"),
    ],
)
def test_each_of_upstreams_keys_is_a_metric(key, measures, metric, statistic, unit):
    (limit,) = limits({key: "value >= 900"}, measures)
    assert (limit.metric, limit.statistic, limit.unit) == (metric, statistic, unit)
    assert (limit.operator, limit.value, limit.tier) == (">=", 900.0, "given")
    assert limit.place == "cert.yaml:9:7"
    assert limit.note == f"{key}: value >= 900"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("value >= 900", ((">=", 900.0),)),
        ("value<=3.0", (("<=", 3.0),)),
        ("900 < value", ((">", 900.0),)),
        ("(value >= 0.85) && value < 1", ((">=", 0.85), ("<", 1.0))),
        ("value >= 9e2", ((">=", 900.0),)),
        ("value >= 1 && value >= 2", ()),
        ("value >= 1 || value < 0", ()),
        ("!(value < 900)", ()),
        ("value == 900", ()),
        ("value >= 900 + 1", ()),
    ],
)
def test_comparisons_with_numbers_are_told_apart_from_anything_more(text, found):
    assert comparisons(text) == found


def test_two_sided_threshold_is_two_limits():
    low, high = limits({"busBandwidthGBps": "value >= 680 && value <= 1000"})
    assert (low.operator, low.value, high.operator, high.value) == (">=", 680.0, "<=", 1000.0)


def test_any_other_expression_stays_one():
    (limit,) = limits({"busBandwidthGBps": "value >= 680.0 || value == 0.0"})
    assert (limit.value, limit.expression) == (None, "value >= 680.0 || value == 0.0")


@pytest.mark.parametrize(
    ("thresholds", "words"),
    [
        ({"busBandwidth": "value >= 1"}, "threshold 'busBandwidth' is unknown; did you mean 'busB"),
        ({"goodputRatio": "value >= 1"}, "measures bandwidth, so nothing gives goodputRatio; choi"),
        ({"busBandwidthGBps": "value >="}, "is no CEL expression: "),
        ({"busBandwidthGBps": "busbw >= 1"}, "undeclared reference to 'busbw'"),
        ({"busBandwidthGBps": "value + 1.0"}, "must say true or false, such as value >= 900"),
        ({"busBandwidthGBps": "value >= 'a'"}, "it must say true or false"),
        ({"busBandwidthGBps": "1/0 > 1"}, "divide by zero; it must say true or false"),
        ({"busBandwidthGBps": "value" * 1000}, "is longer than 2048 characters"),
    ],
)
def test_threshold_that_cannot_judge_is_refused_in_one_line(thresholds, words):
    with pytest.raises(CatalogProblem) as caught:
        limits(thresholds)
    assert str(caught.value).startswith("cert.yaml:9:7: ")
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1

from dataclasses import replace

import pytest

from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.errors import UnmetNeed
from pytest_cre.plan.bounds import Bounds


@pytest.fixture(scope="module")
def entry():
    catalog = load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])
    return replace(catalog.entries["communication/nccl-all-reduce"], timeout_s=3600.0, cost_s=300.0)


def refusal(bounds, entry, **used):
    facts = {"gpus": 64, "ran_s": 0.0, "spent_gpu_s": 0.0}
    try:
        bounds.admit(entry, **(facts | used))
    except UnmetNeed as problem:
        return str(problem)
    return None


def test_bounds_without_limits_admit_everything(entry):
    assert refusal(Bounds(), entry, ran_s=1e9, spent_gpu_s=1e12) is None


@pytest.mark.parametrize(("ran_s", "fits"), [(0, True), (300, True), (301, False)])
def test_entry_fits_as_long_as_its_cost_ends_before_the_deadline(entry, ran_s, fits):
    assert (refusal(Bounds(deadline_s=600), entry, ran_s=ran_s) is None) == fits


def test_refusal_by_the_deadline_tells_cost_rest_and_option(entry):
    assert refusal(Bounds(deadline_s=600), entry, ran_s=420) == (
        "communication/nccl-all-reduce takes about 5m; 3m of the run's 10m are left (--cre-deadline)"
    )


def test_refusal_by_gpu_minutes_tells_cost_rest_and_option(entry):
    # 64 GPUs for 5 minutes are 320 GPU-minutes.
    assert refusal(Bounds(gpu_minutes=320), entry) is None
    assert refusal(Bounds(gpu_minutes=500), entry, spent_gpu_s=200 * 60) == (
        "communication/nccl-all-reduce takes about 320 GPU-minutes; 300 of the run's 500 are left "
        "(--cre-gpu-minutes)"
    )


def test_entry_without_a_cost_counts_with_its_timeout(entry):
    words = refusal(Bounds(deadline_s=600), replace(entry, cost_s=None))

    assert words.startswith("communication/nccl-all-reduce takes at most 1h; 10m of")


@pytest.mark.parametrize(("ran_s", "left_s"), [(0, 600), (590, 10), (700, 0)])
def test_time_left_is_never_negative(ran_s, left_s):
    assert Bounds(deadline_s=600).left_s(ran_s) == left_s
    assert Bounds().left_s(ran_s) is None

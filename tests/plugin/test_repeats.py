"""An entry that repeats until the interval of its figures tells a verdict, on simulated nodes."""

import pytest

ENTRY = """\
extends: communication/nccl-all-reduce
description: All-reduce, repeated
scales: [intra-node]
repeat: {least: 3, most: 4}
options: {maxBytes: {default: 64M}, numCycles: {default: 1}}
"""
SCENARIO = """\
extends: h100-2
limits:
- {metric: busbw, operator: ">=", value: VALUE, unit: GB/s, entry: mine/*, statistic: max, date: "2026-11-30"}
"""


@pytest.fixture
def repeat(certify, tmp_path):
    (tmp_path / "catalog/mine").mkdir(parents=True)
    (tmp_path / "catalog/mine/repeated.yaml").write_text(ENTRY)

    def run(value, *arguments):
        (tmp_path / "scenario.yaml").write_text(SCENARIO.replace("VALUE", str(value)))
        done = certify(
            *("--pyargs", "pytest_cre.suites", "-k", "repeated", "--cre-nodes=h100-0"),
            *("--cre-catalog=catalog", "--cre-scenario=scenario.yaml", "--cre-evidence=evidence"),
            *arguments,
        )
        (item,) = done.json()["items"]
        return done, item

    return run


def figures(item):
    return [group["checks"][0]["measured"] for group in item["groups"]]


def test_clear_figures_pass_after_the_least_repeats_each_with_its_own(repeat, certify):
    done, item = repeat(300)

    assert (done.code, item["code"]) == (0, "pass")
    assert [group["attempt"] for group in item["groups"]] == [0, 1, 2]
    assert len(set(figures(item))) == 3
    assert certify.rejudged() == (done.folder / "r.json").read_text()
    assert (done.folder / "m.xml").read_text().count('name="busbw group-0') == 3


def test_figures_around_the_limit_are_inconclusive_after_the_most_repeats(repeat, certify):
    # About what the model gives at 64 MiB: 28 us and 2 * 7/8 * 64 MiB at 480 GB/s is 430.7 GB/s.
    done, item = repeat(430.2)

    assert (done.code, item["code"]) == (1, "inconclusive")
    assert min(figures(item)) < 430.2 < max(figures(item))
    assert len(item["groups"]) == 4
    assert "over 4 repeats" in item["groups"][0]["reasons"][0]
    assert certify.rejudged() == (done.folder / "r.json").read_text()


def test_repeat_that_does_not_fit_into_the_budget_is_inconclusive_and_told(repeat, certify):
    done, item = repeat(300, "--cre-gpu-minutes=96")  # what one costs: 8 GPUs, 12 minutes

    assert (done.code, item["code"]) == (1, "inconclusive")
    assert len(item["groups"]) == 1
    assert any("attempt 2 was not run" in each for each in item["reasons"])
    assert certify.rejudged() == (done.folder / "r.json").read_text()

"""A group whose attempt was lost is tried again, on simulated nodes, and that is told everywhere."""

import pytest

ENTRY = """\
extends: communication/nccl-all-reduce
description: All-reduce, tried again where an attempt is lost
scales: [full-scale]
retries: 1
options: {maxBytes: {default: 64M}, numCycles: {default: 1}}
"""
SCENARIO = """\
extends: h100-2
faults:
- match: {node: h100-1}
  after: {size: 1M}
  action: ACTION
  times: TIMES
limits:
- {metric: busbw, operator: ">=", value: VALUE, unit: GB/s, entry: mine/*, statistic: max, date: "2026-11-30"}
"""


@pytest.fixture
def measure(certify, tmp_path):
    (tmp_path / "catalog/mine").mkdir(parents=True)
    (tmp_path / "catalog/mine/retried.yaml").write_text(ENTRY)

    def run(action, *arguments, times=1, value=100):
        text = SCENARIO.replace("ACTION", action).replace("TIMES", str(times))
        (tmp_path / "scenario.yaml").write_text(text.replace("VALUE", str(value)))
        done = certify(
            *("--pyargs", "pytest_cre.suites", "-k", "retried"),
            *("--cre-catalog=catalog", "--cre-scenario=scenario.yaml", "--cre-evidence=evidence"),
            *arguments,
        )
        (item,) = done.json()["items"]
        assert certify.rejudged() == (tmp_path / "r.json").read_text()
        return done, item

    return run


def test_node_that_is_lost_in_the_first_attempt_and_fine_in_the_second_passes_and_is_told(measure):
    done, item = measure("reboot")

    assert (done.code, item["code"]) == (0, "pass")
    lost, passed = item["groups"]
    assert (lost["attempt"], lost["code"], lost["is_retried"]) == (0, "inconclusive", True)
    assert (passed["attempt"], passed["code"], passed["is_retried"]) == (1, "pass", False)
    assert passed["checks"][0]["measured"] > 100
    assert lost["failed_nodes"] == []
    assert "WorkloadFailed" not in done.output
    words = "passed at attempt 2 of 2 after: "
    assert passed["warnings"][0].startswith(words)
    assert "h100-1" in passed["warnings"][0]
    assert words in " ".join(done.output.split())
    assert [path.name for path in sorted((done.folder / "evidence").rglob("attempt-*"))] == [
        "attempt-0", "attempt-1",
    ]  # fmt: skip
    xml = (done.folder / "r.xml").read_text()
    assert '<property name="cre.group.group-0.retried" value="true"' in xml
    assert '<property name="cre.verdict" value="pass"' in xml
    metric = (done.folder / "m.xml").read_text()
    assert "lost and made again: " in metric
    assert ' failures="0"' in metric


def test_retry_that_does_not_fit_into_the_budget_is_not_made_and_told(measure):
    done, item = measure("evict", "--cre-gpu-minutes=192")  # what one costs: 16 GPUs, 12 minutes

    assert (done.code, item["code"]) == (1, "inconclusive")
    assert len(item["groups"]) == 1
    assert any("attempt 2 was not run" in each for each in item["reasons"])

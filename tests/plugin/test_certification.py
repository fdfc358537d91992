"""The main job on the embedded cluster, end to end: from catalog entry to reports."""

import json
import signal
from xml.etree import ElementTree

import pytest
from junitparser import JUnitXml

SMALL = ("--cre-option", "maxBytes=64M", "--cre-option", "numIterations=2")
SUITES = ("--pyargs", "pytest_cre.suites")
MAIN_JOB = "nccl-all-reduce or nemotron5-8b"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory, certify_in):
    return certify_in(tmp_path_factory.mktemp("healthy"))(*SUITES, "-k", MAIN_JOB)


def test_healthy_cluster_passes_and_says_that_it_is_simulated(healthy):
    assert healthy.code == 0, healthy.output
    assert "certification PASSED: 3 passed" in healthy.output
    assert healthy.output.count("simulated hardware, not a certification") >= 2
    assert healthy.json()["is_simulated"] is True


def test_three_files_agree_number_by_number(healthy):
    report = healthy.json()
    cases = {
        case.get("name"): {each.get("name"): each.get("value") for each in case.iter("property")}
        for case in ElementTree.parse(healthy.folder / "r.xml").iter("testcase")
    }
    metric_text = "\n".join(
        f"{case.name} {case.system_out or ''} {[each.text for each in case.result]}"
        for suite in JUnitXml.fromfile(str(healthy.folder / "m.xml"))
        for case in suite
    )

    assert {item["node_id"].partition("::")[2] for item in report["items"]} == cases.keys()
    for item in report["items"]:
        properties = cases[item["node_id"].partition("::")[2]]
        assert properties["cre.entry"] == item["entry"]
        worst = min(item["groups"], key=lambda group: group["checks"][0]["margin"])
        for check in worst["checks"]:
            stem = f"cre.metric.{check['metric']}"
            if check["size_bytes"] is not None:
                stem += f".at-{check['size_bytes']}"
            assert float(properties[f"{stem}.value"]) == check["measured"]
            assert float(properties[f"{stem}.limit"]) == check["limit"]
            assert properties[f"{stem}.unit"] == check["unit"]
            assert repr(check["measured"]) in metric_text


def test_junit_class_names_are_those_of_the_suites(healthy):
    names = {
        case.classname
        for suite in JUnitXml.fromfile(str(healthy.folder / "r.xml"))
        for case in suite
    }

    assert names == {"suites.test_communication", "suites.test_training"}


def test_slow_node_fails_with_the_report_in_the_first_line(slow, certify, tmp_path):
    done = certify(
        *SUITES,
        *slow.options,
        *("-k", "nccl-all-reduce and not intra-node"),
    )

    assert done.code == 1, done.output
    (case,) = [each for suite in JUnitXml.fromfile(str(tmp_path / "r.xml")) for each in suite]
    first = case.result[0].text.strip().splitlines()[0]
    assert first.startswith("busbw ")
    for part in ("GB/s is", "% below the", "limit", "(communication/nccl-all-reduce, 8 nodes: "):
        assert part in first
    assert slow.ours() == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_interrupt_writes_reports_and_leaves_nothing(slow, certify, eventually, tmp_path, signum):
    process = certify.start(
        *SUITES, *slow.options, "-k", "nemotron5-8b", "--cre-option", "maxSteps=100000"
    )
    eventually(slow.runs_pods)
    process.send_signal(signum)
    done = certify.end(process)

    assert done.code == pytest.ExitCode.INTERRUPTED, done.output
    (case,) = [each for suite in JUnitXml.fromfile(str(tmp_path / "r.xml")) for each in suite]
    assert case.name == "test_goodput[nemotron5-8b]"
    assert "interrupted after" in case.result[0].text
    assert json.loads((tmp_path / "r.json").read_text())["result"] == "FAILED"
    assert slow.ours() == []


def test_user_test_of_five_lines_runs_and_is_reported(certify, tmp_path):
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n\n\n"
        '@pytest.mark.certification("communication/nccl-all-reduce")\n'
        "def test_large(cre_bandwidth):\n"
        "    assert cre_bandwidth.at(64 << 20).in_place.busbw_gbs > 1\n"
    )

    done = certify(*SMALL)

    assert done.code == 0, done.output
    assert [item["code"] for item in done.json()["items"]] == ["pass", "pass"]


@pytest.mark.parametrize(
    "body",
    ["pass", "pytest.skip('no mood')", "pytest.xfail('known')"],
    ids=["looks-at-nothing", "skips", "expects-failure"],
)
def test_user_test_cannot_hide_a_crashed_workload(certify, tmp_path, body):
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n\n\n"
        '@pytest.mark.certification("training/nemotron5-8b")\n'
        "def test_blind(cre_workflow):\n"
        f"    {body}\n"
    )

    done = certify("--cre-scenario", "crash-node")

    assert done.code == 1, done.output
    (item,) = done.json()["items"]
    assert item["code"] == "fail"
    assert item["text"].startswith("the log tells a failure: RuntimeError: CUDA error")


def test_user_test_that_judges_nothing_is_unmet_although_missing_limits_are_accepted(
    certify, tmp_path
):
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n\n\n"
        'pytestmark = pytest.mark.certification("communication/nccl-broadcast")\n'
        "def test_unused(cre_bandwidth):\n    pass\n"
        "@pytest.mark.xfail\n"
        "def test_wrong(cre_bandwidth):\n"
        "    assert cre_bandwidth.max_busbw_gbs['in_place'] > 1e6, 'slow'\n"
        "def test_later(cre_bandwidth):\n    pytest.skip('later')\n"
        "def test_read(cre_bandwidth):\n    assert cre_bandwidth.max_busbw_gbs\n"
    )

    done = certify(
        *SMALL, "--cre-missing-limit=record", "--cre-scale=full-scale", "--cre-evidence=evidence"
    )

    assert (done.code, done.json()["result"]) == (10, "INCOMPLETE"), done.output
    assert [(item["code"], item["decided_by"]) for item in done.json()["items"]] == [
        *[("unmet", "test")] * 3, ("pass", "test"),
    ]  # fmt: skip
    unused, wrong, later, _ = done.json()["items"]
    assert unused["reasons"] == ["the test looked at no figure and did not call cre_check"]
    assert wrong["reasons"][0].startswith("the test failed, as it expects to: AssertionError: slow")
    assert later["reasons"] == ["the test was skipped after its entry had run: Skipped: later"]
    assert "has no limit" not in (done.folder / "r.json").read_text()
    assert certify.rejudged() == (done.folder / "r.json").read_text()


def test_figure_of_an_item_in_error_is_told_as_not_judged(certify, tmp_path):
    (tmp_path / "scenario.yaml").write_text(
        "extends: h100-2\n"
        "apiFaults:\n- {match: {verb: delete, resource: jobs}, action: answer, code: 403}\n"
    )

    done = certify(
        *SUITES, "-k", "nccl-broadcast and not intra", *SMALL, "--cre-scenario=scenario.yaml"
    )

    (item,) = done.json()["items"]
    assert (done.code, item["code"]) == (1, "error"), done.output
    assert item["reasons"][0].startswith("objects were left behind: ")
    assert [check["code"] for check in item["groups"][0]["checks"]] == ["unmet"]
    assert "has no limit" not in done.output


def test_user_test_that_looks_at_nothing_leaves_a_healthy_run_incomplete(certify, tmp_path):
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n\n\n"
        '@pytest.mark.certification("training/nemotron5-8b")\n'
        "def test_blind(cre_workflow):\n"
        "    pass\n"
    )

    done = certify()

    assert done.code == 10, done.output
    assert done.json()["items"][0]["code"] == "unmet"


def test_recorded_figure_must_be_a_named_number_and_is_reported(certify, tmp_path):
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n\n\n"
        '@pytest.mark.certification("training/nemotron5-8b")\n'
        "def test_mine(cre_goodput, cre_record):\n"
        "    for name, value in (('', 1.0), ('x', float('nan'))):\n"
        "        with pytest.raises(ValueError, match='cre_record'):\n"
        "            cre_record(name, value, 's')\n"
        "    cre_record('own', cre_goodput.avg_step_time_s, 's')\n"
    )

    done = certify()

    assert done.code == 0, done.output
    recorded = done.json()["items"][0]["recorded"]
    assert recorded.keys() == {"own"}
    assert recorded["own"]["value"] > 0


def test_user_test_that_never_runs_its_entry_leaves_the_run_incomplete(certify, tmp_path):
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n\n\n"
        '@pytest.mark.certification("training/nemotron5-8b")\n'
        "def test_idle(cre_entry):\n"
        "    pass\n"
    )

    done = certify()

    assert done.code == 10, done.output
    assert done.json()["items"][0]["code"] == "unmet"


def test_copied_entry_follows_its_own_arguments(certify, tmp_path):
    from pytest_cre.catalog.loader import shipped_suites

    text = (shipped_suites() / "communication/nccl-all-reduce.yaml").read_text()
    folder = tmp_path / "mine/communication"
    folder.mkdir(parents=True)
    (folder / "quick.yaml").write_text(text)
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n\n\n"
        '@pytest.mark.certification("communication/quick")\n'
        "def test_sizes(cre_bandwidth):\n"
        "    (table,) = cre_bandwidth.groups[0].tables\n"
        "    assert [row.size_bytes for row in table.rows] == [1 << 20, 4 << 20, 16 << 20]\n"
    )

    done = certify(
        *("--cre-catalog", "mine", "--cre-scale", "full-scale"),
        *("--cre-option", "minBytes=1M", "--cre-option", "maxBytes=16M"),
        *("--cre-option", "stepFactor=4", "--cre-option", "numIterations=3"),
        *("--cre-option", "numCycles=1"),
    )

    assert done.code == 0, done.output


def test_cluster_that_does_not_answer_is_an_error_in_one_line(certify, tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: a, user: {token: x}}]\n"
    )

    done = certify(*SUITES, "--cre-cluster", "kubernetes", "--cre-kubeconfig", str(kubeconfig))

    assert done.code == 1, done.output
    assert done.json()["result"] == "ERROR"
    assert "Connection refused" in done.output
    assert "Traceback" not in done.output

import json
from pathlib import Path

import pytest

from pytest_cre.evidence.model import LogStream
from pytest_cre.measure.document import to_document
from pytest_cre.measure.measurement import measure_streams
from pytest_cre.report.measurement import measurement_text

DATA = Path(__file__).parents[1] / "data" / "dcgm"


def measured(text, **around):
    lines = text.splitlines()
    data = "".join(f"2026-11-30T10:00:00.{i:09}Z {line}\n" for i, line in enumerate(lines))
    stream = LogStream(pod="job-0", data=data.encode(), is_complete=True)
    return measure_streams([stream], **around)


def report(name, **around):
    return measured((DATA / f"{name}.json").read_text(), **around)


def results(found):
    return [(each.test, each.entity, each.status) for each in found.diagnostics.results]


def test_report_of_dcgm_4_is_one_row_per_test_and_gpu():
    found = report("level2-v4", ranks_planned=2)

    assert (found.kind, found.profile) == ("diagnostics", "dcgm")
    assert (found.status, found.reasons) == ("complete", ())
    assert results(found) == [
        ("software", "GPU 0", "pass"),
        ("software", "GPU 1", "pass"),
        ("pcie", "GPU 0", "pass"),
        ("pcie", "GPU 1", "pass"),
    ]
    assert [(gpu.gpu, gpu.serial) for gpu in found.diagnostics.gpus] == [
        (0, "1650000000001"),
        (1, "1650000000002"),
    ]
    assert found.diagnostics.dcgm_version == "4.5.2"
    assert found.diagnostics.driver_version == "570.124.06"
    assert found.diagnostics.results[2].messages == ("GPU 0 GPU to Host bandwidth: 55.20 GB/s",)


def test_report_of_dcgm_3_tells_the_failed_test_its_gpu_and_why():
    found = report("level3-v3", ranks_planned=2)

    assert (found.status, found.reasons) == ("failed", ("failed-tests",))
    assert results(found) == [
        ("Denylist", "GPU 0", "pass"),
        ("Denylist", "GPU 1", "pass"),
        ("GPU Memory", "GPU 0", "pass"),
        ("GPU Memory", "GPU 1", "fail"),
        ("Pulse Test", "GPU 0", "skip"),
        ("Pulse Test", "GPU 1", "skip"),
    ]
    (failed,) = found.diagnostics.failed
    assert failed.messages == ("A DBE occurred on GPU 1.",)


def test_level_1_of_dcgm_3_knows_its_gpus_from_the_list_of_devices():
    found = report("level1-v3", ranks_planned=2)

    assert (found.status, found.reasons) == ("complete", ())
    assert results(found) == [("Denylist", "node", "pass"), ("Persistence Mode", "node", "pass")]
    assert [gpu.serial for gpu in found.diagnostics.gpus] == ["1650000000001", "1650000000002"]


@pytest.mark.parametrize("name", ["level1-v3", "level3-v3", "level2-v4"])
def test_report_on_one_line_is_the_same(name):
    document = json.loads((DATA / f"{name}.json").read_text())
    found = measured(json.dumps(document))

    assert found.diagnostics == report(name).diagnostics


@pytest.mark.parametrize("name", ["level1-v3", "level3-v3", "level2-v4"])
def test_gpu_missing_from_the_report_is_told(name):
    assert "fewer-gpus" in report(name, ranks_planned=8).reasons


def changed(change):
    document = json.loads((DATA / "level2-v4.json").read_text())
    change(document)
    return measured(json.dumps(document, indent=1), ranks_planned=2)


def every_test(document):
    return [
        test
        for category in document["DCGM Diagnostic"]["test_categories"]
        for test in category["tests"]
    ]


def test_gpu_whose_tests_were_all_skipped_was_not_measured():
    def skip(document):
        for test in every_test(document):
            test["results"][1]["status"] = "Skip"

    found = changed(skip)
    assert (found.status, found.reasons) == ("incomplete", ("fewer-gpus",))


def test_nothing_but_skipped_tests_is_no_result():
    def skip(document):
        for test in every_test(document):
            test["test_summary"]["status"] = "Skip"
            for result in test["results"]:
                result["status"] = "Skip"

    found = changed(skip)
    assert (found.status, found.reasons) == ("incomplete", ("no-tests",))


@pytest.mark.parametrize("status", ["Not Run", "", 7, None, "Aborted"])
def test_status_that_is_no_outcome_counts_as_not_run(status):
    def stop(document):
        every_test(document)[1]["results"][0]["status"] = status

    found = changed(stop)
    assert (found.status, found.reasons) == ("incomplete", ("tests-not-run",))


def test_summary_that_fails_without_a_gpu_is_a_failed_test_of_the_node():
    def fail(document):
        every_test(document)[1]["test_summary"] = {
            "status": "Fail",
            "warnings": [{"warning": "Couldn't parse", "error_id": 1}],
        }

    found = changed(fail)
    (failed,) = found.diagnostics.failed
    assert (failed.test, failed.gpu, failed.entity) == ("pcie", None, "node")
    assert found.reasons == ("failed-tests",)


def test_error_of_the_run_itself_is_a_failure():
    error = "Error: Diagnostic could not be run while DCGM is paused."
    found = measured(json.dumps({"DCGM Diagnostic": {"version": "4.5.2", "runtime_error": error}}))

    assert (found.status, found.reasons) == ("failed", ("failure", "no-data", "no-tests"))
    assert found.diagnostics.failure == error


@pytest.mark.parametrize(
    "text",
    [
        "Error: unable to establish a connection to the specified host: nvidia-dcgm.gpu-operator.svc\n"
        "Error: Unable to connect to host engine. Host engine connection invalid/disconnected.",
        json.dumps(
            {
                "DCGM Diagnostic": {
                    "runtime_error": "Error: Unable to connect to host engine. Connection invalid."
                }
            }
        ),
    ],
)
def test_host_engine_that_does_not_answer_is_told(text):
    found = measured(text)

    assert found.kind == "diagnostics"
    assert "no-engine" in found.reasons
    assert found.status == "no-data"


def test_iterations_add_up():
    one = json.loads((DATA / "level2-v4.json").read_text())
    found = measured(json.dumps({"iterations": [one, one], "result": "Pass"}), ranks_planned=2)

    assert (found.status, len(found.diagnostics.results)) == ("complete", 8)


def test_document_and_text_tell_failed_tests_by_name_and_gpu():
    found = report("level3-v3")
    document = to_document(found)["diagnostics"]

    assert document["failed_tests"] == 1
    assert document["results"][3] == {
        "pod": "job-0",
        "category": "Hardware",
        "test": "GPU Memory",
        "gpu": 1,
        "entity": "GPU 1",
        "status": "fail",
        "messages": ["A DBE occurred on GPU 1."],
    }
    lines = [line.split() for line in measurement_text(found).splitlines()]
    assert [
        "job-0",
        "GPU",
        "Memory",
        "fail",
        "GPU",
        "1",
        *["A", "DBE", "occurred", "on", "GPU", "1."],
    ] in lines


@pytest.mark.parametrize(
    "hostile",
    [
        '{"DCGM Diagnostic": {"test_categories": {"a": 1}}}',
        '{"DCGM Diagnostic": {"test_categories": [7, null, {"tests": [[], {"name": {}}]}]}}',
        '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "x", "results": "y"}]}]}}',
        '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": 5, "results": [{"status": '
        '"Fail", "gpu_ids": "%s", "warnings": [[{}], 1e999]}]}]}]}}' % ("9," * 5000),
        '{"iterations": [[], {"DCGM Diagnostic": 3}], "DCGM GPU Diagnostic": {}}',
        '{"DCGM Diagnostic": ' + "[" * 5000,
    ],
)
def test_hostile_report_raises_nothing_and_never_passes(hostile):
    assert measured(hostile).status != "complete"

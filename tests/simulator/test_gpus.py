import json

import pytest

from pytest_cre.evidence.model import LogStream
from pytest_cre.measure.measurement import measure_streams

GEMM = "/cre/gemm.py --gpus 8 -m 8192 -n 8192 -k 8192 --samples 3 --seconds 10"
DIAG = "dcgmi diag --host nvidia-dcgm.gpu-operator.svc:5555 --run {} --json --verbose"


@pytest.fixture
def play(machines):
    """Run a command on the first node of two H100 nodes, with further lines of a scenario."""

    def run(command, scenario="", seed=0):
        world = machines.world(f"extends: h100-2\n{scenario}", seed)
        words = command.split()
        if words[0].endswith(".py"):
            words = ["python3", *words]
        (played,) = machines.play(world, [machines.pod(words, node="h100-0", index=0)])
        return played

    return run


def measured(played):
    stream = LogStream(pod="job-0", data=played.text.encode(), is_complete=True)
    return measure_streams([stream], ranks_planned=8)


def fault(text):
    return f"faults:\n- {text}\n"


def test_burn_in_is_a_complete_measurement_near_the_model(play):
    played = play(GEMM)
    found = measured(played)

    assert played.code == 0
    assert (found.kind, found.status, found.reasons) == ("gemm", "complete", ())
    assert len(found.gemm.rows) == 8 * 3
    # 1.3 times the 540 TFLOP/s of a training
    assert all(row.tflops == pytest.approx(702, rel=0.02) for row in found.gemm.rows)
    assert len({gpu.uuid for gpu in found.gemm.gpus}) == 8


def test_rows_agree_with_their_own_seconds(play):
    for row in measured(play(GEMM)).gemm.rows:
        work = 2 * row.m * row.n * row.k * row.products / 1e12
        assert row.tflops == pytest.approx(work / row.seconds, rel=1e-4)
        assert row.seconds == pytest.approx(10, rel=0.02)


def test_same_seed_gives_the_same_rows_and_another_does_not(play):
    assert play(GEMM).text == play(GEMM).text
    assert play(GEMM, seed=1).text != play(GEMM).text


def test_slow_gpu_is_slow_alone(play):
    found = measured(play(GEMM, fault("{action: slow-gpu, gpu: 5, factor: 0.8}"))).gemm

    assert found.gpus[5].tflops == pytest.approx(702 * 0.8, rel=0.03)
    assert found.spread == pytest.approx(0.2, abs=0.02)
    assert min(gpu.tflops for gpu in found.gpus if gpu.gpu != 5) > 680


def test_lost_gpu_leaves_seven_and_fails(play):
    played = play(GEMM, fault("{action: lost-gpu, gpu: 2}"))
    found = measured(played)

    assert played.code == 1
    assert [gpu.gpu for gpu in found.gemm.gpus] == [0, 1, 3, 4, 5, 6, 7]
    assert found.gemm.failure == "7 of 8 GPUs are visible"
    assert {"failure", "fewer-gpus"} <= set(found.reasons)


def test_planted_wrong_value_is_counted_once_per_check(play):
    played = play(f"{GEMM} --plant-wrong 3:7")
    found = measured(played)

    assert played.code == 1
    assert {gpu.gpu: gpu.wrong > 0 for gpu in found.gemm.gpus} == {
        gpu: gpu == 3 for gpu in range(8)
    }
    rows = [row for row in found.gemm.rows if row.gpu == 3]
    assert [row.wrong for row in rows] == [row.products // 10 for row in rows]
    assert found.reasons == ("wrong-values",)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("--dtype int8", 2, "invalid choice: 'int8'"),
        ("-k 70000", 2, "argument -k: must be a whole number of 1 to 65536, got '70000'"),
        ("--seconds 0", 2, "must be seconds such as 10 or 0.5, got '0'"),
        ("--plant-wrong x", 2, "must be GPU:INDEX such as 3:0, got 'x'"),
        ("--device cpu", 1, "no model of processors"),
    ],
)
def test_mistake_ends_the_burn_in_as_the_script_does(play, arguments, code, words):
    played = play(f"/cre/gemm.py {arguments}")

    assert played.code == code
    assert words in played.text


@pytest.mark.parametrize(("level", "tests"), [(1, 1), (2, 3), (3, 8), (4, 10)])
def test_diagnostics_have_the_tests_of_their_level_on_every_gpu(play, level, tests):
    played = play(DIAG.format(level) + " -p nvbandwidth.is_allowed=true")
    found = measured(played)

    assert played.code == 0
    assert (found.kind, found.status, found.reasons) == ("diagnostics", "complete", ())
    assert len(found.diagnostics.results) == 8 * tests
    assert {each.status for each in found.diagnostics.results} == {"pass"}
    assert len({gpu.serial for gpu in found.diagnostics.gpus}) == 8


def test_bandwidth_of_nvlink_is_skipped_unless_allowed(play):
    found = measured(play(DIAG.format(3)))

    skipped = {each.test for each in found.diagnostics.results if each.status == "skip"}
    assert (skipped, found.status) == ({"nvbandwidth"}, "complete")


def test_failed_test_is_told_on_its_gpu_with_its_words(play):
    words = "A DBE occurred on GPU 6."
    played = play(
        DIAG.format(2), fault(f'{{action: failed-test, test: memory, gpu: 6, message: "{words}"}}')
    )
    (failed,) = measured(played).diagnostics.failed

    assert played.code == 226
    assert (failed.test, failed.gpu, failed.messages) == ("memory", 6, (words,))


def test_lost_gpu_is_missing_from_the_report(play):
    found = measured(play(DIAG.format(1), fault("{action: lost-gpu, gpu: 0}")))

    assert (found.status, found.reasons) == ("incomplete", ("fewer-gpus",))


def test_host_engine_that_is_missing_is_told_as_dcgmi_does(play):
    played = play(DIAG.format(1), fault("{action: no-dcgm}"))
    found = measured(played)

    assert played.code == 235
    assert found.diagnostics.failure == (
        "unable to establish a connection to the specified host: nvidia-dcgm.gpu-operator.svc:5555"
    )


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("dcgmi diag --run 7 --json", 'requested test "7" was not found'),
        ("dcgmi diag --run 1 --frobnicate", "Argument: --frobnicate"),
        ("dcgmi health -c", "Invalid subsystem"),
    ],
)
def test_mistake_ends_dcgmi_with_1(play, command, words):
    played = play(command)

    assert played.code == 1
    assert words in played.text


def test_report_is_json_of_dcgm_4(play):
    document = json.loads(play(DIAG.format(1)).text)

    assert sorted(document) == ["DCGM Diagnostic", "entity_groups", "metadata"]
    assert document["metadata"]["version"] == "4.5.2"


@pytest.mark.parametrize(
    ("collective", "counts"),
    [
        # Element 300 of rank 0: of 256 and 1024 elements, or of a sixteenth of them.
        ("all_reduce", [["0", "0"], ["1", "1"]]),
        ("all_gather", [["0", "0"], ["1", "1"]]),
        ("reduce_scatter", [["0", "0"], ["0", "0"]]),
        ("alltoall", [["0", "N/A"], ["1", "N/A"]]),
    ],
)
def test_planted_wrong_value_of_a_collective_stands_where_the_element_exists(
    machines, collective, counts
):
    world = machines.world("extends: h100-2")
    script = (
        f"/cre/collective.py --collective {collective} -b 1K -e 4K -f 4 -n 1 --plant-wrong 0:300"
    )
    first, _ = machines.play(world, machines.torchrun(world, script))
    rows = [line.split() for line in first.lines if line.startswith("      ")]

    assert [[cells[8], cells[12]] for cells in rows] == counts
    assert first.code == int(any("1" in row for row in counts))

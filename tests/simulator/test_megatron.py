import re
from datetime import datetime
from itertools import pairwise

import pytest

STEP = re.compile(
    r"^ \[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6})\] iteration +(\d+)/ +(\d+) \| consumed samples: +(\d+) \| "
    r"elapsed time per iteration \(ms\): ([\d.]+) \| throughput per GPU \(TFLOP/s/GPU\): ([\d.]+) \| "
    r".*global batch size: +(\d+) \| lm loss: ([\d.E+-]+) \|",
    re.MULTILINE,
)
QUICK = "extends: h100-2\nhardware: {h100: {stepTimeS: 0.004}}\n"


def train(machines, train_words, world, *more, **how):
    script = (
        f"/opt/pretrain_gpt.py {train_words} --train-iters=20 --log-interval=5 {' '.join(more)}"
    )
    return machines.play(world, machines.torchrun(world, script, **how))


def steps(played):
    return [
        (int(number), float(ms), float(tflops))
        for _, number, _, _, ms, tflops, _, _ in STEP.findall(played.text)
    ]


def test_training_writes_lifecycle_on_rank_zero_and_steps_on_the_last(machines, train_words):
    world = machines.world(QUICK)
    first, last = train(machines, train_words, world)
    assert (first.code, last.code) == (0, 0)
    assert [number for number, _, _ in steps(last)] == [1, 5, 10, 15, 20]
    assert steps(first) == []
    assert re.search(
        r"using world size: 16, data-parallel size: 16, context-parallel size: 1,.* "
        r"tensor-model-parallel size: 1, pipeline-model-parallel size: 1",
        first.text,
    )
    assert "[before the start of training step] datetime: " in first.text
    assert first.lines[-1].startswith("[after training is done] datetime: ")


def test_training_steps_have_the_time_and_throughput_of_the_model(machines, train_words):
    last = train(machines, train_words, machines.world(QUICK))[-1]
    assert [ms for _, ms, _ in steps(last)][2:] == pytest.approx([4.0] * 3, abs=0.1)
    assert [tflops for _, _, tflops in steps(last)][2:] == pytest.approx([540] * 3, rel=0.02)


def test_training_first_step_is_slow_and_stays_in_the_first_interval(machines, train_words):
    last = train(machines, train_words, machines.world(QUICK))[-1]
    assert steps(last)[0][1] == pytest.approx(12.0, abs=0.3)
    assert steps(last)[1][1] == pytest.approx((12.0 + 4 * 4.0) / 5, abs=0.2)


def test_training_timestamps_agree_with_step_times(machines, train_words):
    world = machines.world("extends: h100-2\nhardware: {h100: {stepTimeS: 0.02, noiseRatio: 0}}\n")
    last = train(machines, train_words, world)[-1]
    times = [datetime.fromisoformat(found[0]) for found in STEP.findall(last.text)]
    spans = [(later - earlier).total_seconds() for earlier, later in pairwise(times[1:])]
    # Wake-ups may come late on a busy machine: that is no slowness of what is modelled.
    assert spans == pytest.approx([0.1, 0.1, 0.1], abs=1e-4)


def test_training_batches_follow_the_arguments(machines, train_words):
    last = train(machines, train_words, machines.world(QUICK), "--global-batch-size=64")[-1]
    found = STEP.findall(last.text)
    assert [(int(step), int(samples)) for _, step, _, samples, *_ in found] == [
        (step, step * 64) for step in (1, 5, 10, 15, 20)
    ]


def test_training_of_one_straggler_is_slow_for_all(machines, train_words):
    world = machines.world(
        f"{QUICK}faults: [{{match: {{node: h100-1}}, action: straggler, factor: 2}}]"
    )
    last = train(machines, train_words, world)[-1]
    assert steps(last)[-1][1] == pytest.approx(8.0, abs=0.2)
    assert steps(last)[-1][2] == pytest.approx(270, rel=0.02)


def test_training_saves_at_its_interval_and_at_the_end(machines, train_words):
    world = machines.world(QUICK)
    first, _ = train(machines, train_words, world, "--save=/c --save-interval=8")
    begun = re.findall(
        r"\[.+\] saving checkpoint at iteration +(\d+) to /c in torch_dist", first.text
    )
    done = re.findall(
        r"successfully saved checkpoint from iteration +(\d+) to /c \[ t 1/1, p 1/1 \]", first.text
    )
    assert begun == done == ["8", "16", "20"]


def test_training_with_asynchronous_saves_schedules_and_then_commits(machines, train_words):
    world = machines.world(QUICK)
    first, _ = train(machines, train_words, world, "--save=/c --save-interval=20 --async-save")
    kinds = re.findall(r"(saving checkpoint|scheduled an async|successfully saved)", first.text)
    assert kinds == ["saving checkpoint", "scheduled an async", "successfully saved"]


def test_training_after_a_crash_resumes_from_the_last_checkpoint(machines, train_words):
    world = machines.world(
        f"{QUICK}faults: [{{match: {{node: h100-1}}, action: crash, after: {{step: 12}}, times: 1}}]"
    )
    saving = "--save=/c --load=/c --save-interval=5"
    first, last = train(machines, train_words, world, saving)
    assert (first.code, last.code) == (1, 1)
    assert "will start from random" in first.text
    assert [number for number, _, _ in steps(last)] == [1, 5, 10]
    first, last = train(machines, train_words, world, saving)
    assert (first.code, last.code) == (0, 0)
    assert " loading checkpoint from /c at iteration 10\n" in first.text
    assert "successfully loaded checkpoint from /c [ t 1/1, p 1/1 ] at iteration 10\n" in first.text
    assert [number for number, _, _ in steps(last)] == [11, 15, 20]


def test_training_of_another_job_finds_no_checkpoint_without_a_volume(machines, train_words):
    world = machines.world(QUICK)
    saving = "--save=/c --load=/c --save-interval=20"
    train(machines, train_words, world, saving, owner="job-1")
    first, _ = train(machines, train_words, world, saving, owner="job-2")
    assert "will start from random" in first.text


def test_training_loss_is_the_same_on_slow_hardware(machines, train_words):
    def losses(text):
        last = train(machines, train_words, machines.world(text))[-1]
        return [found[-1] for found in STEP.findall(last.text)]

    assert losses(QUICK) == losses(QUICK + "links: [{match: {}, factor: 0.5}]")


def test_training_without_the_flag_prints_no_throughput(machines, train_words):
    words = train_words.replace("--log-throughput ", "")
    last = train(machines, words, machines.world(QUICK))[-1]
    assert "elapsed time per iteration" in last.text
    assert "throughput" not in last.text


def test_training_ends_early_at_its_exit_interval(machines, train_words):
    first, last = train(machines, train_words, machines.world(QUICK), "--exit-interval=10")
    assert [number for number, _, _ in steps(last)] == [1, 5, 10]
    assert first.lines[-1].startswith("[exiting program at iteration 10] datetime: ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--train-iters=few", "argument --train-iters: invalid int value: 'few'"),
        ("--tensor-model-parallel-size=3", "world size (16) is not divisible"),
        ("--global-batch-size=17", "global batch size (17) is not divisible"),
        ("--save=/c", "save_interval must be given"),
    ],
)
def test_training_with_bad_arguments_fails_as_the_real_one(machines, train_words, words, text):
    first, last = train(machines, train_words, machines.world(QUICK), words)
    assert text in first.text
    assert (first.code, last.code) == (1, 1)


def test_training_under_mpirun_writes_the_same_steps_into_the_launchers_log(machines, train_words):
    world = machines.world(QUICK)
    workers = [
        machines.pod(["sh", "-c", "sleep 1"], node=f"h100-{n}", index=n, job="w") for n in range(2)
    ]
    script = f"/opt/pretrain_gpt.py {train_words} --train-iters=20 --log-interval=5"
    words = f"mpirun --hostfile /cre/hosts python3 {script}".split()
    launcher = machines.pod(words, node="h100-0", files=["hosts"])
    hosts = "w-0.w slots=8\nw-1.w slots=8\n"
    by_mpi = machines.play(world, [*workers, launcher], {"hosts": hosts})[-1]
    by_torch = train(machines, train_words, world)[-1]
    assert by_mpi.code == 0
    assert [number for number, _, _ in steps(by_mpi)] == [1, 5, 10, 15, 20]
    assert steps(by_mpi) == steps(by_torch)

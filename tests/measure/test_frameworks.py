"""Training logs of each framework."""

import pytest

from pytest_cre.measure.instants import parse_rfc3339
from tests.measure.reading import measured
from tests.measure.tables import stamped, text

FIELDS = "consumed samples: 768 | elapsed time per iteration (ms): 250.5 | learning rate: 1E-4 | lm loss: 2.5E+00 |"


def read(*lines, **keywords):
    measurement = measured(text(lines), **keywords)
    assert measurement.kind == "training"
    return measurement.training


def steps(training):
    return [(s.step, s.step_time_s, s.tflops_per_gpu, s.loss) for s in training.steps]


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (
            f" [2026-01-05 08:00:00.5] iteration       10/    1000 | {FIELDS}",
            (10, 0.2505, None, 2.5),
        ),
        (f"[2026-01-05 08:00:00] iteration   10/2000 | {FIELDS}", (10, 0.2505, None, 2.5)),
        (f" iteration 10/ 5000 | {FIELDS}", (10, 0.2505, None, 2.5)),
        (f" iteration=       10/  317892 | {FIELDS}", (10, 0.2505, None, 2.5)),
        (f"iteration 10/infinity | {FIELDS}", (10, 0.2505, None, 2.5)),
        (
            " iteration 10/ 99 | elapsed time per iteration (ms): 250.5 | throughput per GPU (TFLOP/s/GPU): 82.4 | loss: 1.5 |",
            (10, 0.2505, 82.4, 1.5),
        ),
        (
            " iteration 10/ 99 | elapsed time per iteration (ms): 250.5 | throughput per GPU (TFLOP/s/GPU): 82.4/83.1 | samples per second: 5 | TFLOPs: 1.0 |",
            (10, 0.2505, 82.4, None),
        ),
        (
            " iteration 10/ 99 | iteration time: 1.250 s samples/sec: 12.0 | TFLOPs: 69.85 |",
            (10, 1.25, 69.85, None),
        ),
        (
            " iteration 10/ 99 | elapsed_time_per_iteration_in_ms=250.5 | lm_loss=2.5 | TFLOPs=41.5 |",
            (10, 0.2505, 41.5, 2.5),
        ),
        (
            " iteration 10/ 99 | consumed samples: 1 | elapsed time per iteration (ms): 25",
            (10, None, None, None),
        ),
        (
            " iteration 10/ 99 | elapsed time per iteration (ms): 250.5 | throughput per GPU (TFLOP/s/GPU): 0.0 | lm loss: nan |",
            (10, 0.2505, None, None),
        ),
    ],
)
def test_megatron_step_is_read_in_every_dialect(line, step):
    training = read(line, around=None)
    assert steps(training) == [step]
    assert training.framework == "megatron-lm"


@pytest.mark.parametrize(
    "line",
    [
        "iteration 10/",
        "iteration",
        "validation iteration 10 of 99",
        " iteration 10/ 99",
        "iteration x/ 99 | lm loss: 1 |",
    ],
)
def test_torn_megatron_line_is_no_step(line):
    assert measured(text([line])).status == "no-data"


def test_megatron_step_time_line_belongs_to_the_next_record_and_tells_bridge():
    training = read(
        "Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU",
        f" [2026-01-05 08:00:00] iteration 10/ 99 | {FIELDS}",
        "Step Time : 8.00s GPU utilization: 700.0 MODEL_TFLOP/s/GPU",
        " [2026-01-05 08:00:09] iteration 11/ 99 | lm loss: 2.0E+00 |",
    )
    assert training.framework == "megatron-bridge"
    assert steps(training) == [(10, 0.2505, 663.5, 2.5), (11, 8.0, 700.0, 2.0)]


def test_megatron_lifecycle_becomes_checkpoints_and_ends():
    training = read(
        "2026-01-05T08:00:00Z using world size: 8, data-parallel size: 8, context-parallel size: 1",
        "2026-01-05T08:00:05Z  loading checkpoint from /ckpt at iteration 100",
        "2026-01-05T08:00:25Z   successfully loaded checkpoint from /ckpt [ t 1/4, p 1/2 ] at iteration 100",
        f"2026-01-05T08:00:30Z  [2026-01-05 08:00:30] iteration 110/ 120 | {FIELDS}",
        "2026-01-05T08:00:30Z saving checkpoint at iteration     110 to /ckpt in torch_dist format",
        "2026-01-05T08:00:34Z   successfully saved checkpoint at iteration     110 to /ckpt",
        "2026-01-05T08:00:34Z (min, max) time across ranks (ms): save-checkpoint ......: (3990.10, 3995.50)",
        f"2026-01-05T08:00:40Z  [2026-01-05 08:00:40] iteration 120/ 120 | {FIELDS}",
        "2026-01-05T08:00:40Z [after training is done] datetime: 2026-01-05 08:00:40",
    )
    assert [(c.event, c.step, c.duration_s) for c in training.checkpoints] == [
        ("load_start", None, None),
        ("load_done", 100, None),
        ("save_start", 110, None),
        ("save_done", 110, 3.9955),
    ]
    assert (training.attempts, training.window_s) == (1, 40.0)
    assert training.ledger_s["init"] == 5.0
    assert training.ledger_s["load"] == 20.0
    assert training.ledger_s["checkpoint_blocking"] == 4.0


def test_megatron_skipped_iterations_are_flagged():
    line = f" [2026-01-05 08:00:00] iteration 10/ 99 | {FIELDS} number of skipped iterations:   2 | number of nan iterations:   0 |"
    assert (
        "skipped_steps" in read(line, line.replace("10/", "20/").replace("00:00]", "00:09]")).flags
    )


def test_megatron_deepspeed_prints_each_step_once_for_us():
    training = read(
        "[2026-01-05 08:00:00,188] [INFO] [timer.py:260:stop] epoch=0/micro_step=20/global_step=10, RunningAvgSamplesPerSec=58.7, CurrSamplesPerSec=58.9",
        f" iteration 10/ 99 | {FIELDS}",
    )
    assert (training.framework, steps(training)) == ("megatron-lm", [(10, 0.2505, None, 2.5)])


def test_deepspeed_pair_of_lines_is_one_step_in_either_order():
    timer = "[2026-01-05 08:00:{0:02d},100] [INFO] [timer.py:260:stop] epoch=0/micro_step={0}/global_step={0}, RunningAvgSamplesPerSec=58.7, CurrSamplesPerSec=58.9"
    step = "[2026-01-05 08:00:{0:02d},101] [INFO] [logging.py:96:log_dist] [Rank 0] step={0}, skipped=4, lr=[0.001], mom=[(0.9, 0.95)]"
    training = read(timer.format(10), step.format(10), step.format(20), timer.format(20))
    assert training.framework == "deepspeed"
    assert [(s.step, s.time_ns) for s in training.steps] == [
        (10, parse_rfc3339("2026-01-05T08:00:10.1Z")),
        (20, parse_rfc3339("2026-01-05T08:00:20.101Z")),
    ]


def test_deepspeed_saves_and_loads_are_read():
    training = read(
        "[2026-01-05 08:00:01,000] [INFO] [torch_checkpoint_engine.py:27:load] [Torch] Loading checkpoint from /c/global_step10/mp_rank_00.pt...",
        "[2026-01-05 08:00:02,000] [INFO] [torch_checkpoint_engine.py:29:load] [Torch] Loaded checkpoint from /c/global_step10/mp_rank_00.pt.",
        "[2026-01-05 08:00:20,100] [INFO] epoch=0/micro_step=20/global_step=20, RunningAvgSamplesPerSec=58.7",
        "[2026-01-05 08:00:21,000] [INFO] [logging.py:96:log_dist] [Rank 0] [Torch] Checkpoint global_step20 is about to be saved!",
        "[2026-01-05 08:00:23,500] [INFO] [torch_checkpoint_engine.py:33:commit] [Torch] Checkpoint global_step20 is ready now!",
    )
    assert [(c.event, c.step) for c in training.checkpoints] == [
        ("load_start", None),
        ("load_done", 10),
        ("save_start", 20),
        ("save_done", 20),
    ]
    assert training.checkpoints[-1].duration_s == 2.5


def titan(second, message):
    return f"[rank0]:[titan] 2026-01-05 08:00:{second:06.3f} - root - INFO - {message}".replace(
        ".", ",", 1
    )


def test_torchtitan_numbers_lose_padding_commas_and_colours():
    training = read(
        titan(
            1,
            "\x1b[31mstep: 10  \x1b[32mloss:  3.9761  \x1b[38;2;180;60;0mmemory:  1.34GiB(0.96%)  tps: 324,245  tflops: 1,123.21  mfu: 2.35%\x1b[0m",
        ),
        titan(
            2,
            "step: 640/644 = 99.3789%  loss:  6.2116  memory: 87.04GiB(93.48%)  tps: 52,142  mfu: 3.09%  elapsed_time_per_step: 67.0s",
        ),
    )
    assert training.framework == "torchtitan"
    assert steps(training) == [(10, None, 1123.21, 3.9761), (640, 67.0, None, 6.2116)]
    assert training.steps[0].time_ns == parse_rfc3339("2026-01-05T08:00:01Z")


def test_torchtitan_resume_step_comes_from_where_training_starts():
    training = read(
        titan(0, "Starting job: llama3"),
        titan(1, "Loading the checkpoint from /c/step-100."),
        titan(15, "Finished loading the checkpoint in 14.20 seconds."),
        titan(16, "Training starts at step 101."),
        titan(20, "step: 110  loss:  3.9  tflops: 23.21"),
        titan(21, "Saving the checkpoint."),
        titan(30, "Finished saving the checkpoint in 9.00 seconds."),
        titan(40, "step: 120  loss:  3.8  tflops: 23.21"),
        titan(41, "Training completed"),
    )
    assert [(c.event, c.step) for c in training.checkpoints] == [
        ("load_start", None),
        ("load_done", 100),
        ("save_start", 110),
        ("save_done", None),
    ]
    assert training.ledger_s["checkpoint_blocking"] == 9.0
    assert training.ledger_s["load"] == 14.0
    assert training.ratios["goodput"] is not None


@pytest.mark.parametrize(
    ("words", "is_durable"),
    [
        ("Finished saving the checkpoint", True),
        ("Finished saving the checkpoint (or staging if async is enabled)", True),
        ("Finished staging", False),
    ],
)
def test_torchtitan_staging_is_not_durable(words, is_durable):
    training = read(
        titan(1, "step: 10  loss:  3.9"),
        titan(2, "Saving the checkpoint."),
        titan(3, f"{words} in 1.00 seconds."),
    )
    assert ("save_done" in [c.event for c in training.checkpoints]) == is_durable


def test_maxtext_counts_from_zero_and_leaves_dispatch_steps_out_of_averages():
    line = "completed step: {}, seconds: {}, TFLOP/s/device: {}, Tokens/s/device: 100.0, total_weights: 1, loss: 9.5"
    seconds = (44.9, 0.02, 0.03, 5.0, 5.0, 5.2)
    lines = [line.format(at, value, 100 / value) for at, value in enumerate(seconds)]
    training = read(*stamped(lines))
    assert training.framework == "maxtext"
    assert [s.step for s in training.steps] == [0, 1, 2, 3, 4, 5]
    assert training.summary.avg_step_time_s == pytest.approx(5.2 / 3 + 10 / 3)
    assert training.summary.avg_tflops_per_gpu < 21


def test_maxtext_saves_and_evaluations_are_read():
    training = read(
        *stamped(
            [
                "System Information: Jax Version: 0.8",
                "No existing checkpoints found, not restoring checkpoint.",
                "completed step: 0, seconds: 1.0, TFLOP/s/device: 1.0, loss: 9",
                "Started an asynchronous checkpoint save for step 0",
                "Completed eval step 0",
                "Completed eval step 1",
                "eval metrics after step: 0, loss=9",
                "completed step: 1, seconds: 1.0, TFLOP/s/device: 1.0, loss: 9",
                "Saved a checkpoint at step 1.",
            ]
        )
    )
    assert [(c.event, c.step) for c in training.checkpoints] == [
        ("load_done", 0),
        ("save_start", 0),
        ("save_done", 1),
    ]
    assert training.ledger_s["eval"] == pytest.approx(0.002)


def test_nemo_line_is_read_as_printed():
    training = read(
        *stamped(
            [
                "[NeMo I 2026-01-05 00:00:00 nemo_logging:393] Application initialized",
                "Training epoch 0, iteration 0/99 | lr: 1e-06 | global_batch_size: 32 | global_step: 0 | reduced_train_loss: 12.1 | train_step_timing in s: 38.5 | TFLOPS_per_GPU: 4.02e+01",
                "Training epoch 0, iteration 1/99 | lr: 6e-06 | global_step: 1 | reduced_train_loss: 1.1e+01 | train_step_timing in s: 4.25 | max_memory: 1 | TFLOPS_per_GPU: 501.3",
                "[NeMo I 2026-01-05 00:00:01 nemo_logging:393] Global Checkpoint Save : Rank: 0 : Iteration: 1 : Start time: 1767571200.500s : Save duration: 4.389s",
                "[NeMo I 2026-01-05 00:00:09 nemo_logging:393] Async checkpoint save for step 1 (/c/step=0.ckpt) finalized successfully.",
            ]
        )
    )
    assert training.framework == "nemo"
    assert steps(training) == [(0, 38.5, 40.2, 12.1), (1, 4.25, 501.3, 11.0)]
    assert [(c.event, c.step, c.time_ns) for c in training.checkpoints] == [
        ("save_start", 1, 1_767_571_200_500_000_000),
        ("save_done", 1, parse_rfc3339("2026-01-05T00:00:09Z")),
    ]


def test_nemo_1_bar_gives_the_global_step_or_the_bars_count():
    bar = "Epoch 0: :  {}%|##  | {}/2000 [43:24:54<00:00, reduced_train_loss=2.5, global_step={}, consumed_samples=5.1e+5, train_step_timing in s=68.70]"
    training = read(bar.format(50, 1000, "999.0"), bar.format(100, 2000, "2e+3"))
    assert steps(training) == [(999, 68.7, None, 2.5), (1999, 68.7, None, 2.5)]


@pytest.mark.parametrize("bar", ["|####      |", "", "|##"])
def test_lightning_bar_is_a_step_per_new_count(bar):
    line = "Epoch {}:  40%{} {}/100 [00:20<00:30,  {}, v_num=, train_loss=2.310]"
    training = read(
        "\r".join(
            [
                line.format(0, bar, 0, "?it/s"),
                line.format(0, bar, 40, "2.00it/s"),
                line.format(0, bar, 40, "2.00it/s"),
                line.format(1, bar, 5, "4.00s/it") + " remains of the last",
                "Validation DataLoader 0:  50%|#  | 5/10 [00:01<00:01,  5.00it/s]",
            ]
        )
    )
    assert training.framework == "lightning"
    assert steps(training) == [(40, 0.5, None, 2.31), (105, 4.0, None, 2.31)]


def test_huggingface_steps_come_from_the_bar():
    training = read(
        "***** Running training *****",
        "  1%|1         | 10/1000 [00:05<08:15,  2.00it/s]{'loss': 2.31, 'learning_rate': 1e-05, 'epoch': 0.01}",
        " 50%|#####     | 500/1000 [04:10<04:10,  2.00it/s]",
        "{'loss': '1.5', 'grad_norm': '0.2', 'learning_rate': '1e-05', 'epoch': '0.5'}",
        "Saving model checkpoint to ./out/checkpoint-500",
        "{'eval_loss': 1.4, 'epoch': 0.5}",
        "{'train_runtime': 500.0, 'train_samples_per_second': 16.0, 'train_steps_per_second': 2.0, 'epoch': 1.0}",
    )
    assert training.framework == "hf"
    assert steps(training) == [(10, 0.5, None, 2.31), (500, 0.5, None, 1.5)]
    assert [(c.event, c.step) for c in training.checkpoints] == [("save_start", 500)]


def test_huggingface_lines_without_a_bar_are_counted_and_flagged():
    line = "{'loss': 2.31, 'learning_rate': 1e-05, 'epoch': 0.01}"
    training = read(line, line)
    assert [s.step for s in training.steps] == [1, 2]
    assert "steps_counted" in training.flags


@pytest.mark.parametrize(
    ("line", "framework"),
    [
        (f" iteration 10/ 99 | {FIELDS}", "megatron-lm"),
        ("Training epoch 0, iteration 1/99 | global_step: 1 | reduced_train_loss: 1.1", "nemo"),
        (titan(1, "step: 10  loss:  3.9"), "torchtitan"),
        ("completed step: 3, seconds: 1.0, TFLOP/s/device: 1.0, loss: 9", "maxtext"),
        (
            "[2026-01-05 08:00:20,100] [INFO] epoch=0/micro_step=20/global_step=20, RunningAvgSamplesPerSec=58.7",
            "deepspeed",
        ),
        ("{'loss': 2.31, 'learning_rate': 1e-05, 'epoch': 0.01}", "hf"),
        ("Epoch 0:  40%|### | 40/100 [00:20<00:30,  2.00it/s, loss=1.0]", "lightning"),
    ],
)
def test_each_framework_is_told_from_all_others(line, framework):
    assert read(line).framework == framework
    assert read(*stamped([f"[1,0]<stdout>:{line}"])).framework == framework


def test_last_step_of_a_finished_run_is_its_end():
    lines = [f" [2026-01-05 08:00:{at:02d}] iteration {at}/ 20 | {FIELDS}" for at in (10, 20)]
    assert measured(text(lines)).status == "complete"
    assert measured(text(lines[:1])).reasons == ("no-end",)

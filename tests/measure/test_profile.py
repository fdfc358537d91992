"""Log profiles: upstream's patterns, values and windows."""

import pytest

from pytest_cre.catalog.loader import load_catalog, shipped_profiles
from pytest_cre.catalog.logprofile import EventPattern, LogProfile
from pytest_cre.errors import CatalogProblem
from pytest_cre.measure.instants import parse_rfc3339
from pytest_cre.measure.profile import CompiledProfile
from tests.measure.reading import measured
from tests.measure.tables import text

SHIPPED = load_catalog(suites=[], profiles=[shipped_profiles()]).log_profiles
BRIDGE_LINE = "[2026-04-10 05:07:38] iteration        2/      50 | consumed samples:        16384 | elapsed time per iteration (ms): 26333.1 | lm loss: 1.189539E+01"
# timestamp, iteration, elapsed ms, TFLOP/s, loss: the first line of a process, then every tenth
RUN = [
    ("2026-02-15 20:15:45.717885", 1, 184598.5, 99.5, "1.218497E+01"),
    ("2026-02-15 20:20:55.067342", 10, 49394.8, 371.8, "1.172175E+01"),
    ("2026-02-15 20:26:41.021824", 20, 34595.4, 530.9, "7.365866E+00"),
    ("2026-02-15 20:32:36.907201", 30, 35588.5, 516.1, "1.386872E+00"),
    ("2026-02-15 20:38:20.706580", 40, 34379.9, 534.2, "5.452887E-02"),
    ("2026-02-15 20:44:04.559069", 50, 34385.2, 534.1, "1.023553E-02"),
    ("2026-02-15 20:49:48.124778", 60, 34356.5, 534.6, "9.350233E-03"),
]


def run_lines(kubelet=False):
    for at, number, elapsed, tflops, loss in RUN:
        stamp = f"{at.replace(' ', 'T')}000Z " if kubelet else ""
        yield (
            f"{stamp} [{at}] iteration {number:8d}/  158945 | consumed samples: {number * 768} | elapsed time per iteration (ms): {elapsed}"
            f" | throughput per GPU (TFLOP/s/GPU): {tflops} | learning rate: 2.000000E-07 | global batch size:   768 | lm loss: {loss} | loss scale: 1.0 |"
        )


def own(**patterns):
    return LogProfile(
        name="own", patterns={name: EventPattern(regex=regex) for name, regex in patterns.items()}
    )


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_profile_reads_its_own_examples(name):
    profile = CompiledProfile(SHIPPED[name])
    for kind, pattern in SHIPPED[name].patterns.items():
        example = pattern.example.encode()
        if kind == "applicationStart":
            assert profile.is_start(example)
        elif kind == "bandwidthResult":
            assert profile.row(example) is not None
        elif kind == "networkTransport":
            assert profile.transport(example) is not None
        elif kind == "gemmResult":
            assert profile.gemm(example)["tflops"] == b"539.904"
        elif kind == "diagnosticReport":
            assert profile.needles[0] in rb"%b" % pattern.regex.encode()
        else:
            assert profile.read(example).kind == kind


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (
            "           8             2     float     sum      -1    58.31    0.00    0.00       0    58.40    0.00    0.00       0",
            (8, 0.0, 0.0),
        ),
        (
            "  17179869184    4294967296     float     sum      -1  36065.1  476.36  922.94       0  36071.8  476.27  922.77       0",
            (17179869184, 476.36, 922.94),
        ),
        (
            "   1048576     262144     float    none      -1    70.00   14.97   28.07       0    70.00   14.97   28.07       0",
            (1048576, 14.97, 28.07),
        ),
        ("   1048576     262144     float     sum      -1    70.00   1.4.9   28.07       0", None),
        (
            "   1073741824     268435456     float     sum      -1  1558.51   6e+06    0.00       0",
            None,
        ),
        (
            "#       size         count      type   redop    root     time   algbw   busbw  #wrong",
            None,
        ),
        ("# Avg bus bandwidth    : 28.07", None),
    ],
)
def test_upstreams_row_pattern_gives_upstreams_rows(line, row):
    assert CompiledProfile(SHIPPED["nccl-bandwidth"]).row(line.encode()) == row


@pytest.mark.parametrize(
    ("unit", "value", "seconds"),
    [
        ("ms", "132563.1", 132.5631),
        ("us", "2500000", 2.5),
        ("s", "2.5", 2.5),
        ("ms", "0", None),
        ("s", "1e1", 10.0),
        ("s", "1.5abc", None),
        ("s", "1e999", None),
        ("s", " 2.5 ", 2.5),
    ],
)
def test_durations_follow_their_unit(unit, value, seconds):
    pattern = EventPattern(
        regex=r"step (?P<globalStep>\d+) took (?P<stepTiming>[^;]*);", units={"stepTiming": unit}
    )
    found = CompiledProfile(LogProfile(name="own", patterns={"trainingStep": pattern})).read(
        f"step 5 took {value};".encode()
    )
    assert found.step == 5
    assert found.seconds == (None if seconds is None else pytest.approx(seconds))


def test_throughput_column_is_optional_for_bridge_only():
    assert CompiledProfile(SHIPPED["megatron-bridge"]).read(
        BRIDGE_LINE.encode()
    ).seconds == pytest.approx(26.3331)
    assert CompiledProfile(SHIPPED["megatron-training"]).read(BRIDGE_LINE.encode()) is None


@pytest.mark.parametrize("kubelet", [False, True])
def test_log_interval_of_the_profile_drops_the_first_line_and_warmup_leaves_averages(kubelet):
    training = measured(text(run_lines(kubelet)), profile=SHIPPED["megatron-training"]).training
    assert [s.step for s in training.steps] == [10, 20, 30, 40, 50, 60]
    assert training.steps[0].time_ns == parse_rfc3339("2026-02-15T20:20:55.067342Z")
    assert training.summary.avg_step_time_s == pytest.approx(34.6611)
    assert training.summary.first_step == 10
    assert training.summary.warmup_records == 1


def test_save_and_done_lines_of_a_profile_make_a_pair_with_its_duration():
    base = dict(SHIPPED["megatron-training"].patterns)
    base["checkpointDone"] = EventPattern(
        regex=r"\[(?P<timestamp>\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(?:\.\d+)?)\]\s+successfully saved checkpoint from iteration\s+(?P<step>\d+)\s+to\s+(?P<path>\S+)"
    )
    base["applicationStart"] = EventPattern(regex="before the start of training step")
    profile = LogProfile(name="n6", patterns=base, timestamp_layout="2006-01-02 15:04:05.999999")
    training = measured(
        text(
            [
                "2026-02-05T16:01:40.326255000Z [before the start of training step] datetime: 2026-02-05 16:01:40.326255",
                "2026-02-05T16:03:52.889599000Z [2026-02-05 16:03:52.889599] iteration        1/  158945 | consumed samples: 768 | elapsed time per iteration (ms): 132563.1 | throughput per GPU (TFLOP/s/GPU): 138.5 | lm loss: 1.218472E+01",
                "2026-02-05T16:05:00.000000000Z [2026-02-05 16:05:00.000000] iteration        2/  158945 | consumed samples: 1536 | elapsed time per iteration (ms): 5000.0 | throughput per GPU (TFLOP/s/GPU): 140.0 | lm loss: 1.100000E+01",
                "2026-02-05T17:07:36.379347000Z [2026-02-05 17:07:36.379347] saving checkpoint at iteration     100 to /mnt/workspace/checkpoints in torch_dist format",
                "2026-02-05T17:13:37.825367000Z [2026-02-05 17:13:37.825367] successfully saved checkpoint from iteration     100 to /mnt/workspace/checkpoints",
                "2026-02-05T17:14:00.000000000Z some unrelated log line",
            ]
        ),
        profile=profile,
    ).training
    assert [(s.step, s.tflops_per_gpu, s.loss) for s in training.steps] == [
        (1, 138.5, 12.18472),
        (2, 140.0, 11.0),
    ]
    assert [s.step_time_s for s in training.steps] == pytest.approx([132.5631, 5.0])
    assert [(c.event, c.step) for c in training.checkpoints] == [
        ("save_start", 100),
        ("save_done", 100),
    ]
    assert training.checkpoints[1].duration_s == pytest.approx(361.44602)


def test_profile_that_matches_no_step_leaves_it_to_the_frameworks_reader():
    training = measured(BRIDGE_LINE.encode(), profile=SHIPPED["megatron-training"]).training
    assert [s.step for s in training.steps] == [2]
    assert "profile_unmatched" in training.flags


def test_start_pattern_does_not_take_the_line_from_other_patterns():
    profile = own(applicationStart="app", trainingStep=r"step=(?P<globalStep>\d+)")
    log = text(f"2026-01-05T08:00:0{at}Z app step={at}" for at in (1, 2, 3))
    training = measured(log, profile=profile).training
    assert [s.step for s in training.steps] == [1, 2, 3]


def test_lines_marked_as_warmup_leave_averages():
    profile = own(
        trainingStep=r"step (?P<globalStep>\d+): (?P<stepTiming>[\d.]+)", warmupStep="WARMUP"
    )
    lines = ["step 1: 30 WARMUP", "step 2: 20 WARMUP", "step 3: 4", "step 4: 6"]
    log = text(f"2026-01-05T08:00:{10 * at:02d}Z {line}" for at, line in enumerate(lines))
    assert measured(log, profile=profile).training.summary.avg_step_time_s == 5.0


@pytest.mark.parametrize("regex", ["(?=x)y", "a**b", r"(x)\1", "x{2000}", "x*"])
def test_pattern_that_re2_refuses_or_that_matches_nothing_is_a_mistake(regex):
    with pytest.raises(CatalogProblem):
        CompiledProfile(own(trainingStep=regex))


@pytest.mark.parametrize(
    "regex",
    [
        r"^s=(?P<globalStep>\d+)",
        r"(?i)S=(?P<globalStep>\d+)$",
        r"\bs=(?P<globalStep>\d+)\b",
        r"(?s)s=.*?(?P<globalStep>\d+)",
        r"s=\s*(?P<globalStep>\d+)[^x]*",
        r"é?s=(?P<globalStep>\d+)",
    ],
)
def test_pattern_finds_the_same_lines_in_blocks_as_line_by_line(regex):
    lines = [
        f"2026-01-05T08:00:{at % 60:02d}Z {'s' if at % 7 == 0 else 'x'}={at} é\xff"
        for at in range(900)
    ]
    log = "".join(f"{line}\n" for line in lines).encode("latin-1")
    profile = own(trainingStep=regex)
    found = measured(log, profile=profile)
    assert found == measured(log, profile=profile, is_prefiltered=False)
    assert len(found.training.steps) == (0 if regex.endswith("$") else 129)


def test_regex_bomb_changes_nothing():
    profile = own(trainingStep=r"(a+)+(\w+\s?)*s=(?P<globalStep>\d+)")
    log = b"a" * 60000 + b"\n" + b"aa s=5\n"
    assert [s.step for s in measured(log, profile=profile).training.steps] == [5]

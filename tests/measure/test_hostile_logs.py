"""Hostile and random logs: never an exception, never a verdict from garbage, whatever the blocks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cre.measure import logtext
from pytest_cre.measure.document import document_text, to_document
from pytest_cre.report.measurement import measurement_text
from tests.measure.megatron import EPOCH_NS, step_line
from tests.measure.reading import measured
from tests.measure.tables import stamped, table, text

SECOND = 10**9
STEPS = [step_line(n, EPOCH_NS + n * SECOND, SECOND) for n in range(1, 40)]
VOCABULARY = [
    *table(ranks=2, cycles=2),
    *stamped(table(ranks=2)),
    *(f"[1,1]<stdout>:{line}" for line in table(ranks=2)[9:14]),
    *STEPS[:12],
    *stamped(STEPS[5:20]),
    *stamped([line.replace("0: ", "", 1) for line in STEPS[8:10]]),
    *(
        line.replace(
            "elapsed time per iteration (ms): 1000.0", "elapsed time per iteration (ms): 1e3"
        )
        for line in STEPS[:2]
    ),
    " [2026-13-45 00:00:00.5] iteration 7/ 99 | consumed samples: 5 | elapsed time per iteration (ms): 9.0 | lm loss: 1.0E+00 |",
    "2026-01-05T00:00:01Z  loading checkpoint from /c",
    "2026-01-05T00:00:01Z   successfully loaded checkpoint from /c at iteration 5",
    "using world size: 8, data-parallel size: 8, context-parallel size: 1",
    "saving checkpoint at iteration 10 to /c",
    "successfully saved checkpoint from iteration 10 to /c",
    "Training epoch 0, iteration 3/99 | global_step: 3 | reduced_train_loss: 1.5",
    "Epoch 0:  40%|### | 40/100 [00:20<00:30,  2.00it/s, loss=1.0]\rEpoch 0:  41%|### | 41/100 [00:20<00:30, 2.0it/s]",
    "completed step: 3, seconds: 1.0, TFLOP/s/device: 1.0, loss: 9",
    "Traceback (most recent call last):",
    "ValueError: x",
    "node-0:1:2 [0] NCCL INFO Using network Socket",
    "node-0:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] via NET/IB/0/GDRDMA",
    "2026-01-05T00:00:01Z stdout P half a line of",
    "2026-01-05T00:00:01Z stdout F  the whole",
    "{",
    '  "results": [], "average_bus_bandwidth": {}',
    "}",
    "\x1b[31mcolour\x1b[0m",
    "\r",
    "",
    "x" * 9000,
    "y" * 70000,
]

lines = st.lists(st.sampled_from(VOCABULARY), max_size=60)
garbage = st.one_of(
    st.binary(max_size=600),
    st.lists(
        st.sampled_from(
            [
                b"iteration ",
                b"10/ 99 |",
                b"float",
                b" 8 ",
                b"#",
                b"\n",
                b"[2026-",
                b"Z ",
                b"\xff",
                b"\r",
                b"NCCL ",
                b"loss: ",
                b"{'",
                b"Epoch 1:",
                b"\x1b[",
                b"9" * 30,
            ]
        ),
        max_size=80,
    ).map(b"".join),
)


@settings(max_examples=100)
@given(garbage)
def test_garbage_is_measured_without_an_exception_and_passes_nothing(data):
    measurement = measured(data)
    assert measurement.status != "complete"
    assert measurement == measured(data, is_prefiltered=False)
    assert "".join(document_text(measurement))
    assert measurement_text(measurement).isprintable() or "\n" in measurement_text(measurement)


@settings(max_examples=60)
@given(lines, st.booleans())
def test_blocks_give_what_line_by_line_gives(found, ends):
    data = text(found)[: None if ends else -1]
    whole = measured(data)
    assert whole == measured(data, is_prefiltered=False)


@settings(max_examples=30)
@given(lines, st.integers(1, 997), st.sampled_from([64, 1024, 131072]))
def test_chunks_and_block_sizes_give_the_same(found, chunk, block):
    data = text(found)
    whole = to_document(measured(data))
    usual = logtext.BLOCK_BYTES
    try:
        logtext.BLOCK_BYTES = block
        assert to_document(measured(data, chunk=chunk)) == whole
    finally:
        logtext.BLOCK_BYTES = usual


@settings(max_examples=20)
@given(st.lists(garbage, max_size=5), st.data())
def test_garbage_lines_in_a_good_log_change_nothing_but_the_counts(pieces, data):
    plain = {b"\n", b"\r", b"\x1b"}
    good = stamped(STEPS)
    at = sorted(data.draw(st.integers(0, len(good))) for _ in pieces)
    mixed = [f"{line}\n".encode() for line in good]
    for place, piece in reversed(list(zip(at, pieces, strict=True))):
        mixed.insert(place, bytes(b for b in piece if bytes([b]) not in plain and b > 57) + b"\n")
    before, after = measured(text(good)), measured(b"".join(mixed))
    assert after.training.steps == before.training.steps
    assert after.training.ledger_s == before.training.ledger_s
    assert after.dropped.unmatched_lines >= before.dropped.unmatched_lines


def test_dense_and_sparse_stretches_of_a_log_read_alike():
    noise = ["node-0:1:2 [0] NCCL INFO Ring 00 : 1 -> 2"] * 1500
    many = [step_line(n, EPOCH_NS + n * SECOND, SECOND) for n in range(1, 1200)]
    log = text(stamped([*many[:600], *noise, *many[600:]]))
    measurement = measured(log)
    assert len(measurement.training.steps) == 1199
    assert measurement == measured(log, chunk=700)
    assert measurement == measured(log, is_prefiltered=False)


@pytest.mark.parametrize(
    "broken",
    [
        b"\x1b" * 5000,
        b"\r" * 5000,
        b"{\n" * 5000,
        b"[1,0]<stdout>:" * 5000,
        b"0: " * 5000,
        b"a-" * 5000,
        b"(" * 5000,
        b" " * 60000,
        b"2026-01-05T00:00:01Z stdout P x\n" * 2000,
        b"Traceback (most recent call last):\n" * 2000,
    ],
)
def test_repetitive_hostile_text_is_no_data(broken):
    assert measured(broken * 3 + b"\n").status == "no-data"


def test_work_grows_with_the_lines_that_matter_and_not_with_noise(monkeypatch):
    calls = []
    clean = logtext.clean_line
    monkeypatch.setattr(logtext, "clean_line", lambda raw: calls.append(1) or clean(raw))
    noise = ["node-0:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read"] * 20_000
    log = text([*table(), *noise])
    measured(log)
    few = len(calls)
    measured(text([*table(), *noise, *noise]))
    assert len(calls) - few == few < 60


def test_line_of_ten_megabytes_is_counted_and_nothing_else_changes():
    good = text(table())
    long = measured(good[:200] + b"\n" + b"x" * 10_000_000 + b"\n" + good[200:].partition(b"\n")[2])
    assert long.dropped.lines_too_long == 1

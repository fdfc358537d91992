"""The checkpoint volume and the retries of an entry: what a file may say, and what it comes to."""

import pytest

from pytest_cre.catalog.checkpoint import CheckpointVolume, checkpoint_volume
from pytest_cre.catalog.entry import Checkpoint
from pytest_cre.errors import CatalogProblem

ENTRY = """\
description: A training
measures: training
image: example.org/train:1
logProfile: megatron-training
timeout: 1h
retries: 2
checkpoint:
  enabled: ${on}
  path: /checkpoints
  maxRestarts: ${restarts}
options:
  on: {default: "true", pattern: "true|false", description: a}
  restarts: {default: 3, pattern: "[0-9]+", description: b}
workloads:
  indexedJob: {command: [train]}
"""


@pytest.fixture
def read(folder):
    def of(text=ENTRY):
        folder.entry(text)
        return folder.load().entries["mine/bench"]

    return of


def test_entry_says_how_often_a_group_is_tried_again(read):
    assert read().retries == 2
    assert read(ENTRY.replace("retries: 2\n", "")).retries == 0


def test_volume_takes_the_values_of_options_and_else_its_defaults(read):
    volume = checkpoint_volume(read().checkpoint, {"on": "true", "restarts": "3"})

    assert volume == CheckpointVolume(
        path="/checkpoints", storage_size="10Ti", storage_class_name=None, max_restarts=3
    )


def test_entry_that_says_only_the_path_has_a_volume_and_no_restarts(read):
    text = ENTRY.replace("  enabled: ${on}\n", "").replace("  maxRestarts: ${restarts}\n", "")
    text = text.partition("options:")[0] + "workloads:" + text.partition("workloads:")[2]

    volume = checkpoint_volume(read(text).checkpoint, {})

    assert volume is not None
    assert volume.max_restarts == 0


@pytest.mark.parametrize("given", ["false", "${on}"])
def test_volume_that_is_not_enabled_is_none(given):
    assert checkpoint_volume(Checkpoint(path="/c", enabled=given), {"on": "false"}) is None


def test_entry_without_checkpoint_has_no_volume():
    assert checkpoint_volume(None, {}) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"enabled": "yes"}, "checkpoint.enabled must be true or false, got 'yes'"),
        ({"path": "checkpoints"}, "checkpoint.path must be a path such as /checkpoints"),
        ({"path": "/a/../b"}, "checkpoint.path must be a path such as /checkpoints"),
        ({"path": "/"}, "checkpoint.path must be a path such as /checkpoints"),
        ({"max_restarts": "-1"}, "checkpoint.maxRestarts must be a number from 0 to 100, got '-1'"),
        ({"max_restarts": "101"}, "checkpoint.maxRestarts must be a number from 0 to 100"),
        ({"max_restarts": "\u0663"}, "checkpoint.maxRestarts must be a number from 0 to 100"),
        ({"storage_size": "much"}, "checkpoint.storageSize must be a size such as 500Gi or 10Ti"),
        ({"storage_size": "0"}, "checkpoint.storageSize must be a size such as 500Gi or 10Ti"),
        ({"storage_class_name": "A B"}, "checkpoint.storageClassName must be the name of a class"),
    ],
)
def test_value_that_no_volume_can_have_is_refused_in_one_line(changes, words):
    with pytest.raises(CatalogProblem) as problem:
        checkpoint_volume(Checkpoint(**{"path": "/c", **changes}), {})

    assert str(problem.value).startswith(words)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("retries: 2", "retries: -1", "6:10: retries must be at least 0, got -1"),
        ("retries: 2", "retries: 11", "6:10: retries must be at most 10, got 11"),
        ("  path: /checkpoints\n", "", "8:3: checkpoint.path is missing"),
        (
            "${restarts}",
            "many",
            "checkpoint.maxRestarts must be a number from 0 to 100, got 'many'",
        ),
        ("${restarts}", "${more}", "${more} is unknown; choices: on, restarts"),
        ("measures: training", "measures: gemm", "checkpoint goes only with measures: training"),
    ],
)
def test_mistake_is_told_when_the_file_is_read(folder, old, new, line):
    assert old in ENTRY
    folder.entry(ENTRY.replace(old, new))

    assert line in folder.problem()

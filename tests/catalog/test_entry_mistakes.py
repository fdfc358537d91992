import pytest

from .conftest import ENTRY

PLACE = "catalog/mine/bench.yaml"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("image: ", "image: [", "5:7: malformed YAML: did not find expected ',' or ']'"),
        ("timeout: 1h", "image: again", "7:1: key 'image' stands twice, first in line 4"),
        (
            "image: ",
            "imgae: ",
            "4:1: imgae is an unknown key; did you mean 'image'? choices: architectures, "
            "checkpoint, cost, description, env, ",
        ),
        ("image: example.org/bench:1\n", "", "1:1: image is missing"),
        ("image: example.org/bench:1", "image: ''", "4:8: image must be an image's name such as"),
        ("image: example.org/bench:1", "image: 5", "4:8: image must be a text, got 5"),
        (
            "measures: bandwidth",
            "measures: speed",
            "2:11: measures must be one of bandwidth, training, gemm, diagnostics, got 'speed'",
        ),
        (
            "timeout: 1h\n",
            "timeout: 1 hour\n",
            "7:10: timeout must be a duration such as 90s or 1h30m, got '1 hour'",
        ),
        ("timeout: 1h\n", "timeout: 0s\n", "7:10: timeout must be longer than nothing"),
        ("timeout: 1h\n", "", "1:1: timeout is missing"),
        (
            "intra-node]",
            "intra-nod]",
            "5:22: scales[1] is unknown: 'intra-nod'; choices: full-scale, intra-node, "
            "intra-rack, diagnose, or a number of nodes",
        ),
        ("intra-node]", "full-scale]", "5:22: scale full-scale stands twice"),
        (
            "intra-node]",
            "intra-node]\nscalesOnRequest: [diagnose, intra-node]",
            "6:29: scale intra-node stands twice",
        ),
        ("[full-scale, intra-node]", "[]", "5:9: scales must not be empty, got a list"),
        ("[full-scale, intra-node]", "full-scale", "5:9: scales must be a list, got 'full-scale'"),
        (
            "logProfile: nccl-bandwidth",
            "logProfile: nccl-bandwith",
            "6:13: logProfile 'nccl-bandwith' is unknown; did you mean 'nccl-bandwidth'? choices: ",
        ),
        (
            "logProfile: nccl-bandwidth",
            "logProfile: megatron-training",
            "6:13: logProfile 'megatron-training' reads training, the entry measures bandwidth",
        ),
        (
            "logProfile:",
            "architectures: [h1000]\nlogProfile:",
            "6:17: architecture 'h1000' is unknown; did you mean 'h100'? choices: ",
        ),
        (
            "measures: bandwidth",
            "measures: training",
            "3:7: test goes only with measures: bandwidth",
        ),
        (
            "[collective.py]",
            "[colective.py]",
            "16:11: script 'colective.py' is unknown; did you mean 'collective.py'? choices:",
        ),
        ("[collective.py]", "[../cli/lint.py]", "16:11: script '../cli/lint.py' is unknown"),
        (
            "default: 16G",
            "default: 16 G",
            "11:14: default '16 G' of option maxBytes must match its own pattern [0-9]+[KMGT]?",
        ),
        (
            'pattern: "[0-9]+[KMGT]?"',
            'pattern: "(?=x)"',
            "12:14: pattern of option maxBytes is refused by RE2: invalid perl operator: (?=",
        ),
        ("  maxBytes:\n", "  nodes:\n", "10:3: option 'nodes' is set by the plan itself"),
        ("  maxBytes:\n", "  max-bytes:\n", "10:3: option 'max-bytes' is no simple name"),
        (
            "default: 16G",
            "default: true",
            "11:14: options.maxBytes.default must be a text or a number",
        ),
        (
            '"${maxBytes}", -N',
            '"x=${maxByte}", -N',
            "20:16: ${maxByte} is unknown; did you mean 'maxBytes'? choices: architecture, gpus, "
            "gpusPerNode, masterAddress, maxBytes, nodes",
        ),
        (
            '"${maxBytes}", -N',
            '"${maxBytes", -N',
            "20:16: '${' is never closed in '${maxBytes'; a plain '$' is written '$$'",
        ),
        ("INFO", "${level}", "15:15: ${level} is unknown; choices: architecture"),
        ("NCCL_DEBUG", "NCCL-DEBUG", "15:3: env.NCCL-DEBUG must be a variable's name such as"),
        (
            "command: [mpirun]",
            "command: []",
            "19:14: workloads.mpiJob.command must not be empty, got a list",
        ),
        (
            "  mpiJob:",
            "  mpijob:",
            "18:3: workloads.mpijob is an unknown key; did you mean 'mpiJob'? choices: "
            "indexedJob, jobSet, mpiJob, trainJob",
        ),
    ],
)
def test_mistake_in_an_entry_is_one_line_with_place_subject_and_choices(folder, old, new, line):
    assert old in ENTRY
    folder.entry(ENTRY.replace(old, new, 1))
    assert folder.problem().startswith(f"{PLACE}:{line}")


def test_entry_without_a_workload_is_refused(folder):
    folder.entry(ENTRY.partition("workloads:")[0] + "workloads: {}\n")
    assert folder.problem() == (
        f"{PLACE}:17:12: workloads must hold one of indexedJob, jobSet, mpiJob, trainJob"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mine/Bench", "file 'Bench' names the entry and must be a name of a-z, 0-9 and inner '-'"),
        ("my_own/bench", "folder 'my_own' names the entry and must be a name of a-z"),
        ("mine/bench.old", "file 'bench.old' names the entry"),
        ("mine/" + "x" * 60, "is longer than 63 characters"),
    ],
)
def test_path_that_makes_no_name_is_refused(folder, name, words):
    folder.entry(name=name)
    assert words in folder.problem()


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?<!x)a", "(?>a)", "a++", "a{2000}", "(a", "[z-a]"])
def test_pattern_that_re2_has_no_word_for_is_refused_by_its_own_words(folder, pattern):
    folder.entry(ENTRY.replace('"[0-9]+[KMGT]?"', f"'{pattern}'"))
    message = folder.problem()
    assert message.startswith(f"{PLACE}:12:14: pattern of option maxBytes is refused by RE2: ")
    assert "b'" not in message


def test_dollar_signs_of_kubernetes_and_doubled_ones_are_no_mistake(folder):
    folder.entry(ENTRY.replace("$(JOB_COMPLETION_INDEX)", "$(X) $${y} $HOME $$"))
    assert (
        folder.load().entry("mine/bench").workloads["indexedJob"].args[2] == "$(X) $${y} $HOME $$"
    )

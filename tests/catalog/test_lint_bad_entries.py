"""Twenty-five planted mistakes: each is found, with its line and what to do about it."""

import re

import pytest

from pytest_cre.catalog.lint import lint_files
from pytest_cre.catalog.loader import shipped_profiles, shipped_suites

GOOD = """\
description: A bench
measures: bandwidth
test: all_reduce
image: example.org/bench:1
scales: [full-scale, intra-node]
architectures: [h100, b200]
logProfile: nccl-bandwidth
timeout: 1h
cost: 10m
options:
  maxBytes:
    default: 16G
    pattern: "[0-9]+[KMGT]?"
env:
  NCCL_DEBUG: INFO
overrides:
  - name: rings
    when:
      platform: {equals: onprem}
    env: {NCCL_ALGO: Ring}
    resources: {rdma/ib: 4}
    tolerations: [{key: gpu, operator: Exists}]
limits:
  - metric: busbw
    operator: ">="
    value: 300
    unit: GB/s
    statistic: max
    scale: full-scale
    tier: site
    source: acceptance runs
    date: 2026-11-30
workloads:
  mpiJob:
    command: [mpirun]
    args: [-x, NCCL_DEBUG=INFO, all_reduce_perf, -e, "${maxBytes}", -n, 20]
"""
# What is planted, and what lint must say of it after the file's name.
MISTAKES = {
    "variable that stands twice in env": (
        ("  NCCL_DEBUG: INFO\n", "  NCCL_DEBUG: INFO\n  NCCL_DEBUG: WARN\n"),
        "16:3: key 'NCCL_DEBUG' stands twice, first in line 15",
    ),
    "variable that is handed on twice": (
        ("-x, NCCL_DEBUG=INFO,", "-x, NCCL_DEBUG=INFO, -x, NCCL_DEBUG=INFO,"),
        "36:37: variable NCCL_DEBUG is handed on twice; keep one",
    ),
    "variable that says two things": (
        ("-x, NCCL_DEBUG=INFO,", "-x, NCCL_DEBUG=WARN,"),
        "36:16: variable NCCL_DEBUG is WARN here and INFO in env; keep one",
    ),
    "argument that a later one makes void": (
        ("-n, 20]", "-n, 20, -n, 5]"),
        "36:77: -n is given 2 times and only the last counts; keep one",
    ),
    "arguments that an override clobbers": (
        ("    env: {NCCL_ALGO: Ring}\n", "    container: {args: [-e, 8]}\n"),
        "20:17: container.args would replace what is there; use words",
    ),
    "environment that an override clobbers": (
        ("    env: {NCCL_ALGO: Ring}\n", "    container: {env: [{name: A, value: B}]}\n"),
        "20:17: container.env would replace what is there; use env",
    ),
    "arguments that a patch clobbers": (
        (
            "    env: {NCCL_ALGO: Ring}\n",
            "    patch: [{op: replace, path: /spec/containers/0/args, value: []}]\n",
        ),
        "20:13: replace /spec/containers/0/args would lose what is there; use words",
    ),
    "variable that a later override sets again": (
        ("limits:\n", "  - {name: trees, env: {NCCL_ALGO: Tree}}\nlimits:\n"),
        "17:5: env NCCL_ALGO of override rings is set again by trees in",
    ),
    "tolerations that are lost": (
        ("    env: {NCCL_ALGO: Ring}\n", "    pod: {spec: {tolerations: []}}\n"),
        "20:18: pod.spec.tolerations would replace what is there; use tolerations",
    ),
    "tolerations that a patch loses": (
        ("    env: {NCCL_ALGO: Ring}\n", "    patch: [{op: remove, path: /spec/tolerations}]\n"),
        "20:13: remove /spec/tolerations would lose what is there; use tolerations",
    ),
    "NICs of which none is asked for": (
        ("rdma/ib: 4", "rdma/ib: 0"),
        "21:26: a request of 0 rdma/ib asks for nothing; take it out",
    ),
    "platform that does not exist": (
        ("equals: onprem", "equals: onperm"),
        "17:5: when.platform names 'onperm', which is unknown; did you mean 'onprem'?",
    ),
    "override for an architecture that the entry rules out": (
        ("platform: {equals: onprem}", "gpuArchitecture: {in: [gb200, gb300]}"),
        "17:5: override rings never applies: when.gpuArchitecture allows none of architectures "
        "(h100, b200)",
    ),
    "override for a kind that the entry has not": (
        ("platform: {equals: onprem}", "workloadKind: {equals: jobSet}"),
        "17:5: override rings never applies: when.workloadKind allows none of workloads (mpiJob)",
    ),
    "override for another entry": (
        ("platform: {equals: onprem}", "entries: [training/*]"),
        "17:5: override rings never applies: when.entries does not match mine/bench",
    ),
    "override for a value that an option cannot have": (
        ("platform: {equals: onprem}", "options: {maxBytes: all}"),
        "17:5: when.options.maxBytes 'all' can never be: it must match [0-9]+[KMGT]?",
    ),
    "override that changes nothing": (
        (
            "    env: {NCCL_ALGO: Ring}\n    resources: {rdma/ib: 4}\n"
            "    tolerations: [{key: gpu, operator: Exists}]\n",
            "",
        ),
        "17:5: overrides[0] changes nothing; give env, resources, tolerations or another key",
    ),
    "no timeout": (("timeout: 1h\n", ""), "1:1: timeout is missing"),
    "timeout that is shorter than a healthy run": (
        ("cost: 10m", "cost: 2h"),
        "9:7: cost 2h is longer than timeout 1h; raise it",
    ),
    "limit on what the entry does not measure": (
        (
            "metric: busbw\n",
            "metric: goodput\n",
            "GB/s",
            "ratio",
            "statistic: max",
            "statistic: value",
            "300",
            "0.9",
        ),
        "24:5: mine/bench does not measure goodput; choices: algbw, busbw, dip, latency",
    ),
    "limit at a scale that the entry has not": (
        ("    scale: full-scale\n", "    scale: intra-rack\n"),
        "24:5: mine/bench has no scale intra-rack; choices: full-scale, intra-node",
    ),
    "option pattern that RE2 refuses": (
        ('"[0-9]+[KMGT]?"', '"(?=[0-9])[0-9]+G"'),
        "13:14: pattern of option maxBytes is refused by RE2: ",
    ),
    "option that its own pattern refuses": (
        ("default: 16G", "default: 16GB"),
        "12:14: default '16GB' of option maxBytes must match its own pattern [0-9]+[KMGT]?",
    ),
    "image without a version": (
        ("bench:1", "bench"),
        "4:8: image example.org/bench names no version, so runs differ; add a tag or digest",
    ),
    "name that nothing stands for": (
        ('"${maxBytes}"', '"${maxByte}"'),
        "36:54: ${maxByte} is unknown; did you mean 'maxBytes'?",
    ),
}


def planted(pairs):
    text = GOOD
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def test_there_are_twenty_five_mistakes():
    assert len(MISTAKES) == 25


def test_entry_without_a_mistake_has_nothing_to_mend(folder):
    folder.entry(GOOD)
    assert lint_files([folder.suites]) == (1, (), ())


@pytest.mark.parametrize("name", MISTAKES)
def test_planted_mistake_is_found_with_its_line_and_remedy(folder, name):
    pairs, line = MISTAKES[name]
    folder.entry(planted(pairs))
    told = lint_files([folder.suites])[1]
    assert any(each.startswith(f"catalog/mine/bench.yaml:{line}") for each in told), told
    # A remedy: what to do, which choices there are, what it must be.
    remedy = r"; |must|missing|refused|stands twice|never applies|unknown|can never be"
    assert all(re.search(remedy, each) for each in told)


SLIPS = {
    "collective that is misspelt": (
        ("test: all_reduce", "test: all-reduce"),
        "3:7: test 'all-reduce' is no collective; did you mean 'all_reduce'?",
    ),
    "image by a tag that moves": (
        ("bench:1", "bench:latest"),
        "4:8: image example.org/bench:latest names the tag latest, which moves, so runs differ; add "
        "a tag or digest",
    ),
    "image of an override without a version": (
        ("    env: {NCCL_ALGO: Ring}\n", "    image: example.org/bench\n"),
        "20:12: image example.org/bench names no version, so runs differ; add a tag or digest",
    ),
    "option without braces": (
        ('-e, "${maxBytes}"', '-e, "${maxBytes}", -f, $maxBytes'),
        "36:73: $maxBytes is not filled in; write ${maxBytes}, or $$maxBytes for a shell's own",
    ),
    "option without braces in an override": (
        ("{NCCL_ALGO: Ring}", "{NCCL_ALGO: $maxBytes}"),
        "20:22: $maxBytes is not filled in; write ${maxBytes}, or $$maxBytes for a shell's own",
    ),
    "two overrides of one name": (
        ("limits:\n", "  - {name: rings, env: {A: b}}\nlimits:\n"),
        "23:12: override rings stands also in catalog/mine/bench.yaml:17:5",
    ),
    "floor above the wire of one of several": (
        ("value: 300", "value: 1000"),
        "24:5: floor 1000 GB/s is above the 803.2 GB/s that the links of h100 allow; no run can meet",
    ),
    "limit of another collective": (
        ("    statistic: max\n", "    statistic: max\n    collective: all_gather\n"),
        "24:5: no such entry runs 'all_gather'; choices: all_reduce",
    ),
    "limit that stands twice": (
        ("limits:\n", "limits:\n  - {metric: busbw, operator: '>=', value: 95, unit: GB/s, "
         "statistic: max, scale: full-scale, tier: site, source: x, date: 2026}\n"),
        "25:5: the limit judges the same as the one in catalog/mine/bench.yaml:24:5; keep one",
    ),
    "flag and value in one argument": (
        ("-n, 20]", "'-n 20']"),
        "36:69: '-n 20' is one argument; write '-n' and '20' apart",
    ),
    "long flag and value in one argument": (
        ("[mpirun]", "[mpirun, --timeout 60]"),
        "35:23: '--timeout 60' is one argument; write '--timeout' and '60' apart",
    ),
    "more nodes than a group of the scale has": (
        ("timeout: 1h", "needs: {nodes: 4}\ntimeout: 1h"),
        "8:16: a group has one node at scale intra-node, never the 4 that are needed; take the scale",
    ),
    "more nodes than a group of so many": (
        ("[full-scale, intra-node]", "[full-scale, 2]\nneeds: {nodes: 4}"),
        "6:16: a group has 2 nodes at scale 2, never the 4 that are needed; take the scale or the",
    ),
    "limit at a size above the largest": (
        ("statistic: max", "statistic: at-size\n    size: 32G"),
        "24:5: no table has a row of 32 GiB, by the default options of mine/bench; choose a size",
    ),
    "limit that a day is given for that never was": (
        ("date: 2026-11-30", "date: 2026-11-31"),
        "32:11: limits[0].date must be YYYY-MM-DD, YYYY-MM, YYYY or 'unknown, read YYYY-MM', got '202",
    ),
    "floor above a ceiling": (
        ("limits:\n", "limits:\n  - {metric: busbw, operator: '<=', value: 80, unit: GB/s, "
         "statistic: max, scale: full-scale, tier: site, source: x, date: 2026}\n"),
        "25:5: no run can meet busbw >= 300 GB/s and busbw <= 80 GB/s in "
        "catalog/mine/bench.yaml:24:5; mend one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SLIPS)
def test_slip_that_a_run_would_not_tell_is_found(folder, name):
    pairs, line = SLIPS[name]
    folder.entry(planted(pairs))
    (told,) = lint_files([folder.suites]).lines
    assert told.startswith(f"catalog/mine/bench.yaml:{line}")


@pytest.mark.parametrize(
    ("size", "words"), [("8", ""), ("3G", "3 GiB"), ("16G", ""), ("32G", "32 GiB"), ("4", "4 B")]
)
def test_limit_at_a_size_that_the_sweep_leaves_out_is_found(folder, size, words):
    _, _, limits = GOOD.partition("limits:\n")
    limits = limits.partition("workloads:")[0].replace("max", f"at-size\n    size: {size}")
    head = "extends: communication/nccl-all-reduce\ndescription: Mine\nlimits:\n"
    folder.entry(head + limits)
    told = lint_files([folder.suites]).lines
    place = "catalog/mine/bench.yaml:4:5: no table has a row of"
    assert [each.partition(", by")[0] for each in told] == ([f"{place} {words}"] if words else [])


def test_entry_that_lies_too_deep_beside_others_is_found(folder):
    folder.entry(GOOD)
    folder.entry(GOOD, name="mine/more/bench")
    folder.entry(GOOD, name="loose")
    folder.entry(GOOD, name="_parts/more/bench")
    words = "is not read; a catalog holds <domain>/<variant>.yaml, move it there"
    told = [each for each in lint_files([folder.suites]).lines if "not read" in each]
    assert told == [
        f"catalog/loose.yaml:1:1: {words}",
        f"catalog/mine/more/bench.yaml:1:1: {words}",
    ]


def test_option_that_a_launcher_hands_on_in_one_text_is_left_alone(folder):
    folder.entry(planted(("args: [-x,", "args: [--mca, plm_rsh_args, -o A=b, --env, '--c d', -x,")))
    assert lint_files([folder.suites]).lines == ()


def test_shell_variable_that_the_command_sets_itself_is_left_alone(folder):
    folder.entry(planted(("-n, 20]", "-n, 20, 'for nodes in a; do echo $nodes; done']")))
    assert lint_files([folder.suites]).lines == ()


def test_floor_of_an_entry_is_held_against_each_architecture_that_it_names(folder):
    folder.entry(planted(("value: 300", "value: 4000")))
    place = "catalog/mine/bench.yaml:24:5: floor 4000 GB/s is above the"
    assert lint_files([folder.suites]).lines == (
        f"{place} 1606.5 GB/s that the links of b200 allow; no run can meet it",
        f"{place} 803.2 GB/s that the links of h100 allow; no run can meet it",
    )


def test_floor_of_an_entry_for_any_architecture_must_be_above_every_wire(folder):
    text = planted(("architectures: [h100, b200]\n", "", "value: 300", "value: 1000"))
    folder.entry(text)
    assert lint_files([folder.suites]).lines == ()
    folder.entry(text.replace("value: 1000", "value: 9000"))
    (told,) = lint_files([folder.suites]).lines
    assert "floor 9000 GB/s is above the " in told


def test_contradiction_of_an_architecture_is_found(folder):
    other = LIMIT.partition("limits:\n")[2].replace("value: 170", "value: 160")
    folder.architecture(LIMIT + other.replace('">="', '"<"'))
    (told,) = lint_files([folder.profiles]).lines
    assert told.startswith(
        "profiles/architectures/x1.yaml:19:5: no run can meet busbw < 160 GB/s and busbw >= 170 GB/s"
    )


def test_shipped_files_have_nothing_to_mend():
    count, told, _ = lint_files([shipped_suites(), shipped_profiles()])
    assert told == ()
    assert count > 40


LIMIT = """\
description: Made up
productLabels: [EXAMPLE-X1]
gpusPerNode: 8
nicsPerNode: 8
links: {gpuGBps: 100, networkGBps: 25, source: vendor}
peaks: {tflops: {bf16: 100}, source: vendor}
limits:
  - metric: busbw
    operator: ">="
    value: 170
    unit: GB/s
    entry: communication/nccl-all-reduce
    statistic: max
    minNodes: 1
    maxNodes: 1
    tier: site
    source: our own
    date: 2026
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        # NVLS shows at most 2 x 7/8 of 100 GB/s, with 2 % for rounding: 178.5
        ("value: 170", "value: 180", "floor 180 GB/s is above the 178.5 GB/s that the links of x1"),
        # Two nodes cross 25 GB/s of each GPU: 15 x 25 = 375 > 2 x 15/16 x 100
        (
            "entry: communication/nccl-all-reduce",
            "entry: communication/nccl-alltoall",
            "floor 170 GB/s is above the 102.0 GB/s that the links of x1 allow; no run can meet it",
        ),
        ("metric: busbw", "metric: bubsw", "limits[0].metric must be one of busbw, algbw, latency"),
        ("gpusPerNode: 8", "gpusPerNode: 8\nnvlinkDomainGpus: 12", "12 is no multiple of gpusPer"),
    ],
)
def test_limit_above_the_wire_is_found(folder, old, new, words):
    folder.architecture(LIMIT)
    assert lint_files([folder.profiles]) == (1, (), ())
    assert old in LIMIT
    folder.architecture(LIMIT.replace(old, new))
    (told,) = lint_files([folder.profiles])[1]
    assert words in told


PLATFORM = """\
description: Made up
detect: [{providerId: "made://"}]
hardware: {h100: {fabric: roce}}
overrides:
  - name: nics
    when: {gpuArchitecture: {equals: h100}}
    nicResource: rdma/ib
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "equals: h100",
            "equals: gb200",
            "never applies: when.gpuArchitecture allows none of hard",
        ),
        ("equals: h100", "equals: h10", "when.gpuArchitecture names 'h10', which is unknown; did"),
        ("{h100:", "{h10:", "architecture 'h10' is unknown; did you mean 'h100'?"),
        ("when: {", "when: {platform: {equals: aws}, ", "take when.platform out"),
        ("rdma/ib", "ib", "nicResource must be a name such as rdma/ib, or auto"),
        ("nicResource: rdma/ib", "words: {nope: yes}", "no entry has one of the words nope"),
        ('{providerId: "made://"}', "{resource: rdma/ib}", "fits any node; give providerId, noPro"),
        (
            "nicResource: rdma/ib",
            "objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed}}]",
            'metadata.name must hold ${job}, or two groups would share the object; got "fixed"',
        ),
        (
            "nicResource: rdma/ib",
            "options: {a: 1}\n    when: {minNodes: 2}",
            "key 'when' stands twice",
        ),
        (
            "when: {gpuArchitecture: {equals: h100}}\n    nicResource: rdma/ib",
            "when: {minNodes: 2}\n    options: {tensorParallel: 2}",
            "options are chosen before that is known; take when.minNodes out",
        ),
    ],
)
def test_mistake_in_a_platform_is_found(folder, old, new, words):
    path = folder.profiles / "platforms" / "made.yaml"
    path.parent.mkdir()
    path.write_text(PLATFORM)
    assert lint_files([path]) == (1, (), ())
    assert old in PLATFORM
    path.write_text(PLATFORM.replace(old, new, 1))
    told = lint_files([path])[1]
    assert any(words in each for each in told), told


@pytest.mark.parametrize(
    "text",
    [
        "rdmaDeviceAccess: hostPath\n",
        "env: {A: b}\nhostNetwork: true\n",
        "tolerations: [{key: a, operator: Exists}]\n",
        "nicResource: rdma/ib\n",
    ],
)
def test_site_file_is_told_by_any_key_that_entries_have_not(tmp_path, text):
    path = tmp_path / "site.yaml"
    path.write_text(text)
    assert lint_files([path]) == (1, (), ())


def test_site_file_is_told_by_its_keys(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "site.yaml"
    path.write_text("queue: gpu\nimages: {nvcr.io/: mirror.example/nvcr/}\n")
    assert lint_files([path]) == (1, (), ())
    path.write_text("queue: gpu\nimagePullSecret: [a]\n")
    assert lint_files([path])[1][0].startswith(
        "site.yaml:2:1: imagePullSecret is an unknown key; did you mean 'imagePullSecrets'?"
    )

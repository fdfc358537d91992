"""Overrides that change pods freely are tried on pods before a cluster is asked."""

import argparse

import pytest

from pytest_cre.cli import lint

ENTRY = """\
description: A bench
measures: bandwidth
test: all_reduce
image: example.org/bench:1
logProfile: nccl-bandwidth
timeout: 1h
overrides:
  - name: mine
    {change}
workloads:
  indexedJob: {{command: [bench]}}
  mpiJob: {{command: [mpirun, -N, "${{gpusPerNode}}"]}}
"""
PLATFORM = """\
description: Made up
detect: [{{providerId: "made://"}}]
hardware: {{h100: {{}}}}
overrides:
  - name: mine
    {change}
"""
MISTAKES = {
    "patch of a container that is not there": (
        "patch: [{op: add, path: /spec/containers/1/args/-, value: x}]",
        "index 1 is past the end of a list of 1",
    ),
    "patch of a key that is not there": (
        "patch: [{op: add, path: /spec/container/0/args/-, value: x}]",
        "nothing at /spec/container",
    ),
    "GPUs taken away": ("container: {resources: null}", "takes the GPUs away; claim them"),
    "field of the container misspelt": (
        "container: {securitycontext: {privileged: true}}",
        'unknown field "spec.containers[0].securitycontext"',
    ),
    "field of the pod misspelt": (
        "pod: {spec: {hostnetwork: true}}",
        'unknown field "spec.hostnetwork"',
    ),
    "field of the pod in the wrong place": (
        "pod: {hostNetwork: true}",
        'unknown field "hostNetwork"',
    ),
    "text where a truth value belongs": (
        "pod: {spec: {hostNetwork: 'yes'}}",
        "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
    ),
    "text where a number belongs": (
        "container: {ports: [{containerPort: '80'}]}",
        "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports",
    ),
}


def linted(path, capsys):
    code = lint.run(argparse.Namespace(paths=[str(path)]))
    return code, capsys.readouterr().out.splitlines()


def write(path, text):
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", MISTAKES)
def test_change_that_no_pod_can_take_is_told_with_the_override(tmp_path, capsys, name):
    change, words = MISTAKES[name]
    path = write(tmp_path / "catalog" / "mine" / "bench.yaml", ENTRY.format(change=change))
    code, told = linted(path, capsys)
    assert code == 1
    assert told[0].startswith(f"{path}:8:5: override mine on mine/bench: {words}")


def test_change_of_a_platform_is_tried_on_the_entries_that_it_is_for(tmp_path, capsys):
    change = "when: {measures: [training]}\n    pod: {spec: {hostnetwork: true}}"
    path = write(tmp_path / "platforms" / "made.yaml", PLATFORM.format(change=change))
    _, told = linted(path, capsys)
    words = 'override mine on training/nemotron5-56b: unknown field "spec.hostnetwork"'
    assert told[0] == f"{path}:5:5: {words}"


@pytest.mark.parametrize(
    "change",
    [
        "pod: {spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}}",
        "container: {securityContext: {privileged: true}}",
        "patch: [{op: add, path: /spec/hostIPC, value: true}]\n    when: {minNodes: 3}",
    ],
)
def test_change_that_pods_can_take_is_silent(tmp_path, capsys, change):
    path = write(tmp_path / "catalog" / "mine" / "bench.yaml", ENTRY.format(change=change))
    assert linted(path, capsys) == (0, ["1 file checked, nothing to mend"])


def test_entry_with_another_mistake_is_told_that_alone(tmp_path, capsys):
    text = ENTRY.format(change="pod: {spec: {hostNetwork: true}}").replace("gpusPerNode", "gpus_")
    path = write(tmp_path / "catalog" / "mine" / "bench.yaml", text)
    _, told = linted(path, capsys)
    assert [line for line in told if "override" in line] == []
    assert "${gpus_} is unknown" in told[0]

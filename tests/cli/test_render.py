import json

import pytest
import yaml

from pytest_cre.cli import main

ENTRY = "communication/nccl-all-reduce"
WHERE = ("--platform", "aws", "--arch", "h100")


def render(capsys, *arguments, entry=ENTRY):
    code = main(["render", entry, *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_manifests_are_printed_in_the_order_of_their_creation(capsys):
    code, out, _ = render(capsys, *WHERE, "--nodes", "2")
    manifests = list(yaml.safe_load_all(out))
    assert code == 0
    assert [each["kind"] for each in manifests] == ["ConfigMap", "Service", "Job"]
    assert manifests[-1]["metadata"]["labels"]["cre.pytest.org/run"] == "run-id-placeholder"
    assert manifests[-1]["metadata"]["ownerReferences"][0]["uid"] == "owner-uid-placeholder"
    assert out == render(capsys, *WHERE, "--nodes", "2")[1]


def test_json_holds_the_same_as_a_list_that_kubectl_applies(capsys):
    _, out, _ = render(capsys, *WHERE, "--nodes", "2", "--format", "json")
    whole = json.loads(out)
    assert (whole["apiVersion"], whole["kind"]) == ("v1", "List")
    assert whole["items"] == list(yaml.safe_load_all(render(capsys, *WHERE, "--nodes", "2")[1]))


def test_unowned_manifests_differ_by_their_owner_alone(capsys):
    owned = list(yaml.safe_load_all(render(capsys, *WHERE, "--nodes", "2")[1]))
    _, out, _ = render(capsys, *WHERE, "--nodes", "2", "--unowned")
    assert all(each["metadata"].pop("ownerReferences") for each in owned)
    assert list(yaml.safe_load_all(out)) == owned


def test_scripts_are_printed_as_lines(capsys):
    _, out, _ = render(capsys, *WHERE, "--nodes", "1")
    assert "\n  collective.py: |\n" in out
    assert "&id" not in out


def test_overrides_are_told_beside_the_manifests(capsys):
    _, out, err = render(capsys, *WHERE, "--nodes", "2", "--kind", "mpiJob")
    assert "override efa (" in err
    assert "resource vpc.amazonaws.com/efa" in err
    assert "override" not in out
    _, _, err = render(capsys, "--platform", "mistral", "--arch", "h100", "--nodes", "2")
    assert err.startswith("warning: platform mistral has no settings for h100 (it knows gb300); ")


def test_scale_gives_the_groups_of_a_run(capsys):
    _, out, _ = render(capsys, *WHERE, "--nodes", "3", "--scale", "intra-node")
    jobs = [each for each in yaml.safe_load_all(out) if each["kind"] == "Job"]
    nodes = ["node-placeholder-0", "node-placeholder-1", "node-placeholder-2"]
    assert [json.dumps(job).count(node) for job, node in zip(jobs, nodes, strict=True)] == [1, 1, 1]


def test_saved_nodes_give_their_own_names_and_nics(capsys, tmp_path):
    labels = {"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.present": "true"}
    amounts = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": f"gpu-{index}", "labels": labels},
            "spec": {"providerID": "aws:///x"},
            "status": {
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for index in range(2)
    ]
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps({"kind": "List", "items": nodes}))
    _, out, _ = render(capsys, "--platform", "aws", "--arch", "h200", "--from", str(path))
    assert "gpu-1" in out
    assert "node-placeholder" not in out
    assert "vpc.amazonaws.com/efa: '32'" in out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((*WHERE, "--nodes", "0"), 2, "must be a number of nodes, got '0'"),
        ((*WHERE,), 2, "one of the arguments --nodes --from is required"),
        (
            ("--platform", "aws", "--arch", "h10", "--nodes", "1"),
            2,
            "unknown GPU architecture 'h10'",
        ),
        (
            ("--platform", "aw", "--arch", "h100", "--nodes", "1"),
            2,
            "unknown platform 'aw'; did you",
        ),
        ((*WHERE, "--nodes", "1", "--option", "maxByte=1"), 2, "option 'maxByte' is unknown to"),
        (
            (*WHERE, "--nodes", "1", "--option", "maxBytes"),
            2,
            "must be KEY=VALUE such as maxBytes=8G",
        ),
        (
            (*WHERE, "--nodes", "1", "--scale", "rack"),
            2,
            "unknown scale 'rack'; choices: full-scale",
        ),
        ((*WHERE, "--from", "nowhere.json"), 3, "nowhere.json: cannot be read"),
        ((*WHERE, "--nodes", "1", "--site", "nowhere.yaml"), 3, "nowhere.yaml:1:1: cannot be read"),
    ],
)
def test_mistake_is_one_line_and_an_exit_code(capsys, arguments, code, words):
    try:
        found, out, err = render(capsys, *arguments)
    except SystemExit as ended:  # argparse
        found, (out, err) = ended.code, capsys.readouterr()
    assert found == code
    assert words in err
    assert out == ""


def test_unknown_entry_names_the_choices(capsys):
    code, _, err = render(capsys, *WHERE, "--nodes", "1", entry="communication/nccl-all-redce")
    assert code == 2
    assert "did you mean 'communication/nccl-all-reduce'?" in err


def test_need_that_the_nodes_do_not_meet_is_told(capsys):
    code, _, err = render(capsys, *WHERE, "--nodes", "1", entry="training/nemotron5-56b")
    assert code == 2
    assert "needs at least 32 GPUs" in err

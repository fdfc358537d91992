import json
import time
import tracemalloc

import pytest
import yaml

from pytest_cre.cluster.inventory import (
    load_nodes,
    node_facts,
    read_nodes,
    with_slices,
)
from pytest_cre.errors import EvidenceProblem


def node(name="n1", **more):
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "annotations": {"cre.pytest.org/simulated-limits": "{}"},
        },
        "spec": {
            "providerID": "aws:///us-east-1a/i-1",
            "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule", "timeAdded": "x"}],
        },
        "status": {
            "allocatable": {"nvidia.com/gpu": "8", "cpu": "96"},
            "conditions": [
                {"type": "CorruptDockerOverlay2", "status": "Unknown"},
                {"type": "Ready", "status": "True"},
            ],
            "nodeInfo": {"bootID": "boot-1"},
            "images": [{"names": ["x"] * 50}],
        },
        **more,
    }


def test_facts_of_a_node_are_the_few_fields_that_count():
    facts = node_facts(node())
    assert (facts.name, facts.uid, facts.gpus_allocatable) == ("n1", "uid-n1", 8)
    assert (facts.is_ready, facts.is_cordoned) == (True, False)
    assert facts.gpu_product == "NVIDIA-H100-80GB-HBM3"
    assert facts.taints == ({"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"},)
    assert (facts.provider_id, facts.boot_id) == ("aws:///us-east-1a/i-1", "boot-1")
    assert facts.simulated_limits == "{}"


def test_facts_of_a_cordoned_node_that_does_not_answer():
    facts = node_facts(
        node(
            spec={"unschedulable": True},
            status={"conditions": [{"type": "Ready", "status": "Unknown"}]},
        )
    )
    assert (facts.is_cordoned, facts.is_ready, facts.gpus_allocatable) == (True, False, 0)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"metadata": None, "spec": None, "status": None},
        {"metadata": {"labels": None}, "spec": {"taints": None}, "status": {"conditions": None}},
        {"status": {"allocatable": {"nvidia.com/gpu": "many"}, "conditions": [None, "x"]}},
        {"status": {"allocatable": ["x"], "nodeInfo": "y"}, "spec": {"taints": [None, {"key": 3}]}},
        {"status": {"allocatable": {"nvidia.com/gpu": -4}}},
    ],
)
def test_facts_of_a_misshapen_node_are_empty_and_never_an_exception(broken):
    facts = node_facts(broken)
    assert (facts.gpus_allocatable, facts.is_ready) == (0, False)


@pytest.mark.parametrize(("quantity", "gpus"), [("8", 8), (7, 7), ("1k", 1000), ("0", 0)])
def test_gpus_are_read_as_quantities(quantity, gpus):
    item = node(status={"allocatable": {"nvidia.com/gpu": quantity}})
    assert node_facts(item).gpus_allocatable == gpus


def test_read_nodes_gives_all_pages_sorted_by_name(serve):
    def answer(request, reply):
        start = int(request.query.get("continue", "0"))
        names = [f"n{(start + step) * 7 % 11}" for step in (0, 1)]
        more = {"continue": str(start + 2)} if start < 8 else {}
        reply.json({"metadata": more, "items": [node(name) for name in names]})

    server = serve(answer)
    facts = read_nodes(server.client(), "a=b")
    assert [each.name for each in facts] == sorted(each.name for each in facts)
    assert len(facts) == 10
    assert all(each.query["labelSelector"] == "a=b" for each in server.requests)


def test_thousand_nodes_are_read_in_seconds_and_kept_small(serve):
    images = [
        {"names": [f"registry.example/image-{number}"], "sizeBytes": 1} for number in range(220)
    ]
    bodies = []
    for page in range(2):
        names = [f"n{page}-{number:03}" for number in range(500)]
        items = [node(name) for name in names]
        for each in items:
            each["status"]["images"] = images
        more = {"continue": "second"} if page == 0 else {}
        bodies.append(json.dumps({"metadata": more, "items": items}).encode())
    assert len(bodies[0]) > 500 * 12_000
    server = serve(lambda request, reply: reply.data(bodies["continue" in request.query]))
    client = server.client()
    tracemalloc.start()
    began_s = time.process_time()

    facts = read_nodes(client)

    took_s = time.process_time() - began_s
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(facts) == 1000
    assert took_s < 5  # it is far less where allocations are not traced
    assert kept_bytes < 8 << 20


@pytest.mark.parametrize(
    "write",
    [json.dumps, yaml.safe_dump, lambda data: "\ufeff" + json.dumps(data)],
    ids=["json", "yaml", "bom"],
)
def test_load_nodes_reads_what_kubectl_prints(tmp_path, write):
    path = tmp_path / "nodes"
    path.write_text(write({"kind": "List", "items": [node("b"), node("a")]}), encoding="utf-8")
    assert [each.name for each in load_nodes(path)] == ["a", "b"]


def test_load_nodes_reads_one_node(tmp_path):
    path = tmp_path / "node.yaml"
    path.write_text(yaml.safe_dump(node("only")))
    assert [each.name for each in load_nodes(path)] == ["only"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "a: b",
        "just words",
        "items: 3",
        "items: [1, 2]",
        '{"items": []}',
        '{"items": [{"kind": "Pod", "metadata": {"name": "p"}}]}',
        '{"items": [{"metadata": {}}]}',
        "\0",
        "[" * 100_000,
        "!!python/object/apply:os.system [id]",
    ],
)
def test_load_nodes_of_anything_else_is_one_line(tmp_path, text):
    path = tmp_path / "nodes"
    path.write_text(text)
    with pytest.raises(EvidenceProblem) as found:
        load_nodes(path)
    assert str(found.value).startswith(str(path))
    assert "\n" not in str(found.value)


def test_load_nodes_of_a_missing_file_or_other_bytes_is_one_line(tmp_path):
    with pytest.raises(EvidenceProblem, match="cannot be read"):
        load_nodes(tmp_path / "none")
    path = tmp_path / "bytes"
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(EvidenceProblem, match="neither JSON nor YAML"):
        load_nodes(path)


def slice_of(node, *names, driver="gpu.nvidia.com"):
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {"productName": {"string": name}, "type": {"string": "gpu"}},
        }
        for index, name in enumerate(names)
    ]
    return {
        "kind": "ResourceSlice",
        "spec": {"driver": driver, "nodeName": node, "devices": devices},
    }


def bare_node(name, **allocatable):
    return node_facts({"metadata": {"name": name}, "status": {"allocatable": allocatable}})


def test_node_facts_hold_extended_resources_without_gpus_and_what_kubernetes_has_itself():
    amounts = {
        "cpu": "8", "nvidia.com/gpu": "8", "rdma/ib": "8", "hugepages-2Mi": "0",
        "vpc.amazonaws.com/efa": "32", "example.org/none": "0", "example.org/odd": "x",
    }  # fmt: skip
    assert bare_node("a", **amounts).resources == {"rdma/ib": 8, "vpc.amazonaws.com/efa": 32}


def test_slices_tell_product_and_number_of_gpus_where_the_node_says_nothing():
    name = "NVIDIA H100 80GB HBM3"
    nodes = (bare_node("a"), bare_node("b", **{"nvidia.com/gpu": "4"}), bare_node("c"))
    slices = [slice_of("a", name, name), slice_of("b", name), slice_of("c", name, driver="other")]
    a, b, c = with_slices(nodes, slices)
    assert (a.gpu_product, a.gpus_allocatable) == ("NVIDIA-H100-80GB-HBM3", 2)
    assert (b.gpu_product, b.gpus_allocatable) == ("NVIDIA-H100-80GB-HBM3", 4)
    assert (c.gpu_product, c.gpus_allocatable) == (None, 0)


@pytest.mark.parametrize(
    "broken",
    [{}, {"spec": None}, {"spec": {"driver": "gpu.nvidia.com", "nodeName": "a", "devices": [{}, 5]}},
     slice_of(None, "x"), {"spec": {"driver": "gpu.nvidia.com", "nodeName": "a", "devices": None}}],
)  # fmt: skip
def test_misshapen_slices_tell_nothing(broken):
    assert with_slices((bare_node("a"),), [broken]) == (bare_node("a"),)


def test_partitions_of_a_gpu_are_not_counted_as_gpus():
    mig = slice_of("a", "NVIDIA H100 80GB HBM3")
    mig["spec"]["devices"][0]["attributes"]["type"] = {"string": "mig"}
    assert with_slices((bare_node("a"),), [mig]) == (bare_node("a"),)

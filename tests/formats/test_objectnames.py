import pytest

from pytest_cre.formats.objectnames import (
    extended_resource,
    image_name,
    image_start,
    label_name,
    label_value,
    object_name,
    resource_name,
)

RIGHT = {
    label_name: ["team", "example.org/team", "a.b_c-D", "x" * 63],
    label_value: ["", "gpu", "42", "A.b_c-d", "x" * 63],
    extended_resource: ["rdma/ib", "nvidia.com/mlnxnics", "networking.gke.io.networks/rdma-0"],
    resource_name: ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "rdma/ib"],
    object_name: ["default", "regcred.example", "a" * 253],
    image_name: [
        "busybox",
        "nvcr.io/nvidia/pytorch:26.01-py3",
        "localhost:5000/a/b",
        "example.org/a__b/c-d:V1.2@sha256:" + "0" * 64,
        "Registry.example.org/a@sha256:" + "aB" * 32,
    ],
    image_start: ["nvcr.io/", "mirror.example.org:5000/nvcr/", "docker.io/library/busybox:1"],
}
WRONG = {
    label_name: ["", "my team", "a/b/c", "/team", "Example.org/team", "-x", "x" * 64],
    label_value: ["a b", "-x", "x.", "x" * 64, "a/b"],
    extended_resource: ["rdma", "rdma/", "rdma/ ib", "rdma ib", "a/b/c", "auto"],
    resource_name: ["mem", "rdma ib", "hugepages", "hugepages-2MB", ""],
    object_name: ["", "Default", "a_b", "a b", ".a", "a..b", "a" * 254],
    image_name: [
        *("", " busybox:1", "busybox:1 ", "exam ple.org/a:1", "example.org/A:1", "busybox:"),
        *("https://example.org/a:1", "example.org/a:1:2", "example.org/a@sha256:abc", "a//b"),
        *("example.org/a:.1", "example.org/a:" + "x" * 129, "example.org/${image}:1"),
    ],
    image_start: [
        "",
        "a" * 60 + "!",
        "https://mirror.example.org/",
        "mirror example/",
        "/nvcr.io/",
        "a//b",
    ],
}


def pairs(table):
    return [
        pytest.param(check, each, id=f"{check.__name__}-{each[:30]}")
        for check in table
        for each in table[check]
    ]


@pytest.mark.parametrize(("check", "text"), pairs(RIGHT))
def test_name_that_kubernetes_takes_is_returned(check, text):
    assert check(text) == text


@pytest.mark.parametrize(("check", "text"), pairs(WRONG))
def test_name_that_kubernetes_refuses_is_told_with_what_it_must_be(check, text):
    with pytest.raises(ValueError, match=r"^must be .+, got ") as caught:
        check(text)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 220

"""The scripts in pods of a Job that are real processes on this machine, from manifest to verdict."""

import json

import pytest

from tests.home import home_in
from tests.warm.runs import run_pytest
from tests.workloads.pods import COLLECTIVE, GEMM, figures_of, write_pods

ENTRIES = {
    "communication/planted": COLLECTIVE.format(more="\n      - --plant-wrong\n      - 1:7"),
    "compute/small": GEMM,
}


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """What a certification of the entries comes to, by entry."""
    folder = tmp_path_factory.mktemp("pods")
    given = write_pods(folder, ENTRIES)
    done = run_pytest(
        ["-m", "certification", "-p", "no:cacheprovider", "--cre-json=r.json", *given],
        cwd=folder,
        env=home_in(folder),
        timeout_s=240,
    )
    assert done.returncode == 1, done.stdout  # one of the two is spoilt on purpose
    return {each["entry"]: each for each in json.loads((folder / "r.json").read_text())["items"]}


def test_planted_wrong_value_of_one_pod_fails_the_item_with_its_sizes(items):
    item = items["communication/planted"]

    assert item["code"] == "fail"
    first = item["text"].splitlines()[0]
    assert first.startswith("wrong values: 1 out-of-place and 1 in-place at 1 MiB; ")
    assert figures_of(item["groups"][0])["ranks"] == 2


def test_burn_in_has_a_figure_of_every_node(items):
    item = items["compute/small"]

    assert item["code"] == "pass"
    assert len(item["groups"]) == 2
    for group in item["groups"]:
        figures = figures_of(group)
        assert (figures["gpus_measured"], figures["wrong_elements"]) == (1, 0)
        assert figures["gemm_tflops.gpu-0"] > 0

"""Two pods that are real processes, on a control plane that the run itself starts and ends."""

import pytest

from tests.integration.running import processes_in
from tests.workloads.pods import COLLECTIVE, figures_of, write_pods

NAME = "communication/healthy"


@pytest.fixture(scope="module")
def temporary(tmp_path_factory):
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pods")


@pytest.fixture(scope="module")
def exchange(start_run, programs, folder, temporary):
    given = write_pods(folder, {NAME: COLLECTIVE.format(more="")})
    genuine = ("--cre-cluster=controlplane", f"--cre-controlplane={programs}", "-k", "test_mine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        run = start_run(*genuine, *given)
    return run.result()


def test_two_pods_exchange_data_and_every_value_is_right(exchange):
    assert exchange.code == 0, exchange.output
    (item,) = exchange.report["items"]
    assert (item["entry"], item["code"], item["kind"]) == (NAME, "pass", "indexedJob")
    (group,) = item["groups"]
    assert len(group["nodes"]) == 2
    figures = figures_of(group)
    assert (figures["ranks"], figures["wrong_elements"]) == (2, 0)
    assert figures["busbw_max"] > 0


def test_table_of_the_pods_is_read_as_complete(exchange):
    measured = exchange.measured("healthy")

    assert (measured["status"], measured["reasons"]) == ("complete", [])
    (table,) = measured["bandwidth"]["tables"]
    assert [row["size_bytes"] for row in table["rows"]] == [1 << 20, 2 << 20, 4 << 20] * 2
    assert {row["out_of_place"]["wrong"] for row in table["rows"]} == {0}


def test_run_ends_the_control_plane_that_it_started(exchange, folder, temporary):
    assert exchange.report["cluster"]["kind"] == "controlplane"
    assert exchange.report["settings"]["scenario"] == str(folder / "scenario.yaml")
    assert not processes_in(temporary)
    assert not any(temporary.iterdir())

"""Each supported version of the official client carries a whole run on genuine Kubernetes."""

import pytest

from tests import clients

SMALL = ("--cre-option=maxBytes=64M", "--cre-option=numIterations=2")


@pytest.mark.parametrize("version", clients.VERSIONS)
def test_run_gives_the_same_figures_through_each_client(version, start_certifying, monkeypatch):
    assert clients.installed(version) == version
    for name, value in clients.environment(version).items():
        monkeypatch.setenv(name, value)

    done = start_certifying("-k", "nccl-all-reduce and not intra", *SMALL).result()

    assert done.report["leftovers"] == [], done.output
    bandwidth = done.measured("nccl-all-reduce")["bandwidth"]
    (table,) = bandwidth["tables"]
    assert table["complete"]
    assert table["rows"][-1]["size_bytes"] == 64 << 20
    assert bandwidth["max_busbw_gbs"] == FIGURES.setdefault("max", bandwidth["max_busbw_gbs"])


FIGURES: dict[str, object] = {}  # of the first client, for the others to equal

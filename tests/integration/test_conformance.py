"""What is kept as the genuine servers' answers is what they answer."""

import pytest

from tests.conformance.api import Api
from tests.conformance.differences import as_text, compare
from tests.conformance.kubelet import serving_kubelet
from tests.conformance.table import all_exchanges, read_records, run_table

RECORDED_LINE = "v1.37"
RECORDS = read_records()
EXCHANGES = [(chapter, name) for chapter, named in all_exchanges().items() for name in named]


@pytest.fixture(scope="module")
def played(plane, tmp_path_factory):
    """Give the genuine servers' answers, by chapter and name."""
    api = Api(plane.admin_kubeconfig)
    version = api.get("/version")["gitVersion"]
    if version.rpartition(".")[0] != RECORDED_LINE:
        pytest.skip(f"the record is of Kubernetes {RECORDED_LINE}, these servers are {version}")
    with serving_kubelet(api) as kubelet:
        return run_table(api, kubelet, tmp_path_factory.mktemp("conformance"))


@pytest.mark.parametrize(("chapter", "name"), EXCHANGES, ids=map(".".join, EXCHANGES))
def test_genuine_servers_answer_as_recorded(played, chapter, name):
    found = played[chapter][name]
    if isinstance(found, Exception):
        raise found
    differences = compare(RECORDS[chapter][name], found)
    assert not differences, f"differs from the record:\n{as_text(f'{chapter}.{name}', differences)}"

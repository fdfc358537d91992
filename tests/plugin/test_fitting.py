"""What a run creates is what `pytest-cre render` prints, fitted to platform and site."""

import json
import re

import pytest

from pytest_cre.cli import main
from pytest_cre.evidence.masking import mask_manifest
from pytest_cre.evidence.store import read_workflow
from pytest_cre.plan.names import owner_name

ENTRY = "communication/nccl-all-reduce"
SITE = """\
imagePullSecrets: [regcred]
labels: {team: bench}
tolerations: [{key: team, operator: Exists}]
env: {NCCL_ALGO: Ring}
images: {nvcr.io/: nvcr.io/}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory, certify_in):
    folder = tmp_path_factory.mktemp("fitting")
    (folder / "site.yaml").write_text(SITE)
    return certify_in(folder)(
        *("--pyargs", "pytest_cre.suites", "-k", "nccl-all-reduce and not intra"),
        *("--cre-scenario", "h100-2", "--cre-option", "maxBytes=1M", "--cre-evidence=ev"),
        *("--cre-platform", "onprem", "--cre-site", "site.yaml", "--cre-simulated-by", "published"),
    )


@pytest.fixture(scope="module")
def group(run):
    (path,) = (run.folder / "ev").glob("communication*")
    (found,) = read_workflow(path).groups
    return found


def test_render_with_its_placeholders_filled_is_what_the_run_created(run, group, capsys):
    arguments = ["render", ENTRY, "--platform", "onprem", "--arch", "h100", "--nodes", "2"]
    site = ["--site", str(run.folder / "site.yaml"), "--option", "maxBytes=1M", "--format", "json"]
    assert main([*arguments, *site]) == 0
    text = capsys.readouterr().out
    metadata = group.manifests[0]["metadata"]
    owner = metadata["ownerReferences"][0]
    assert owner["name"] == owner_name(run.json()["run_id"])
    text = text.replace("run-id-placeholder", run.json()["run_id"])
    text = text.replace("owner-uid-placeholder", owner["uid"])
    for index, node in enumerate(group.nodes):
        text = text.replace(f"node-placeholder-{index}", node)
    assert "placeholder" not in text
    assert [mask_manifest(each) for each in json.loads(text)["items"]] == list(group.manifests)


def test_site_and_platform_reach_the_pods(group):
    spec = group.manifests[-1]["spec"]["template"]["spec"]
    assert spec["imagePullSecrets"] == [{"name": "regcred"}]
    assert spec["tolerations"][-1] == {"key": "team", "operator": "Exists"}
    assert {"name": "NCCL_ALGO", "value": "Ring"} in spec["containers"][0]["env"]
    assert group.manifests[-1]["metadata"]["labels"]["team"] == "bench"


def test_evidence_names_platform_and_overrides_with_what_they_did(group):
    assert group.platform == "onprem"
    overrides = {each.name: each for each in group.overrides}
    assert overrides["gpu-taint"].changes == ("toleration nvidia.com/gpu",)
    assert overrides["nics"].is_no_op  # no node allocates any
    assert re.search(r"onprem\.yaml:\d+:\d+$", overrides["nics"].place)


def test_published_limits_judge_simulated_nodes_where_that_is_asked(run):
    # Two H100 nodes have published floors from 4 GB on; nothing judges a table up to 1 MB.
    assert run.code == 10, run.output
    (item,) = run.json()["items"]
    assert item["code"] == "no-limit"
    assert run.json()["settings"]["simulated_by"] == "published"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cre-platform", "aw"), "unknown platform 'aw'; did you mean 'aws'?"),
        (("--cre-site", "nowhere.yaml"), "--cre-site: no such file: nowhere.yaml"),
        (("--cre-site", "bad.yaml"), "bad.yaml:1:1: que is an unknown key; did you mean 'queue'?"),
    ],
)
def test_mistake_is_a_usage_error_in_one_line(tmp_path, certify_in, arguments, words):
    (tmp_path / "bad.yaml").write_text("que: a\n")
    done = certify_in(tmp_path)("--pyargs", "pytest_cre.suites", *arguments)
    assert done.code == 4
    assert words in done.output
    assert "Traceback" not in done.output

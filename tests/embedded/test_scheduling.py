import pytest


@pytest.fixture(scope="module")
def nodes(kubelet):
    """Four nodes of 8 GPUs in two racks."""
    for index in range(4):
        labels = {"rack": f"r{index // 2}", "kubernetes.io/hostname": f"n{index}"}
        kubelet.add_node(f"n{index}", labels=labels)


@pytest.fixture
def place(cluster, nodes, namespace):
    """Create a pod; gives what became of it: its node, or the scheduler's message."""
    names = iter("abcdefgh")

    def make(gpus=0, labels=None, **spec):
        resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
        name = next(names)
        containers = [{"name": "c", "image": "i", "resources": resources}]
        body = {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": containers, **spec},
        }
        cluster.create(f"{namespace}/pods", body)
        pod = cluster.until(f"{namespace}/pods/{name}", lambda a: a.body["status"]["conditions"])
        condition = pod["status"]["conditions"][0]
        if condition["status"] == "True":
            return pod["spec"]["nodeName"]
        assert (condition["type"], condition["reason"]) == ("PodScheduled", "Unschedulable")
        return condition["message"]

    yield make
    for pod in cluster.get(f"{namespace}/pods")["items"]:
        cluster("DELETE", f"{namespace}/pods/{pod['metadata']['name']}?gracePeriodSeconds=0")


def unhelpful(count):
    return f"preemption: 0/4 nodes are available: {count} Preemption is not helpful for scheduling."


def in_rack(operator, *values, field=False):
    if field:
        term = {
            "matchFields": [{"key": "metadata.name", "operator": operator, "values": list(values)}]
        }
    else:
        term = {"matchExpressions": [{"key": "rack", "operator": operator, "values": list(values)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": required}


def test_pods_that_fill_a_node_go_to_one_each_in_order(place):
    assert [place(8) for _ in range(4)] == ["n0", "n1", "n2", "n3"]


def test_pod_that_finds_all_gpus_taken_says_so(place):
    for _ in range(4):
        place(8)
    assert place(1) == (
        "0/4 nodes are available: 4 Insufficient nvidia.com/gpu. preemption: 0/4 nodes are "
        "available: 4 No preemption victims found for incoming pod."
    )


def test_pod_that_wants_more_than_any_node_has_says_so(cluster, place, namespace):
    message = f"0/4 nodes are available: 4 Insufficient nvidia.com/gpu. {unhelpful(4)}"
    assert place(16) == message
    events = cluster.until(f"{namespace}/events", lambda a: a.body["items"])["items"]
    event = next(e for e in events if e["reason"] == "FailedScheduling")
    assert (event["type"], event["message"]) == ("Warning", message)
    assert event["involvedObject"]["name"] == "a"
    assert event["reportingComponent"] == "default-scheduler"


def test_bound_pod_has_an_event_that_names_its_node(cluster, place, namespace):
    assert place(nodeSelector={"rack": "r1"}) == "n2"
    name = namespace.rpartition("/")[2]
    events = cluster.until(f"{namespace}/events", lambda a: a.body["items"])["items"]
    assert events[0]["reason"] == "Scheduled"
    assert events[0]["message"] == f"Successfully assigned {name}/a to n2"


@pytest.mark.parametrize(
    ("spec", "node"),
    [
        ({"nodeSelector": {"rack": "r1"}}, "n2"),
        ({"affinity": in_rack("In", "r1")}, "n2"),
        ({"affinity": in_rack("NotIn", "r0")}, "n2"),
        ({"affinity": in_rack("Exists")}, "n0"),
        ({"affinity": in_rack("In", "n3", field=True)}, "n3"),
    ],
)
def test_pod_goes_where_selector_and_affinity_allow(place, spec, node):
    assert place(8, **spec) == node


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"rack": "zz"}},
        {"affinity": in_rack("DoesNotExist")},
        {"affinity": in_rack("In", "zz")},
    ],
)
def test_pod_that_no_node_suits_says_so(place, spec):
    words = "4 node(s) didn't match Pod's node affinity/selector."
    assert place(**spec) == f"0/4 nodes are available: {words} {unhelpful(4)}"


def test_pod_for_another_scheduler_is_left_alone(cluster, place, namespace):
    containers = [{"name": "c", "image": "i"}]
    spec = {"schedulerName": "mine", "containers": containers}
    cluster.create(f"{namespace}/pods", {"metadata": {"name": "other"}, "spec": spec})
    assert place() == "n0"
    assert "nodeName" not in cluster.get(f"{namespace}/pods/other")["spec"]


def test_cordon_and_taint_keep_pods_away_until_lifted(cluster, place, namespace):
    taints = [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    for name, spec in (
        ("n0", {"unschedulable": True}),
        ("n1", {"taints": taints}),
        ("n2", {"taints": taints}),
        ("n3", {"taints": taints}),
    ):
        cluster.patch(f"/api/v1/nodes/{name}", {"spec": spec})
    cluster.until("/api/v1/nodes/n0", lambda a: a.body["spec"]["taints"])
    words = "1 node(s) were unschedulable, 3 node(s) had untolerated taint(s)."
    assert place(8) == f"0/4 nodes are available: {words} {unhelpful(4)}"
    tolerant = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}
    assert place(8, tolerations=[tolerant]) == "n1"
    assert place(8, tolerations=[{**tolerant, "value": "c"}]).startswith("0/4 nodes")
    cluster("DELETE", f"{namespace}/pods/c")
    cluster.patch("/api/v1/nodes/n0", {"spec": {"unschedulable": None}})
    cluster.until(f"{namespace}/pods/a", lambda a: a.body["spec"]["nodeName"] == "n0")
    for name in ("n1", "n2", "n3"):
        cluster.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    cluster.until("/api/v1/nodes/n0", lambda a: "taints" not in a.body["spec"])


def test_waiting_pod_gets_the_place_of_one_that_ends(cluster, place, namespace):
    for _ in range(4):
        place(8)
    assert place(8).startswith("0/4 nodes are available")
    cluster.patch(f"{namespace}/pods/c/status", {"status": {"phase": "Succeeded"}})
    cluster.until(f"{namespace}/pods/e", lambda a: a.body["spec"]["nodeName"] == "n2")


def test_pods_up_to_the_nodes_limit_only(cluster, kubelet, place):
    kubelet.add_node("small", labels={"rack": "s"}, pods="1")
    only = {"nodeSelector": {"rack": "s"}}
    assert place(**only) == "small"
    assert "1 Too many pods" in place(**only)
    cluster("DELETE", "/api/v1/nodes/small")


def test_binding_assigns_a_pod_once(cluster, namespace):
    spec = {"schedulerName": "mine", "containers": [{"name": "c", "image": "i"}]}
    path = f"{namespace}/pods/p"
    cluster.create(f"{namespace}/pods", {"metadata": {"name": "p"}, "spec": spec})
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n0"}}
    answer = cluster("POST", f"{path}/binding", binding)
    assert (answer.code, answer.body["status"]) == (201, "Success")
    pod = cluster.get(path)
    assert pod["spec"]["nodeName"] == "n0"
    assert pod["status"]["conditions"][0]["status"] == "True"
    answer = cluster("POST", f"{path}/binding", binding)
    assert (answer.code, answer.body["message"]) == (
        409,
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n0"',
    )
    cluster("DELETE", f"{path}?gracePeriodSeconds=0")


def apart(key="kubernetes.io/hostname", **labels):
    """An affinity that keeps a pod away from those with labels."""
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pods_that_keep_apart_stand_on_a_node_each(place):
    affinity = apart(app="a")
    places = [place(labels={"app": "a"}, affinity=affinity) for _ in range(4)]
    assert sorted(places) == ["n0", "n1", "n2", "n3"]
    assert place(labels={"app": "a"}, affinity=affinity) == (
        "0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules. preemption: "
        "0/4 nodes are available: 4 No preemption victims found for incoming pod."
    )
    # Others are none of their business.
    assert place(labels={"app": "b"}) in places


def test_pod_without_wishes_keeps_away_from_those_that_mind_it(place):
    for _ in range(4):
        place(labels={"app": "a"}, affinity=apart(app="b"))
    refused = place(labels={"app": "b"})
    assert "4 node(s) didn't satisfy existing pods anti-affinity rules" in refused


def test_pods_keep_apart_by_any_label_of_nodes(place):
    affinity = apart("rack", app="a")
    first = place(labels={"app": "a"}, affinity=affinity)
    second = place(labels={"app": "a"}, affinity=affinity)
    assert {first, second} in ({"n0", "n2"}, {"n0", "n3"}, {"n1", "n2"}, {"n1", "n3"})
    assert "didn't match pod anti-affinity rules" in place(labels={"app": "a"}, affinity=affinity)
    minding = place(labels={"app": "c"}, affinity=apart("rack", app="d"))
    assert place(labels={"app": "d"}) in ({"n0", "n1"} if minding in ("n2", "n3") else {"n2", "n3"})


def test_pods_of_another_namespace_are_not_meant(cluster, place):
    cluster.create("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
    for index in range(4):
        body = {
            "metadata": {"name": f"p{index}", "labels": {"app": "a"}},
            "spec": {"nodeName": f"n{index}", "containers": [{"name": "c", "image": "i"}]},
        }
        cluster.create("/api/v1/namespaces/elsewhere/pods", body)
    assert place(labels={"app": "a"}, affinity=apart(app="a")).startswith("n")


def test_place_that_a_minding_pod_leaves_is_free_again(cluster, place, namespace):
    affinity = apart(app="a")
    for _ in range(4):
        place(labels={"app": "a"}, affinity=affinity)
    place(labels={"app": "a"}, affinity=affinity)
    node = cluster.get(f"{namespace}/pods/b")["spec"]["nodeName"]
    cluster("DELETE", f"{namespace}/pods/b?gracePeriodSeconds=0")
    pod = cluster.until(f"{namespace}/pods/e", lambda a: a.body["spec"]["nodeName"])
    assert pod["spec"]["nodeName"] == node


def test_pod_behind_a_gate_waits_until_the_gate_is_gone(cluster, place, namespace):
    body = {
        "metadata": {"name": "gated"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "schedulingGates": [{"name": "example.com/g"}],
        },
    }
    made = cluster.create(f"{namespace}/pods", body)
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"
    cluster.patch(f"{namespace}/pods/gated", {"spec": {"schedulingGates": None}})
    cluster.until(f"{namespace}/pods/gated", lambda a: a.body["spec"]["nodeName"])


def test_more_gates_than_at_first_are_refused(cluster, namespace):
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    cluster.create(f"{namespace}/pods", {**body, "spec": {**body["spec"], "schedulerName": "x"}})
    gates = {"spec": {"schedulingGates": [{"name": "example.com/g"}]}}
    answer = cluster(
        "PATCH", f"{namespace}/pods/p", gates, content_type="application/merge-patch+json"
    )
    assert answer.code == 422

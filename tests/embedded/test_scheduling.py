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

    def make(gpus=0, wait=True, **spec):
        resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
        name = next(names)
        containers = [{"name": "c", "image": "i", "resources": resources}]
        body = {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}
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

"""What a person types."""

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: j, labels: {suite: k}}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {exchange: "%s"}
      containers:
      - {name: main, image: "registry/image:1", resources: {limits: {nvidia.com/gpu: "8"}}}
"""


def creating(play):
    play.kubectl("create", "namespace", f"extra-{play.token}")
    play.kubectl("delete", "namespace", f"extra-{play.token}", "--timeout=60s")
    play.kubectl("create", "configmap", "c", "--from-literal=k=v")
    play.kubectl("create", "configmap", "c", "--from-literal=k=v")
    play.kubectl("create", "secret", "generic", "s", "--from-literal=k=v")
    play.kubectl("create", "serviceaccount", "a")
    play.kubectl("create", "job", "j", "--image=i:1", "--", "sh", "-c", "exit 0")
    play.kubectl("create", "service", "clusterip", "svc", "--tcp=80:8080")
    play.kubectl("run", "p", "--image=i:1", "--restart=Never", "--env=A=b", "--labels=a=b")
    for path in ("configmaps/c", "secrets/s", "services/svc"):
        play.ask("GET", path)
    play.ask("GET", "jobs/j", only=["spec"])
    play.ask("GET", "pods/p", only=["metadata.labels", "spec.containers"])


def applying(play):
    text = JOB % play.token
    play.kubectl("apply", "-f", "-", stdin=text)
    play.kubectl("apply", "-f", "-", stdin=text)
    play.kubectl("apply", "-f", "-", stdin=text.replace("backoffLimit: 0", "backoffLimit: 3"))
    play.kubectl("apply", "-f", "-", stdin=text.replace("completions: 2", "completions: 3"))
    play.kubectl("apply", "-f", "-", stdin=text.replace("backoffLimit", "backofLimit"))
    play.kubectl("create", "-f", "-", stdin=text.replace("name: j", "name: k"))
    play.kubectl("create", "-f", "-", stdin=text.replace("image:", "imagee:"))
    play.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text.replace("name: j", "name: l"))
    play.kubectl("diff", "-f", "-", stdin=text)
    play.kubectl("delete", "-f", "-", stdin=text)
    play.kubectl("delete", "-f", "-", stdin=text)
    play.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=text)


def applying_at_the_server(play):
    play.kubectl("apply", "--server-side", "-f", "-", stdin=JOB % play.token)


def watching_a_run(play):
    """Get, describe, logs, wait, delete, on the objects of a run."""
    play.add_node("a", labels={"node-role.kubernetes.io/worker": ""})
    play.add_node("b")
    play.kubectl("apply", "-f", "-", stdin=JOB % play.token)
    pods = [play.kubelet.run(pod) for pod in play.placed(2, **{"job-name": "j"})]
    for pod in pods:
        place = f"{play.namespace}/{pod['metadata']['name']}/main"
        play.kubelet.answers[place] = (200, [b"first\n", b"second\n"])
    play.seen("jobs/j", lambda a: a.body["status"]["ready"] == 2)
    play.kubectl("get", "nodes", "-l", f"exchange={play.token}")
    play.kubectl("get", "job,pods", "-l", "suite=k")
    play.kubectl("get", "jobs", "-o", "wide")
    play.kubectl("get", "jobs/j", "-o", "jsonpath={.status.active} {.spec.completions}")
    play.kubectl(
        "get",
        "pods",
        "-o",
        "custom-columns=I:.metadata.annotations.batch\\.kubernetes\\.io/job-completion-index,P:.status.phase",
    )
    play.kubectl("get", "all", "-l", "suite=other")
    play.kubectl("get", "jobs", "missing")
    play.kubectl("get", "nonsense")
    play.kubectl("get", "serviceaccounts,secrets,leases")
    play.kubectl("get", "pods", "-w", "--request-timeout=1s")
    play.kubectl("logs", pods[0]["metadata"]["name"])
    play.kubectl("logs", "-f", "job/j", "--tail=5")
    play.kubectl("logs", "-f", "-l", "job-name=j", "--prefix", "--tail=-1", is_ordered=False)
    play.kubectl("logs", "missing")
    play.kubectl("logs", pods[0]["metadata"]["name"], "-c", "wrong")
    play.kubectl("describe", "job", "j")
    play.kubectl("wait", "--for=condition=complete", "job/j", "--timeout=0s")
    for pod in pods:
        play.kubelet.finish(pod)
    play.kubectl("wait", "--for=condition=complete", "job/j", "--timeout=20s")
    play.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.phase}")
    play.kubectl("delete", "job", "j", "--cascade=foreground", "--timeout=20s")
    play.kubectl("get", "pods")
    play.kubectl("wait", "--for=delete", "job/j", "--timeout=5s")


def describing(play):
    node = play.add_node(has_lease=False)  # it is shown, and would come at any moment
    spec = {
        "nodeSelector": play.here,
        "containers": [
            {
                "name": "main",
                "image": "i:1",
                "command": ["true"],
                "env": [{"name": "A", "value": "b"}],
                "resources": {"limits": {"nvidia.com/gpu": "8"}},
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
            }
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
        "automountServiceAccountToken": False,
    }
    play.make("pods", {"metadata": {"name": "p"}, "spec": spec})
    play.kubelet.run(play.placed(1)[0])
    play.kubectl("describe", "pod", "p")
    play.kubectl("describe", "node", node, "--show-events=false")
    play.kubectl("describe", "pod", "missing")


def changing(play):
    node = play.add_node()
    play.make("configmaps", {"metadata": {"name": "a"}, "data": {"k": "v"}})
    play.kubectl("label", "configmap", "a", "x=y")
    play.kubectl("label", "configmap", "a", "x=z")
    play.kubectl("label", "configmap", "a", "x-")
    play.kubectl("annotate", "configmap", "a", "note=n")
    play.kubectl("patch", "configmap", "a", "-p", '{"data":{"k":"w"}}')
    play.kubectl(
        "patch", "configmap", "a", "--type=json", "-p", '[{"op":"remove","path":"/data/k"}]'
    )
    play.ask("GET", "configmaps/a")
    play.kubectl("cordon", node)
    play.kubectl("uncordon", node)
    play.kubectl("taint", "nodes", node, "maintenance=yes:NoSchedule")
    play.kubectl("taint", "nodes", node, "maintenance-")
    play.kubectl(
        "replace", "-f", "-", stdin='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}'
    )


def draining(play):
    node = play.add_node()
    spec = {"containers": [{"name": "c", "image": "i:1"}], "nodeName": node}
    play.make("pods", {"metadata": {"name": "p"}, "spec": spec})
    play.kubelet.finish(play.read("pods/p"))
    play.kubectl("drain", node, "--force", "--timeout=20s")
    play.gone("pods/p")


def asking_about_the_cluster(play):
    play.kubectl("auth", "can-i", "create", "jobs")
    play.kubectl("auth", "whoami", "-o", "jsonpath={.kind}")
    play.kubectl("api-resources", "--api-group=coordination.k8s.io", "-o", "wide")
    told = play.api.run_kubectl("explain", "job.spec.completions", home=play.folder).stdout
    play.note("kubectl explain", [line.split() for line in told.splitlines()[:5]])
    play.kubectl("get", "--raw", "/healthz")
    play.kubectl("exec", "missing", "--", "true")
    play.kubectl("events")
    play.kubectl("version", "-o", "jsonpath={.serverVersion.minor}")

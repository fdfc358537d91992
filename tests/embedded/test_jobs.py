import pytest

INDEX = "batch.kubernetes.io/job-completion-index"


class Runner:
    """The jobs and pods of one namespace, on nodes that the scripted kubelet plays."""

    def __init__(self, cluster, kubelet, namespace):
        self.cluster, self.kubelet, self.namespace = cluster, kubelet, namespace
        self.jobs = namespace.replace("/api/v1", "/apis/batch/v1") + "/jobs"

    def create(self, completions=2, **spec):
        containers = [{"name": "main", "image": "i"}]
        pod = {"restartPolicy": "Never", "containers": containers, **spec.pop("pod", {})}
        defaults = {
            "completions": completions,
            "parallelism": completions,
            "backoffLimit": 0,
            "completionMode": "Indexed",
            "template": {"spec": pod},
        }
        body = {"metadata": {"name": "j"}, "spec": {**defaults, **spec}}
        return self.cluster.create(self.jobs, body)

    def pods(self, count, accept=lambda pod: pod["spec"].get("nodeName")):
        """Wait for so many pods that are still to run; gives them sorted by name."""

        def live(body):
            return [
                pod
                for pod in body["items"]
                if accept(pod)
                and pod["status"]["phase"] in ("Pending", "Running")
                and "deletionTimestamp" not in pod["metadata"]
            ]

        body = self.cluster.until(f"{self.namespace}/pods", lambda a: len(live(a.body)) == count)
        return live(body)

    def until(self, accept):
        return self.cluster.until(f"{self.jobs}/j", lambda answer: accept(answer.body))

    def ended(self, condition):
        return self.until(lambda job: job["status"]["conditions"][-1]["type"] == condition)

    def events(self):
        listed = self.cluster.get(f"{self.namespace}/events")["items"]
        return {
            (e["type"], e["reason"], e["message"])
            for e in listed
            if e["involvedObject"]["kind"] == "Job"
        }


@pytest.fixture
def run(cluster, kubelet, namespace):
    if cluster("GET", "/api/v1/nodes/node-a").code == 404:
        kubelet.add_node("node-a")
        kubelet.add_node("node-b")
    return Runner(cluster, kubelet, namespace)


def conditions(job):
    return [
        (c["type"], c["status"], c["reason"], c["message"]) for c in job["status"]["conditions"]
    ]


def test_indexed_job_makes_pods_as_genuine_controllers_do(run):
    job = run.create()
    first, second = run.pods(2)
    metadata = first["metadata"]
    assert metadata["name"][:-5] == "j-0-"
    assert second["metadata"]["name"][:-5] == "j-1-"
    assert metadata["annotations"] == {INDEX: "0"}
    uid = job["metadata"]["uid"]
    assert metadata["labels"] == {
        INDEX: "0",
        "batch.kubernetes.io/controller-uid": uid,
        "controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "job-name": "j",
    }
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "j",
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert metadata["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert first["spec"]["hostname"] == "j-0"
    assert first["spec"]["containers"][0]["env"] == [
        {
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": {
                "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}
            },
        }
    ]


def test_job_completes_in_two_steps_when_all_indexes_succeeded(run):
    run.create()
    for pod in run.pods(2):
        run.kubelet.run(pod)
    running = run.until(lambda job: job["status"]["ready"] == 2)
    assert running["status"]["active"] == 2
    for pod in run.pods(2):
        run.kubelet.finish(pod)
    job = run.ended("Complete")
    words = ("True", "CompletionsReached", "Reached expected number of succeeded pods")
    assert conditions(job) == [("SuccessCriteriaMet", *words), ("Complete", *words)]
    status = job["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (2, "0,1")
    assert (status["ready"], status["terminating"]) == (0, 0)
    assert not {"active", "failed"} & set(status)
    assert status["uncountedTerminatedPods"] == {}
    assert status["startTime"] <= status["completionTime"]
    assert ("Normal", "Completed", "Job completed") in run.events()
    left = run.cluster.get(f"{run.namespace}/pods")["items"]
    assert ["finalizers" in pod["metadata"] for pod in left] == [False, False]


def test_both_steps_of_completion_can_be_watched(run):
    run.create(completions=1)
    start = run.cluster.get(run.jobs)["metadata"]["resourceVersion"]
    run.kubelet.finish(run.pods(1)[0])
    events = run.cluster.events(
        f"{run.jobs}?watch=1&resourceVersion={start}",
        stop=lambda e: any(
            c["type"] == "Complete" for c in e["object"]["status"].get("conditions", [])
        ),
    )
    last = [[c["type"] for c in e["object"]["status"].get("conditions", [])] for e in events][-2:]
    assert last == [["SuccessCriteriaMet"], ["SuccessCriteriaMet", "Complete"]]


def test_non_indexed_job_makes_pods_up_to_its_parallelism(run):
    run.create(completions=3, parallelism=2, completionMode="NonIndexed")
    for pod in run.pods(2):
        assert INDEX not in pod["metadata"]["labels"]
        assert len(pod["metadata"]["name"]) == len("j-") + 5
        run.kubelet.finish(pod)
    run.kubelet.finish(run.pods(1)[0])
    assert run.ended("Complete")["status"]["succeeded"] == 3


def test_failed_job_deletes_running_pods_and_fails_once_they_are_gone(run):
    run.create()
    first, second = run.pods(2)
    run.kubelet.run(second)
    run.kubelet.finish(first, 3)
    deciding = run.until(lambda job: job["status"].get("terminating") == 1)
    words = ("True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    assert conditions(deciding) == [("FailureTarget", *words)]
    going = run.cluster.get(run.kubelet.path(second))
    assert going["metadata"]["deletionTimestamp"]
    run.kubelet.reap(second)
    job = run.ended("Failed")
    assert conditions(job) == [("FailureTarget", *words), ("Failed", *words)]
    assert job["status"]["failed"] == 2
    assert "completionTime" not in job["status"]
    assert ("Warning", "BackoffLimitExceeded", words[2]) in run.events()
    assert run.cluster("GET", run.kubelet.path(second)).code == 404
    assert run.cluster("GET", run.kubelet.path(first)).code == 200


def test_pods_that_fail_together_are_all_counted_and_kept(run):
    run.create()
    for pod in run.pods(2):
        run.kubelet.finish(pod, 1)
    assert run.ended("Failed")["status"]["failed"] == 2
    assert len(run.cluster.get(f"{run.namespace}/pods")["items"]) == 2


def test_failed_pod_is_replaced_up_to_the_backoff_limit(run):
    run.create(completions=1, backoffLimit=1)
    first = run.pods(1)[0]
    run.kubelet.finish(first, 1)
    run.until(lambda job: job["status"].get("failed") == 1)
    second = run.pods(1)[0]
    assert second["metadata"]["annotations"] == {INDEX: "0"}
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    run.kubelet.finish(second)
    status = run.ended("Complete")["status"]
    assert (status["succeeded"], status["failed"]) == (1, 1)


def test_index_that_fails_too_often_fails_alone_where_each_has_its_limit(run):
    run.create(backoffLimitPerIndex=0, backoffLimit=6)
    first, second = run.pods(2)
    assert first["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "0"
    run.kubelet.finish(first, 1)
    run.until(lambda job: job["status"].get("failedIndexes") == "0")
    run.kubelet.finish(second)
    job = run.ended("Failed")
    assert conditions(job)[-1] == ("Failed", "True", "FailedIndexes", "Job has failed indexes")
    assert (job["status"]["completedIndexes"], job["status"]["failedIndexes"]) == ("1", "0")


POLICY = {
    "rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]},
        },
    ]
}


def test_failure_policy_fails_the_job_on_an_exit_code(run):
    run.create(completions=1, backoffLimit=6, podFailurePolicy=POLICY)
    pod = run.pods(1)[0]
    run.kubelet.finish(pod, 42)
    job = run.ended("Failed")
    namespace = run.namespace.rpartition("/")[2]
    assert conditions(job)[-1] == (
        "Failed",
        "True",
        "PodFailurePolicy",
        f"Container main for pod {namespace}/{pod['metadata']['name']} failed with exit code 42 "
        "matching FailJob rule at index 1",
    )


def test_failure_policy_ignores_a_disrupted_pod(run):
    run.create(completions=1, podFailurePolicy=POLICY)
    pod = run.pods(1)[0]
    run.kubelet.run(pod)
    body = {"kind": "Eviction", "metadata": {"name": pod["metadata"]["name"]}}
    run.cluster.create(f"{run.kubelet.path(pod)}/eviction", {**body, "apiVersion": "policy/v1"})
    run.kubelet.reap(pod)
    run.cluster.gone(run.kubelet.path(pod))
    run.kubelet.finish(run.pods(1)[0])
    assert "failed" not in run.ended("Complete")["status"]


def test_pod_deleted_by_hand_counts_as_failed(run):
    run.create(completions=1, backoffLimit=1)
    pod = run.pods(1)[0]
    run.kubelet.run(pod)
    run.cluster("DELETE", run.kubelet.path(pod), {"gracePeriodSeconds": 0})
    run.until(lambda job: job["status"].get("failed") == 1)
    run.cluster.gone(run.kubelet.path(pod))
    assert run.pods(1)[0]["metadata"]["uid"] != pod["metadata"]["uid"]


def test_job_past_its_deadline_fails(run):
    run.create(completions=1, activeDeadlineSeconds=1)
    pod = run.pods(1)[0]
    run.kubelet.run(pod)
    run.until(lambda job: job["status"].get("terminating") == 1)
    run.kubelet.reap(pod)
    assert conditions(run.ended("Failed"))[-1] == (
        "Failed",
        "True",
        "DeadlineExceeded",
        "Job was active longer than specified deadline",
    )


def test_suspended_job_has_no_pods_and_goes_on_when_resumed(run):
    run.create(completions=1)
    pod = run.pods(1)[0]
    run.kubelet.run(pod)
    run.cluster.patch(f"{run.jobs}/j", {"spec": {"suspend": True}})
    job = run.until(lambda job: job["status"].get("conditions"))
    assert conditions(job) == [("Suspended", "True", "JobSuspended", "Job suspended")]
    run.kubelet.reap(pod)
    job = run.until(lambda job: job["status"].get("terminating") == 0)
    assert not {"startTime", "active", "failed"} & set(job["status"])
    run.cluster.patch(f"{run.jobs}/j", {"spec": {"suspend": False}})
    run.kubelet.finish(run.pods(1)[0])
    job = run.ended("Complete")
    assert conditions(job)[0] == ("Suspended", "False", "JobResumed", "Job resumed")
    assert "failed" not in job["status"]


def test_finished_job_goes_after_its_time_to_live_with_its_pods(run):
    run.create(completions=1, ttlSecondsAfterFinished=0)
    pod = run.pods(1)[0]
    run.kubelet.finish(pod)
    run.cluster.gone(f"{run.jobs}/j")
    run.cluster.gone(run.kubelet.path(pod))


def test_job_without_completions_ends_with_its_first_success(run):
    run.create(completions=None, parallelism=2, completionMode="NonIndexed")
    first, second = run.pods(2)
    run.kubelet.finish(first)
    run.until(lambda job: job["status"].get("succeeded") == 1)
    run.kubelet.finish(second)
    assert run.ended("Complete")["status"]["succeeded"] == 2


def test_job_with_background_deletion_takes_its_pods(run):
    run.create()
    pods = run.pods(2)
    for pod in pods:
        run.kubelet.run(pod)
    run.cluster("DELETE", f"{run.jobs}/j", {"propagationPolicy": "Background"})
    run.cluster.gone(f"{run.jobs}/j")
    for pod in pods:
        run.cluster.until(run.kubelet.path(pod), lambda a: a.body["metadata"]["deletionTimestamp"])
        run.kubelet.reap(pod)
        run.cluster.gone(run.kubelet.path(pod))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"backoffLimit": -1}, "spec.backoffLimit"),
        ({"pod": {"restartPolicy": "Always"}}, "spec.template.spec.restartPolicy"),
        ({"pod": {"containers": []}}, "spec.template.spec.containers"),
        ({"completionMode": "Odd"}, "spec.completionMode"),
        ({"maxFailedIndexes": 5}, "spec.maxFailedIndexes"),
    ],
)
def test_job_that_breaks_a_rule_is_422_and_names_the_field(run, change, field):
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}
    pod.update(change.pop("pod", {}))
    spec = {"completions": 2, "completionMode": "Indexed", "template": {"spec": pod}, **change}
    answer = run.cluster("POST", run.jobs, {"metadata": {"name": "j"}, "spec": spec})
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert field in {cause["field"] for cause in answer.body["details"]["causes"]}


def test_job_name_that_makes_a_host_name_too_long_is_422(run):
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}
    spec = {"completions": 11, "completionMode": "Indexed", "template": {"spec": pod}}
    answer = run.cluster("POST", run.jobs, {"metadata": {"name": "j" * 61}, "spec": spec})
    assert answer.code == 422
    assert "will not able to create pod with invalid DNS label" in answer.body["message"]
    answer = run.cluster(
        "POST", run.jobs, {"metadata": {"name": "j" * 60}, "spec": {**spec, "suspend": True}}
    )
    assert answer.code == 201


def test_large_job_gets_all_its_pods(run):
    run.create(completions=250, parallelism=250, suspend=False)
    run.cluster.until(
        f"{run.namespace}/pods?limit=250&fieldSelector=status.phase%3DPending",
        lambda a: len(a.body["items"]) == 250,
    )
    run.cluster("DELETE", f"{run.jobs}/j", {"propagationPolicy": "Background"})

"""Jobs, from their defaults to their last condition."""

from tests.conformance.play import MERGE


def _job(play, name="j", *, policy="Never", **spec):
    return {
        "metadata": {"name": name, "labels": {"cre.pytest.org/run": "r"}},
        "spec": {
            "completionMode": "Indexed",
            "completions": 2,
            "parallelism": 2,
            "backoffLimit": 0,
            **spec,
            "template": {
                "metadata": {"labels": {"cre.pytest.org/run": "r"}},
                "spec": {
                    "restartPolicy": policy,
                    "nodeSelector": play.here,
                    "containers": [
                        {
                            "name": "main",
                            "image": "i:1",
                            "resources": {"limits": {"nvidia.com/gpu": "1"}},
                        }
                    ],
                },
            },
        },
    }


def _start(play, name="j", count=2, **spec):
    """Create a Job and see its pods run; gives them by index."""
    play.add_node()
    play.make("jobs", _job(play, name, **spec))
    pods = play.placed(count, **{"job-name": name})
    return [play.kubelet.run(pod) for pod in pods]


def _has(condition, status="True"):
    return lambda answer: any(
        c["type"] == condition and c["status"] == status
        for c in answer.body["status"]["conditions"]
    )


def _is_settled(answer, **counts):
    """Whether all pods that ended are counted, genuine controllers do so in two steps."""
    status = answer.body["status"]
    return not status["uncountedTerminatedPods"] and counts.items() <= status.items()


def _ended(play, name="j", condition="Complete", timeout_s=40.0):
    play.until(f"jobs/{name}", _has(condition), only=["status"], timeout_s=timeout_s)


def defaults(play):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    play.ask("POST", "jobs?dryRun=All", {"metadata": {"name": "j"}, "spec": {"template": template}})
    play.ask("POST", "jobs?dryRun=All", _job(play))
    play.ask(
        "POST",
        "jobs?dryRun=All",
        _job(play, backoffLimit=None, backoffLimitPerIndex=1),
        only=["spec.backoffLimit", "spec.podReplacementPolicy"],
    )
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    play.ask(
        "POST",
        "jobs?dryRun=All",
        _job(play, podFailurePolicy={"rules": [rule]}),
        only=["spec.podFailurePolicy", "spec.podReplacementPolicy"],
    )


def rules(play):
    for spec in (
        {"completions": None},
        {"completions": -1},
        {"parallelism": -1},
        {"backoffLimit": -1},
        {"activeDeadlineSeconds": -1},
        {"ttlSecondsAfterFinished": -1},
        {"completionMode": "Random"},
        {"completionMode": "NonIndexed", "backoffLimitPerIndex": 1},
        {"completionMode": "NonIndexed", "maxFailedIndexes": 1},
        {"maxFailedIndexes": 1},
        {"backoffLimitPerIndex": 1, "maxFailedIndexes": 3},
        {"podReplacementPolicy": "Never"},
        {"podFailurePolicy": {"rules": [{"action": "Panic"}]}},
        {
            "podFailurePolicy": {
                "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]
            }
        },
        {
            "podFailurePolicy": {
                "rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}]
            }
        },
        {"manualSelector": True},
        {"selector": {"matchLabels": {"a": "b"}}},
        {"successPolicy": {"rules": [{"succeededIndexes": "9"}]}},
        {"managedBy": "nodomain"},
    ):
        play.ask("POST", "jobs", _job(play, **spec))
    play.ask("POST", "jobs", _job(play, policy="Always"))
    play.ask("POST", "jobs", _job(play, "n" * 64))
    play.ask("POST", "jobs", _job(play, "n" * 63))
    play.ask("POST", "jobs", _job(play, "n" * 64, completionMode="NonIndexed"))
    play.ask("POST", "jobs", _job(play, "a.b"), only=["metadata.name", "reason"])
    play.ask("POST", "jobs", {"metadata": {"name": "x"}})
    policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "X"}]}]}
    play.ask("POST", "jobs", _job(play, policy="OnFailure", podFailurePolicy=policy))


def changes(play):
    play.make("jobs", _job(play, suspend=True))
    only = ["metadata.generation", "spec.parallelism", "spec.completions", "message", "details"]
    for spec in (
        {"parallelism": 1},
        {"backoffLimit": 4},
        {"activeDeadlineSeconds": 100},
        {"ttlSecondsAfterFinished": 100},
        {"completions": 3},
        {"completions": 3, "parallelism": 3},
        {"completionMode": "NonIndexed"},
        {"selector": {"matchLabels": {"x": "y"}}},
        {"backoffLimitPerIndex": 1},
        {"template": {"spec": {"nodeSelector": {"x": "y"}}}},
        {"template": {"spec": {"restartPolicy": "OnFailure"}}},
    ):
        play.ask("PATCH", "jobs/j", {"spec": spec}, type_=MERGE, only=only)


def indexed_to_the_end(play):
    pods = _start(play)
    play.ask("GET", "pods?labelSelector=job-name%3Dj")
    play.seen("jobs/j", lambda a: a.body["status"]["ready"] == 2)
    play.kubelet.finish(pods[1])
    play.until("jobs/j", lambda a: _is_settled(a, succeeded=1), only=["status"])
    play.kubelet.finish(pods[0])
    _ended(play)
    play.ask(
        "GET", "pods?labelSelector=job-name%3Dj", only=["items.metadata.finalizers", "items.status"]
    )
    play.events_about("j", 3)


def failing_at_once(play):
    pods = _start(play)
    play.kubelet.finish(pods[0], 3)
    play.until(
        f"pods/{pods[1]['metadata']['name']}",
        lambda a: a.body["metadata"]["deletionTimestamp"],
        only=["metadata.deletionGracePeriodSeconds"],
    )
    play.until("jobs/j", _has("FailureTarget"), only=["status.conditions.type"])
    play.kubelet.reap(pods[1])
    _ended(play, condition="Failed")
    play.events_about("j", 4)


def trying_again(play):
    pods = _start(play, backoffLimit=1, completions=1, parallelism=1, count=1)
    first = pods[0]["metadata"]["name"]
    play.kubelet.finish(pods[0], 1)
    play.seen("jobs/j", lambda a: a.body["status"]["failed"] == 1)
    again = play.pods(
        1,
        lambda pod: pod["metadata"]["name"] != first and pod["spec"].get("nodeName"),
        **{"job-name": "j"},
    )
    play.kubelet.run(again[0])
    play.kubelet.finish(again[0])
    _ended(play)
    play.ask(
        "GET",
        "pods?labelSelector=job-name%3Dj",
        only=["items.metadata.annotations", "items.spec.hostname"],
    )


def trying_each_index_again(play):
    pods = _start(play, backoffLimit=None, backoffLimitPerIndex=0, maxFailedIndexes=1)
    play.kubelet.finish(pods[0], 1)
    play.until("jobs/j", lambda a: _is_settled(a, failedIndexes="0"), only=["status"])
    play.ask("GET", "pods?labelSelector=job-name%3Dj", only=["items.metadata.annotations"])
    play.kubelet.finish(pods[1])
    _ended(play, condition="Failed")
    play.events_about("j", 3)


def too_many_failed_indexes(play):
    pods = _start(play, backoffLimitPerIndex=0, maxFailedIndexes=0, backoffLimit=None)
    play.kubelet.finish(pods[1], 1)
    play.seen("jobs/j", _has("FailureTarget"))
    play.kubelet.reap(pods[0])
    _ended(play, condition="Failed")


def failing_by_exit_code(play):
    rule = {
        "action": "FailJob",
        "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]},
    }
    pods = _start(play, backoffLimit=5, podFailurePolicy={"rules": [rule]})
    play.kubelet.finish(pods[0], 42)
    play.seen("jobs/j", _has("FailureTarget"))
    play.kubelet.reap(pods[1])
    _ended(play, condition="Failed")


def failing_one_index_by_exit_code(play):
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1]}}
    pods = _start(
        play, backoffLimit=None, backoffLimitPerIndex=3, podFailurePolicy={"rules": [rule]}
    )
    play.kubelet.finish(pods[0], 42)
    play.seen("jobs/j", lambda a: _is_settled(a, failedIndexes="0"))
    play.kubelet.finish(pods[1])
    _ended(play, condition="Failed")


def disrupted_pods_do_not_count(play):
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    pods = _start(play, count=1, completions=1, parallelism=1, podFailurePolicy={"rules": [rule]})
    name = pods[0]["metadata"]["name"]
    play.make(f"pods/{name}/eviction", {"metadata": {"name": name}})
    play.kubelet.reap(pods[0])
    again = play.pods(
        1,
        lambda pod: pod["metadata"]["name"] != name and pod["spec"].get("nodeName"),
        **{"job-name": "j"},
    )
    play.ask("GET", "jobs/j", only=["status.failed", "status.conditions"])
    play.kubelet.finish(again[0])
    _ended(play)


def over_its_deadline(play):
    pods = _start(play, activeDeadlineSeconds=1)
    play.seen("jobs/j", _has("FailureTarget"))
    for pod in pods:
        play.kubelet.reap(pod)
    _ended(play, condition="Failed")
    play.events_about("j", 5)


def gone_after_its_time(play):
    pods = _start(play, ttlSecondsAfterFinished=0)
    for pod in pods:
        play.kubelet.finish(pod)
    play.gone("jobs/j")
    play.until("pods?labelSelector=job-name%3Dj", lambda a: not a.body["items"], only=["items"])


def suspended_and_resumed(play):
    play.add_node()
    play.make("jobs", _job(play, suspend=True))
    play.until("jobs/j", _has("Suspended"), only=["status"])
    play.patch("jobs/j", {"spec": {"suspend": False}})
    pods = play.placed(2, **{"job-name": "j"})
    play.until("jobs/j", lambda a: a.body["status"]["active"] == 2, only=["status"])
    for pod in pods:
        play.kubelet.run(pod)
    play.patch("jobs/j", {"spec": {"suspend": True}})
    play.until(
        "pods?labelSelector=job-name%3Dj",
        lambda a: all(pod["metadata"]["deletionTimestamp"] for pod in a.body["items"]),
        only=["items.metadata.finalizers"],
    )
    for pod in pods:
        play.kubelet.reap(pod)
    play.until(
        "jobs/j",
        lambda a: "active" not in a.body["status"] and not a.body["status"].get("terminating"),
        only=["status"],
    )
    play.events_about("j", 6)


def without_indexes(play):
    pods = _start(play, completionMode="NonIndexed")
    play.ask(
        "GET",
        "pods?labelSelector=job-name%3Dj",
        only=["items.metadata.labels", "items.metadata.annotations", "items.spec.hostname"],
    )
    for pod in pods:
        play.kubelet.finish(pod)
    _ended(play)


def without_a_number_of_completions(play):
    pods = _start(play, completionMode="NonIndexed", completions=None)
    play.kubelet.finish(pods[0])
    play.until("jobs/j", lambda a: a.body["status"]["succeeded"] == 1, only=["status.active"])
    play.kubelet.finish(pods[1])
    _ended(play)


def one_after_the_other(play):
    pods = _start(play, count=1, completions=3, parallelism=1)
    done = set()
    for index in range(3):
        play.note(f"index {index}", pods[0]["metadata"]["annotations"])
        play.kubelet.finish(pods[0])
        done.add(pods[0]["metadata"]["name"])
        if index < 2:
            pods = play.pods(
                1,
                lambda pod: pod["metadata"]["name"] not in done and pod["spec"].get("nodeName"),
                **{"job-name": "j"},
            )
    _ended(play)


def fewer_at_a_time(play):
    pods = _start(play, completions=4)
    play.patch("jobs/j", {"spec": {"parallelism": 0}})
    for pod in pods:
        play.seen(
            f"pods/{pod['metadata']['name']}", lambda a: a.body["metadata"]["deletionTimestamp"]
        )
        play.kubelet.reap(pod)
    play.until(
        "jobs/j",
        lambda a: "active" not in a.body["status"] and not a.body["status"].get("terminating"),
        only=["status"],
    )


def a_pod_deleted_from_outside(play):
    pods = _start(play, count=1, completions=1, parallelism=1, backoffLimit=2)
    name = pods[0]["metadata"]["name"]
    play.ask("DELETE", f"pods/{name}", {"gracePeriodSeconds": 0}, only=["metadata.finalizers"])
    play.pods(
        1,
        lambda pod: pod["metadata"]["name"] != name and pod["spec"].get("nodeName"),
        **{"job-name": "j"},
    )
    play.until("jobs/j", lambda a: a.body["status"]["active"] == 1, only=["status"])


def restarted_in_place(play):
    pods = _start(play, policy="OnFailure", backoffLimit=1)
    state = {
        "name": "main",
        "image": "i:1",
        "imageID": "",
        "ready": False,
        "restartCount": 2,
        "state": {"running": {}},
    }
    name = pods[0]["metadata"]["name"]
    play.patch(f"pods/{name}/status", {"status": {"containerStatuses": [state]}})
    play.seen("jobs/j", _has("FailureTarget"))
    for pod in pods:
        play.kubelet.reap(pod)
    _ended(play, condition="Failed")


def enough_indexes_succeeded(play):
    policy = {"rules": [{"succeededIndexes": "0"}]}
    pods = _start(play, successPolicy=policy)
    play.kubelet.finish(pods[0])
    play.until("jobs/j", _has("SuccessCriteriaMet"), only=["status.conditions"])
    play.kubelet.reap(pods[1])
    _ended(play)


def managed_by_another(play):
    play.make("jobs", _job(play, managedBy="example.com/other"))
    pods = _start(play, "k")
    for pod in pods:
        play.kubelet.finish(pod)
    _ended(play, "k")
    play.ask("GET", "jobs/j", only=["status", "spec.managedBy"])

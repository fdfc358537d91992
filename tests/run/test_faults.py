import threading
import time
from dataclasses import replace

import pytest

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.run.clocks import RunTiming

RANK_0 = b"2026-01-01T00:00:00.000000001Z line of rank 0\n"


def codes(group):
    return [problem.code for problem in group.problems]


def left_in(cluster):
    kinds = ("Job", "Pod", "Service")
    return [f"{kind}/{each['metadata']['name']}" for kind in kinds for each in cluster.find(kind)]


@pytest.fixture
def later():
    timers = []

    def start(delay_s, action, *arguments):
        timer = threading.Timer(delay_s, action, arguments)
        timer.start()
        timers.append(timer)

    yield start
    for timer in timers:
        timer.join()


def running_pair(cluster, job):
    pods = [cluster.add_pod(job, index, node) for index, node in enumerate(("n1", "n2"))]
    for pod in pods:
        cluster.run_pod(pod)
    return pods


def refusal(status, reason="", message="refused"):
    return ApiProblem(message, status=status, reason=reason)


# The workload fails


def test_failed_job_names_the_pod_that_failed_its_exit_code_and_node(cluster, run):
    def play(fake, job):
        first, second = running_pair(fake, job)
        fake.end_pod(second, exit_code=3, log=RANK_0)
        fake.end_pod(first, exit_code=1, log=RANK_0)
        fake.end_job(
            job, "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        )

    cluster.on_job = play
    (group,) = run().groups

    [problem] = group.problems
    assert (problem.code, problem.node) == ("job-failed", "n2")
    assert problem.pod.endswith("-1-aaaaa")
    assert f"{problem.pod} on node n2 ended with exit code 3 (Error)" in problem.message
    assert "BackoffLimitExceeded" in problem.message
    assert group.job.terminal == "failed"
    assert [pod.exit_code for pod in group.pods] == [1, 3]
    assert all(log.is_complete for log in group.logs)


def test_failed_job_blames_the_pod_killed_for_memory_before_any_other(cluster, run):
    def play(fake, job):
        first, second = running_pair(fake, job)
        fake.end_pod(first, exit_code=1)
        fake.end_pod(second, exit_code=137, reason="OOMKilled")
        fake.end_job(job, "Failed")

    cluster.on_job = play
    (group,) = run().groups

    assert group.problems[0].node == "n2"


def test_failed_job_blames_an_exit_code_before_a_signal_that_came_earlier(cluster, run):
    def play(fake, job):
        first, second = running_pair(fake, job)
        fake.end_pod(first, exit_code=143)
        fake.end_pod(second, exit_code=1)
        fake.end_job(job, "Failed")

    cluster.on_job = play
    (group,) = run().groups

    assert group.problems[0].node == "n2"


def test_failed_job_that_deletes_its_other_pods_is_a_failure_not_a_loss(cluster, run, later):
    def play(fake, job):
        first, second = running_pair(fake, job)
        fake.end_pod(second, exit_code=1)
        fake.remove(first)
        later(0.1, fake.end_job, job, "Failed", "BackoffLimitExceeded")

    cluster.on_job = play
    (group,) = run().groups

    assert "job-failed" in codes(group)
    assert "pod-deleted" not in codes(group)


def test_job_in_two_steps_is_over_only_at_the_second(cluster, run, later):
    def play(fake, job):
        first, second = running_pair(fake, job)
        fake.end_pod(second, exit_code=1)
        fake.end_job(job, "FailureTarget", "BackoffLimitExceeded")
        first["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"  # what the Job does to it
        fake.put(first)

        def finish():
            fake.end_pod(first, exit_code=143)
            fake.end_job(job, "Failed", "BackoffLimitExceeded")

        later(0.8, finish)

    cluster.on_job = play
    (group,) = run().groups

    assert group.job.terminal == "failed"
    assert [pod.exit_code for pod in group.pods] == [143, 1]
    assert group.problems[0].node == "n2"


def test_job_past_its_own_deadline_is_a_timeout(cluster, run):
    def play(fake, job):
        for pod in running_pair(fake, job):
            fake.remove(pod)
        fake.end_job(
            job, "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
        )

    cluster.on_job = play
    (group,) = run().groups

    assert codes(group)[0] == "run-timeout"
    assert "pod-deleted" not in codes(group)


@pytest.fixture
def flip(cluster, later):
    """Let the first pod of a pair that succeeded be told of as not admitted; then end the Job."""

    def play(*end, exit_code=0):
        def on_job(fake, job):
            first, second = running_pair(fake, job)
            fake.end_pod(first, log=RANK_0)
            fake.end_pod(second, exit_code=exit_code, log=RANK_0)

            def flip():
                first["status"] |= {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
                fake.put(first)
                fake.end_job(job, *end)

            later(0.2, flip)

        cluster.on_job = on_job

    return play


def test_pod_that_flips_to_failed_after_success_keeps_its_success(run, flip):
    flip()
    (group,) = run().groups

    assert [pod.phase for pod in group.pods] == ["Succeeded", "Succeeded"]
    assert group.problems == ()


def test_job_that_fails_because_a_pod_flips_after_success_has_lost_that_pod(run, flip):
    flip("Failed", "BackoffLimitExceeded")
    (group,) = run().groups

    assert [pod.phase for pod in group.pods] == ["Succeeded", "Succeeded"]
    assert codes(group) == ["pod-evicted", "job-failed"]
    assert (group.problems[0].node, group.problems[0].pod) == ("n1", group.pods[0].name)
    assert group.problems[0].message == "it had succeeded, and then: UnexpectedAdmissionError"


def test_flip_after_success_explains_no_job_in_which_another_pod_failed(run, flip):
    flip("Failed", "BackoffLimitExceeded", exit_code=3)
    (group,) = run().groups

    assert codes(group) == ["job-failed"]
    assert group.problems[0].node == "n2"


# Pods and nodes are lost


def test_evicted_pod_is_named_and_the_wait_is_bounded(cluster, run):
    def play(fake, job):
        first, _ = running_pair(fake, job)
        first["status"] |= {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}
        first["status"]["conditions"].append(
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "TerminationByKubelet",
                "message": "m",
            }
        )
        fake.put(first)

    cluster.on_job = play
    began_s = time.monotonic()
    (group,) = run().groups

    assert codes(group) == ["pod-evicted"]
    assert (group.problems[0].node, group.job.terminal) == ("n1", "none")
    assert time.monotonic() - began_s < 3
    assert left_in(cluster) == []


def test_evicted_pod_of_a_job_that_then_succeeds_is_still_told(cluster, run, later):
    def play(fake, job):
        first, second = running_pair(fake, job)
        first["status"] |= {"phase": "Failed", "reason": "Evicted"}
        fake.put(first)
        again = fake.add_pod(job, 0, "n1", suffix="bbbbb")

        def finish():
            for pod in (again, second):
                fake.run_pod(pod)
                fake.end_pod(pod, log=RANK_0)
            fake.end_job(job)

        later(0.05, finish)

    cluster.on_job = play
    (group,) = run().groups

    assert group.job.terminal == "succeeded"
    assert "pod-evicted" in codes(group)
    assert [(pod.completion_index, pod.attempt) for pod in group.pods] == [(0, 0), (0, 1), (1, 0)]


def test_eviction_explains_a_job_that_fails_after_it(cluster, run):
    def play(fake, job):
        first, second = running_pair(fake, job)
        first["status"] |= {"phase": "Failed", "reason": "Evicted"}
        fake.put(first)
        fake.end_pod(second, exit_code=1)
        fake.end_job(job, "Failed", "BackoffLimitExceeded")

    cluster.on_job = play
    (group,) = run().groups

    assert "pod-evicted" in codes(group)
    assert next(each for each in group.problems if each.code == "job-failed").node == "n2"


def test_pod_deleted_by_somebody_else_is_told(cluster, run, later):
    def play(fake, job):
        first, _ = running_pair(fake, job)
        later(0.1, fake.remove, first)

    cluster.on_job = play
    (group,) = run().groups

    assert codes(group) == ["pod-deleted"]
    assert group.problems[0].node == "n1"
    assert group.pods[0].phase == "Running"  # as last seen


def test_pod_deleted_by_somebody_else_explains_the_failure_of_the_others(cluster, run, later):
    def play(fake, job):
        first, second = running_pair(fake, job)

        def kill():
            first["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            fake.put(first)

        def finish():
            fake.end_pod(first, exit_code=143)
            fake.end_pod(second, exit_code=1)
            fake.end_job(job, "Failed", "BackoffLimitExceeded")

        later(0.05, kill)
        later(0.15, finish)

    cluster.on_job = play
    (group,) = run().groups

    assert group.problems[0].code == "pod-deleted"
    assert group.problems[0].node == "n1"


@pytest.mark.parametrize("how", ["not-ready", "deleted"])
def test_lost_node_is_named_and_never_a_failure_of_the_workload(cluster, run, later, how):
    def lose(fake):
        (node,) = fake.find("Node", "n2")
        if how == "deleted":
            fake.remove(node)
        else:
            node["status"]["conditions"][0]["status"] = "Unknown"
            fake.put(node)

    def play(fake, job):
        running_pair(fake, job)
        later(0.05, lose, fake)

    cluster.on_job = play
    (group,) = run().groups

    assert codes(group) == ["node-unreachable"]
    assert group.problems[0].node == "n2"


def test_node_that_is_back_in_time_does_no_harm(cluster, run, later, play_pass):
    def play(fake, job):
        (node,) = fake.find("Node", "n2")
        node["status"]["conditions"][0]["status"] = "Unknown"
        fake.put(node)
        pods = running_pair(fake, job)

        def finish():
            node["status"]["conditions"][0]["status"] = "True"
            fake.put(node)
            for pod in pods:
                fake.end_pod(pod, log=RANK_0)
            fake.end_job(job)

        later(0.1, finish)

    cluster.on_job = play
    (group,) = run(timing=replace(QUICK_NODE, node_lost_s=2.0)).groups

    assert group.problems == ()


QUICK_NODE = RunTiming(poll_s=0.3, spoiled_s=0.2, gone_s=1.0, drain_s=2.0)


def test_vanished_job_is_told(cluster, run, later):
    def play(fake, job):
        running_pair(fake, job)
        later(0.1, lambda: (fake.remove(job), fake.collect_garbage(job)))

    cluster.on_job = play
    (group,) = run().groups

    assert "vanished" in codes(group)


def test_job_replaced_by_a_namesake_has_vanished_and_the_namesake_stays(cluster, run, later):
    def swap(fake, job):
        fake.remove(job)
        namesake = {**job, "metadata": {**job["metadata"], "uid": "other", "labels": {}}}
        fake.put(namesake, "ADDED")

    def play(fake, job):
        later(0.05, swap, fake, job)

    cluster.on_job = play
    evidence = run()

    assert codes(evidence.groups[0]) == ["vanished"]
    assert cluster.job()["metadata"]["uid"] == "other"
    assert evidence.leftovers == ()


def test_pods_of_another_owner_with_our_label_are_not_ours(cluster, run, play_pass):
    def play(fake, job):
        stranger = {"metadata": {**job["metadata"], "uid": "somebody"}, "spec": job["spec"]}
        fake.run_pod(fake.add_pod(stranger, 0, "n4", suffix="zzzzz"))
        play_pass(fake, job)

    cluster.on_job = play
    (group,) = run(timing=replace(QUICK_NODE, gone_s=0.2)).groups

    assert [pod.node for pod in group.pods] == ["n1", "n2"]
    assert group.problems == ()


# It does not start, or does not end


def test_unschedulable_pod_gives_the_schedulers_words_at_the_start_deadline(
    cluster, run, make_plan
):
    words = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
    waiting = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": words,
    }
    told = []

    def play(fake, job):
        fake.add_pod(job, 0, "n1")
        fake.add_pod(job, 1, None, conditions=[waiting])

    cluster.on_job = play
    (group,) = run(make_plan(start_timeout_s=0.4), on_progress=told.append).groups

    assert codes(group) == ["unschedulable"]
    assert words in group.problems[0].message
    assert {each.phase for each in told} >= {"queued"}
    assert any(words in each.detail for each in told if each.phase == "queued")
    assert group.queue_s is None
    assert group.run_s is None


@pytest.mark.parametrize(
    ("reason", "code"),
    [("ImagePullBackOff", "image-pull"), ("InvalidImageName", "image-pull"),
     ("CreateContainerConfigError", "config-error")],
)  # fmt: skip
def test_bad_start_fails_long_before_the_start_deadline(cluster, run, make_plan, reason, code):
    def play(fake, job):
        state = {"waiting": {"reason": reason, "message": "no such thing"}}
        fake.add_pod(job, 0, "n1", containerStatuses=[{"name": "main", "state": state}])
        fake.run_pod(fake.add_pod(job, 1, "n2"))

    cluster.on_job = play
    began_s = time.monotonic()
    (group,) = run(make_plan(start_timeout_s=60)).groups

    assert codes(group) == [code]
    assert "no such thing" in group.problems[0].message
    assert time.monotonic() - began_s < 5


def test_image_error_that_passes_is_no_problem(cluster, run, later, play_pass):
    def play(fake, job):
        state = {"waiting": {"reason": "ErrImagePull", "message": "try again"}}
        pods = [
            fake.add_pod(job, index, node, containerStatuses=[{"name": "main", "state": state}])
            for index, node in enumerate(("n1", "n2"))
        ]

        def finish():
            for pod in pods:
                fake.run_pod(pod)
                fake.end_pod(pod, log=RANK_0)
            fake.end_job(job)

        later(0.2, finish)

    cluster.on_job = play
    (group,) = run(timing=replace(QUICK_NODE, bad_start_s=2.0)).groups

    assert group.problems == ()


def test_pods_that_never_run_without_a_reason_are_counted(cluster, run, make_plan):
    def play(fake, job):
        fake.run_pod(fake.add_pod(job, 0, "n1"))
        fake.add_pod(job, 1, "n2")

    cluster.on_job = play
    (group,) = run(make_plan(start_timeout_s=0.3)).groups

    assert codes(group) == ["start-timeout"]
    assert group.problems[0].message == "1 of 2 pods ran within 0.3 s"


def test_job_that_never_ends_is_a_run_timeout_with_its_log_so_far(cluster, run, make_plan):
    def play(fake, job):
        for pod in running_pair(fake, job):
            fake.logs[pod["metadata"]["name"]] = RANK_0

    cluster.on_job = play
    (group,) = run(make_plan(timeout_s=0.5)).groups

    assert codes(group) == ["run-timeout"]
    assert "not done within 0.5 s" in group.problems[0].message
    assert [log.data for log in group.logs] == [RANK_0, RANK_0]
    assert not any(log.is_complete for log in group.logs)
    assert left_in(cluster) == []


def test_run_deadline_starts_when_every_pod_runs(cluster, run, make_plan, later):
    def play(fake, job):
        first = fake.add_pod(job, 0, "n1")
        fake.run_pod(first)
        second = fake.add_pod(job, 1, "n2")

        def start():
            fake.run_pod(second)

        def finish():
            for pod in (first, second):
                fake.end_pod(pod, log=RANK_0)
            fake.end_job(job)

        later(1.9, start)
        later(2.1, finish)

    cluster.on_job = play
    (group,) = run(make_plan(timeout_s=2)).groups

    assert group.problems == ()


def test_suspended_job_waits_without_a_deadline(cluster, run, make_plan, later, play_pass):
    def play(fake, job):
        job["spec"]["suspend"] = True
        fake.put(job)

        def admit():
            job["spec"]["suspend"] = False
            fake.put(job)

        later(2.2, admit)
        later(2.3, play_pass, fake, job)

    cluster.on_job = play
    (group,) = run(make_plan(start_timeout_s=2)).groups

    assert group.problems == ()


def test_stalled_workload_is_ended_and_told(cluster, run):
    seen = []

    def play(fake, job):
        for pod in running_pair(fake, job):
            fake.logs[pod["metadata"]["name"]] = RANK_0

    def is_stalled(evidence):
        seen.append([log.data for log in evidence.logs])
        return len(seen) >= 3

    cluster.on_job = play
    (group,) = run(is_stalled=is_stalled).groups

    assert codes(group) == ["stalled"]
    assert group.problems[0].message.startswith("stalled")
    assert seen[-1] == [RANK_0, RANK_0]


# The log is not whole


def test_log_that_cannot_be_read_is_a_problem_even_of_a_success(cluster, run, play_pass):
    cluster.fail("log", "Pod", refusal(404, "NotFound"))
    cluster.on_job = play_pass

    (group,) = run().groups

    assert group.job.terminal == "succeeded"
    assert codes(group) == ["log-unavailable", "log-unavailable"]


# The API fails


def test_api_that_fails_for_a_while_does_no_harm(cluster, run, play_pass):
    for verb in ("create", "get", "list", "delete"):
        cluster.fail(verb, "Job", refusal(503), times=2)
    cluster.on_job = play_pass

    evidence = run()

    assert evidence.groups[0].problems == ()
    assert evidence.leftovers == ()


def test_create_whose_answer_is_lost_is_adopted_not_doubled(cluster, run, play_pass):
    cluster.fail("create", "Job", refusal(504), times=1, after=True)
    cluster.on_job = play_pass

    evidence = run()

    assert evidence.groups[0].problems == ()
    assert left_in(cluster) == []


def test_create_refused_is_an_api_error_and_leaves_nothing(cluster, run):
    cluster.fail("create", "Job", refusal(403, "Forbidden", "jobs is forbidden"))

    evidence = run()

    (group,) = evidence.groups
    assert codes(group) == ["api-error"]
    assert "jobs is forbidden" in group.problems[0].message
    assert evidence.leftovers == ()
    assert left_in(cluster) == []


def test_create_done_but_never_answered_is_found_by_name_and_deleted(cluster, run):
    cluster.fail("create", "Job", refusal(400), after=True)

    evidence = run()

    assert codes(evidence.groups[0]) == ["api-error"]
    assert evidence.leftovers == ()
    assert left_in(cluster) == []


def test_job_of_somebody_else_with_our_name_is_neither_adopted_nor_deleted(cluster, run, make_plan):
    plan = make_plan()
    foreign = {
        "apiVersion": "batch/v1", "kind": "Job", "spec": {},
        "metadata": {"name": plan.groups[0].job_name, "labels": {"cre.pytest.org/run": "other"}},
    }  # fmt: skip
    cluster.put(foreign, "ADDED")

    evidence = run(plan)

    assert codes(evidence.groups[0]) == ["api-error"]
    assert "belongs to somebody else" in evidence.groups[0].problems[0].message
    assert cluster.job() is foreign
    assert evidence.leftovers == ()


def test_api_that_is_gone_for_good_is_an_error_with_every_object_listed(cluster, run):
    def play(fake, job):
        running_pair(fake, job)
        for verb in ("get", "list", "delete"):
            fake.fail(verb, "*", refusal(503, message="unavailable"))

    cluster.on_job = play
    evidence = run()

    assert codes(evidence.groups[0]) == ["api-error"]
    assert len(evidence.leftovers) == 2
    assert all("unavailable" in each for each in evidence.leftovers)


def test_watch_that_is_forbidden_is_an_api_error(cluster, run):
    cluster.fail("list", "Node", refusal(403, "Forbidden", "nodes is forbidden"))
    cluster.on_job = running_pair

    evidence = run()

    assert codes(evidence.groups[0]) == ["api-error"]
    assert "nodes is forbidden" in evidence.groups[0].problems[0].message


@pytest.mark.parametrize("status", [401, 404])
@pytest.mark.parametrize(("verb", "kind"), [("watch", "Pod"), ("list", "Node"), ("watch", "Job")])
def test_watch_that_is_refused_for_a_moment_does_no_harm(
    cluster, run, play_pass, status, verb, kind
):
    cluster.fail(verb, kind, refusal(status, "", "refused for now"), times=1)
    cluster.on_job = play_pass

    evidence = run()

    assert evidence.groups[0].problems == ()


def test_watch_that_stays_refused_is_an_api_error_in_its_words(cluster, run, client):
    client.retry = replace(client.retry, refusal_budget_s=0.3)
    cluster.fail("watch", "Pod", refusal(404, "", "the server could not find it"))
    cluster.on_job = running_pair

    evidence = run()

    assert codes(evidence.groups[0]) == ["api-error"]
    assert evidence.groups[0].problems[0].message == "the server could not find it"


def test_pods_that_keep_their_gpus_are_told_with_node_and_number(cluster, run):
    cluster.stuck_pods = True

    def play(fake, job):
        for pod in running_pair(fake, job):
            resources = {"limits": {"nvidia.com/gpu": "8"}}
            pod["spec"]["containers"] = [{"name": "main", "resources": resources}]
            fake.put(pod)

    cluster.on_job = play
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    evidence = run(stop=stop)

    name = cluster.find("Pod")[0]["metadata"]["name"].rpartition("-0-")[0]
    assert evidence.leftovers == (
        f"8 GPUs of n1 still held by ns/{name}-0-aaaaa",
        f"8 GPUs of n2 still held by ns/{name}-1-aaaaa",
    )


def test_pods_that_will_not_go_are_leftovers_with_their_nodes(cluster, run, play_pass):
    cluster.stuck_pods = True
    cluster.on_job = play_pass

    evidence = run()

    assert evidence.groups[0].problems == ()
    assert [each.rpartition(" on node ")[2] for each in evidence.leftovers] == ["n1", "n2"]
    assert all(each.startswith("Pod/") for each in evidence.leftovers)


# An interrupt


def test_interrupt_ends_every_group_quickly_and_leaves_nothing(cluster, run, make_plan):
    stop = threading.Event()

    def play(fake, job):
        pod = fake.add_pod(job, 0, "n1")
        fake.run_pod(pod)
        fake.logs[pod["metadata"]["name"]] = RANK_0
        if len(fake.find("Job")) == 2:
            stop.set()

    cluster.on_job = play
    began_s = time.monotonic()
    evidence = run(
        make_plan(nodes=("n1", "n2", "n3"), scale="intra-node"), stop=stop, max_concurrent=2
    )

    assert [codes(group) for group in evidence.groups] == [["interrupted"]] * 3
    assert [group.job is None for group in evidence.groups][2]
    assert time.monotonic() - began_s < 3
    assert evidence.leftovers == ()
    assert left_in(cluster) == []


def test_interrupt_before_the_start_creates_nothing(cluster, run):
    stop = threading.Event()
    stop.set()

    evidence = run(stop=stop)

    assert [codes(group) for group in evidence.groups] == [["interrupted"]]
    assert left_in(cluster) == []
    assert ("create", "Job") not in [request[:2] for request in cluster.requests]


def test_interrupt_cuts_short_the_wait_for_an_api_that_is_down(cluster, client, run, later):
    stop = threading.Event()
    client.retry = replace(client.retry, budget_s=60.0)

    def play(fake, job):
        fake.fail("get", "Job", refusal(503))
        later(0.1, stop.set)
        later(0.4, fake.faults.clear)

    cluster.on_job = play
    began_s = time.monotonic()
    evidence = run(stop=stop)

    assert codes(evidence.groups[0]) == ["interrupted"]
    assert time.monotonic() - began_s < 5
    assert left_in(cluster) == []

import base64
import contextlib
import json
import multiprocessing
import socket
import ssl
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import kubernetes.config
import pytest

from pytest_cre.cluster import exchange
from pytest_cre.cluster.client import ApiProblem, Conflict, connect
from pytest_cre.cluster.objects import CONFIG_MAP, JOB, JOB_SET, NODE, POD
from pytest_cre.cluster.retry import RetryPolicy
from pytest_cre.cluster.transport import pieces, transport_words
from pytest_cre.errors import ClusterProblem, UsageProblem

RUN = "cre.pytest.org/run"


def config_map(run="run-1", name="a", **metadata):
    labels = {RUN: run} if run else {}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "team", "labels": labels, **metadata},
    }


def always(status, reason, message=""):
    return lambda _, reply: reply.refuse(status, reason, message)


# Configuration


def test_connect_takes_the_namespace_of_the_context(serve):
    server = serve(always(404, "NotFound"))
    assert server.client().namespace == "team"
    given = connect(kubeconfig=str(server.kubeconfig), context=None, namespace="mine")
    assert given.namespace == "mine"
    assert server.requests == []


def test_connect_with_a_missing_kubeconfig_is_one_line_of_usage(tmp_path):
    with pytest.raises(UsageProblem) as found:
        connect(kubeconfig=str(tmp_path / "none"), context=None, namespace=None)
    assert str(tmp_path / "none") in str(found.value)
    assert "\n" not in str(found.value)


def test_connect_without_any_kubeconfig_tells_where_to_get_one(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(UsageProblem) as found:
        connect(kubeconfig=None, context=None, namespace=None)
    assert str(found.value) == (
        "kubeconfig of the environment cannot be used: there is no such file; give --kubeconfig FILE "
        "(--cre-kubeconfig to pytest), or `pytest-cre simulate` makes one"
    )


def test_connect_with_an_unknown_context_is_usage(serve):
    server = serve(always(404, "NotFound"))
    with pytest.raises(UsageProblem, match="nowhere"):
        connect(kubeconfig=str(server.kubeconfig), context="nowhere", namespace=None)


@pytest.mark.parametrize("text", ["", "{", "[1]", "clusters: 5", "\0", "a: &a [*a]"])
def test_connect_with_a_broken_kubeconfig_is_usage(tmp_path, text):
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(UsageProblem, match="cannot be used"):
        connect(kubeconfig=str(path), context=None, namespace=None)


def test_kubeconfigs_are_read_one_at_a_time(serve, monkeypatch):
    server = serve(always(404, "NotFound"))
    both_inside = threading.Barrier(2, timeout=0.3)
    load = kubernetes.config.load_kube_config

    def loading(**arguments):
        with contextlib.suppress(threading.BrokenBarrierError):
            both_inside.wait()
            pytest.fail("two threads are in the client's loader")
        load(**arguments)

    monkeypatch.setattr(kubernetes.config, "load_kube_config", loading)
    with ThreadPoolExecutor(2) as pool:
        clients = [pool.submit(server.client) for _ in range(2)]
        assert [each.result().namespace for each in clients] == ["team", "team"]


def test_a_loopback_server_is_reached_past_a_dead_proxy(serve, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server = serve(lambda _, reply: reply.json({"gitVersion": "v1.37.2"}))
    assert server.client().preflight() == "v1.37.2"


def test_the_proxy_of_the_kubeconfig_is_used(serve, tmp_path, write_kubeconfig, quick):
    proxy = serve(lambda _, reply: reply.json({"gitVersion": "v1.37.2"}))
    path = write_kubeconfig(
        tmp_path / "proxied", "http://cluster.invalid:8080", **{"proxy-url": proxy.url}
    )
    client = connect(kubeconfig=str(path), context=None, namespace=None, retry=quick())
    assert client.preflight() == "v1.37.2"
    assert client.proxy == proxy.url
    assert proxy.requests[0].headers["host"] == "cluster.invalid:8080"


def test_preflight_without_a_server_fails_in_seconds_and_one_line(tmp_path, write_kubeconfig):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        path = write_kubeconfig(tmp_path / "kubeconfig", url)
        client = connect(kubeconfig=str(path), context=None, namespace=None)
        started = time.monotonic()
        with pytest.raises(ClusterProblem) as found:
            client.preflight()
    assert time.monotonic() - started < 5
    assert str(found.value).startswith(url)
    assert "Connection refused" in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    "words", ["Missing Authority Key Identifier", "CA cert does not include key usage extension"]
)
def test_certificate_that_only_strict_checks_refuse_is_told_as_such(words):
    problem = ssl.SSLCertVerificationError(1, f"[SSL: CERTIFICATE_VERIFY_FAILED] {words}")

    told = transport_words(problem)

    assert told.startswith("its CA certificate lacks extensions that Python 3.13 and later demand")
    assert "kubectl takes it" in told


def test_every_request_carries_the_token(serve):
    server = serve(lambda _, reply: reply.json({"items": []}))
    server.client().list(POD)
    assert server.requests[0].headers["authorization"] == "Bearer first-token"


def test_a_rotated_token_is_read_again_after_401(serve, write_kubeconfig):
    server = serve(lambda _, reply: reply.json({"items": []}))
    client = server.client()
    client.list(POD)
    server.tokens = {"second-token"}
    write_kubeconfig(server.kubeconfig, server.url, "second-token")
    client.list(POD)
    assert [each.headers["authorization"][7:] for each in server.requests] == [
        "first-token",
        "first-token",
        "second-token",
    ]


@pytest.mark.parametrize("kind", ["create", "log", "watch"])
def test_a_rotated_token_is_read_again_for_every_kind_of_request(serve, write_kubeconfig, kind):
    server = serve(lambda _, reply: reply.json({"metadata": {"uid": "u"}}))
    client = server.client()
    server.tokens = {"second-token"}
    write_kubeconfig(server.kubeconfig, server.url, "second-token")
    if kind == "create":
        client.create_or_adopt(config_map())
    elif kind == "log":
        with client.open_log("p", "main", follow=True) as response:
            assert b"".join(pieces(response))
    else:
        with client.open_watch(
            POD, resource_version="1", timeout_s=5, read_timeout_s=5
        ) as response:
            assert b"".join(pieces(response))
    assert len(server.requests) == 2


def test_credentials_that_stay_refused_are_asked_twice_and_named(serve, quick):
    server = serve(always(404, "NotFound"))
    server.tokens = set()
    with pytest.raises(ApiProblem, match="list pods in team: 401 Unauthorized"):
        server.client(quick(0.0)).list(POD)
    assert len(server.requests) == 2


def test_refusal_of_credentials_that_passes_does_no_harm(serve):
    refusals = iter(range(7))

    def answer(_, reply):
        if next(refusals, None) is None:
            reply.json({"items": [{"metadata": {"name": "n"}}]})
        else:
            reply.refuse(401, "Unauthorized")

    assert len(serve(answer).client().list(NODE).items) == 1


@pytest.mark.parametrize("status", [401, 404])
def test_refusal_that_does_not_pass_ends_long_before_an_outage_would(serve, quick, status):
    server = serve(lambda _, reply: reply.json({"code": status}, status))
    policy = replace(quick(60.0), refusal_budget_s=0.1)
    started = time.monotonic()
    with pytest.raises(ApiProblem, match=f"list nodes: {status}"):
        server.client(policy).list(NODE)
    assert 0.05 < time.monotonic() - started < 5


def test_kubeconfig_that_is_just_being_written_is_read_again(serve, quick, write_kubeconfig):
    server = serve(lambda _, reply: reply.json({"items": []}))
    client = server.client()
    whole = server.kubeconfig.read_text()
    server.tokens = {"second"}
    server.kubeconfig.write_text(whole[:40])
    timer = threading.Timer(
        0.2, lambda: write_kubeconfig(server.kubeconfig, server.url, token="second")
    )
    timer.start()
    assert client.list(NODE).items == ()
    timer.join()


def test_404_that_names_no_object_says_nothing_of_the_object(serve):
    answers = iter([(404, b"404 page not found"), (404, b"{}"), (200, b'{"kind": "Job"}')])

    def answer(_, reply):
        status, body = next(answers)
        reply.data(body, status)

    assert serve(answer).client().get(JOB, "j") == {"kind": "Job"}


@pytest.mark.parametrize("verb", ["list", "delete"])
def test_404_of_a_kind_that_every_cluster_has_is_asked_again(serve, verb):
    answers = iter([(404, b"404 page not found"), (200, b'{"items": []}')])

    def answer(_, reply):
        status, body = next(answers)
        reply.data(body, status)

    client = serve(answer).client()
    if verb == "list":
        assert client.list(POD).items == ()
    else:
        assert client.delete(POD, "p", uid="u") is True
    assert next(answers, None) is None


def test_404_of_a_kind_that_a_cluster_may_lack_is_its_answer(serve):
    server = serve(lambda _, reply: reply.data(b"404 page not found", 404))
    with pytest.raises(ApiProblem) as found:
        server.client().list(JOB_SET)
    assert (found.value.status, len(server.requests)) == (404, 1)


def test_404_of_a_kind_that_is_served_for_certain_is_asked_again(serve):
    answers = iter([(404, b"404 page not found"), (200, b'{"items": []}')])

    def answer(_, reply):
        status, body = next(answers)
        reply.data(body, status)

    assert serve(answer).client().list(JOB_SET, is_served=True).items == ()


def test_a_missing_right_is_named_with_verb_and_resource(serve):
    message = 'pods is forbidden: User "u" cannot list resource "pods"'
    server = serve(always(403, "Forbidden", message))
    with pytest.raises(ApiProblem) as found:
        server.client().list(POD)
    assert str(found.value) == f"{server.url}: list pods in team: 403 Forbidden: {message}"
    assert len(server.requests) == 1


def test_field_that_the_api_server_does_not_know_is_refused_and_not_dropped(embedded_kubeconfig):
    pod = {
        "restartPolicy": "Never",
        "hostnetwork": True,
        "containers": [{"name": "a", "image": "b"}],
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "strict", "labels": {RUN: "run-1"}},
        "spec": {"template": {"spec": pod}},
    }
    client = connect(kubeconfig=str(embedded_kubeconfig), context=None, namespace=None)
    with pytest.raises(ApiProblem, match=r'unknown field "spec\.template\.spec\.hostnetwork"'):
        client.create_or_adopt(job)
    assert client.get(JOB, "strict") is None


def test_a_forked_child_has_a_connection_of_its_own(embedded_kubeconfig):
    client = connect(
        kubeconfig=str(embedded_kubeconfig),
        context=None,
        namespace=None,
        retry=RetryPolicy(budget_s=0),
    )
    version = client.version()
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(client.version()))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    assert queue.get() == version
    assert client.version() == version


def test_certificate_files_that_vanish_are_written_again(
    embedded_kubeconfig, monkeypatch, tmp_path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = embedded_kubeconfig.read_text()
    own = tmp_path / "own-kubeconfig"  # its certificate is written to a file of its own
    config = json.loads(text)
    data = config["clusters"][0]["cluster"]["certificate-authority-data"]
    pem = base64.b64decode(data) + b"\n"
    config["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(pem).decode()
    own.write_text(json.dumps(config))
    client = connect(
        kubeconfig=str(own), context=None, namespace=None, retry=RetryPolicy(budget_s=5)
    )
    written = [path for path in tmp_path.iterdir() if path != own]
    assert written
    for path in written:
        path.unlink()
    assert client.version().startswith("v1.")


# What is sent


def test_a_manifest_reaches_the_server_unchanged(serve):
    server = serve(lambda request, reply: reply.json(request.body, 201))
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "team"},
        "spec": {
            "aFieldOfTomorrow": {"x": [1, None, True]},
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "env": [{"name": "N", "value": 1}],
                            "resources": {"limits": {"nvidia.com/gpu": 8}},
                        }
                    ]
                }
            },
        },
    }
    assert server.client().create_or_adopt(job) == job
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/apis/batch/v1/namespaces/team/jobs")
    assert request.body == job


def test_an_object_with_null_lists_and_unknown_values_is_read_as_it_is(serve):
    pod = {"metadata": {"name": "p"}, "spec": {"containers": None}, "status": {"phase": "Odd"}}
    server = serve(lambda _, reply: reply.json({"items": [pod], "metadata": {}}))
    assert server.client().list(POD).items == (pod,)


def test_get_of_an_unknown_name_is_none(serve):
    assert serve(always(404, "NotFound")).client().get(JOB, "j") is None


def test_list_reads_every_page_and_the_last_version(serve):
    def answer(request, reply):
        start = int(request.query.get("continue", "0"))
        metadata = {"resourceVersion": "77"}
        if start < 4:
            metadata["continue"] = str(start + 2)
        names = [{"metadata": {"name": f"n{start + step}"}} for step in (0, 1)]
        reply.json({"metadata": metadata, "items": names})

    server = serve(answer)
    listing = server.client().list(NODE, limit=2, label_selector="a=b", field_selector="c!=d")
    assert [each["metadata"]["name"] for each in listing.items] == [f"n{i}" for i in range(6)]
    assert listing.resource_version == "77"
    assert {each.path for each in server.requests} == {"/api/v1/nodes"}
    for request in server.requests:
        assert (
            request.query.items()
            >= {
                "limit": "2",
                "labelSelector": "a=b",
                "fieldSelector": "c!=d",
            }.items()
        )


def test_list_starts_over_when_a_page_expired(serve):
    def answer(request, reply):
        if "continue" not in request.query:
            reply.json({"metadata": {"continue": "t", "resourceVersion": "1"}, "items": [{"a": 1}]})
        elif len(server.requests) == 2:
            reply.refuse(410, "Expired")
        else:
            reply.json({"metadata": {"resourceVersion": "1"}, "items": [{"b": 2}]})

    server = serve(answer)
    assert server.client().list(POD).items == ({"a": 1}, {"b": 2})
    assert len(server.requests) == 4


def test_list_of_a_server_that_repeats_a_page_ends(serve):
    server = serve(lambda _, reply: reply.json({"metadata": {"continue": "t"}, "items": []}))
    with pytest.raises(ClusterProblem, match="repeats a page"):
        server.client().list(POD)


def test_list_of_all_namespaces_asks_for_them(serve):
    server = serve(lambda _, reply: reply.json({"items": None}))
    assert server.client().list(POD, all_namespaces=True).items == ()
    assert server.requests[0].path == "/api/v1/pods"


# Trying again


def test_a_get_survives_503_resets_and_lost_answers(serve):
    def answer(request, reply):
        step = len(server.requests)
        if step == 1:
            reply.refuse(503, "ServiceUnavailable")
        elif step == 2:
            reply.drop()
        elif step == 3:
            reply.reset()
        elif step == 4:
            reply.data(b"<html>bad gateway</html>", 502)
        elif step == 5:
            reply.data(b'{"cut": ', 200)
        else:
            reply.json({"metadata": {"name": "j"}})

    server = serve(answer)
    assert server.client().get(JOB, "j") == {"metadata": {"name": "j"}}
    assert len(server.requests) == 6


def test_too_large_a_resource_version_is_only_a_matter_of_time(serve):
    def answer(request, reply):
        if len(server.requests) <= 2:
            reply.refuse(504, "Timeout", "Too large resource version: 9, current: 8")
        else:
            reply.json({"items": []})

    server = serve(answer)
    assert server.client().list(POD).items == ()
    assert all("resourceVersion" not in each.query for each in server.requests)


def test_a_server_that_asks_for_patience_gets_it(serve):
    def answer(request, reply):
        if len(server.requests) == 1:
            reply.refuse(429, "TooManyRequests", Retry_After="7")
        else:
            reply.json({})

    slept = []
    server = serve(answer)
    server.client(RetryPolicy(sleep=slept.append)).get(JOB, "j")
    assert slept == [7.0]


def test_a_server_that_stays_away_is_given_up_when_the_budget_ends(serve):
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds

    server = serve(always(503, "ServiceUnavailable"))
    policy = RetryPolicy(budget_s=300, clock=lambda: now[0], sleep=sleep, jitter=lambda: 1.0)
    with pytest.raises(ApiProblem, match="get jobs team/j: 503 ServiceUnavailable"):
        server.client(policy).get(JOB, "j")
    assert 285 < now[0] <= 300
    assert len(server.requests) < 60


def test_an_answer_that_drips_is_given_up(serve, monkeypatch, quick):
    monkeypatch.setattr(exchange, "ANSWER_DEADLINE_S", 0.2)
    server = serve(lambda _, reply: reply.chunks([b" ", 0.05] * 200))
    started = time.monotonic()
    with pytest.raises(ClusterProblem, match="does not end"):
        server.client(quick(0.0)).get(JOB, "j")
    assert time.monotonic() - started < 3


def test_a_hung_server_is_given_up_after_the_read_timeout(serve, quick):
    hang = threading.Event()
    server = serve(lambda *_: hang.wait(10))
    with pytest.raises(ClusterProblem, match="timed out"):
        server.client(replace(quick(0.0), read_timeout_s=0.2)).get(JOB, "j")
    hang.set()


def test_a_redirect_is_refused_rather_than_followed_with_our_token(serve):
    other = serve(lambda _, reply: reply.json({}))
    server = serve(lambda _, reply: reply.data(b"", 302, Location=f"{other.url}/elsewhere"))
    with pytest.raises(ClusterProblem, match="302"):
        server.client().get(JOB, "j")
    assert other.requests == []


# Creating


def test_a_create_whose_answer_was_lost_is_adopted(serve):
    stored = {}

    def answer(request, reply):
        if request.method == "POST":
            stored.update(request.body)
            stored["metadata"] = {**request.body["metadata"], "uid": "u-1"}
            reply.drop()
        elif stored:
            reply.json(stored)
        else:
            reply.refuse(404, "NotFound")

    server = serve(answer)
    assert server.client().create_or_adopt(config_map())["metadata"]["uid"] == "u-1"
    assert [each.method for each in server.requests] == ["POST", "GET"]


def test_a_create_that_was_lost_on_its_way_is_sent_again(serve):
    def answer(request, reply):
        if request.method == "GET":
            reply.refuse(404, "NotFound")
        elif len(server.requests) == 1:
            reply.drop()
        else:
            reply.json(request.body, 201)

    server = serve(answer)
    assert server.client().create_or_adopt(config_map()) == config_map()
    assert [each.method for each in server.requests] == ["POST", "GET", "POST"]


def test_a_create_answered_by_504_that_was_done_is_adopted(serve):
    def answer(request, reply):
        if request.method == "GET":
            reply.json(config_map(uid="u"))
        elif len(server.requests) == 1:
            reply.refuse(504, "Timeout")
        else:
            reply.refuse(409, "AlreadyExists")

    server = serve(answer)
    assert server.client().create_or_adopt(config_map())["metadata"]["uid"] == "u"


@pytest.mark.parametrize(
    ("theirs", "words"),
    [("run-2", "belongs to run run-2"), (None, "belongs to somebody else")],
)
def test_a_name_that_is_taken_is_never_adopted(serve, theirs, words):
    def answer(request, reply):
        if request.method == "GET":
            reply.json(config_map(run=theirs))
        else:
            reply.refuse(409, "AlreadyExists")

    with pytest.raises(Conflict, match=f"create configmaps team/a: the object exists and {words}"):
        serve(answer).client().create_or_adopt(config_map())


def test_two_objects_without_a_run_are_not_each_other(serve):
    def answer(request, reply):
        if request.method == "GET":
            reply.json(config_map(run=None))
        else:
            reply.refuse(409, "AlreadyExists")

    with pytest.raises(Conflict):
        serve(answer).client().create_or_adopt(config_map(run=None))


def test_our_own_object_that_is_being_deleted_is_not_adopted(serve):
    def answer(request, reply):
        if request.method == "GET":
            reply.json(config_map(deletionTimestamp="2026-01-01T00:00:00Z"))
        else:
            reply.refuse(409, "AlreadyExists")

    with pytest.raises(Conflict, match="still being deleted"):
        serve(answer).client().create_or_adopt(config_map())


def test_a_create_that_is_refused_is_not_repeated(serve):
    server = serve(always(422, "Invalid", "spec.x: Invalid value"))
    with pytest.raises(ApiProblem, match=r"create configmaps team/a: 422 Invalid: spec\.x"):
        server.client().create_or_adopt(config_map())
    assert len(server.requests) == 1


def test_replace_of_a_changed_object_is_a_conflict(serve):
    server = serve(always(409, "Conflict", "the object has been modified"))
    with pytest.raises(Conflict, match="update configmaps team/a"):
        server.client().replace(config_map(resourceVersion="5"))
    (request,) = server.requests
    assert request.method == "PUT"
    assert request.body["metadata"]["resourceVersion"] == "5"


# Deleting


def test_delete_names_uid_and_propagation_in_body_and_query(serve):
    server = serve(lambda _, reply: reply.json({}))
    assert server.client().delete(JOB, "j", uid="u", grace_period_s=0) is True
    (request,) = server.requests
    assert request.method == "DELETE"
    assert request.query == {"propagationPolicy": "Background", "gracePeriodSeconds": "0"}
    assert request.body["propagationPolicy"] == "Background"
    assert request.body["preconditions"] == {"uid": "u"}
    assert request.body["gracePeriodSeconds"] == 0


def test_delete_of_what_is_gone_is_done(serve):
    assert serve(always(404, "NotFound")).client().delete(JOB, "j", uid="u") is True


def test_delete_leaves_a_namesake_alone(serve):
    def answer(request, reply):
        if request.method == "GET":
            reply.json({"metadata": {"name": "j", "uid": "another"}})
        else:
            reply.refuse(409, "Conflict", "Precondition failed: UID in precondition")

    server = serve(answer)
    assert server.client().delete(JOB, "j", uid="u") is True
    assert [each.method for each in server.requests] == ["DELETE", "GET"]


def test_delete_of_an_object_that_never_stops_changing_says_so(serve):
    def answer(request, reply):
        if request.method == "GET":
            reply.json({"metadata": {"name": "j", "uid": "u"}})
        else:
            reply.refuse(409, "Conflict", "the object has been modified")

    assert serve(answer).client().delete(JOB, "j", uid="u") is False


# Other questions


def test_serves_asks_for_the_version_that_we_speak(serve):
    def answer(request, reply):
        if request.path == "/apis/batch/v1":
            reply.json({"resources": [{"name": "jobs"}, {"name": "jobs/status"}]})
        else:
            reply.refuse(404, "NotFound")

    client = serve(answer).client()
    assert client.serves(JOB)
    assert not client.serves(JOB_SET)
    assert client.served_workloads() == {"indexedJob"}


def test_can_i_asks_about_the_namespace(serve):
    server = serve(lambda _, reply: reply.json({"status": {"allowed": True}}, 201))
    assert server.client().can_i("get", POD, subresource="log") is True
    asked = server.requests[0].body["spec"]["resourceAttributes"]
    assert asked == {
        "verb": "get",
        "group": "",
        "version": "v1",
        "resource": "pods",
        "subresource": "log",
        "namespace": "team",
    }


@pytest.mark.parametrize(
    "text", [b'{"a": "b"}', b"42", b"null", b"true", b"\xff\xfe\x00 caf\xe9\r\x1b[31m", b"b'x'"]
)
def test_a_log_is_the_very_bytes_that_were_sent(serve, text):
    server = serve(lambda _, reply: reply.data(text))
    with server.client().open_log(
        "p", "main", follow=False, since_time="2026-01-01T00:00:00Z", previous=True
    ) as response:
        assert b"".join(pieces(response)) == text
    assert server.requests[0].path == "/api/v1/namespaces/team/pods/p/log"
    assert server.requests[0].query == {
        "container": "main",
        "sinceTime": "2026-01-01T00:00:00Z",
        "timestamps": "true",
        "previous": "true",
    }


def test_connections_are_used_again(serve):
    addresses = set()

    def answer(request, reply):
        addresses.add(reply._handler.client_address)
        reply.json({"metadata": {}})

    client = serve(answer).client()
    for _ in range(20):
        client.get(CONFIG_MAP, "a")
    assert len(addresses) == 1


def test_streams_leave_no_socket_behind(serve):
    client = serve(lambda _, reply: reply.chunks([b"a\n"] * 3)).client()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(30):
        with client.open_log("p", "main", follow=True) as response:
            next(pieces(response))
    assert len(list(Path("/proc/self/fd").iterdir())) < before + 10

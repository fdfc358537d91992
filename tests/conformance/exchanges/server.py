"""What the server says of itself, of the asker, and of requests that make no sense."""

import re

_NODES = "/api/v1/nodes"


def version(play):
    play.ask("GET", "/version", only=["major", "minor", "platform"])
    play.ask("GET", "/version/", only=["major", "minor"])
    for path in ("/healthz", "/readyz", "/livez"):
        play.ask("GET", path)


def groups(play):
    play.ask("GET", "/api", only=["kind", "apiVersion", "versions"])
    body = play.ask("GET", "/apis", only=["kind", "apiVersion"])
    served = ("batch", "coordination.k8s.io", "authorization.k8s.io", "authentication.k8s.io")
    play.note("groups in use", [g for g in body["groups"] if g["name"] in served])
    play.ask("GET", "/apis/batch")
    play.ask("GET", "/apis/batch/")
    play.ask("GET", "/apis/no-such.example.com")
    play.ask("GET", "/apis/no-such.example.com/v1")
    play.ask("GET", "/apis/batch/v9")


def resources(play):
    for path, served in (
        (
            "/api/v1",
            r"(configmaps|endpoints|events|namespaces|nodes|pods|secrets|"
            r"serviceaccounts|services)(/(status|log|binding|eviction|finalize))?",
        ),
        ("/apis/batch/v1", r"jobs(/status)?"),
        ("/apis/coordination.k8s.io/v1", "leases"),
        ("/apis/authorization.k8s.io/v1", "self.*"),
        ("/apis/authentication.k8s.io/v1", "self.*"),
    ):
        body = play.ask("GET", path, only=["kind", "apiVersion", "groupVersion"])
        for resource in body["resources"]:
            if re.fullmatch(served, resource["name"]):
                play.note(f"{path} {resource['name']}", resource)


def resources_beyond(play):
    """What is served beside the kinds that runs use, by name."""
    for path in ("/api/v1", "/apis/batch/v1"):
        body = play.ask("GET", path, only=["kind"])
        play.note(path, sorted(resource["name"] for resource in body["resources"]))
    body = play.ask("GET", "/apis", only=["kind"])
    own = ("jobset.x-k8s.io", "kubeflow.org", "trainer.kubeflow.org")
    names = sorted(group["name"] for group in body["groups"])
    play.note("/apis", [name for name in names if name not in own])
    for path in ("/metrics", "/openapi/v2", "/api/v1/componentstatuses", "/logs"):
        code = play.api("GET", path).code
        play.note(path, code)


def aggregated_discovery(play):
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    play.ask("GET", "/apis", accept=accept, only=["kind", "apiVersion"])


def who_am_i(play):
    body = play.ask("POST", "selfsubjectreviews", {}, only=["kind", "apiVersion", "metadata"])
    play.note("user", sorted(body["status"]["userInfo"]))
    asked = {"verb": "create", "group": "batch", "resource": "jobs", "namespace": play.namespace}
    play.ask(
        "POST",
        "selfsubjectaccessreviews",
        {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "spec": {"resourceAttributes": asked},
        },
        only=["kind", "apiVersion", "metadata", "spec", "status.allowed"],
    )
    play.ask("POST", "selfsubjectaccessreviews", {"spec": {}})
    play.ask("POST", "selfsubjectaccessreviews", {})
    play.ask(
        "POST",
        "selfsubjectrulesreviews",
        {"spec": {"namespace": play.namespace}},
        only=["kind", "apiVersion", "status.incomplete"],
    )
    play.ask("GET", "selfsubjectreviews")


def without_a_token(play):
    for path in ("/version", "/api/v1/pods", "/healthz", "/no-such-path"):
        play.ask("GET", path, token="wrong")
    play.note(
        "challenge", play.api("GET", "/api/v1/pods", token="wrong").headers.get("Www-Authenticate")
    )


def without_any_credentials(play):
    import http.client
    from urllib.parse import urlsplit

    address = urlsplit(play.api.url)
    for path in ("/version", "/healthz", "/api/v1/pods", "/apis"):
        connection = http.client.HTTPSConnection(
            address.hostname, address.port, context=play.api.context, timeout=10
        )
        connection.request("GET", path)
        play.note(path, connection.getresponse().status)
        connection.close()


def paths_that_lead_nowhere(play):
    for path in (
        "/no-such-path",
        "/apis/no-such-group/v1/things",
        "/api/v1/things",
        "/api/v1/namespaces/default/things",
        "/apis/batch/v1/namespaces/default/things",
        "/apis/batch/v1/things",
        "/apis/batch/v2/jobs",
        "/api/v2/pods",
        "/api/v1/pods/p",
        "/api/v1/nodes/n/log",
        f"{_NODES}/n/status/more",
    ):
        play.ask("GET", path)


def methods_that_are_not_there(play):
    for method, path in (
        ("PUT", "configmaps"),
        ("PATCH", "configmaps"),
        ("POST", "configmaps/a"),
        ("DELETE", "configmaps/a/status"),
        ("POST", "/api"),
        ("DELETE", "/version"),
        ("POST", _NODES + "/n"),
        ("PUT", "pods/p/log"),
        ("GET", "pods/p/binding"),
    ):
        play.ask(method, path, {} if method != "DELETE" else None)


def protobuf(play):
    """What kubectl sends where it makes objects itself: a ConfigMap of the name `a`, `k` = `v`."""
    meta = b"\x0a\x01a"
    data = b"\x0a\x01k\x12\x01v"
    config_map = b"\x0a" + bytes([len(meta)]) + meta + b"\x12" + bytes([len(data)]) + data
    type_meta = b"\x0a\x02v1\x12\x09ConfigMap"
    unknown = (
        b"\x0a"
        + bytes([len(type_meta)])
        + type_meta
        + b"\x12"
        + bytes([len(config_map)])
        + config_map
    )
    kind = "application/vnd.kubernetes.protobuf"
    play.ask("POST", "configmaps", b"k8s\0" + unknown, type_=kind)
    play.ask("POST", "configmaps", b"k8s\0" + unknown, type_=kind)
    play.ask("POST", "configmaps", b"nonsense", type_=kind, only=["code", "reason"])
    answer = play.api("GET", play.at("configmaps/a"), accept=f"{kind},application/json")
    play.note("asked for protobuf or JSON", answer.headers["Content-Type"])
    answer = play.api("GET", play.at("configmaps/a"), accept=kind)
    play.note("asked for protobuf only", [answer.code, answer.headers["Content-Type"]])
    play.ask("GET", "configmaps/a", accept="application/xml")
    play.ask("GET", "configmaps/a", accept="application/yaml")
    play.ask("GET", "configmaps/a", accept="*/*", only=["kind"])


def bodies_that_are_too_large(play):
    body = {"metadata": {"name": "a"}, "data": {"k": "x" * (4 << 20)}}
    play.ask("POST", "configmaps", body)

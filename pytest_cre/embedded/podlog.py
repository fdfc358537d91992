"""Logs of pods, fetched from the node's kubelet and passed on as they come."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from pytest_cre.embedded.decoding import DecodingError, rfc3339_time
from pytest_cre.embedded.kinds import NODE, POD, Json
from pytest_cre.embedded.options import boolean, integer
from pytest_cre.embedded.registry import Registry
from pytest_cre.embedded.status import (
    ApiError,
    Cause,
    bad_request,
    forbidden_value,
    internal,
    invalid,
    invalid_value,
    not_found,
)

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_ERROR_TEXT_LIMIT_BYTES = 8192
_CONNECT_TIMEOUT_S = 10.0
_FLAGS = ("follow", "previous", "timestamps")
_NUMBERS = {"tailLines": 0, "limitBytes": 1, "sinceSeconds": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """Where a container's log is to be had; None as URL when the pod has no node yet."""

    url: str | None
    pod_name: str


def locate_log(
    registry: Registry, namespace: str, name: str, query: Mapping[str, str]
) -> LogSource:
    """Find the kubelet's address for a log request; raises as genuine servers do."""
    pod = registry.get(POD, namespace, name).obj
    container = _container(pod, name, query.get("container", ""))
    arguments = _arguments(name, query)
    node_name = pod["spec"].get("nodeName")
    if not node_name:
        return LogSource(url=None, pod_name=name)
    node = registry.store.get(NODE, ("", node_name))
    if node is None:
        # Genuine servers name the node but call it a pod.
        raise not_found(POD, node_name)
    status: Json = node.obj.get("status", {})
    address = next(
        (a["address"] for a in status.get("addresses") or [] if a.get("type") == "InternalIP"), None
    )
    port = status.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port", 0)
    if not address:
        known = status.get("addresses") or []
        raise ApiError(500, "", f"no preferred addresses found; known addresses: {known}")
    host = f"[{address}]" if ":" in address else address
    path = "/".join(quote(part, safe="") for part in (namespace, name, container))
    url = f"https://{host}:{port}/containerLogs/{path}"
    return LogSource(url=f"{url}?{urlencode(arguments)}" if arguments else url, pod_name=name)


async def open_log(session: "ClientSession", source: LogSource) -> "ClientResponse":
    """Ask the kubelet; its refusals become ApiErrors. The caller closes what it gets."""
    from aiohttp import ClientError, ClientTimeout

    assert source.url is not None  # noqa: S101 - callers answer pods without node themselves
    timeout = ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S)
    try:
        # As on genuine servers by default, the kubelet's certificate is not verified.
        response = await session.get(source.url, ssl=False, timeout=timeout)
        if 200 <= response.status <= 206:
            return response
        async with response:
            text = (await response.content.read(_ERROR_TEXT_LIMIT_BYTES)).decode("utf-8", "replace")
    except (ClientError, OSError) as error:
        raise ApiError(500, "", f'Get "{source.url}": {_why(error)}') from None
    raise _refused(response.status, text, source.pod_name)


def _refused(code: int, text: str, pod_name: str) -> ApiError:
    """Give a kubelet's refusal in the words of the API server."""
    if code == 400:
        return bad_request(text)
    if code == 500:
        return internal(text)
    place = f"( pods/log {pod_name})"
    message, reason = {
        403: (text or "unknown", "Forbidden"),
        404: ("the server could not find the requested resource", "NotFound"),
    }.get(
        code,
        (
            f"an error on the server ({json.dumps(text)}) has prevented the request from succeeding",
            "InternalError",
        ),
    )
    return ApiError(code, reason, f"{message} {place}", {"name": pod_name, "kind": "pods/log"})


def _why(error: Exception) -> str:
    """Say why a kubelet could not be asked, in the words of Go's network library."""
    from aiohttp import ClientConnectorError, ServerTimeoutError

    if isinstance(error, ServerTimeoutError):
        return "dial tcp: i/o timeout"
    if isinstance(error, ClientConnectorError) and error.os_error.errno:
        text = os.strerror(error.os_error.errno).lower()
        return f"dial tcp {error.host}:{error.port}: connect: {text}"
    return str(error) or type(error).__name__


def _since_time(text: str) -> str:
    """Give a moment as kubelets are told it: to the second."""
    try:
        return rfc3339_time(text)
    except DecodingError as error:
        raise bad_request(str(error)) from None


def _container(pod: Json, pod_name: str, wanted: str) -> str:
    containers = [c["name"] for c in pod["spec"].get("containers", [])]
    init_containers = [c["name"] for c in pod["spec"].get("initContainers", [])]
    if wanted:
        if wanted not in (*containers, *init_containers):
            raise bad_request(f"container {wanted} is not valid for pod {pod_name}")
        return wanted
    if len(containers) == 1 and not init_containers:
        only: str = containers[0]
        return only
    choices = f"choose one of: [{' '.join([*init_containers, *containers])}]"
    raise bad_request(f"a container name must be specified for pod {pod_name}, {choices}")


def _arguments(name: str, query: Mapping[str, str]) -> dict[str, str]:
    """Check the log options and give those that the kubelet is to see."""
    arguments: dict[str, str] = {}
    causes: list[Cause] = []
    for flag in _FLAGS:
        if boolean(query, flag):
            arguments[flag] = "true"
    for option, least in _NUMBERS.items():
        if query.get(option):
            value = integer(query, option)
            if value < least:
                bound = "greater than 0" if least else "greater than or equal to 0"
                causes.append(invalid_value(option, value, f"must be {bound}"))
            arguments[option] = str(value)
    if query.get("sinceTime"):
        arguments["sinceTime"] = _since_time(query["sinceTime"])
        if "sinceSeconds" in arguments:
            causes.append(
                Cause(
                    reason="FieldValueForbidden",
                    message="Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
                    field="[]",
                )
            )
    if query.get("stream"):
        causes.append(forbidden_value("stream", "may not be specified"))
    if causes:
        refusal = invalid(POD, name, causes)
        raise ApiError(
            422,
            "Invalid",
            refusal.message.replace("Pod ", "PodLogOptions ", 1),
            {**(refusal.details or {}), "kind": "PodLogOptions"},
        )
    return arguments

"""What a container really runs: its command, environment and files after all expansion."""

import base64
import binascii
import posixpath
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

Json = Any
Fetch = Callable[[str, str, str], Awaitable[Json | None]]
"""Gives an object by plural, namespace and name, None where there is none."""

_REFERENCE = re.compile(r"\$(\$)?\(([-._A-Za-z][-._A-Za-z0-9]*)\)|\$\$")
_KEYED = re.compile(r"metadata\.(annotations|labels)\['([^']+)'\]")


class ConfigProblem(Exception):
    """A reference that cannot be resolved now: status shows the reason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerCall:
    """What a container runs. `volumes` gives the identity of what is mounted at each path."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, bytes]
    volumes: Mapping[str, str]
    gpus: int

    def volume_of(self, path: str) -> str | None:
        """Return the identity of the lasting volume that holds a path, None for the container's own."""
        inside = [mount for mount in self.volumes if path == mount or path.startswith(mount + "/")]
        return self.volumes[max(inside, key=len)] if inside else None


async def resolve_call(
    pod: Json, container: Json, *, pod_ip: str, host_ip: str, fetch: Fetch
) -> ContainerCall:
    """Return what a container runs; raises `ConfigProblem`."""
    resolver = _Resolver(pod, container, pod_ip, host_ip, fetch)
    files, volumes = await resolver.mounts()
    env = await resolver.environment()
    argv = [*(container.get("command") or ()), *(container.get("args") or ())]
    return ContainerCall(
        argv=tuple(expand(str(word), env) for word in argv),
        env=env,
        files=files,
        volumes=volumes,
        gpus=_gpus(container),
    )


def expand(text: str, env: Mapping[str, str]) -> str:
    """Return a text with each $(NAME) replaced; unknown names stay, $$ is a dollar."""

    def value(found: re.Match[str]) -> str:
        if found[2] is None:
            return "$"
        if found[1]:
            return f"$({found[2]})"
        return env.get(found[2], found[0])

    return _REFERENCE.sub(value, text)


def _gpus(container: Json) -> int:
    resources = container.get("resources") or {}
    for kind in ("limits", "requests"):
        text = str((resources.get(kind) or {}).get("nvidia.com/gpu", ""))
        if text.isdigit():
            return int(text)
    return 0


class _Resolver:
    def __init__(self, pod: Json, container: Json, pod_ip: str, host_ip: str, fetch: Fetch) -> None:
        self.pod, self.container = pod, container
        self.namespace: str = pod["metadata"]["namespace"]
        self.facts = {
            "metadata.name": pod["metadata"]["name"],
            "metadata.namespace": self.namespace,
            "metadata.uid": pod["metadata"]["uid"],
            "spec.nodeName": pod["spec"].get("nodeName", ""),
            "spec.serviceAccountName": pod["spec"].get("serviceAccountName", ""),
            "status.podIP": pod_ip,
            "status.podIPs": pod_ip,
            "status.hostIP": host_ip,
            "status.hostIPs": host_ip,
        }
        self.fetch = fetch

    async def environment(self) -> dict[str, str]:
        env = {"HOSTNAME": self.pod["spec"].get("hostname") or self.pod["metadata"]["name"]}
        for source in self.container.get("envFrom") or ():
            prefix = source.get("prefix", "")
            for plural, reference in _references(source):
                values = await self.values(plural, reference, "CreateContainerConfigError")
                env |= {
                    prefix + key: values[key].decode("utf-8", "replace") for key in sorted(values)
                }
        for item in self.container.get("env") or ():
            if "valueFrom" in item:
                value = await self.value_from(item["valueFrom"])
            else:
                value = expand(str(item.get("value") or ""), env)
            if value is not None:
                env[item["name"]] = value
        return env

    async def value_from(self, source: Json) -> str | None:
        if "fieldRef" in source:
            return self.field(source["fieldRef"].get("fieldPath", ""))
        if "resourceFieldRef" in source:
            resource = source["resourceFieldRef"].get("resource", "")
            kind, _, name = resource.partition(".")
            return str(((self.container.get("resources") or {}).get(kind) or {}).get(name, "0"))
        for plural, reference in _references(source):
            key = reference.get("key", "")
            values = await self.values(plural, reference, "CreateContainerConfigError")
            if key in values:
                return values[key].decode("utf-8", "replace")
            if not reference.get("optional"):
                message = (
                    f"couldn't find key {key} in {plural} {self.namespace}/{reference['name']}"
                )
                raise ConfigProblem("CreateContainerConfigError", message)
        return None

    def field(self, path: str) -> str:
        keyed = _KEYED.fullmatch(path)
        if keyed:
            return str((self.pod["metadata"].get(keyed[1]) or {}).get(keyed[2], ""))
        return str(self.facts.get(path, ""))

    async def values(self, plural: str, reference: Json, reason: str) -> Mapping[str, bytes]:
        """Return the keys of a ConfigMap or Secret."""
        name = reference.get("name") or reference.get("secretName") or ""
        found = await self.fetch(plural, self.namespace, name)
        if found is None:
            if reference.get("optional"):
                return {}
            kind = "configmap" if plural == "configmaps" else "secret"
            raise ConfigProblem(reason, f'{kind} "{name}" not found')
        coded = {**(found.get("binaryData") or {})}
        plain = found.get("data") or {}
        if plural == "secrets":
            coded, plain = plain, {}
        try:
            decoded = {key: base64.b64decode(value) for key, value in coded.items()}
        except (binascii.Error, ValueError):
            raise ConfigProblem(reason, f"{plural} {name} holds data that is no base64") from None
        return decoded | {key: str(value).encode() for key, value in plain.items()}

    async def mounts(self) -> tuple[dict[str, bytes], dict[str, str]]:
        files: dict[str, bytes] = {}
        lasting: dict[str, str] = {}
        volumes = {each["name"]: each for each in self.pod["spec"].get("volumes") or ()}
        for mount in self.container.get("volumeMounts") or ():
            path, volume = posixpath.normpath(mount["mountPath"]), volumes.get(mount["name"], {})
            sub_path = mount.get("subPath", "")
            if identity := _identity(volume, self.namespace):
                lasting[path] = f"{identity}/{sub_path}" if sub_path else identity
            content = await self.content(volume)
            if sub_path in content:
                files[path] = content[sub_path]
            else:
                files |= {posixpath.join(path, name): content[name] for name in sorted(content)}
        return files, lasting

    async def content(self, volume: Json) -> dict[str, bytes]:
        sources = (volume.get("projected") or {}).get("sources") or [volume]
        content: dict[str, bytes] = {}
        for source in sources:
            for plural in ("configmaps", "secrets"):
                reference = source.get("configMap" if plural == "configmaps" else "secret")
                if not reference:
                    continue
                values = await self.values(plural, reference, "ContainerCreating")
                if items := reference.get("items"):
                    content |= {each["path"]: values.get(each["key"], b"") for each in items}
                else:
                    content |= values
        return content


def _references(source: Json) -> list[tuple[str, Json]]:
    names = {
        "configMapRef": "configmaps",
        "secretRef": "secrets",
        "configMapKeyRef": "configmaps",
        "secretKeyRef": "secrets",
    }
    return [(plural, source[name]) for name, plural in names.items() if source.get(name)]


def _identity(volume: Json, namespace: str) -> str:
    """Return what tells one lasting volume from another; nothing for one that ends with the pod."""
    if claim := volume.get("persistentVolumeClaim"):
        return f"claim/{namespace}/{claim.get('claimName', '')}"
    if host := volume.get("hostPath"):
        return f"host/{host.get('path', '')}"
    if server := volume.get("nfs"):
        return f"nfs/{server.get('server', '')}/{server.get('path', '')}"
    return ""

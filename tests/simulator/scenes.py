"""What happens on simulated nodes of an embedded cluster, as a client and as their neighbour see it."""

import aiohttp

FAST = "extends: h100-2\ntableTime: 50ms\ninitTime: 0s\npodStartTime: 0s\n"
PODS = "/api/v1/namespaces/default/pods"


class Scene:
    """A client of the cluster, and the address of the kubelet."""

    def __init__(self, api, url):
        self.api, self.url = api, url
        self.created = {}

    async def create(self, name, script, *, node="h100-0", labels=(), **spec):
        pod = {
            "metadata": {"name": name, "labels": dict(labels)},
            "spec": {
                "nodeName": node,
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "x", "command": ["sh", "-c", script]}],
                **spec,
            },
        }
        body = {"apiVersion": "v1", "kind": "Pod", **pod}
        self.created[name] = await self.api.call("POST", PODS, body)
        return self.created[name]

    async def get(self, name):
        return await self.api.call("GET", f"{PODS}/{name}")

    async def until(self, name, wanted):
        """Return the first state of a pod that is as wanted, however short it lasted."""
        async for kind, pod in self._states(name):
            if kind != "DELETED" and wanted(pod):
                return pod
        return None

    async def ended(self, name):
        return await self.until(name, lambda pod: pod["status"]["phase"] in ("Succeeded", "Failed"))

    async def running(self, name):
        return await self.until(name, lambda pod: pod["status"]["phase"] == "Running")

    async def gone(self, name):
        async for kind, _ in self._states(name):
            if kind == "DELETED":
                return

    async def _states(self, name):
        """Yield every state since the pod's creation."""
        pod = self.created[name]
        yield "ADDED", pod
        query = {"fieldSelector": f"metadata.name={name}"}
        async for event in self.api.watch(PODS, query, pod["metadata"]["resourceVersion"]):
            yield event

    async def kubelet_url(self):
        node = await self.api.call("GET", "/api/v1/nodes/h100-0")
        port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        return f"https://127.0.0.1:{port}"

    async def logs(self, name, **query):
        """Return code and text of the kubelet's own answer."""
        async with aiohttp.ClientSession() as session:
            url = f"{await self.kubelet_url()}/containerLogs/default/{name}/main"
            async with session.get(url, params=query, ssl=False) as response:
                return response.status, await response.text()

"""Simulated containers without an API server, and scenarios from a few lines of YAML."""

import asyncio
from dataclasses import dataclass

import pytest

from pytest_cre.embedded.certificate import new_identity
from pytest_cre.embedded.server import ClusterSettings, running_cluster
from pytest_cre.simulator.api import ApiClient
from pytest_cre.simulator.container import Container
from pytest_cre.simulator.faults import Subject
from pytest_cre.simulator.logbuffer import LogOptions
from pytest_cre.simulator.run import run_simulator
from pytest_cre.simulator.scenario import load_scenario
from pytest_cre.simulator.world import World
from tests.simulator.scenes import FAST as SCENE
from tests.simulator.scenes import Scene

FAST = "tableTime: 20ms\ninitTime: 0s\npodStartTime: 0s\nrendezvousTimeout: 500ms\n"
TRAIN = (
    "--num-layers=2 --hidden-size=8 --num-attention-heads=2 --micro-batch-size=1 "
    "--log-throughput --lr=6e-4 --min-lr=6e-6 --lr-warmup-iters=5 --eval-iters=0"
)


@dataclass(frozen=True)
class Played:
    """How a container ended and what it wrote."""

    code: int
    text: str
    warnings: list[tuple[str, str]]

    @property
    def lines(self):
        return self.text.splitlines()


class FakePod:
    """The side of a pod that a container sees."""

    def __init__(self, pod, world):
        self.pod, self.world = pod, world
        self.pod_ip = "10.64.0.9"
        self.node = world.nodes[pod["spec"]["nodeName"]]
        self.evicted = None
        self.warnings = []

    def evict(self, message):
        self.evicted = message

    async def warn(self, reason, message):
        self.warnings.append((reason, message))

    def subject(self, container, command=""):
        metadata = self.pod["metadata"]
        return Subject(
            node=self.node.name,
            namespace=metadata["namespace"],
            pod=metadata["name"],
            pod_uid=metadata["uid"],
            container=container,
            labels=metadata["labels"],
            index=metadata["index"],
            command=command,
        )


class Machines:
    """Plays pods on the nodes of a scenario."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def world(self, text, seed=0):
        path = self.folder / "scenario.yaml"
        path.write_text(FAST + text)
        return World(load_scenario(str(path)), seed)

    def pod(self, words, *, node, index=None, job="job", entry="", env=(), files=(), owner="job-1"):
        self.count += 1
        return {
            "metadata": {
                "name": f"{job}-{index}-x",
                "namespace": "default",
                "uid": f"uid-{self.count}",
                "index": index,
                "labels": {"cre.pytest.org/entry": entry.replace("/", ".")},
                "ownerReferences": [{"uid": owner}],
            },
            "spec": {
                "nodeName": node,
                "hostname": f"{job}-{index}",
                "subdomain": job,
                "restartPolicy": "Never",
                "volumes": [{"name": "files", "configMap": {"name": "files"}}] if files else [],
                "containers": [
                    {
                        "name": "main",
                        "image": "x",
                        "command": words,
                        "env": [
                            {"name": name, "value": value} for name, value in dict(env).items()
                        ],
                        "resources": {"limits": {"nvidia.com/gpu": "8"}},
                        "volumeMounts": [{"name": "files", "mountPath": "/cre"}] if files else [],
                    }
                ],
            },
        }

    def torchrun(self, world, script, *, count=None, job="job", **more):
        """Return the pods of an Indexed Job, one on each of the first nodes."""
        names = sorted(world.nodes)[:count]
        return [
            self.pod(
                [
                    "torchrun",
                    f"--nnodes={len(names)}",
                    "--nproc-per-node=8",
                    f"--node-rank={index}",
                    f"--master-addr={job}-0.{job}",
                    "--master-port=29500",
                    *script.split(),
                ],
                node=name,
                index=index,
                job=job,
                **more,
            )
            for index, name in enumerate(names)
        ]

    def play(self, world, pods, files=()):
        """Run every pod to its end; gives what each container did, in order."""

        async def fetch(plural, namespace, name):
            return {"data": dict(files)}

        async def has_service(namespace, name):
            return True

        async def report():
            return None

        async def one(pod):
            side = FakePod(pod, world)
            container = Container(pod["spec"]["containers"][0], side)
            await container.resolve(pod, fetch)
            try:
                ended = await container.run_to_end(report)
            finally:
                await container.stop(0.0)
            pieces = [piece async for piece in container.log.read(LogOptions())]
            return Played(ended.code, b"".join(pieces).decode(), side.warnings)

        async def everything():
            async with asyncio.timeout(60):
                return await asyncio.gather(*(one(pod) for pod in pods))

        world.has_service = has_service
        return asyncio.run(everything())


@pytest.fixture
def machines(tmp_path):
    return Machines(tmp_path)


@pytest.fixture
def train_words():
    return TRAIN


@pytest.fixture(scope="session")
def identity():
    return new_identity()


@pytest.fixture
def play(tmp_path, identity):
    """Run a scene on a fresh cluster with simulated nodes."""

    def run(scene, more=""):
        scenario = tmp_path / "scenario.yaml"
        scenario.write_text(SCENE + more)
        authority = tmp_path / "authority.pem"
        authority.write_bytes(identity.authority_pem)

        async def everything():
            settings = ClusterSettings(token="t", job_backoff_s=0.05)
            async with asyncio.timeout(60), running_cluster(settings, identity) as url:
                ready = asyncio.Event()
                simulator = asyncio.create_task(
                    run_simulator(
                        server=url,
                        token="t",
                        ca_file=str(authority),
                        scenario=str(scenario),
                        seed=3,
                        ready=ready,
                    )
                )
                try:
                    waiting = asyncio.create_task(ready.wait())
                    await asyncio.wait((simulator, waiting), return_when=asyncio.FIRST_COMPLETED)
                    async with ApiClient(url, token="t", ca_file=str(authority)) as api:
                        return await scene(Scene(api, url))
                finally:
                    simulator.cancel()
                    waiting.cancel()
                    await asyncio.gather(simulator, waiting, return_exceptions=True)

        return asyncio.run(everything())

    return run

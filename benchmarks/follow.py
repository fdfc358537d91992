"""The logs of many pods followed at once by the harness, against the official client, in one run.

    python benchmarks/follow.py [PODS] [LINES_PER_SECOND] [SECONDS]

A server process of its own writes each line as a kubelet does, one at a time, over TLS. Each side
reads with one thread per pod; its CPU is counted from when all streams are open until they end.
Every line must arrive exactly once.
"""

import asyncio
import contextlib
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

BUDGET_CORES = 0.5
START_S = 60.0  # for all streams to be opened
ENDED = "terminated"


class Pods:
    """The pods' logs as they grow, served over HTTP."""

    def __init__(self, count: int, rate: float, seconds: float) -> None:
        self._count = count
        self._rate = rate
        self._lines = round(rate * seconds)
        self._logs: dict[str, list[bytes]] = {}
        self._streams: dict[str, asyncio.StreamWriter] = {}
        self._phase = "running"

    async def serve(self, folder: Path) -> None:
        """Serve until standard input ends."""
        from pytest_cre.embedded.certificate import new_identity
        from pytest_cre.embedded.kubeconfig import write_kubeconfig

        identity = new_identity()
        server = await asyncio.start_server(
            self._answer, "127.0.0.1", 0, ssl=identity.context, backlog=self._count
        )
        port = server.sockets[0].getsockname()[1]
        write_kubeconfig(
            folder / "kubeconfig",
            server=f"https://127.0.0.1:{port}",
            token="t",  # noqa: S106 - nobody checks it
            authority_pem=identity.authority_pem,
        )
        writing = asyncio.create_task(self._write())
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        writing.cancel()
        server.close()

    async def _write(self) -> None:
        """Write a line to every pod in turn, at the rate, once all of them are followed."""
        while len(self._streams) < self._count:
            await asyncio.sleep(0.01)
        sys.stdout.write("open\n")
        sys.stdout.flush()
        names = sorted(self._streams)
        begin = time.monotonic()
        for number in range(self._lines):
            for index, name in enumerate(names):
                due = begin + (number + index / self._count) / self._rate
                if (ahead := due - time.monotonic()) > 0.001:
                    await asyncio.sleep(ahead)
                stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
                line = f"{stamp} step {number} loss 1.234567 time 0.05 s\n".encode()
                self._logs.setdefault(name, []).append(line)
                self._streams[name].write(b"%x\r\n%s\r\n" % (len(line), line))
            await asyncio.sleep(0)
        self._phase = ENDED
        for stream in self._streams.values():
            stream.write(b"0\r\n\r\n")
        self._streams.clear()
        sys.stdout.write("ended\n")
        sys.stdout.flush()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                url = urlsplit(head.split(b" ", 2)[1].decode())
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                name = url.path.split("/")[6]
                if not url.path.endswith("/log"):
                    self._whole(writer, json.dumps(self._pod(name)).encode())
                elif query.get("follow") in ("true", "True") and self._phase != ENDED:
                    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    self._streams[name] = writer
                else:
                    since = query.get("sinceTime", "").rstrip("Z").encode()
                    known = self._logs.get(name, [])
                    self._whole(writer, b"".join(line for line in known if line >= since))
                await writer.drain()

    def _whole(self, writer: asyncio.StreamWriter, body: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    def _pod(self, name: str) -> dict[str, object]:
        state = {self._phase: {"exitCode": 0} if self._phase == ENDED else {}}
        status = {"containerStatuses": [{"name": "main", "state": state, "restartCount": 0}]}
        return {"metadata": {"name": name, "uid": name}, "spec": {}, "status": status}


def follow_by_harness(kubeconfig: str, names: list[str], wait: "Wait") -> dict[str, bytes]:
    """Follow every pod as a run does, and return its log."""
    from pytest_cre.cluster.client import connect
    from pytest_cre.cluster.logs import LogFollower, LogSource

    client = connect(kubeconfig=kubeconfig, context=None, namespace="ns")
    followers = [
        LogFollower(
            client,
            LogSource(
                pod=name,
                pod_uid=name,
                container="main",
                node=None,
                completion_index=index,
                attempt=0,
                restart_count=0,
            ),
        ).start()
        for index, name in enumerate(names)
    ]
    wait()
    streams = [follower.finish(60.0) for follower in followers]
    assert all(stream.is_complete and not stream.has_gap for stream in streams)
    return {stream.pod: stream.data for stream in streams}


def follow_by_client(kubeconfig: str, names: list[str], wait: "Wait") -> dict[str, bytes]:
    """Follow every pod with the official client, line by line, and return its log."""
    import kubernetes.client
    import kubernetes.config

    configuration = kubernetes.client.Configuration()
    configuration.connection_pool_maxsize = len(names)
    kubernetes.config.load_kube_config(kubeconfig, client_configuration=configuration)
    api = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))
    logs: dict[str, list[bytes]] = {name: [] for name in names}

    def follow(name: str) -> None:
        response = api.read_namespaced_pod_log(
            name, "ns", follow=True, timestamps=True, _preload_content=False
        )
        for line in response:
            logs[name].append(line)

    threads = [threading.Thread(target=follow, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    wait()
    for thread in threads:
        thread.join()
    return {name: b"".join(lines) for name, lines in logs.items()}


class Wait:
    """Waits for the server's words, and counts the CPU in between."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server
        self.cores = 0.0

    def __call__(self) -> None:
        """Return once the pods have ended."""
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == "open\n"
        begin, cpu = time.monotonic(), time.process_time()
        assert self._server.stdout.readline() == "ended\n"
        self.cores = (time.process_time() - cpu) / (time.monotonic() - begin)


def measure(side: str, pods: int, rate: float, seconds: float) -> None:
    """Run one side in this process and print what it cost."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "serve", folder, str(pods), str(rate), str(seconds)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        kubeconfig = Path(folder, "kubeconfig")
        try:
            deadline = time.monotonic() + START_S
            while not kubeconfig.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            names = [f"pod-{index:04d}" for index in range(pods)]
            wait = Wait(server)
            follow = follow_by_harness if side == "harness" else follow_by_client
            logs = follow(str(kubeconfig), names, wait)
        finally:
            server.communicate()
    expected = round(rate * seconds)
    for name in names:
        steps = [int(line.split()[2]) for line in logs[name].splitlines()]
        assert steps == list(range(expected)), f"{name}: {len(steps)} lines, not {expected}"
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cores": wait.cores, "mib": mib, "lines": expected * pods}))


def main(pods: int, rate: float, seconds: float) -> int:
    """Measure both sides; 1 when the harness is over its budget."""
    results = {}
    for side in ("harness", "client"):
        command = [sys.executable, __file__, side, str(pods), str(rate), str(seconds)]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        results[side] = json.loads(answer)
    for side, each in results.items():
        print(
            f"{side:8} {each['cores']:5.2f} cores {each['mib']:6.0f} MiB, {each['lines']} lines of "
            f"{pods} pods at {rate:g} lines/s each, none lost"
        )
    print(f"ratio    {results['harness']['cores'] / results['client']['cores']:5.2f}")
    return 1 if results["harness"]["cores"] > BUDGET_CORES else 0


if __name__ == "__main__":
    role, *given = [*sys.argv[1:], ""]
    if role == "serve":
        folder, pods, rate, seconds = given[:4]
        asyncio.run(Pods(int(pods), float(rate), float(seconds)).serve(Path(folder)))
    elif role in ("harness", "client"):
        measure(role, int(given[0]), float(given[1]), float(given[2]))
    else:
        numbers = [float(each) for each in sys.argv[1:]]
        pods, rate, seconds = numbers + [500, 20, 10][len(numbers) :]
        sys.exit(main(int(pods), rate, seconds))

"""A world of containers whose controllers are `capi up`, a process of its own that can be killed and started again.

The user's requests are sent until they are answered, as somebody does who sees that the server is away; all of them may be sent twice.
The workload cluster's API is reached over the network too, with the kubeconfig that the control plane has written.
"""

import asyncio
import contextlib
import dataclasses
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from aiodocker import Docker

from capi.api.builtin import Secret
from capi.client import http, kubeconfig
from capi.client.client import Client
from capi.client.config import ClusterConfig
from capi.client.transport import Transport
from capi.kube.errors import NotFound, TransportError
from capi.kube.messages import Request, Response
from capi.kube.objects import Resource
from capi.kube.types import Object
from capi.runtime.plan import ClusterKey
from tests.docker import rig
from tests.docker.kubelets import Kubelets
from tests.docker.rig import DockerWorld
from tests.e2e.process import CapiProcess

PATIENCE = 30.0
"""Seconds that a request is tried; a start takes one or two, on a busy machine more."""


class Patient:
    """A Transport to a server that comes and goes: each request is sent until it is answered."""

    def __init__(self, find: Callable[[], ClusterConfig]) -> None:
        """`find`: where the server is now; asked anew whenever it did not answer."""
        self._find = find
        self._inner: http.HttpTransport | None = None

    async def request(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        while True:
            try:
                if self._inner is None:
                    self._inner = http.connect(self._find())
                return await self._inner.request(request)
            except (TransportError, kubeconfig.KubeconfigError):
                await self.close()
                if loop.time() > deadline:
                    raise
            await asyncio.sleep(0.05)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise NotImplementedError("tests ask again instead of watching")

    async def close(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            await inner.close()


class Workload:
    """A Transport to a workload cluster, by its Secret `<cluster>-kubeconfig`. One attempt for each request."""

    def __init__(self, management: Client, cluster: ClusterKey) -> None:
        self._management = management
        self._cluster = cluster
        self._inner: http.HttpTransport | None = None

    async def request(self, request: Request) -> Response:
        try:
            if self._inner is None:
                self._inner = http.connect(await self._config())
            return await self._inner.request(request)
        except TransportError:
            await self.close()
            raise

    async def _config(self) -> ClusterConfig:
        """The endpoint is the load balancer, which knows nothing of an API that is hosted in capi's process on its port."""
        try:
            secret = await self._management.get(Secret, f"{self._cluster.name}-kubeconfig", self._cluster.namespace)
        except NotFound as error:
            raise TransportError(f"cluster {self._cluster} has no kubeconfig yet") from error
        found = kubeconfig.parse(secret.data["value"], source="the Secret")
        return dataclasses.replace(found, server=f"https://127.0.0.1:{urlsplit(found.server).port}")

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise NotImplementedError("kubelets of tests write only")

    async def close(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            await inner.close()


@dataclasses.dataclass(frozen=True, slots=True)
class _Served:
    """An API behind a Transport that somebody else closes."""

    patient: Patient

    def transport(self, user_agent: str = "") -> Transport:
        return self.patient


class UpWorld(DockerWorld):
    """`client` is the administrator over the kubeconfig of the data directory."""

    def __init__(self, docker: Docker, namespace: str, directory: Path, environment: dict[str, str]) -> None:
        self.data = directory / "data"
        self.log = directory / "up.log"
        self.environment = environment
        self.starts = 0
        self._patient = Patient(lambda: kubeconfig.load(self.data / "kubeconfig"))
        self._workloads: dict[ClusterKey, Workload] = {}
        self._process: CapiProcess | None = None
        super().__init__(_Served(self._patient), docker, namespace, None)

    def start(self) -> None:
        self._process = CapiProcess(["up", f"--data-dir={self.data}"], self.log, self.environment)
        self.starts += 1

    def kill(self) -> None:
        """kill -9. Raises AssertionError if it has ended by itself."""
        process, self._process = self._process, None
        assert process is not None
        assert process.process.poll() is None, f"capi up has ended:\n{process.output()[-3000:]}"
        process.kill()
        process.stop()

    async def ready(self) -> None:
        """Until its API answers."""
        await self.client.send("GET", "/readyz")

    async def stop(self) -> None:
        """SIGTERM, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(process.stop)
        await self._patient.close()
        for workload in self._workloads.values():
            await workload.close()

    def workload(self, cluster: str = "c1", namespace: str = "") -> Client:
        return self.client_of(ClusterKey(namespace or self.namespace, cluster))

    def client_of(self, cluster: ClusterKey) -> Client:
        return Client(self._workloads.setdefault(cluster, Workload(self.client, cluster)))

    async def delete(self, kind: type[Resource], name: str, namespace: str = "") -> None:
        with contextlib.suppress(NotFound):  # it was sent twice
            await super().delete(kind, name, namespace)

    async def picture(self) -> str:
        said = self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""
        return f"{await super().picture()}\n--- the end of {self.starts} logs:\n{said}"


def cluster(name: str = "c1") -> list[Object]:
    """Like rig.cluster, on a port that is free: the API is served on it by capi's process, in this network namespace."""
    plain, infra, plane = rig.cluster(name)
    infra["spec"]["controlPlaneEndpoint"] = {"port": _free_port()}
    return [plain, infra, plane]


@asynccontextmanager
async def up_world(namespace: str, directory: Path, host: str = "") -> AsyncIterator[UpWorld]:
    """`capi up` in a new data directory; `host`: how it reaches the engine, e.g. by a proxy."""
    async with AsyncExitStack() as stack:
        docker = await stack.enter_async_context(Docker())
        made = UpWorld(docker, namespace, directory, {"DOCKER_HOST": host} if host else {})
        stack.push_async_callback(made.stop)
        made.start()
        await made.ready()
        kubelets = asyncio.ensure_future(Kubelets(docker, made.client_of).run())
        stack.push_async_callback(_cancelled, kubelets)
        yield made


async def _cancelled(task: "asyncio.Future[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port

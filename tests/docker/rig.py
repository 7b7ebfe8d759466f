"""A world whose machines are containers: embedded API, all controllers, a real engine, real time.

The workload cluster's API is hosted in the process (DevControlPlane), and `kubelets.Kubelets` stands in for the kubelets of the
small test image, which has none: it registers a Node for each container that has been bootstrapped and marks it when the
container stops. Everything else is real.
"""

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol, TypeVar

import orjson
from aiodocker import Docker, DockerError

from capi.aio.clock import SystemClock
from capi.api.core.v1beta2 import Cluster, Machine
from capi.api.infra.v1beta2 import DevMachine
from capi.app import compose, embedded, inputs
from capi.backends.docker.backend import DockerBackend
from capi.client.client import Client
from capi.client.transport import Transport
from capi.kube.conditions import Condition
from capi.kube.objects import Resource
from capi.kube.types import Object, ResourceType
from capi.runtime.manager import Manager
from capi.runtime.plan import ClusterKey
from capi.server.store.memory import MemoryStore
from tests.docker.kubelets import Kubelets

R = TypeVar("R", bound=Resource)
Wire = Callable[[Transport], Transport]
NODES = ResourceType("", "v1", "Node", "nodes", namespaced=False)
NODE = os.environ.get("CAPI_TEST_NODE_IMAGE", "capi-test/node")
IMAGE = f"{NODE}:v1.34.0"
NEWER = f"{NODE}:v1.34.1"
SECRETS = ResourceType("", "v1", "Secret", "secrets")
CORE, INFRA = "cluster.x-k8s.io/v1beta2", "infrastructure.cluster.x-k8s.io/v1beta2"
JOIN = """#cloud-config
write_files:
- path: /run/kubeadm/kubeadm-join-config.yaml
  content: |
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: JoinConfiguration
    discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "x:6443", unsafeSkipCAVerification: true}}
runcmd:
- kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml
"""


def cluster(name: str = "c1", **docker: Any) -> list[Object]:
    """A Cluster of containers whose API is hosted in the process."""
    metadata = {"name": name}
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": name}
    plane = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "DevControlPlane", "name": name}
    return [
        {
            "apiVersion": CORE, "kind": "Cluster", "metadata": metadata,
            "spec": {"controlPlaneRef": plane, "infrastructureRef": ref},
        },
        {"apiVersion": INFRA, "kind": "DevCluster", "metadata": metadata, "spec": {"backend": {"docker": docker}}},
        {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "DevControlPlane", "metadata": metadata,
            "spec": {"version": "v1.34.0"},
        },
    ]  # fmt: skip


def secret(data: str = JOIN, *, name: str = "w-bootstrap", format_: str = "") -> Object:
    """Bootstrap data."""
    values = {"value": data, **({"format": format_} if format_ else {})}
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "type": "cluster.x-k8s.io/secret",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }  # fmt: skip


def pool(
    replicas: int | None = 3,
    *,
    name: str = "w",
    cluster: str = "c1",
    version: str = "v1.34.0",
    data: str = "w-bootstrap",
    image: str = IMAGE,
    template: Object | None = None,
    spec: Object | None = None,
    **docker: Any,
) -> list[Object]:
    """A MachinePool of containers. `template` and `spec` go into the MachinePool, the rest into spec.backend.docker."""
    metadata = {"name": name}
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachinePool", "name": name}
    machine = {
        "clusterName": cluster, "version": version, "bootstrap": {"dataSecretName": data}, "infrastructureRef": ref,
        **(template or {}),
    }  # fmt: skip
    wanted: Object = {"clusterName": cluster, "template": {"spec": machine}, **(spec or {})}
    if replicas is not None:
        wanted["replicas"] = replicas
    image_of = {"customImage": image} if image else {}
    return [
        {"apiVersion": CORE, "kind": "MachinePool", "metadata": metadata, "spec": wanted},
        {
            "apiVersion": INFRA, "kind": "DevMachinePool", "metadata": metadata,
            "spec": {"backend": {"docker": {**image_of, **docker}}},
        },
    ]  # fmt: skip


class Api(Protocol):
    """Whatever serves the management API."""

    def transport(self, user_agent: str = ...) -> Transport: ...


class DockerWorld:
    """A running world; `client` is a user with all rights, `docker` somebody at the engine's command line."""

    def __init__(self, api: Api, docker: Docker, namespace: str, host: str | None, wire: Wire | None = None) -> None:
        self.api = api
        self.namespace = namespace
        """Of everything that the test makes, unless it says otherwise."""
        self.docker = docker
        self.host = host
        """The engine's address for the controllers; None: the usual one."""
        self.wire = wire
        """Around the transport of the controllers."""
        self.has_kubelets = True
        """Nodes appear. What looks at the engine for them costs it time."""
        self.clock = SystemClock()
        self.client = Client(api.transport("user"), user_agent="user")
        self._stack = AsyncExitStack()
        self.infra: compose.Infrastructure
        self.manager: Manager

    async def start_controllers(self) -> None:
        self._stack = AsyncExitStack()
        bare = await self._stack.enter_async_context(
            compose.infrastructure(self.clock, host="127.0.0.1", sockets=False, heartbeats=False)
        )
        engine = await self._stack.enter_async_context(DockerBackend(self.clock, host=self.host))
        self.infra = compose.Infrastructure(bare.workloads, bare.backend, engine)
        transport = self.api.transport()
        transport = self.wire(transport) if self.wire is not None else transport
        self.manager = compose.manager(transport, self.clock, self.infra)
        running = asyncio.ensure_future(self.manager.run())
        self._stack.push_async_callback(_ended, self.manager, running)
        if self.has_kubelets:
            kubelets = asyncio.ensure_future(Kubelets(self.docker, self.infra.workloads.client).run())
            self._stack.push_async_callback(_cancelled, kubelets)

    async def stop_controllers(self) -> None:
        await self._stack.aclose()

    async def apply(self, *objects: Object, namespace: str = "") -> None:
        """As a user, into the test's namespace or another, which is made if need be."""
        namespace = namespace or self.namespace
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await inputs.apply(self.client, [inputs.Manifest(space, "test")])
        objects = tuple({**o, "metadata": {**o["metadata"], "namespace": namespace}} for o in objects)
        read = [inputs.Manifest(body, "test") for body in objects]
        await inputs.check(self.client, read)
        await inputs.apply(self.client, read)

    async def until(self, holds: Callable[[], Awaitable[Any]], seconds: float = 60.0, what: str = "") -> float:
        """Wait until `holds`; how long that took, in seconds."""
        began = self.clock.monotonic()
        while not await holds():
            if self.clock.monotonic() - began > seconds:
                raise AssertionError(f"{what or holds} does not come true in {seconds:g} s:\n{await self.picture()}")
            await asyncio.sleep(0.05)
        return self.clock.monotonic() - began

    async def get(self, kind: type[R], name: str) -> R:
        return await self.client.get(kind, name, self.namespace)

    async def list(self, kind: type[R]) -> Sequence[R]:
        return await self.client.list(kind, self.namespace)

    async def patch(self, kind: type[Resource], name: str, body: Object, namespace: str = "") -> None:
        """A merge patch, as a user."""
        await self.client.patch(kind.resource, name, namespace or self.namespace, body)

    async def delete(self, kind: type[Resource], name: str, namespace: str = "") -> None:
        await self.client.delete(kind.resource, name, namespace or self.namespace)

    async def gone(self, *kinds: type[Resource], namespace: str = "") -> bool:
        """No object of these kinds is left."""
        return not any([await self.client.list(kind, namespace or self.namespace) for kind in kinds])

    async def dismantle(self, cluster: str = "c1", namespace: str = "") -> float:
        """Delete the Cluster and wait until it is gone; seconds."""
        await self.delete(Cluster, cluster, namespace)
        return await self.until(lambda: self.gone(Cluster, namespace=namespace), what="the end of the cluster")

    async def machines(self, pool: str = "w", namespace: str = "") -> dict[str, Machine]:
        found = await self.client.list(
            Machine, namespace or self.namespace, labels=f"cluster.x-k8s.io/pool-name={pool}"
        )
        return {machine.name: machine for machine in found}

    async def infra_machines(self, kind: type[Resource] = DevMachine, namespace: str = "") -> dict[str, Any]:
        return {obj.name: obj for obj in await self.client.list(kind, namespace or self.namespace)}

    async def running(self, count: int, pool: str = "w", namespace: str = "") -> bool:
        """Exactly so many Machines are there, all of them Running and Ready."""
        found = (await self.machines(pool, namespace)).values()
        return len(found) == count and all(is_ready(m) and m.status.phase == "Running" for m in found)

    async def containers(self, *labels: str, namespace: str = "") -> Sequence[Object]:
        """Those of the provider in a namespace, whatever their state."""
        own = f"dev.cluster.x-k8s.io/namespace={namespace or self.namespace}"
        wanted = orjson.dumps({"label": [own, *labels]}).decode()
        found = await self.docker.containers.list(all=True, filters=wanted)
        return [one._container for one in found]

    def workload(self, cluster: str = "c1", namespace: str = "") -> Client:
        found = self.infra.workloads.client(ClusterKey(namespace or self.namespace, cluster))
        assert found is not None, "the workload API is not served"
        return found

    async def picture(self) -> str:
        """All that is there, for messages of tests that fail."""
        lines: list[str] = []
        for resource in _SHOWN:
            with contextlib.suppress(Exception):
                listed = await self.client.send("GET", f"/apis/{resource}")
                for item in orjson.loads(listed)["items"]:
                    conditions = [
                        f"{c['type']}={c['status']}/{c.get('reason')}: {c.get('message', '')}"
                        for c in (item.get("status") or {}).get("conditions", ())
                        if c["status"] != "True"
                    ]
                    lines.append(f"{resource.rpartition('/')[2]}/{item['metadata']['name']} {conditions}")
        lines += [f"container {c['Names'][0]} {c['Status']}" for c in await self.containers()]
        return "\n".join(lines)


_SHOWN = tuple(
    f"{group}/v1beta2/{plural}"
    for group, plurals in (
        ("cluster.x-k8s.io", ("clusters", "machinepools", "machines", "machinehealthchecks")),
        (
            "infrastructure.cluster.x-k8s.io",
            ("devclusters", "devmachinepools", "devmachines", "dockerclusters", "dockermachinepools", "dockermachines"),
        ),
        ("controlplane.cluster.x-k8s.io", ("devcontrolplanes",)),
    )
    for plural in plurals
)


def slow(seconds: int) -> str:
    """Bootstrap data whose kubeadm takes that long. The test image's stand-in looks for the file."""
    return mode(f"slow {seconds}")


def mode(how: str) -> str:
    """Bootstrap data whose kubeadm does that: fail, hang, slow N."""
    entry = f"write_files:\n- path: /capi-test/kubeadm-mode\n  content: {how}\n"
    return JOIN.replace("write_files:\n", entry)


async def calls_of_kubeadm(w: DockerWorld, id_: str) -> int:
    """How often it was run in a container."""
    archive = await w.docker.containers.container(id_).get_archive("/var/log/capi-test/kubeadm.log")
    file = archive.extractfile("kubeadm.log")
    assert file is not None
    return len(file.read().splitlines())


async def joined(w: DockerWorld, id_: str) -> bool:
    """kubeadm has ended well in a container."""
    try:
        await w.docker.containers.container(id_).get_archive("/etc/kubernetes/kubelet.conf")
    except DockerError:
        return False
    return True


def is_ready(obj: Any) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in obj.status.conditions)


def condition(obj: Any, type_: str) -> Condition:
    """Of that type; one that says Absent if there is none."""
    absent = Condition(type=type_, status="Unknown", reason="Absent")
    return next((c for c in obj.status.conditions if c.type == type_), absent)


@asynccontextmanager
async def docker_world(
    namespace: str, host: str | None = None, wire: Wire | None = None, *, kubelets: bool = True
) -> AsyncIterator[DockerWorld]:
    """A fresh world; `host`: how the controllers reach the engine, e.g. by a proxy; `wire`: around their transport.

    Clusters are left to the test to delete.
    """
    async with AsyncExitStack() as stack:
        docker = await stack.enter_async_context(Docker())
        api = await stack.enter_async_context(embedded.embedded_api(MemoryStore(), SystemClock()))
        serving = asyncio.ensure_future(api.registry.run())
        made = DockerWorld(api, docker, namespace, host, wire)
        made.has_kubelets = kubelets
        try:
            await made.start_controllers()
            yield made
        finally:
            await made.stop_controllers()
            serving.cancel()
            await asyncio.wait([serving])


async def _ended(manager: Manager, running: "asyncio.Future[None]") -> None:
    manager.stop()
    await asyncio.wait([running])
    if not running.cancelled():
        running.result()


async def _cancelled(task: "asyncio.Future[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

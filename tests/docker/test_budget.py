"""What a pool of ten containers costs: time beside what the engine itself takes, requests to it, writes, and silence after."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

import pytest
from aiodocker import Docker

from capi.api.core.v1beta2 import Cluster, MachinePool
from capi.kube.types import Object
from tests.docker import rig
from tests.docker.proxy import DockerProxy
from tests.docker.rig import DockerWorld, Wire, docker_world
from tests.world.ledger import CORE, Ledger

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.slow, pytest.mark.timeout(300)]

N = 10
ROUNDS, MORE_ROUNDS = 3, 4
"""More only if the first few say no, which one neighbour on the machine can make them say; then all count."""
POOL = "dev.cluster.x-k8s.io/machine-pool"
BESIDE_THE_ENGINE = 1.3
"""At most so many times what the engine takes for the same containers."""
REQUESTS = 25
"""To the engine, for each worker, from nothing to Running."""
WRITES = 4
"""Of the infrastructure controllers to the management API, for each Machine of a pool."""
OF_THE_POOL = ("devmachinepools", "devmachinepools/status", "events")
POOL_WRITES = 20
"""What a pool costs by itself; how many of its ten Machines are ready is told for several at a time."""
IDLE = 10.0
"""Seconds."""


@asynccontextmanager
async def a_cluster(
    namespace: str, host: str | None = None, wire: Wire | None = None, *, kubelets: bool = True
) -> AsyncIterator[DockerWorld]:
    """Ready for pools, whose bootstrap data is there."""
    async with docker_world(namespace, host, wire, kubelets=kubelets) as w:
        await w.apply(*rig.cluster(), rig.secret())
        await w.until(lambda: is_initialized(w), what="a control plane")
        yield w


async def is_initialized(w: DockerWorld) -> bool:
    found = await w.get(Cluster, "c1")
    done = found.status.initialization
    return done is not None and bool(done.control_plane_initialized)


async def test_requests_and_writes_of_a_pool_and_silence_after(namespace: str, proxy: DockerProxy) -> None:
    """Requests as a proxy sees them, the event stream and lists included; writes as they leave the controllers, each with its
    field manager, or the component of an Event: whatever is not a core controller's is the infrastructure's. Refused writes
    and leases are not counted."""
    ledger = Ledger()
    async with a_cluster(namespace, proxy.host, ledger.wire) as w:
        ledger.clear()
        proxy.requests.clear()
        await w.apply(*rig.pool(N))
        await w.until(lambda: w.running(N))
        requests, writes = proxy.kinds(), of_the_infrastructure(ledger)
        print(f"engine requests per worker: {requests.total() / N:.1f}  {dict(requests)}")
        print(f"infrastructure's writes per Machine, the pool's own included: {writes.total() / N:.1f}  {dict(writes)}")
        assert requests.total() <= REQUESTS * N, requests
        of_the_pool = sum(count for what, count in writes.items() if what.split()[-1] in OF_THE_POOL)
        assert 0 < writes.total() - of_the_pool <= WRITES * N, writes
        assert of_the_pool <= POOL_WRITES, writes
        await w.until(lambda: is_counted(w), what="a pool that counts its Machines")
        await silence(proxy, ledger)
        await w.dismantle()


def of_the_infrastructure(ledger: Ledger) -> Counter[str]:
    return Counter(f"{e.writer} {e.verb} {e.resource}" for e in ledger.entries if e.writer not in CORE)


async def is_counted(w: DockerWorld) -> bool:
    return (await w.get(MachinePool, "w")).status.available_replicas == N


async def silence(proxy: DockerProxy, ledger: Ledger) -> None:
    """Nothing is written, nothing asked: but the engine's list, once a minute, which may fall into the time."""
    await asyncio.sleep(2)  # the last container's state is looked at again a moment after its event
    ledger.clear()
    proxy.requests.clear()
    await asyncio.sleep(IDLE)
    assert ledger.entries == []
    assert proxy.kinds() in ({}, {"GET /containers/json": 1})


async def test_ten_containers_take_little_longer_than_the_engine_itself(namespace: str) -> None:
    """Pools of ten, and a plain script's ten with the same arguments, by turns, so that both suffer from a busy machine.

    From the request to when the engine says that it started the last one. Without Nodes: the stand-in for kubelets asks the
    engine so often that it counts.
    """
    times = Times()
    async with a_cluster(namespace, kubelets=False) as w:
        arguments = await a_pool_and_its_arguments(w)
        for number in range(ROUNDS + MORE_ROUNDS):
            times.script.append(await by_a_script(w, arguments))
            started, done = await by_a_pool(w, f"p{number}")
            times.pool.append(started)
            times.bootstrapped.append(done)
            if number + 1 == ROUNDS and times.ratio <= BESIDE_THE_ENGINE:
                break
        print(times)
        await w.dismantle()
    assert times.ratio <= BESIDE_THE_ENGINE, times


@dataclass
class Times:
    """Seconds, one for each round."""

    script: list[float] = field(default_factory=list)
    pool: list[float] = field(default_factory=list)
    bootstrapped: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Of the medians."""
        return median(self.pool) / median(self.script)

    def __str__(self) -> str:
        return (
            f"{N} containers started by a script: {_shown(self.script)}; by a pool: {_shown(self.pool)}"
            f" (bootstrapped: {_shown(self.bootstrapped)}); ratio of the medians {self.ratio:.2f}"
        )


def _shown(seconds: Sequence[float]) -> str:
    return " ".join(f"{one:.2f}" for one in seconds) + " s"


async def a_pool_and_its_arguments(w: DockerWorld) -> Object:
    """The create request of a container like those of a pool, from one that there was. Warms everything up, too."""
    await w.apply(*rig.pool(1, name="first"))
    await w.until(lambda: are_bootstrapped(w, 1))
    [found] = await w.containers(f"{POOL}=first")
    said: Object = await w.docker.containers.container(found["Id"]).show()
    await remove_pool(w, "first")
    config, host, networks = said["Config"], said["HostConfig"], said["NetworkSettings"]["Networks"]
    given = {key: config[key] for key in ("Image", "Tty", "Env", "Labels")}
    labels = {key: value for key, value in given["Labels"].items() if not key.startswith("dev.cluster.x-k8s.io/")}
    endpoints: Object = {name: {} for name in networks}
    return {
        **given, "Labels": labels, "HostConfig": host, "NetworkingConfig": {"EndpointsConfig": endpoints},
    }  # fmt: skip


async def are_bootstrapped(w: DockerWorld, count: int) -> bool:
    found = (await w.infra_machines()).values()
    return len(found) == count and all(rig.condition(m, "BootstrapCompleted").status == "True" for m in found)


async def by_a_pool(w: DockerWorld, name: str) -> tuple[float, float]:
    """Seconds until the last container has started, and until all are bootstrapped."""
    began = time.time()
    await w.apply(*rig.pool(N, name=name))
    await w.until(lambda: are_bootstrapped(w, N))
    done = time.time() - began
    found = await w.containers(f"{POOL}={name}")
    assert len(found) == N
    started = await last_start(w.docker, [c["Id"] for c in found])
    await remove_pool(w, name)
    return started - began, done


async def by_a_script(w: DockerWorld, arguments: Object) -> float:
    """Seconds until the last of ten containers has started, all asked for at once."""
    containers = w.docker.containers

    async def one(number: int) -> str:
        name = f"{w.namespace}-{number}"
        made = await containers.create({**arguments, "Hostname": name}, name=name)
        await made.start()
        return str(made.id)

    began = time.time()
    ids = await asyncio.gather(*map(one, range(N)))
    started = await last_start(w.docker, ids)
    await asyncio.gather(*(containers.container(id_).delete(force=True, v=True) for id_ in ids))
    return started - began


async def last_start(docker: Docker, ids: Sequence[str]) -> float:
    """When the engine started the last of these, by its clock, which is this machine's: seconds since 1970."""
    shown = [await docker.containers.container(id_).show() for id_ in ids]
    return max(datetime.fromisoformat(one["State"]["StartedAt"]).timestamp() for one in shown)


async def remove_pool(w: DockerWorld, name: str) -> None:
    await w.delete(MachinePool, name)

    async def gone() -> bool:
        return not await w.machines(name) and not await w.containers(f"{POOL}={name}")

    await w.until(gone, what=f"the end of pool {name}")

"""kill -9 of `capi up` at any moment of a pool's story: the same end as without, and nothing is left or there twice."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Set
from pathlib import Path

import pytest

from capi.api.builtin import Secret
from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core import annotations
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from capi.kube.errors import TransportError
from tests.docker import rig, up
from tests.docker.engine import Engine
from tests.docker.proxy import DockerProxy
from tests.docker.up import UpWorld, up_world

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.slow, pytest.mark.timeout(300)]

POOL = "dev.cluster.x-k8s.io/machine-pool=w"
MACHINE, OWNER = "dev.cluster.x-k8s.io/machine", "dev.cluster.x-k8s.io/owner-uid"
MADE_BY_CAPI = "dev.cluster.x-k8s.io/made-by=capi"
SETTLES = 60.0
"""Seconds after the last kill in which everything is as wanted."""
LONGEST = 2.0
"""Seconds that a process gets at most, once it serves."""
STILLBORN = 0.2
"""How often one is killed while it starts."""
KINDS = (MachinePool, DevMachinePool, Machine, DevMachine, Cluster, DevCluster, DevControlPlane)


class Killer:
    """Ends `capi up` at random moments, and starts it again at once."""

    def __init__(self, w: UpWorld, seed: int) -> None:
        self.w = w
        self.rng = random.Random(seed)
        self.kills = 0

    async def during(self, act: Callable[[], Awaitable[None]], times: int) -> None:
        """What a user does, and so many deaths meanwhile and after."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._kill(times))
            await act()

    async def _kill(self, times: int) -> None:
        for _ in range(times):
            if self.rng.random() < STILLBORN:
                await asyncio.sleep(self.rng.uniform(0, LONGEST / 2))
            else:
                await self.w.ready()
                await asyncio.sleep(self.rng.uniform(0, LONGEST))
            self.w.kill()
            self.w.start()
            self.kills += 1


async def test_twenty_deaths_change_nothing_in_the_end(namespace: str, tmp_path: Path, engine: Engine) -> None:
    seed = int(os.environ.get("CAPI_CRASH_SEED") or random.SystemRandom().randrange(10**6))
    print(f"once more: CAPI_CRASH_SEED={seed}")
    async with up_world(namespace, tmp_path) as w:
        killer = Killer(w, seed)
        await killer.during(lambda: w.apply(*up.cluster(), rig.secret(), *rig.pool(3)), 4)
        three = await settled(w, 3)
        await killer.during(lambda: scale(w, 6), 3)
        six = await settled(w, 6)
        assert three < six
        marked = sorted(six)[0]
        await killer.during(lambda: shrink_by_the_marked(w, marked), 2)
        assert await settled(w, 5) == six - {marked}
        await killer.during(lambda: scale(w, 2), 3)
        two = await settled(w, 2)
        assert two < six, "the pool was not shrunk but replaced"
        victim = sorted(two)[0]
        await killer.during(lambda: remove(engine, w, victim), 2)
        others = await settled(w, 2, without={victim})
        await killer.during(lambda: new_image(w), 3)
        await settled(w, 2, without=others, image=rig.NEWER)
        await killer.during(lambda: w.delete(MachinePool, "w"), 1)
        await w.until(lambda: w.gone(MachinePool, Machine, DevMachine, DevMachinePool), SETTLES)
        assert not await w.containers(POOL)
        await killer.during(lambda: w.delete(Cluster, "c1"), 2)
        await nothing_is_left(w, engine)
        assert killer.kills == 20


async def scale(w: UpWorld, replicas: int) -> None:
    await w.patch(MachinePool, "w", {"spec": {"replicas": replicas}})


async def shrink_by_the_marked(w: UpWorld, name: str) -> None:
    await w.patch(Machine, name, {"metadata": {"annotations": {annotations.DELETE_MACHINE: ""}}})
    await scale(w, 5)


async def remove(engine: Engine, w: UpWorld, machine: str) -> None:
    """As `docker rm -f`."""
    [container] = await w.containers(f"{MACHINE}={machine}")
    await asyncio.to_thread(engine.remove, container["Id"])


async def new_image(w: UpWorld) -> None:
    await w.patch(DevMachinePool, "w", {"spec": {"backend": {"docker": {"customImage": rig.NEWER}}}})


async def settled(w: UpWorld, replicas: int, *, without: Set[str] = frozenset(), image: str = rig.IMAGE) -> set[str]:
    """Wait until the pool is as wanted; names of its Machines, none of which may be of `without`."""

    async def as_wanted() -> bool:
        return await w.running(replicas) and not without & (await w.machines()).keys() and not await wrong(w, image)

    await w.until(as_wanted, SETTLES, f"a pool of {replicas}")
    for container in await w.containers(POOL):
        assert await rig.calls_of_kubeadm(w, container["Id"]) == 1, f"{container['Names']} was bootstrapped twice"
    return set(await w.machines())


async def wrong(w: UpWorld, image: str) -> str:
    """What does not fit together: Machines, DevMachines, containers and Nodes are the same ones. "" if all does."""
    machines, infra = await w.machines(), await w.infra_machines()
    containers = await w.containers(POOL)
    owners = sorted((c["Labels"][MACHINE], c["Labels"][OWNER]) for c in containers)
    if owners != sorted((name, found.metadata.uid) for name, found in infra.items()):
        return "containers and DevMachines"
    if set(infra) != set(machines):
        return "DevMachines and Machines"
    if any(c["State"] != "running" or c["Image"] != image for c in containers):
        return "containers are not what they should be"
    try:
        nodes = {node["metadata"]["name"] for node in await w.workload().list(rig.NODES, "")}
    except TransportError as error:
        return error.message
    if nodes != {c["Names"][0].lstrip("/") for c in containers}:
        return "Nodes and containers"
    pool = await w.get(MachinePool, "w")
    return "" if pool.status.ready_replicas == len(machines) else "the pool counts wrong"


async def nothing_is_left(w: UpWorld, engine: Engine) -> None:
    """No object but what the user made and nobody owns; no container, no network; volumes: see the fixture `leftovers`."""

    async def gone() -> bool:
        return await w.gone(*KINDS)

    await w.until(gone, SETTLES, "the end of the cluster")
    assert {secret.name for secret in await w.list(Secret)} == {"w-bootstrap"}
    assert not await w.containers()
    assert not await asyncio.to_thread(engine.networks, MADE_BY_CAPI)
    assert not list((w.data / "clusters").iterdir()), "the workload cluster's data"


CONTAINER = r"/containers/[0-9a-f]{64}"


@pytest.mark.parametrize(
    ("method", "path", "number"),
    [
        pytest.param("POST", "/containers/create", 1, id="create"),
        pytest.param("POST", f"{CONTAINER}/start", 2, id="start"),
        pytest.param("POST", f"{CONTAINER}/exec", 3, id="exec"),
        pytest.param("POST", "/exec/[0-9a-f]{64}/start", 4, id="exec start"),
        pytest.param("DELETE", CONTAINER, 1, id="remove"),
    ],
)
async def test_a_death_with_a_request_under_way_changes_nothing_in_the_end(
    namespace: str, tmp_path: Path, engine: Engine, proxy: DockerProxy, method: str, path: str, number: int
) -> None:
    """The engine hears of the request when nobody is there any more to hear its answer."""
    async with up_world(namespace, tmp_path, proxy.host) as w:
        await w.apply(*up.cluster(), rig.secret())
        await w.until(lambda: has_endpoint(w))
        hold = proxy.hold(method, path, number)
        await w.apply(*rig.pool(2))
        if method == "DELETE":
            await settled(w, 2)
            await scale(w, 1)
        async with asyncio.timeout(SETTLES):
            await hold.reached.wait()
        w.kill()
        hold.released.set()
        w.start()
        await settled(w, 1 if method == "DELETE" else 2)
        await scale(w, 0)
        await w.until(lambda: w.running(0), SETTLES)
        await w.delete(MachinePool, "w")
        await w.delete(Cluster, "c1")
        await nothing_is_left(w, engine)


async def has_endpoint(w: UpWorld) -> bool:
    found = await w.get(Cluster, "c1")
    return found.spec.control_plane_endpoint is not None

"""What users and infrastructure do to a pool, one thing at a time, each with what must have come of it.

A scenario brings a world up undisturbed (`prepare`), does its thing while anything may go wrong (`act`), and says what must hold
in the end (`holds`). The whole world must then look as it does after the undisturbed run (`tests.world.picture`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from capi.api.builtin import Node, Pod
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.kube.types import Object
from tests.world import drains, manifests
from tests.world.rig import World
from tests.world.test_health_checks import a_check, set_ready

Memory: TypeAlias = dict[str, str]
"""Uids of the Machines there were, by name."""


async def _nothing(w: World, memory: Memory) -> None:
    """The picture is all that matters."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story."""

    name: str
    prepare: Callable[[World], Awaitable[None]]
    act: Callable[[World, Memory], Awaitable[None]]
    holds: Callable[[World, Memory], Awaitable[None]] = _nothing
    settles: bool = True
    """Ends at once without outside help, so that a restart must end it within seconds."""


async def uids(w: World) -> Memory:
    return {name: machine.metadata.uid for name, machine in (await w.machines()).items()}


def pool(replicas: int, **options: Any) -> list[Object]:
    """One whose machines boot at once."""
    return manifests.pool(replicas=replicas, vm="0s", node="0s", **options)


def with_pool(replicas: int, *more: Object) -> Callable[[World], Awaitable[None]]:
    async def prepare(w: World) -> None:
        await w.apply(*manifests.cluster(), *pool(replicas), *more)
        await w.settle()

    return prepare


async def _empty(w: World) -> None:
    """Nothing is there yet."""


async def create(w: World, memory: Memory) -> None:
    await w.apply(*manifests.cluster(), *pool(2))


async def scale_up(w: World, memory: Memory) -> None:
    await w.client.scale(MachinePool, "workers", "default", 3)


async def kept_all(w: World, memory: Memory) -> None:
    now = await uids(w)
    assert memory.items() <= now.items(), "none of the old is lost or replaced"


async def scale_down_marked(w: World, memory: Memory) -> None:
    note: Object = {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": "yes"}}}
    await w.client.patch(Machine.resource, sorted(memory)[1], "default", note)
    await w.settle()
    await w.client.scale(MachinePool, "workers", "default", 2)


async def lost_the_second(w: World, memory: Memory) -> None:
    second = sorted(memory)[1]
    assert await uids(w) == {name: uid for name, uid in memory.items() if name != second}, "exactly the marked one goes"


async def replace(w: World, memory: Memory) -> None:
    await w.client.delete(Machine, min(memory), "default")


async def replaced_the_first(w: World, memory: Memory) -> None:
    now, first = await uids(w), min(memory)
    assert len(now) == len(memory) and memory[first] not in now.values()
    assert {name: uid for name, uid in memory.items() if name != first}.items() <= now.items()


async def new_version(w: World, memory: Memory) -> None:
    change: Object = {"spec": {"template": {"spec": {"version": "v1.36.0"}}}}
    await w.client.patch(MachinePool.resource, "workers", "default", change)


async def replaced_all(w: World, memory: Memory) -> None:
    now = await uids(w)
    assert len(now) == len(memory) and not set(now.values()) & set(memory.values())


async def sicken(w: World, memory: Memory) -> None:
    await set_ready(w, min(memory), "Unknown")
    await w.advance(seconds=40)


async def guarded(w: World) -> None:
    """A Pod on the first Node that its budget holds there, and a volume that is attached."""
    await with_pool(2)(w)
    first = min(await w.machines())
    await drains.run(w, drains.a_pod("app", first, labels={"app": "guarded"}))
    await drains.budget(w.workload(), least=1)
    await drains.attach(w.workload(), first)


async def drain(w: World, memory: Memory) -> None:
    first = min(memory)
    await w.client.delete(Machine, first, "default")
    await w.advance(seconds=60)
    assert first in await w.machines(), "the budget holds"
    assert (await w.workload().get(Node, first)).spec.unschedulable
    await drains.budget(w.workload(), least=0)
    await w.advance(seconds=60)
    assert await drains.end(w.workload()) == ["app"]
    await w.advance(seconds=60)
    assert first in await w.machines(), "the volume holds"
    await w.workload().delete(drains.ATTACHMENTS, "att-disk")
    await w.advance(seconds=60)


async def drained(w: World, memory: Memory) -> None:
    await replaced_the_first(w, memory)
    assert await w.workload().list(Pod) == []


async def delete_pool(w: World, memory: Memory) -> None:
    await w.client.delete(MachinePool, "workers", "default")


async def delete_cluster(w: World, memory: Memory) -> None:
    await w.client.delete(Cluster, "quickstart", "default")


async def pause_and_resume(w: World, memory: Memory) -> None:
    for paused, replicas in ((True, 3), (None, 3), (True, 1), (None, 1)):
        await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": paused}})
        await w.settle()
        await w.client.scale(MachinePool, "workers", "default", replicas)
        await w.settle()


SCENARIOS = (
    Scenario("create", _empty, create),
    Scenario("scale up", with_pool(1), scale_up, kept_all),
    Scenario("scale down with a mark", with_pool(3), scale_down_marked, lost_the_second),
    Scenario("replace a Machine", with_pool(2), replace, replaced_the_first),
    Scenario("change the template", with_pool(2), new_version, replaced_all),
    Scenario("health check", with_pool(2, a_check()), sicken, replaced_the_first, settles=False),
    Scenario("drain", guarded, drain, drained, settles=False),
    Scenario("delete the pool", with_pool(2), delete_pool),
    Scenario("delete the Cluster", with_pool(2), delete_cluster),
    Scenario("pause and resume", with_pool(2), pause_and_resume, settles=False),
)

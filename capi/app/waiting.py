"""Waiting until pools are as desired: a snapshot of all watched pools whenever one of them or a Machine changes."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from capi.aio.clock import Clock
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.app.progress import PoolProgress, Progress
from capi.client.client import Client
from capi.kube.errors import ApiError, TransportError
from capi.kube.types import Key


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is waited for; None means all there are."""

    pools: Sequence[Key] | None = None
    clusters: Sequence[Key] | None = None


QUIET = 0.1
"""Seconds between two snapshots, at least: pools of thousands change thousands of times."""


async def until_running(client: Client, clock: Clock, wanted: "Wanted", progress: Progress, timeout: float) -> bool:
    """True once all that is `wanted` runs as desired; False after `timeout` seconds. Reports as it goes."""
    changed = asyncio.Event()
    changed.set()
    async with asyncio.TaskGroup() as group:
        watches = [group.create_task(_watch(client, kind, changed.set)) for kind in (Cluster, MachinePool, Machine)]
        try:
            async with asyncio.timeout(timeout):
                return await _settled(client, clock, wanted, progress, changed)
        except TimeoutError:
            return False
        finally:
            for watch in watches:
                watch.cancel()


async def _settled(client: Client, clock: Clock, wanted: "Wanted", progress: Progress, changed: asyncio.Event) -> bool:
    while True:
        await changed.wait()
        changed.clear()
        now = await snapshot(client, wanted.pools)
        progress.pools(now)
        there = wanted.pools is None or len(now) == len(wanted.pools)
        if there and all(pool.done for pool in now) and await _clusters_agree(client, wanted.clusters, now):
            return True
        await clock.sleep(QUIET)


async def _clusters_agree(client: Client, wanted: Sequence[Key] | None, pools: Sequence[PoolProgress]) -> bool:
    """Whether Clusters are available and count the Machines of `pools`: what is shown next must not say otherwise."""
    found = {cluster.key: cluster for cluster in await client.list(Cluster)}
    for key in found if wanted is None else wanted:
        cluster = found.get(key)
        if cluster is None or not any(c.type == "Available" and c.status == "True" for c in cluster.status.conditions):
            return False
        running = sum(pool.running for pool in pools if Key(pool.namespace, pool.cluster) == key)
        workers = cluster.status.workers
        if running and (workers is None or (workers.available_replicas or 0) < running):
            return False
    return True


async def snapshot(client: Client, pools: Sequence[Key] | None) -> list[PoolProgress]:
    """How far the pools are, ordered by namespace and name."""
    found = [pool for pool in await client.list(MachinePool) if pools is None or pool.key in pools]
    machines = await client.list(Machine) if found else []
    by_pool: dict[str, list[Machine]] = {}
    for machine in machines:
        owner = machine.metadata.controller
        if owner is not None:
            by_pool.setdefault(owner.uid, []).append(machine)
    return [_progress(pool, by_pool.get(pool.metadata.uid, [])) for pool in found]


def _progress(pool: MachinePool, machines: list[Machine]) -> PoolProgress:
    desired = 1 if pool.spec.replicas is None else pool.spec.replicas
    phases = [machine.status.phase for machine in machines]
    # The pool's own counters lag behind its Machines by one pass: it counts as running only when both agree.
    phase = pool.status.phase or "Pending"
    if phase == "Running" and pool.status.ready_replicas != desired:
        phase = "Provisioning"
    return PoolProgress(
        namespace=pool.namespace,
        name=pool.name,
        cluster=pool.spec.cluster_name,
        desired=desired,
        machines=len(machines),
        running=phases.count("Running"),
        phase=phase,
        waiting_for=_waiting_for(pool),
    )


def _waiting_for(pool: MachinePool) -> str:
    """The message of the first condition that says why the pool is not there yet."""
    conditions = {c.type: c for c in pool.status.conditions}
    for type_ in ("InfrastructureReady", "BootstrapConfigReady", "MachinesReady", "Available"):
        condition = conditions.get(type_)
        if condition is not None and condition.status != "True" and condition.message:
            return condition.message.strip()
    return ""


async def _watch(
    client: Client, kind: type[Cluster] | type[Machine] | type[MachinePool], changed: Callable[[], None]
) -> None:
    """Call `changed` at every event; a watch that ends or breaks starts again."""
    while True:
        with suppress(ApiError, TransportError):  # the next snapshot sees whatever this watch has missed
            async with client.watch(kind) as events:
                async for _ in events:
                    changed()
        changed()
        await asyncio.sleep(QUIET)

"""Waiting until pools are as desired: a snapshot of all watched pools whenever one of them or a Machine changes."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from capi.aio.clock import Clock
from capi.api.core.v1beta2 import Machine, MachinePool
from capi.app.progress import PoolProgress, Progress
from capi.client.client import Client
from capi.kube.errors import ApiError, TransportError
from capi.kube.types import Key

QUIET = 0.1
"""Seconds between two snapshots, at least: pools of thousands change thousands of times."""


async def until_running(
    client: Client, clock: Clock, pools: Sequence[Key] | None, progress: Progress, timeout: float
) -> bool:
    """True once all `pools` (None: all there are) run as desired; False after `timeout` seconds. Reports as it goes."""
    changed = asyncio.Event()
    changed.set()
    async with asyncio.TaskGroup() as group:
        watches = [group.create_task(_watch(client, kind, changed.set)) for kind in (MachinePool, Machine)]
        try:
            async with asyncio.timeout(timeout):
                return await _settled(client, clock, pools, progress, changed)
        except TimeoutError:
            return False
        finally:
            for watch in watches:
                watch.cancel()


async def _settled(
    client: Client, clock: Clock, pools: Sequence[Key] | None, progress: Progress, changed: asyncio.Event
) -> bool:
    while True:
        await changed.wait()
        changed.clear()
        now = await snapshot(client, pools)
        progress.pools(now)
        if all(pool.done for pool in now) and (pools is None or len(now) == len(pools)):
            return True
        await clock.sleep(QUIET)


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


async def _watch(client: Client, kind: type[Machine] | type[MachinePool], changed: Callable[[], None]) -> None:
    """Call `changed` at every event; a watch that ends or breaks starts again."""
    while True:
        with suppress(ApiError, TransportError):  # the next snapshot sees whatever this watch has missed
            async with client.watch(kind) as events:
                async for _ in events:
                    changed()
        changed()
        await asyncio.sleep(QUIET)

"""Faults in any order, sensible and not, while the pool is used: once they are cleared, everything is as it should be."""

import os
import random
from datetime import timedelta

import pytest

from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from capi.app import chaos
from capi.kube import times
from capi.kube.errors import NotFound
from capi.kube.objects import Resource
from tests.world.rig import World, world
from tests.world.test_chaos import PREFIX
from tests.world.test_health_checks import a_check
from tests.world.truth import check, check_nothing_left

pytestmark = pytest.mark.looptime

SEEDS = [int(seed) for seed in os.environ.get("CAPI_HISTORY_SEEDS", "").split()] or range(12)
STEPS = 15
FAILURES = ("NeverJoin", "NotReady", "Unreachable", "InstanceLost", "Nonsense")
VALUES = {
    "failure": FAILURES,
    "provisioning": ("3x", "20s", "0x", "slow"),
    "deletion": ("30s", "5m", "0s", "never"),
    "capacity": ("0", "2", "100", "-1"),
}


async def step(w: World, rng: random.Random) -> str:
    """One thing that somebody does; what it was."""
    machines = sorted(await w.machines())
    match rng.choice(("machine", "machine", "pool", "pool", "cluster", "scale", "delete", "restart", "nothing")):
        case "machine" if machines:
            return await annotate(w, DevMachine, rng.choice(machines), rng, ("failure", "provisioning", "deletion"))
        case "pool":
            return await annotate(w, DevMachinePool, "workers", rng, tuple(VALUES))
        case "cluster" if rng.random() < 0.5:
            until = times.format(w.clock.now() + timedelta(seconds=rng.randint(1, 90)))
            return await note(w, Cluster, "quickstart", "outage", rng.choice(("true", until, "soon", None)))
        case "cluster":
            return await annotate(w, Cluster, "quickstart", rng, ("capacity",))
        case "scale":
            replicas = rng.randint(0, 5)
            await w.client.scale(MachinePool, "workers", "default", replicas)
            return f"scale {replicas}"
        case "delete" if machines:
            await w.client.delete(Machine, machines[0], "default")
            return f"delete {machines[0]}"
        case "restart":
            await w.restart_controllers()
            return "restart"
    return "nothing"


async def annotate(w: World, kind: type[Resource], name: str, rng: random.Random, among: tuple[str, ...]) -> str:
    what = rng.choice(among)
    return await note(w, kind, name, what, rng.choice((*VALUES[what], None)))


async def note(w: World, kind: type[Resource], name: str, what: str, value: str | None) -> str:
    try:
        await w.client.patch(kind.resource, name, "default", {"metadata": {"annotations": {PREFIX + what: value}}})
    except NotFound:
        return "too late"
    return f"{kind.__name__} {name}: {what}={value}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_when_all_faults_are_cleared_all_is_well(seed: int) -> None:
    rng = random.Random(seed)
    done: list[str] = []
    async with world() as w:
        await w.cluster_with_pool(replicas=3, vm=rng.choice(("0s", "5s")), node=rng.choice(("0s", "2s")))
        if rng.random() < 0.5:
            await w.apply(a_check(timeout=20, startup=60))
        for _ in range(STEPS):
            done.append(await step(w, rng))
            await w.advance(seconds=rng.choice((0, 1, 5, 45)))
        await chaos.clear(w.client, "default", "cluster", "quickstart", everything=True)
        await w.advance(minutes=10)
        try:
            await check(w)
            assert w.manager.trouble() == {}
        except AssertionError as error:
            raise AssertionError(f"{error}\nafter {done}") from error
        await w.client.delete(Cluster, "quickstart", "default")
        await w.advance(minutes=5)
        await check_nothing_left(w)

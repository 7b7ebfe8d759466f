"""Random histories: what users, infrastructure and networks do to a world, and what must be true of it afterwards.

A history is a list of steps, each with its own seed, so that a shorter list does the same with what is left.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from capi.api import crds
from capi.api.builtin import Namespace
from capi.api.core import annotations
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from capi.app import embedded
from capi.app.inputs import resolve
from capi.client.transport import Transport
from capi.kube.errors import NotFound
from capi.kube.types import Key, Object
from tests.world import manifests
from tests.world.actions import ACTIONS, NAMESPACES, SECOND, TROUBLED, Play, hear_all, let_pods_go, patch
from tests.world.rig import World, world
from tests.world.trouble import Trouble
from tests.world.truth import check, check_nothing_left

CLUSTER = "quickstart"
SECOND_NAMESPACE: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SECOND}}


class Step(NamedTuple):
    """One thing that happens, and the seconds until the next."""

    name: str
    seed: int
    pause: float

    def __str__(self) -> str:
        return f"Step({self.name!r}, {self.seed}, {self.pause:.2f})"


class Violation(AssertionError):
    """A promise was broken."""


def draw(seed: int, steps: int = 14, actions: Iterable[str] | None = None) -> list[Step]:
    """A history."""
    rng = random.Random(seed)
    names = list(actions or ACTIONS)
    weights = [ACTIONS[name][0] for name in names]
    return [
        Step(rng.choices(names, weights)[0], rng.randrange(10**6), rng.choice((0.0, 0.05, 0.5, 3.0, 30.0)))
        for _ in range(steps)
    ]


class Errors(logging.Handler):
    """Everything that was logged as an ERROR."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r}"
        self.seen.append(text)


async def play(seed: int, steps: Sequence[Step]) -> None:
    """Raises Violation, or AssertionError of a check."""
    errors = Errors()
    logging.getLogger().addHandler(errors)
    rng = random.Random(seed)
    random.seed(seed)  # uids, watch lifetimes: a seed is a reproduction
    plays: list[Play] = []
    made: list[Trouble] = []

    async def witness(namespace: str, name: str) -> None:
        for one in plays:
            await one.witness(namespace, name)

    def wire(transport: Transport) -> Transport:
        made.append(Trouble(transport, rng, witness))
        made[-1].level = made[-2].level if len(made) > 1 else 0.0
        return made[-1]

    try:
        async with world(wire) as w:
            plays.append(Play(w, made))
            await _act(plays[0], steps)
            await finish(plays[0])
    finally:
        logging.getLogger().removeHandler(errors)
    if errors.seen:
        raise Violation(f"logged as ERROR: {errors.seen[:3]}")


async def _act(p: Play, steps: Sequence[Step]) -> None:
    w = p.w
    await w.apply(SECOND_NAMESPACE)
    for namespace in NAMESPACES:
        p.want(Key(namespace, "workers"), 3)
        await w.apply(*manifests.cluster(namespace=namespace), *manifests.pool(namespace=namespace))
    await w.advance(seconds=20)
    for step in steps:
        with contextlib.suppress(*TROUBLED):  # the user is told, and goes on
            await ACTIONS[step.name][1](p, random.Random(step.seed))
        await asyncio.sleep(step.pause)


async def finish(p: Play) -> None:
    """Everything heals; then all promises are checked, and in the end everything is deleted."""
    w = p.w
    for one in p.troubles:
        one.level = 0.0
    await mend(p)
    namespace = await w.client.get(Namespace, SECOND)
    if namespace.deleting:
        raise Violation(f"Namespace {SECOND} does not go: {namespace.status}")
    await check(w)
    stayed = p.passed_over & {machine.key for machine in await w.client.list(Machine)}
    if stayed:
        raise Violation(f"{sorted(stayed)} were marked, and others went in their place")
    if p.broken:
        raise Violation("; ".join(p.broken[:5]))
    before = await w.writes()
    await w.restart_controllers()
    await w.advance(seconds=90)
    written = await w.writes() - before
    if written:
        raise Violation(f"a settled world is written to after a restart: {dict(written)}")
    for cluster in await w.client.list(Cluster):
        await w.client.delete(Cluster, cluster.name, cluster.namespace)
    await w.advance(seconds=60)
    await check_nothing_left(w)


async def mend(p: Play) -> None:
    """As a user who wants things to work: resume what is paused, bring back what is missing."""
    w = p.w
    await embedded.install_crds(w.client, crds.all())
    for kind in (Cluster, MachinePool, Machine, DevMachine):
        found = []
        with contextlib.suppress(NotFound):  # its CRD is on its way out
            found = await w.client.list(kind)
        for obj in found:
            body: Object = {"metadata": {"annotations": {annotations.PAUSED: None}}}
            if isinstance(obj, Cluster):
                body["spec"] = {"paused": None}
            try:
                await patch(p, obj, body)
            except NotFound:
                continue
    await asyncio.sleep(30)  # clusters are served again
    await let_pods_go(p)
    await hear_all(p)
    await asyncio.sleep(120)
    await w.apply(SECOND_NAMESPACE)
    await embedded.install_crds(w.client, crds.all())
    for _ in range(2):
        for namespace in NAMESPACES:
            have = {c.name for c in await w.client.list(Cluster, namespace)}
            pools = await w.client.list(MachinePool, namespace)
            if CLUSTER in have or pools:
                for body in manifests.cluster(namespace=namespace):
                    await _present(w, body)
            for pool in pools:
                await _present(w, manifests.pool(pool.name, namespace=namespace)[1])
            for infra_pool in await w.client.list(DevMachinePool, namespace):
                if infra_pool.name not in {pool.name for pool in pools}:
                    await w.client.delete(DevMachinePool, infra_pool.name, namespace)
        await asyncio.sleep(60)
    await w.advance(seconds=90)


async def _present(w: World, body: Object) -> None:
    resource = await resolve(w.client, body["apiVersion"], body["kind"])
    try:
        await w.client.get(resource, body["metadata"]["name"], body["metadata"]["namespace"])
    except NotFound:
        await w.apply(body)

"""What can happen to a world, and a witness who remembers it.

An action draws its object and its details from the generator that it is given; what the API refuses, the user gives up.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from capi.api.builtin import Namespace, Node, Pod, Secret
from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core import annotations, labels
from capi.api.core.v1beta2 import Cluster, Machine, MachineDrainRule, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from capi.app import embedded
from capi.app.inputs import BadManifest
from capi.client.client import Client
from capi.kube import times
from capi.kube.errors import AlreadyExists, ApiError, NotFound, TransportError
from capi.kube.objects import Resource
from capi.kube.types import Key, Object
from capi.runtime.plan import ClusterKey
from tests.world import drains, manifests
from tests.world.rig import INFRA, World
from tests.world.test_health_checks import a_check
from tests.world.trouble import Trouble

SECOND = "second"
NAMESPACES = ("default", SECOND)
POOLS = ("workers", "others")
REINSTALLED = ("devclusters", "devmachinepools", "devmachines")
LOST = {"devmachine.infrastructure.cluster.x-k8s.io/simulated-failure": "InstanceLost"}
STALE = 60.0
"""Seconds that controllers may act on what was true before."""


@dataclass
class Play:
    """A world in the middle of a history."""

    w: World
    troubles: list[Trouble] = field(default_factory=list)
    wanted: dict[Key, list[tuple[float, int]]] = field(default_factory=dict)
    """Replicas wanted of a pool, with the time from which they were."""
    excused: set[Key] = field(default_factory=set)
    """Pools whose template changed: their Machines may be replaced."""
    hit: dict[Key, float] = field(default_factory=dict)
    """Members that somebody else took, with the time: the controllers may not have heard of it."""
    marked: dict[Key, float] = field(default_factory=dict)
    """Machines that a user marked for deletion, with the time."""
    passed_over: set[Key] = field(default_factory=set)
    """Marked Machines that were there when an unmarked one was deleted: they must be on their way as well."""
    broken: list[str] = field(default_factory=list)

    def want(self, key: Key, replicas: int) -> None:
        self.wanted.setdefault(key, []).append((self.w.clock.monotonic(), replicas))

    def least(self, key: Key) -> int:
        """The fewest replicas that were wanted of a pool within the last minute."""
        history = self.wanted.get(key, [])
        recent = self.w.clock.monotonic() - STALE
        later = [replicas for at, replicas in history if at >= recent]
        before = [replicas for at, replicas in history if at < recent][-1:]
        return min((*later, *before), default=0)

    async def witness(self, namespace: str, name: str) -> None:
        """A deletion by the controllers needs a reason."""
        why = await self._unjustified(namespace, name)
        if why:
            self.broken.append(f"Machine {namespace}/{name} is deleted by the controllers: {why}")

    async def _unjustified(self, namespace: str, name: str) -> str:
        machine = await maybe(self.w, Machine, name, namespace)
        if machine is None or machine.deleting:
            return ""
        cluster = await maybe(self.w, Cluster, machine.spec.cluster_name, namespace)
        ref = machine.metadata.controller
        pool = await maybe(self.w, MachinePool, ref.name, namespace) if ref is not None else None
        infra_pool = await maybe(self.w, DevMachinePool, pool.name if pool else "", namespace)
        infra = await maybe(self.w, DevMachine, machine.spec.infrastructure_ref.name, namespace)
        if any(obj is None or obj.deleting for obj in (cluster, pool, infra_pool, infra)) or pool is None:
            return ""
        if infra is None or gone(infra) or pool.key in self.excused:
            return ""
        leaving = {m.spec.infrastructure_ref.name for m in await self.w.client.list(Machine, namespace) if m.deleting}
        members = await self.w.client.list(DevMachine, namespace, labels=f"{labels.POOL_NAME}={pool.name}")
        recent = self.w.clock.monotonic() - STALE
        living = [
            m for m in members if self.hit.get(m.key, 0.0) > recent or not (m.deleting or gone(m) or m.name in leaving)
        ]
        if len(living) <= self.least(pool.key):
            return f"{len(living)} live, at least {self.least(pool.key)} were wanted within the last minute"
        if machine.key not in self.marked:
            self.passed_over |= {m.key for m in living if self.marked.get(m.key, recent) < recent}
        return ""


def gone(infra: DevMachine) -> bool:
    return "devmachine.infrastructure.cluster.x-k8s.io/simulated-failure" in infra.metadata.annotations or any(
        c.reason == "InstanceGone" for c in infra.status.conditions
    )


async def maybe(w: World, kind: type[Any], name: str, namespace: str) -> Any:
    try:
        return await w.client.get(kind, name, namespace) if name else None
    except NotFound:
        return None


Action = Callable[[Play, random.Random], Awaitable[None]]


async def pick(play: Play, rng: random.Random, kind: type[Any]) -> Any:
    found = sorted(await play.w.client.list(kind), key=lambda obj: obj.key)
    return rng.choice(found) if found else None


async def patch(play: Play, obj: Resource, body: Object, subresource: str = "") -> None:
    await play.w.client.patch(obj.resource, obj.name, obj.namespace, body, subresource=subresource, manager="user")


async def scale(play: Play, rng: random.Random) -> None:
    pool = await pick(play, rng, MachinePool)
    if pool is not None:
        replicas = rng.choice((0, 1, 2, 3, 4, 5))
        play.want(pool.key, replicas)
        await play.w.client.scale(MachinePool, pool.name, pool.namespace, replicas)


async def unset_replicas(play: Play, rng: random.Random) -> None:
    """Replicas that nobody names are defaulted to one."""
    pool = await pick(play, rng, MachinePool)
    if pool is not None:
        play.want(pool.key, 1)
        await patch(play, pool, {"spec": {"replicas": None}})


async def mark(play: Play, rng: random.Random) -> None:
    machine = await pick(play, rng, Machine)
    if machine is not None:
        play.marked.setdefault(machine.key, play.w.clock.monotonic())
        await patch(play, machine, {"metadata": {"annotations": {annotations.DELETE_MACHINE: ""}}})


def delete(kind: type[Resource]) -> Action:
    async def action(play: Play, rng: random.Random) -> None:
        obj = await pick(play, rng, kind)
        if obj is not None:
            play.hit[obj.key] = play.w.clock.monotonic()  # a Machine has the name of its instance
            await play.w.client.delete(kind, obj.name, obj.namespace)

    return action


def strip(kind: type[Resource], what: str) -> Action:
    async def action(play: Play, rng: random.Random) -> None:
        obj = await pick(play, rng, kind)
        if obj is not None and not (obj.deleting and what == "finalizers"):
            await patch(play, obj, {"metadata": {what: None}})

    return action


async def delete_node(play: Play, rng: random.Random) -> None:
    clusters = sorted(play.w.infra.workloads._hosted)
    if not clusters:
        return
    client = play.w.infra.workloads.client(rng.choice(clusters))
    if client is None:
        return
    found = sorted(node.name for node in await client.list(Node))
    if found:
        await client.delete(Node, rng.choice(found))


async def delete_secret(play: Play, rng: random.Random) -> None:
    found = sorted(s.key for s in await play.w.client.list(Secret) if s.name.endswith("-kubeconfig"))
    if found:
        key = rng.choice(found)
        await play.w.client.delete(Secret, key.name, key.namespace)


async def lose(play: Play, rng: random.Random) -> None:
    infra = await pick(play, rng, DevMachine)
    if infra is None:
        return
    play.hit[infra.key] = play.w.clock.monotonic()
    if rng.random() < 0.5:
        await patch(play, infra, {"metadata": {"annotations": LOST}})
    elif infra.spec.provider_id:
        await patch(play, infra, {"metadata": {"annotations": LOST}})
        await play.w.infra.backend.lose(infra.spec.provider_id)


async def template(play: Play, rng: random.Random) -> None:
    pool = await pick(play, rng, MachinePool)
    if pool is None:
        return
    match rng.choice(("labels", "minReady", "version")):
        case "labels":
            body: Object = {"metadata": {"labels": {"team": rng.choice(("a", "b", "c"))}}}
        case "minReady":
            body = {"spec": {"minReadySeconds": rng.choice((0, 5, 20))}}
        case _:
            play.excused.add(pool.key)
            body = {"spec": {"version": rng.choice(("v1.35.4", "v1.36.0", "v1.36.1"))}}
    await patch(play, pool, {"spec": {"template": body}})


def pause(kind: type[Resource]) -> Action:
    async def action(play: Play, rng: random.Random) -> None:
        obj = await pick(play, rng, kind)
        if obj is None:
            return
        value = rng.choice(("", None))
        if kind is Cluster:
            await patch(play, obj, {"spec": {"paused": True if value == "" else None}})
        else:
            await patch(play, obj, {"metadata": {"annotations": {annotations.PAUSED: value}}})

    return action


def scribble(kind: type[Resource]) -> Action:
    """Somebody writes nonsense into a status."""

    async def action(play: Play, rng: random.Random) -> None:
        obj = await pick(play, rng, kind)
        if obj is None:
            return
        condition = {
            "type": rng.choice(("Ready", "Deleting", "Nonsense")), "status": rng.choice(("True", "False", "Unknown")),
            "reason": "Scribbled", "message": "by hand", "lastTransitionTime": "2001-01-01T00:00:00Z",
        }  # fmt: skip
        body: Object = {"conditions": [condition]}
        if rng.random() < 0.3:
            body = {"conditions": None, "phase": None} if kind is not DevMachine else {"conditions": None}
        await patch(play, obj, {"status": body}, "status")

    return action


def scrawl(kind: type[Resource], body: Object) -> Action:
    """Somebody writes nonsense where a controller keeps what it owns of a spec."""

    async def action(play: Play, rng: random.Random) -> None:
        obj = await pick(play, rng, kind)
        if obj is not None and not obj.deleting:
            await patch(play, obj, {"spec": body})

    return action


async def delete_authority(play: Play, rng: random.Random) -> None:
    found = sorted(s.key for s in await play.w.client.list(Secret) if s.name.endswith("-ca"))
    if found:
        key = rng.choice(found)
        await play.w.client.delete(Secret, key.name, key.namespace)


async def restart(play: Play, rng: random.Random) -> None:
    await play.w.restart_controllers()


async def crash(play: Play, rng: random.Random) -> None:
    """The controllers' process dies, and nobody notices for a while."""
    play.w.crash_controllers()
    await asyncio.sleep(rng.choice((0, 1, 20)))
    await play.w.restart_controllers()


async def delete_namespace(play: Play, rng: random.Random) -> None:
    """Everything of a cluster at once, its Secrets too. A namespace that is empty goes, and comes back when it is mended."""
    await play.w.client.delete(Namespace, SECOND)


async def reinstall(play: Play, rng: random.Random) -> None:
    """A provider is uninstalled, with all that is of its kinds, and installed again; what holds it holds it up."""
    name = f"{rng.choice(REINSTALLED)}.{INFRA}"
    found = await play.w.client.get(embedded.CRD, name)
    await play.w.client.delete(embedded.CRD, name)
    for _ in range(rng.choice((1, 100))):
        await asyncio.sleep(0.3)
        with contextlib.suppress(AlreadyExists):
            await play.w.client.create(embedded.CRD, {"metadata": {"name": name}, "spec": found["spec"]})
            return


async def sicken(play: Play, rng: random.Random) -> None:
    """A kubelet falls silent, or is heard again."""
    machine = await pick(play, rng, Machine)
    node = machine.status.node_ref if machine is not None else None
    client = workload(play, machine.namespace) if machine is not None else None
    if client is None or node is None:
        return
    await hear(play, client, node.name, rng.choice(("Unknown", "True")))


async def hear(play: Play, client: Client, node: str, ready: str) -> None:
    """Whether a Node says of itself that it is ready."""
    said = {"type": "Ready", "status": ready, "reason": "Test", "lastTransitionTime": times.format(play.w.clock.now())}
    body: Object = {"status": {"conditions": [said]}}
    await client.patch(Node.resource, node, "", body, type_="strategic", subresource="status")


async def health_check(play: Play, rng: random.Random) -> None:
    """Its victims may go at any time."""
    namespace, pool = rng.choice(NAMESPACES), rng.choice(POOLS)
    play.excused.add(Key(namespace, pool))
    check = a_check(timeout=rng.choice((10, 60)))
    check["metadata"] = {"name": f"check-{pool}", "namespace": namespace}
    check["spec"]["selector"] = {"matchLabels": {labels.POOL_NAME: pool}}
    await play.w.apply(check)


async def trouble(play: Play, rng: random.Random) -> None:
    level = rng.choice((0.0, 0.3, 1.0))
    for one in play.troubles:
        one.level = level


async def create_pool(play: Play, rng: random.Random) -> None:
    """Also one that is being deleted at this moment; the infrastructure may come before, after, or later."""
    namespace, name = rng.choice(NAMESPACES), rng.choice(POOLS)
    replicas = rng.choice((1, 2, 3))
    pool = manifests.pool(name, namespace=namespace, replicas=replicas, vm=rng.choice(("0s", "1s", "20s")))
    if rng.random() < 0.5:
        pool.reverse()
    play.want(Key(namespace, name), replicas)
    await play.w.apply(pool[0])
    await asyncio.sleep(rng.choice((0, 0, 0.3, 5)))
    await play.w.apply(pool[1])


async def recreate_pool(play: Play, rng: random.Random) -> None:
    pool = await pick(play, rng, MachinePool)
    if pool is None:
        return
    await play.w.client.delete(MachinePool, pool.name, pool.namespace)
    for _ in range(200):
        if await maybe(play.w, MachinePool, pool.name, pool.namespace) is None:
            break
        await asyncio.sleep(0.1)
    play.want(pool.key, 2)
    await play.w.apply(*manifests.pool(pool.name, namespace=pool.namespace, replicas=2))


def workload(play: Play, namespace: str) -> Client | None:
    return play.w.infra.workloads.client(ClusterKey(namespace, "quickstart"))


async def run_pods(play: Play, rng: random.Random) -> None:
    """Pods on the Node of some Machine, with or without a budget that guards them."""
    machine = await pick(play, rng, Machine)
    node = machine.status.node_ref if machine is not None else None
    client = workload(play, machine.namespace) if machine is not None else None
    if client is None or node is None:
        return
    for _ in range(rng.choice((1, 2, 5))):
        labels_ = {"app": rng.choice(("guarded", "free", "job"))}
        pod = drains.a_pod(f"pod-{rng.randrange(10**9)}", node.name, labels=labels_)
        pod["metadata"]["finalizers"] = []
        await client.create(Pod.resource, pod)


async def guard_pods(play: Play, rng: random.Random) -> None:
    """No eviction of guarded Pods; or as many as one likes."""
    client = workload(play, rng.choice(NAMESPACES))
    if client is not None:
        await drains.budget(client, least=rng.choice((0, 1, 100)))


async def drain_rule(play: Play, rng: random.Random) -> None:
    drain = rng.choice(({"behavior": "Skip"}, {"behavior": "WaitCompleted"}, {"behavior": "Drain", "order": 5}))
    spec = {"drain": drain, "pods": [{"selector": {"matchLabels": {"app": rng.choice(("free", "job"))}}}]}
    meta = {"name": f"rule-{rng.randrange(3)}", "namespace": rng.choice(NAMESPACES)}
    await play.w.apply(
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDrainRule", "metadata": meta, "spec": spec}
    )


async def let_pods_go(play: Play) -> None:
    """No rule and no budget holds a drain any more."""
    for rule in await play.w.client.list(MachineDrainRule):
        await play.w.client.delete(MachineDrainRule, rule.name, rule.namespace)
    for namespace in NAMESPACES:
        client = workload(play, namespace)
        for found in await client.list(drains.BUDGETS) if client is not None else ():
            assert client is not None
            await client.delete(drains.BUDGETS, found["metadata"]["name"], found["metadata"]["namespace"])


async def hear_all(play: Play) -> None:
    """Every Node says that it is ready."""
    for namespace in NAMESPACES:
        client = workload(play, namespace)
        for node in await client.list(Node) if client is not None else ():
            assert client is not None
            await hear(play, client, node.name, "True")


ACTIONS: dict[str, tuple[int, Action]] = {
    "scale": (10, scale),
    "unset replicas": (1, unset_replicas),
    "mark": (5, mark),
    "delete Machine": (5, delete(Machine)),
    "delete DevMachine": (4, delete(DevMachine)),
    "delete MachinePool": (2, delete(MachinePool)),
    "delete DevMachinePool": (2, delete(DevMachinePool)),
    "delete DevControlPlane": (1, delete(DevControlPlane)),
    "delete DevCluster": (1, delete(DevCluster)),
    "delete Cluster": (1, delete(Cluster)),
    "delete Node": (3, delete_node),
    "delete kubeconfig": (2, delete_secret),
    "lose instance": (4, lose),
    "change template": (4, template),
    "create pool": (4, create_pool),
    "recreate pool": (2, recreate_pool),
    "delete authority": (1, delete_authority),
    "scrawl on Machine": (1, scrawl(Machine, {"providerID": "in-memory:///nowhere"})),
    "scrawl on MachinePool": (1, scrawl(MachinePool, {"providerIDList": ["in-memory:///nowhere"]})),
    "scrawl on DevMachinePool": (1, scrawl(DevMachinePool, {"providerIDList": ["in-memory:///nowhere"]})),
    "scrawl on DevMachinePool too": (1, scrawl(DevMachinePool, {"providerIDList": None, "providerID": None})),
    "run Pods": (6, run_pods),
    "guard Pods": (4, guard_pods),
    "drain rule": (3, drain_rule),
    "restart": (3, restart),
    "crash": (2, crash),
    "sicken": (4, sicken),
    "health check": (2, health_check),
    "reinstall": (2, reinstall),
    "delete Namespace": (1, delete_namespace),
    "trouble": (6, trouble),
    **{f"pause {kind.__name__}": (2, pause(kind)) for kind in (Cluster, MachinePool, Machine, DevMachine)},
    **{f"scribble {kind.__name__}": (1, scribble(kind)) for kind in (Machine, MachinePool, Cluster, DevMachine)},
    **{
        f"strip {what} of {kind.__name__}": (1, strip(kind, what))
        for kind in (Machine, DevMachine, MachinePool, DevMachinePool, Cluster, DevCluster, DevControlPlane)
        for what in ("ownerReferences", "labels", "finalizers")
    },
}
TROUBLED = (ApiError, TransportError, BadManifest)

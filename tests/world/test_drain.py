"""A Machine that goes empties its Node first: Pods leave in order and by their budgets, and nothing goes before they have."""

import pytest

from capi.api.builtin import Node, Pod
from capi.api.core.v1beta2 import Cluster, Machine, MachineDrainRule
from capi.api.infra.v1beta2 import DevMachine
from capi.client.client import Client
from capi.kube.types import Object
from tests.world import drains
from tests.world.drains import DAEMON_SETS, a_pod, deleting, run
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime


async def going(w: World, *, count: int = 1) -> list[str]:
    """Delete Machines of the pool."""
    names = sorted(await w.machines())[:count]
    for name in names:
        await w.client.delete(Machine, name, "default")
    return names


async def rule(w: World, name: str, spec: Object) -> None:
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
    await w.client.create(MachineDrainRule.resource, body)


async def stands(w: World, name: str) -> bool:
    """The instance is untouched."""
    return not (await w.client.get(DevMachine, name, "default")).deleting


async def test_a_budget_holds_the_machine_back_and_its_node_is_cordoned_until_it_gives_way() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        workload, victim = w.workload(), min(await w.machines())
        note: Object = {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": "yes"}}}
        await w.client.patch(Machine.resource, victim, "default", note)
        await run(w, a_pod("app", victim, labels={"app": "guarded"}))
        await drains.budget(workload, least=1)
        await w.client.scale(type(await w.pool()), "workers", "default", 1)
        await w.advance(minutes=5)
        assert (await w.machines())[victim].deleting and await stands(w, victim)
        assert (await drains.node(w, victim)).spec.unschedulable
        said = await deleting(w, victim)
        assert said.reason == "DrainingNode"
        assert said.message.splitlines()[1:] == [
            "* Pod default/app: cannot evict pod as it would violate the pod's disruption budget. "
            "The disruption budget guard needs 1 healthy pods and has 1 currently"
        ]
        await drains.budget(workload, least=0)
        await w.advance(seconds=25)
        assert await drains.end(workload) == ["app"]
        await w.advance(seconds=25)
        assert victim not in await w.machines()
        assert victim not in [node.name for node in await workload.list(Node)]
        assert await w.client.list(DevMachine) == [await w.client.get(DevMachine, max(await w.machines()), "default")]


async def test_a_wait_for_a_budget_is_silent_but_for_the_evictions() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        [victim] = await w.machines()
        await run(w, a_pod("app", victim, labels={"app": "guarded"}))
        await drains.budget(w.workload(), least=1)
        await going(w)
        await w.advance(minutes=1)
        before = await w.writes()
        await w.advance(minutes=10)
        assert await w.writes() == before
        await w.advance(minutes=5)
        ready = next(c for c in (await w.machines())[victim].status.conditions if c.type == "Ready")
        assert "since more than 15m, stage: DrainingNode, delay likely due to PodDisruptionBudgets" in ready.message


async def test_an_empty_node_costs_one_list_and_no_write_but_its_cordon() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        before, requests = await w.writes(), await drains.requests(w.workload())
        [victim] = await going(w)
        await w.until(lambda: gone(w, victim))
        spent = await w.writes() - before
        assert (spent["APPLY machines/status"], spent["POST events/"]) == (1, 0)
        asked = await drains.requests(w.workload()) - requests
        assert {k: n for k, n in asked.items() if k.split()[1] != "nodes" or k.startswith("DELETE")} == {
            "LIST pods": 1,
            "LIST volumeattachments": 1,
            "DELETE nodes": 1,
        }
        assert asked["PATCH nodes"] == 1


async def gone(w: World, machine: str) -> bool:
    return machine not in await w.machines()


async def test_daemons_static_pods_and_skipped_ones_stay_and_others_go_at_once() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        workload, [victim] = w.workload(), await w.machines()
        owner = await a_daemon_set(workload)
        mirror = {"annotations": {"kubernetes.io/config.mirror": "hash"}}
        await run(
            w,
            a_pod("daemon", victim, meta={"ownerReferences": [owner]}),
            a_pod("static", victim, meta=mirror),
            a_pod("kept", victim, labels={"cluster.x-k8s.io/drain": "Skip"}),
            *(a_pod(f"app-{number}", victim) for number in range(40)),
        )
        await going(w)
        await w.advance(seconds=5)
        found = await drains.pods(workload)
        assert {name for name, ends in found.items() if not ends} == {"daemon", "static", "kept"}
        assert "... (37 more): deletionTimestamp set" in (await deleting(w, victim)).message
        await drains.end(workload)
        await w.advance(seconds=25)
        assert await gone(w, victim)


async def a_daemon_set(workload: Client) -> Object:
    """Creates one; a reference to it."""
    labels = {"app": "daemon"}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "d:1"}]}},
    }
    body = await workload.create(DAEMON_SETS, {"metadata": {"name": "daemon", "namespace": "default"}, "spec": spec})
    uid = body["metadata"]["uid"]
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "daemon", "uid": uid, "controller": True}


async def test_rules_order_evictions_and_let_jobs_end() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        workload, [victim] = w.workload(), await w.machines()
        await rule(w, "a-last", {"drain": {"behavior": "Drain", "order": 10}, "pods": [chosen("store")]})
        await rule(w, "b-jobs", {"drain": {"behavior": "WaitCompleted"}, "pods": [chosen("job")]})
        await rule(w, "c-other", {"drain": {"behavior": "Skip"}, "machines": [{"selector": labelled("other")}]})
        names = ("front", "store", "job")
        await run(w, *(a_pod(name, victim, labels={"app": name}) for name in names))
        await going(w)
        await w.advance(seconds=20)
        assert await drains.pods(workload) == {"front": True, "job": False, "store": False}
        message = (await deleting(w, victim)).message
        assert "* Pod default/job: waiting for completion" in message
        assert message.endswith("the following Pods will be evicted: default/store")
        await drains.end(workload)
        await w.advance(seconds=20)
        assert await drains.pods(workload) == {"job": False, "store": False}
        await workload.patch(Pod.resource, "job", "default", {"status": {"phase": "Succeeded"}}, subresource="status")
        await w.advance(seconds=20)
        assert await drains.pods(workload) == {"job": False, "store": True}
        await drains.end(workload)
        await w.advance(seconds=20)
        assert await gone(w, victim)


def labelled(app: str) -> Object:
    return {"matchLabels": {"app": app}}


def chosen(app: str) -> Object:
    return {"selector": labelled(app)}


async def test_a_new_rule_counts_at_once_for_a_drain_that_waits() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        [victim] = await w.machines()
        await run(w, a_pod("app", victim, labels={"app": "guarded"}))
        await drains.budget(w.workload(), least=1)
        await going(w)
        await w.advance(minutes=10)
        began = w.clock.monotonic()
        await rule(w, "leave", {"drain": {"behavior": "Skip"}, "pods": [chosen("guarded")]})
        await w.until(lambda: gone(w, victim))
        assert w.clock.monotonic() - began < 10


async def test_a_drain_goes_on_after_a_restart_with_the_start_it_noted() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        workload, [victim] = w.workload(), await w.machines()
        await run(w, a_pod("app", victim, labels={"app": "guarded"}))
        await drains.budget(workload, least=1)
        await going(w)
        await w.advance(minutes=2)
        noted = (await w.machines())[victim].status.deletion
        assert noted is not None and noted.node_drain_start_time is not None
        await w.restart_controllers()
        await w.advance(minutes=1)
        assert (await w.machines())[victim].status.deletion == noted
        await drains.budget(w.workload(), least=0)
        await w.advance(seconds=30)
        assert await drains.end(w.workload()) == ["app"]
        await w.advance(seconds=30)
        assert await gone(w, victim)


async def test_the_timeout_ends_a_drain() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1, template={"deletion": {"nodeDrainTimeoutSeconds": 90}})
        [victim] = await w.machines()
        await run(w, a_pod("app", victim, labels={"app": "guarded"}))
        await drains.budget(w.workload(), least=1)
        await going(w)
        await w.advance(seconds=70)
        assert await stands(w, victim)
        await w.advance(seconds=40)
        assert await gone(w, victim)


async def test_a_cluster_that_goes_is_not_drained() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        [victim] = await w.machines()
        await run(w, a_pod("app", victim, labels={"app": "guarded"}))
        await drains.budget(w.workload(), least=1)
        await w.client.delete(Cluster, "quickstart", "default")
        await w.advance(minutes=1)
        assert await w.client.list(Cluster) == []


async def test_a_node_that_does_not_answer_gets_a_second_and_is_not_waited_for() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        workload, [victim] = w.workload(), await w.machines()
        await run(w, a_pod("app", victim))
        await drains.attach(workload, victim)
        silent: Object = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        await workload.patch(Node.resource, victim, "", silent, type_="strategic", subresource="status")
        await going(w)
        await w.advance(seconds=30)
        assert await gone(w, victim)
        assert (await workload.get(Pod, "app", "default")).metadata.deletion_grace_period_seconds == 1


async def test_volumes_are_detached_before_the_instance_goes() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        workload, [victim] = w.workload(), await w.machines()
        await drains.attach(workload, victim)
        await going(w)
        await w.advance(minutes=1)
        assert await stands(w, victim)
        said = await deleting(w, victim)
        assert said.reason == "WaitingForVolumeDetach"
        assert said.message.endswith("* PersistentVolumeClaims: default/data")
        await workload.delete(drains.ATTACHMENTS, "att-disk")
        await w.advance(seconds=25)
        assert await gone(w, victim)


async def test_volumes_of_pods_that_stay_are_not_waited_for() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        workload, [victim] = w.workload(), await w.machines()
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        await run(w, a_pod("kept", victim, labels={"cluster.x-k8s.io/drain": "skip"}, volumes=[claim]))
        await drains.attach(workload, victim)
        await going(w)
        await w.until(lambda: gone(w, victim))

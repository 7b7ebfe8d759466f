"""What goes wrong on purpose, by annotations: how pool, Machines, conditions and Events react, and how it ends well again."""

from datetime import timedelta
from typing import Any

import pytest

from capi.api.builtin import Node
from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from capi.kube import conditions, times
from capi.kube.conditions import Condition
from capi.kube.objects import Resource
from tests.world import manifests
from tests.world.rig import World, world
from tests.world.test_health_checks import a_check, events, uids

pytestmark = pytest.mark.looptime

PREFIX = "devmachine.infrastructure.cluster.x-k8s.io/simulated-"


async def simulate(w: World, kind: type[Resource], name: str, **what: str | None) -> None:
    """As `kubectl annotate`; None removes."""
    notes = {PREFIX + key: value for key, value in what.items()}
    await w.client.patch(kind.resource, name, "default", {"metadata": {"annotations": notes}})


def told(obj: Any, type_: str) -> Condition:
    found = conditions.get(obj.status.conditions, type_)
    assert found is not None, f"{obj.name} has no condition {type_}"
    return found


async def infra(w: World, name: str, type_: str) -> tuple[str, str, str]:
    found = told(await w.client.get(DevMachine, name, "default"), type_)
    return found.status, found.reason, found.message


async def infra_pool(w: World) -> DevMachinePool:
    return await w.client.get(DevMachinePool, "workers", "default")


async def readiness(w: World, name: str) -> tuple[str, str]:
    node = await w.workload().get(Node, name)
    [ready] = [c for c in node.status.conditions if c.type == "Ready"]
    return ready.status, ready.reason


async def phase(w: World) -> str:
    return (await w.pool()).status.phase


async def test_a_pool_whose_new_machines_never_join_waits_and_goes_on_when_it_is_cleared() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        old = uids(await w.machines())
        await simulate(w, DevMachinePool, "workers", failure="NeverJoin")
        await w.client.scale(MachinePool, "workers", "default", 3)
        await w.advance(minutes=10)
        assert {n.name for n in await w.workload().list(Node)} == set(old), "those that had joined stay"
        [late] = (await w.machines()).keys() - old.keys()
        assert await phase(w) != "Running"
        assert (await infra(w, late, "VMProvisioned"))[0] == "True"
        assert (await infra(w, late, "NodeProvisioned"))[0] == "False"
        await w.restart_controllers()
        await w.advance(minutes=1)
        assert {n.name for n in await w.workload().list(Node)} == set(old)
        await simulate(w, DevMachine, late, failure=None)
        await w.settle()
        assert await phase(w) == "Running"
        assert uids(await w.machines()).items() >= old.items()


async def test_a_machine_that_never_joins_is_replaced_by_a_health_check() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        old = uids(await w.machines())
        await simulate(w, DevMachinePool, "workers", failure="NeverJoin")
        await w.client.scale(MachinePool, "workers", "default", 3)
        await w.settle()
        [late] = (await w.machines()).keys() - old.keys()
        await simulate(w, DevMachinePool, "workers", failure=None)
        await w.apply(a_check(startup=60))
        await w.advance(seconds=100)
        machines = await w.machines()
        assert late not in machines and len(machines) == 3
        assert await phase(w) == "Running"


@pytest.mark.parametrize("failure, status", [("NotReady", "False"), ("Unreachable", "Unknown")])
async def test_a_node_that_is_not_ready_is_seen_everywhere_and_recovers(failure: str, status: str) -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        before = uids(await w.machines())
        sick = min(before)
        await simulate(w, DevMachine, sick, failure=failure)
        await w.advance(minutes=5)
        assert await readiness(w, sick) == (status, "SimulatedFailure")
        machine = (await w.machines())[sick]
        assert told(machine, "NodeReady").status == status
        assert told(machine, "Ready").status != "True"
        assert (await infra(w, sick, "Ready"))[0] == "True", "the machine itself is well"
        pool = await w.pool()
        assert (pool.status.ready_replicas, pool.status.replicas) == (2, 3)
        assert uids(await w.machines()) == before, "nobody but a health check replaces it"
        await w.restart_controllers()
        await w.settle()
        assert await readiness(w, sick) == (status, "SimulatedFailure")
        await simulate(w, DevMachine, sick, failure=None)
        await w.settle()
        assert await readiness(w, sick) == ("True", "KubeletReady")
        assert ((await w.pool()).status.ready_replicas, await phase(w)) == (3, "Running")


async def test_a_node_that_is_not_ready_is_replaced_by_a_health_check() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        await w.apply(a_check(timeout=30))
        await w.settle()
        before = uids(await w.machines())
        sick = min(before)
        await simulate(w, DevMachine, sick, failure="NotReady")
        await w.advance(seconds=45)
        after = uids(await w.machines())
        assert before[sick] not in after.values() and len(after) == 3
        assert await events(w, "MachineMarkedUnhealthy") == 1
        assert await phase(w) == "Running"


async def test_a_node_somebody_else_made_unready_is_left_alone() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        [name] = await w.machines()
        others = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Other"}]}}
        await w.workload().patch(Node.resource, name, "", others, type_="strategic", subresource="status")
        await simulate(w, DevMachine, name, provisioning="2x")
        await w.settle()
        await w.restart_controllers()
        await w.settle()
        assert await readiness(w, name) == ("False", "Other")


async def test_new_machines_of_a_pool_are_not_ready_and_the_old_ones_are() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        [old] = await w.machines()
        await simulate(w, DevMachinePool, "workers", failure="NotReady")
        await w.client.scale(MachinePool, "workers", "default", 2)
        await w.settle()
        [new] = (await w.machines()).keys() - {old}
        assert (await readiness(w, old))[0] == "True"
        assert (await readiness(w, new))[0] == "False"


async def test_a_lost_machine_stays_lost_when_the_annotation_goes_or_the_process_restarts() -> None:
    async with world() as w:
        await w.apply(*manifests.cluster(), *manifests.machine("alone"))
        await w.settle()
        await simulate(w, DevMachine, "alone", failure="InstanceLost")
        await w.settle()
        assert (await infra(w, "alone", "VMProvisioned"))[:2] == ("False", "InstanceGone")
        await simulate(w, DevMachine, "alone", failure=None)
        await w.settle()
        await w.restart_controllers()
        await w.settle()
        assert (await infra(w, "alone", "VMProvisioned"))[:2] == ("False", "InstanceGone")
        assert (await readiness(w, "alone"))[0] == "Unknown"


async def started(w: World, replicas: int, **what: str | None) -> float:
    """Seconds until a pool of machines of 10 s + 2 s runs."""
    await w.apply(*manifests.cluster())
    await w.settle()
    pool, dev = manifests.pool(replicas=replicas, vm="10s", node="2s")
    notes = {PREFIX + key: value for key, value in what.items()}
    await w.apply({**dev, "metadata": {**dev["metadata"], "annotations": notes}}, pool)
    began = w.clock.monotonic()

    async def runs() -> bool:
        return (await w.pool()).status.phase == "Running"

    await w.until(runs, timedelta(minutes=10))
    return w.clock.monotonic() - began


async def test_provisioning_takes_as_much_longer_as_is_asked_for() -> None:
    seconds = []
    for slow in (None, "3x", "60s"):
        async with world() as w:
            seconds.append(await started(w, 2, **({"provisioning": slow} if slow else {})))
    plain, tripled, more = seconds
    assert 12 <= plain <= 16
    assert 36 <= tripled <= 48
    assert plain + 60 <= more <= plain + 60 * 1.2 + 2


async def test_a_machine_that_runs_is_not_slowed_down_again() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        [name] = before = uids(await w.machines())
        await simulate(w, DevMachine, name, provisioning="1h")
        await w.restart_controllers()
        await w.advance(seconds=10)
        assert (await infra(w, name, "Ready"))[0] == "True"
        assert (uids(await w.machines()), await phase(w)) == (before, "Running")


async def test_a_slow_deletion_keeps_the_machine_for_as_long_and_says_what_is_waited_for() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        name = min(await w.machines())
        await simulate(w, DevMachine, name, deletion="90s")
        await w.client.delete(Machine, name, "default")
        await w.advance(seconds=60)
        gone = await w.client.get(DevMachine, name, "default")
        assert gone.deleting and gone.metadata.finalizers
        assert told((await w.machines())[name], "Deleting").reason == "WaitingForInfrastructureDeletion"
        assert len(await w.machines()) == 3, "its successor does not wait for it"
        await w.restart_controllers()
        await w.advance(seconds=25)
        assert name in await w.machines()
        await w.advance(seconds=10)
        assert name not in await w.machines() and len(await w.machines()) == 2
        assert {n.name for n in await w.workload().list(Node)} == set(await w.machines())


async def test_a_slow_deletion_of_a_pool_is_that_of_its_new_machines_and_ends_early_when_cleared() -> None:
    async with world() as w:
        await w.apply(*manifests.cluster())
        pool, dev = manifests.pool(replicas=2)
        dev["metadata"]["annotations"] = {PREFIX + "deletion": "1h"}
        await w.apply(dev, pool)
        await w.settle()
        await w.client.scale(MachinePool, "workers", "default", 1)
        await w.advance(minutes=5)
        [leaving] = [m.name for m in await w.client.list(DevMachine) if m.deleting]
        await simulate(w, DevMachine, leaving, deletion=None)
        await w.settle()
        assert len(await w.client.list(DevMachine)) == len(await w.machines()) == 1


async def running(w: World) -> int:
    return sum(m.status.phase == "Running" for m in (await w.machines()).values())


async def test_a_shortage_in_a_pool_is_told_holds_and_ends_when_there_is_more() -> None:
    async with world() as w:
        await w.apply(*manifests.cluster())
        pool, dev = manifests.pool(replicas=5)
        dev["metadata"]["annotations"] = {PREFIX + "capacity": "2"}
        await w.apply(dev, pool)
        await w.settle()
        names = set(await w.machines())
        before = await w.writes()
        await w.advance(minutes=30)
        assert await w.writes() == before, "a shortage that lasts is not written again and again"
        assert (set(await w.machines()), len(names), await running(w)) == (names, 5, 2)
        found = await infra_pool(w)
        ready = told(found, "ReplicasReady")
        assert (ready.status, ready.reason) == ("False", "CapacityShortage")
        assert "2 of 5 instances ready" in ready.message and "pool workers can have 2 machines" in ready.message
        assert found.status.initialization is None or not found.status.initialization.provisioned
        assert await phase(w) != "Running"
        assert w.failures("capi-devmachine") == 0
        short = [m for m in await w.client.list(DevMachine) if told(m, "VMProvisioned").status == "False"]
        assert {told(m, "VMProvisioned").reason for m in short} == {"CapacityShortage"} and len(short) == 3
        machine = (await w.machines())[short[0].name]
        assert "No capacity" in told(machine, "InfrastructureReady").message
        assert await events(w, "CapacityShortage") == 3
        await simulate(w, DevMachinePool, "workers", capacity="4")
        await w.settle()
        assert await running(w) == 4
        await simulate(w, DevMachinePool, "workers", capacity=None)
        await w.settle()
        assert (await running(w), set(await w.machines()), await phase(w)) == (5, names, "Running")
        assert told(await infra_pool(w), "ReplicasReady").status == "True"


async def test_a_shortage_gives_what_becomes_free_to_those_that_wait_and_survives_a_restart() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await simulate(w, DevMachinePool, "workers", capacity="2")
        await w.client.scale(MachinePool, "workers", "default", 4)
        await w.settle()
        old = {name for name, m in (await w.machines()).items() if m.status.phase == "Running"}
        await w.restart_controllers()
        await w.advance(minutes=2)
        assert {name for name, m in (await w.machines()).items() if m.status.phase == "Running"} == old
        await w.client.delete(Machine, min(old), "default")
        await w.advance(seconds=5)
        assert (await running(w), len(await w.machines())) == (2, 4)


async def test_a_shortage_in_a_cluster_counts_the_machines_of_all_pools() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await simulate(w, Cluster, "quickstart", capacity="3")
        await w.apply(*manifests.pool("others", replicas=2))
        await w.advance(minutes=2)
        others = await w.machines("others")
        assert sorted(m.status.phase or "" for m in others.values()).count("Running") == 1
        found = told(await w.client.get(DevMachinePool, "others", "default"), "ReplicasReady")
        assert found.reason == "CapacityShortage" and "cluster default/quickstart can have 3" in found.message
        await simulate(w, Cluster, "quickstart", capacity=None)
        await w.settle()
        assert {m.status.phase for m in (await w.machines("others")).values()} == {"Running"}


async def available(w: World) -> Condition:
    return told(await w.client.get(DevControlPlane, "quickstart", "default"), "Available")


async def test_an_api_that_is_down_makes_machines_unknown_and_deletes_nothing() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        await w.apply(a_check(timeout=30))
        await w.settle()
        before = uids(await w.machines())
        nodes = {n.name: n.metadata.uid for n in await w.workload().list(Node)}
        await simulate(w, Cluster, "quickstart", outage="true")
        await w.advance(minutes=10)
        machines = await w.machines()
        assert uids(machines) == before
        assert {told(m, "NodeHealthy").status for m in machines.values()} == {"Unknown"}
        assert not any(m.deleting for m in machines.values())
        said = await available(w)
        assert (said.status, said.reason) == ("False", "SimulatedOutage")
        assert "simulated-outage" in said.message and "Cluster quickstart" in said.message
        assert await events(w, "SimulatedOutage") == 1
        await w.restart_controllers()
        await w.advance(minutes=2)
        assert (await available(w)).reason == "SimulatedOutage", "a restart does not end it"
        await simulate(w, Cluster, "quickstart", outage=None)
        await w.advance(minutes=1)
        assert (await available(w)).status == "True"
        machines = await w.machines()
        assert uids(machines) == before and await phase(w) == "Running"
        assert {told(m, "NodeHealthy").status for m in machines.values()} == {"True"}
        assert {n.name: n.metadata.uid for n in await w.workload().list(Node)} == nodes


async def test_an_outage_ends_by_itself_at_its_time() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        until = w.clock.now() + timedelta(minutes=5)
        await simulate(w, Cluster, "quickstart", outage=times.format(until))
        await w.advance(minutes=4)
        assert (await available(w)).status == "False"
        await w.advance(minutes=2)
        assert ((await available(w)).status, await phase(w)) == ("True", "Running")


async def test_what_is_scaled_during_an_outage_comes_right_after_it() -> None:
    """New machines join late; the Node of one that went is not left behind."""
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        await simulate(w, Cluster, "quickstart", outage="true")
        await w.advance(minutes=2)
        gone = min(await w.machines())
        await w.client.delete(Machine, gone, "default")
        await w.advance(minutes=5)
        late = (await w.client.list(DevMachine))[-1]
        assert late.name
        await simulate(w, Cluster, "quickstart", outage=None)
        await w.advance(minutes=2)
        machines = await w.machines()
        assert gone not in machines and len(machines) == 3
        assert {m.status.phase for m in machines.values()} == {"Running"}
        assert {n.name for n in await w.workload().list(Node)} == set(machines)


async def test_a_cluster_is_deleted_in_an_outage() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await simulate(w, Cluster, "quickstart", outage="true")
        await w.advance(minutes=2)
        await w.client.delete(Cluster, "quickstart", "default")
        await w.advance(minutes=10)
        for kind in (Cluster, MachinePool, Machine, DevMachine):
            assert await w.client.list(kind) == []


WRONG = [
    (DevMachine, "failure", "Broken"),
    (DevMachine, "provisioning", "slow"),
    (DevMachine, "deletion", "-1s"),
    (DevMachine, "capacity", "3"),
    (DevMachine, "capactiy", "3"),
]


@pytest.mark.parametrize("kind, what, value", WRONG)
async def test_a_wrong_value_on_a_machine_is_named_and_harms_nobody(
    kind: type[Resource], what: str, value: str
) -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        before = uids(await w.machines())
        name = min(before)
        await simulate(w, kind, name, **{what: value})
        await w.advance(minutes=1)
        status, reason, message = await infra(w, name, "NodeProvisioned")
        assert (status, reason) == ("False", "InvalidSimulation")
        assert PREFIX + what in message and repr(value) in message
        assert (await infra(w, name, "VMProvisioned"))[0] == "True"
        assert uids(await w.machines()) == before
        await simulate(w, kind, name, **{what: None})
        await w.settle()
        assert (await infra(w, name, "Ready"))[0] == "True"
        assert w.failures("capi-devmachine") == 0


@pytest.mark.parametrize(
    "what, value", [("failure", "InstanceLost"), ("capacity", "few"), ("provisioning", "-3x"), ("outage", "true")]
)
async def test_a_wrong_value_on_a_pool_is_named_and_nothing_is_made_of_it(what: str, value: str) -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        before = uids(await w.machines())
        await simulate(w, DevMachinePool, "workers", **{what: value})
        await w.client.scale(MachinePool, "workers", "default", 2)
        await w.advance(minutes=1)
        found = told(await infra_pool(w), "ReplicasReady")
        assert (found.status, found.reason) == ("False", "InvalidSimulation")
        assert PREFIX + what in found.message and repr(value) in found.message
        assert uids(await w.machines()) == before
        await w.client.scale(MachinePool, "workers", "default", 0)
        await w.settle()
        assert await w.machines() == {}, "deleting is not held up"
        await w.client.scale(MachinePool, "workers", "default", 2)
        await simulate(w, DevMachinePool, "workers", **{what: None})
        await w.settle()
        assert (len(await w.machines()), await phase(w)) == (2, "Running")


@pytest.mark.parametrize("what, value", [("outage", "soon"), ("capacity", "-1"), ("failure", "NotReady")])
async def test_a_wrong_value_on_a_cluster_is_named_and_its_api_goes_on(what: str, value: str) -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        before = uids(await w.machines())
        await simulate(w, Cluster, "quickstart", **{what: value})
        await w.restart_controllers()
        await w.advance(minutes=2)
        said = await available(w)
        assert (said.status, said.reason) == ("False", "InvalidSimulation")
        assert PREFIX + what in said.message and repr(value) in said.message
        assert uids(await w.machines()) == before
        assert {told(m, "NodeHealthy").status for m in (await w.machines()).values()} == {"True"}
        await simulate(w, Cluster, "quickstart", **{what: None})
        await w.settle()
        assert (await available(w)).status == "True"

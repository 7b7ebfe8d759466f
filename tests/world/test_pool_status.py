"""What a pool says while it grows, shrinks, suffers and heals."""

import itertools

import pytest

from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from capi.client.client import Client
from capi.kube.conditions import get, is_true
from tests.world import manifests
from tests.world.recording import Recording, recording
from tests.world.rig import world
from tests.world.test_nodes import counters, set_ready

pytestmark = pytest.mark.looptime

KINDS = (Cluster, MachinePool, Machine, DevCluster, DevMachine, DevMachinePool, DevControlPlane)


def phases(seen: Recording) -> list[str]:
    """Phases of the pool, repetitions left out."""
    every = (e.object.status.phase for e in seen if isinstance(e.object, MachinePool) and e.object.status)
    return [phase for phase, _ in itertools.groupby(every)]


async def revisions(client: Client) -> dict[str, str]:
    return {o.metadata.uid: o.metadata.resource_version for kind in KINDS for o in await client.list(kind)}


async def test_phases_follow_the_scale_and_end_without_further_edits() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        async with recording(w.client, MachinePool) as seen:
            await w.client.scale(MachinePool, "workers", "default", 3)
            await w.settle()
            await w.client.scale(MachinePool, "workers", "default", 1)
            await w.settle()
        assert phases(seen) in (
            ["Running", "ScalingUp", "Running", "ScalingDown", "Running"],
            ["ScalingUp", "Running", "ScalingDown", "Running"],
        )


async def test_a_new_pool_goes_through_its_phases_in_order() -> None:
    async with world() as w:
        await w.apply(*manifests.cluster())
        await w.settle()
        async with recording(w.client, MachinePool) as seen:
            await w.apply(*manifests.pool(replicas=2))
            await w.settle()
        order = ["Pending", "Provisioning", "Provisioned", "ScalingUp", "Running"]
        found = [phase for phase in phases(seen) if phase]
        assert found == sorted(set(found), key=order.index) and found[-1] == "Running"


async def test_machines_exist_while_the_infrastructure_is_not_provisioned() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3, vm="1h")
        await w.client.scale(MachinePool, "workers", "default", 5)
        await w.settle()
        infra = await w.client.get(DevMachinePool, "workers", "default")
        assert infra.status is not None and not (
            infra.status.initialization and infra.status.initialization.provisioned
        )
        assert len(await w.machines()) == 5


async def test_an_instance_that_never_joins_is_the_one_that_goes() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        healthy = {name: m.metadata.uid for name, m in (await w.machines()).items()}
        never = {"spec": {"backend": {"inMemory": {"node": {"provisioning": {"startupDuration": "1000h"}}}}}}
        await w.client.patch(DevMachinePool.resource, "workers", "default", never)
        await w.client.scale(MachinePool, "workers", "default", 3)
        await w.advance(minutes=1)
        assert len(await w.machines()) == 3
        status = (await w.pool()).status
        assert status is not None and (status.phase, status.ready_replicas) == ("ScalingUp", 2)
        await w.client.scale(MachinePool, "workers", "default", 2)
        await w.settle()
        assert {name: m.metadata.uid for name, m in (await w.machines()).items()} == healthy
        assert (await counters(w))[0] == "Running"


async def test_counters_are_those_of_the_machines_conditions() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        sick, going, _ = sorted(await w.machines())
        await set_ready(w, sick, "False")
        hold = {"metadata": {"finalizers": ["machine.cluster.x-k8s.io", "example.com/hold"]}}
        await w.client.patch(Machine.resource, going, "default", hold)
        await w.client.delete(Machine, going, "default")
        await w.settle()
        machines = (await w.machines()).values()
        status = (await w.pool()).status
        assert status is not None and len(machines) == 4, "the one that is going, two, and its replacement"
        for type_, counted in (
            ("Ready", status.ready_replicas),
            ("Available", status.available_replicas),
            ("UpToDate", status.up_to_date_replicas),
        ):
            assert counted == sum(is_true(m.status.conditions, type_) for m in machines if m.status), type_
        [leaving] = [m for m in machines if m.name == going]
        assert leaving.status is not None and not is_true(leaving.status.conditions, "UpToDate")


async def test_infrastructure_that_went_and_came_back_leaves_no_failure_behind() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        _, infra_pool = manifests.pool(replicas=2)
        await w.client.delete(DevMachinePool, "workers", "default")
        await w.advance(seconds=30)
        pool = await w.pool()
        assert pool.status is not None
        trouble = get(pool.status.conditions, "InfrastructureReady")
        assert trouble is not None and trouble.status == "False"
        await w.apply(infra_pool)
        await w.advance(seconds=30)
        pool = await w.pool()
        assert pool.status is not None and pool.status.phase == "Running"
        assert is_true(pool.status.conditions, "InfrastructureReady") and is_true(pool.status.conditions, "Available")
        assert pool.status.deprecated is not None and pool.status.deprecated.v1beta1 is not None
        assert pool.status.deprecated.v1beta1.failure_reason == ""
        assert len(await w.machines()) == 2


async def test_an_idle_system_touches_no_object() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=5)
        await w.advance(seconds=30)
        before = await revisions(w.client)
        assert len(before) == 4 + 1 + 10
        await w.advance(minutes=12)  # longer than any resync
        assert await revisions(w.client) == before


async def test_references_are_followed_whatever_the_names() -> None:
    async with world() as w:
        cluster, infra_cluster, control_plane = manifests.cluster("prod")
        cluster["spec"]["infrastructureRef"]["name"] = infra_cluster["metadata"]["name"] = "prod-infra-7"
        cluster["spec"]["controlPlaneRef"]["name"] = control_plane["metadata"]["name"] = "brain"
        infra_cluster["metadata"] = {"name": "prod-infra-7", "namespace": "default"}
        control_plane["metadata"] = {"name": "brain", "namespace": "default"}
        cluster["metadata"] = {"name": "prod", "namespace": "default"}
        pool, infra_pool = manifests.pool("arms", cluster="prod", replicas=2)
        infra_pool["metadata"] = {"name": "hands", "namespace": "default"}
        pool["spec"]["template"]["spec"]["infrastructureRef"]["name"] = "hands"
        await w.apply(cluster, infra_cluster, control_plane, pool, infra_pool)
        await w.settle()
        assert [m.status.phase for m in (await w.machines("arms")).values() if m.status] == ["Running", "Running"]
        status = (await w.pool("arms")).status
        assert status is not None and status.phase == "Running"


async def test_one_broken_pool_does_not_hold_up_another() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        broken, _ = manifests.pool("broken", replicas=1)
        broken["spec"]["template"]["spec"]["infrastructureRef"]["kind"] = "NoSuchPool"
        await w.apply(broken)
        await w.settle()
        await w.client.scale(MachinePool, "workers", "default", 2)
        await w.settle()
        assert (await counters(w))[:2] == ("Running", 2)
        status = (await w.pool("broken")).status
        assert status is not None
        why = get(status.conditions, "InfrastructureReady")
        assert why is not None and why.status != "True" and "NoSuchPool" in why.message


async def test_the_last_version_named_is_where_a_rollout_ends() -> None:
    """Another version and a larger pool in the middle of a rollout: all end new, and nothing follows."""
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        for version in ("v1.36.0", "v1.36.1"):
            change = {"spec": {"template": {"spec": {"version": version}}}}
            await w.client.patch(MachinePool.resource, "workers", "default", change)
            await w.clock.sleep(2)
        await w.client.scale(MachinePool, "workers", "default", 4)
        await w.advance(minutes=2)
        machines = await w.machines()
        assert {m.spec.version for m in machines.values()} == {"v1.36.1"} and len(machines) == 4
        await w.advance(minutes=10)
        assert set(await w.machines()) == set(machines)

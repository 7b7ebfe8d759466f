"""A cluster whose API is served by simulated control plane machines, without a control plane object; on virtual time."""

import base64

import pytest

from capi.api.builtin import Node
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine
from capi.client import pki
from capi.kube import conditions
from capi.kube.types import Object, ResourceType
from capi.runtime.plan import ClusterKey
from tests.world import manifests
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime

CONTROL_PLANE = {"cluster.x-k8s.io/control-plane": ""}
SECRETS = ResourceType("", "v1", "Secret", "secrets")
PODS = ResourceType("", "v1", "Pod", "pods")


def a_machine(name: str, **steps: str) -> list[Object]:
    """Of the control plane; `steps` are startup durations."""
    machine, infra = manifests.machine(name)
    for obj in (machine, infra):
        obj["metadata"]["labels"] = {**CONTROL_PLANE, "cluster.x-k8s.io/cluster-name": "quickstart"}
    infra["spec"]["backend"]["inMemory"] = {
        step: {"provisioning": {"startupDuration": time, "startupJitter": "0.2"}} for step, time in steps.items()
    }
    return [infra, machine]


async def bring_authority(w: World) -> None:
    pair = pki.new_ca("quickstart-ca", w.clock.now())
    data = {"tls.crt": pair.certificate, "tls.key": pair.key}
    await w.client.create(
        SECRETS,
        {
            "metadata": {"name": "quickstart-ca", "namespace": "default"},
            "type": "cluster.x-k8s.io/secret",
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        },
    )


async def a_cluster(w: World) -> None:
    """Without a control plane object; its user brings the authority."""
    cluster, infra, _ = manifests.cluster()
    del cluster["spec"]["controlPlaneRef"]
    await w.apply(cluster, infra)
    await bring_authority(w)


async def told(w: World, name: str) -> dict[str, tuple[str, str]]:
    infra = await w.client.get(DevMachine, name, "default")
    return {c.type: (c.status, c.reason) for c in infra.status.conditions}


async def phases(w: World) -> dict[str, str]:
    return {m.name: m.status.phase or "" for m in await w.client.list(Machine)}


async def test_the_first_machine_brings_the_api_up_step_by_step_and_workers_follow() -> None:
    async with world() as w:
        await a_cluster(w)
        await w.apply(*manifests.pool(replicas=2), *a_machine("cp-1", vm="10s", node="5s", etcd="20s", apiServer="40s"))
        await w.settle()
        assert (await told(w, "cp-1"))["EtcdProvisioned"] == ("False", "WaitingForNodeProvisioned")
        await w.advance(seconds=20)
        found = await told(w, "cp-1")
        assert found["NodeProvisioned"] == ("True", "Provisioned")
        assert found["EtcdProvisioned"] == found["APIServerProvisioned"] == ("False", "WaitingForStartupTimeout")
        assert w.infra.workloads.is_shut(ClusterKey("default", "quickstart"))
        await w.advance(seconds=22)
        found = await told(w, "cp-1")
        assert (found["EtcdProvisioned"][0], found["APIServerProvisioned"][0], found["Ready"][0]) == (
            "True", "False", "False",
        )  # fmt: skip
        await w.advance(minutes=1)
        assert {status for status, _ in (await told(w, "cp-1")).values()} == {"True", "False"}
        assert (await told(w, "cp-1"))["Ready"] == ("True", "Ready")
        await w.advance(minutes=1)
        assert set((await phases(w)).values()) == {"Running"} and len(await phases(w)) == 3
        cluster = await w.client.get(Cluster, "quickstart", "default")
        assert conditions.is_true(cluster.status.conditions, "ControlPlaneInitialized")
        [worker, *_] = await w.machines()
        assert "EtcdProvisioned" not in await told(w, worker)
        assert len(await w.workload().list(Node)) == 3


async def test_restarts_scaling_and_the_end() -> None:
    async with world() as w:
        await a_cluster(w)
        await w.apply(*manifests.pool(replicas=1), *a_machine("cp-1", etcd="30s", apiServer="30s"))
        await w.advance(minutes=2)
        for name in ("cp-2", "cp-3"):
            await w.apply(*a_machine(name, etcd="30s", apiServer="30s"))
            await w.advance(minutes=1)
        assert set((await phases(w)).values()) == {"Running"} and len(await phases(w)) == 4
        before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await w.workload().list(PODS)}
        assert len(before) == 12
        await w.restart_controllers()
        await w.advance(seconds=5)
        assert (await told(w, "cp-1"))["Ready"] == ("True", "Ready"), "nothing is waited for again"
        assert {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await w.workload().list(PODS)} == before
        writes = await w.writes()
        await w.advance(minutes=10)
        assert await w.writes() == writes
        await w.client.delete(Machine, "cp-1", "default")
        await w.advance(minutes=2)
        assert len(await w.workload().list(PODS)) == 8 and len(await w.workload().list(Node)) == 3
        await w.client.delete(Cluster, "quickstart", "default")
        await w.advance(minutes=5)
        for kind in (Cluster, MachinePool, Machine, DevMachine):
            assert await w.client.list(kind) == []
        assert w.stores.kept == set(), "its data is gone"


async def test_a_machine_waits_for_the_authority_and_says_so() -> None:
    async with world() as w:
        cluster, infra, _ = manifests.cluster()
        del cluster["spec"]["controlPlaneRef"]
        await w.apply(cluster, infra, *a_machine("cp-1"))
        await w.advance(minutes=1)
        found = await w.client.get(DevMachine, "cp-1", "default")
        vm = conditions.get(found.status.conditions, "VMProvisioned")
        assert vm is not None and (vm.status, "Secret quickstart-ca" in vm.message) == ("False", True)
        await bring_authority(w)
        await w.advance(minutes=2)
        assert (await told(w, "cp-1"))["Ready"] == ("True", "Ready")
        assert await phases(w) == {"cp-1": "Running"}


async def test_a_hosted_control_plane_has_no_machines() -> None:
    async with world() as w:
        await w.apply(*manifests.cluster(), *a_machine("cp-1"))
        await w.settle()
        assert (await told(w, "cp-1"))["VMProvisioned"] == ("False", "NotSupported")


async def test_an_outage_is_told_by_the_infrastructure_and_ends() -> None:
    """There is no control plane object to tell it."""
    outage = "devmachine.infrastructure.cluster.x-k8s.io/simulated-outage"
    async with world() as w:
        await a_cluster(w)
        await w.apply(*manifests.pool(replicas=1), *a_machine("cp-1"))
        await w.advance(minutes=2)
        before = await phases(w)
        for value, reason in (("true", "SimulatedOutage"), ("soon", "InvalidSimulation"), (None, "Ready")):
            note = {"metadata": {"annotations": {outage: value}}}
            await w.client.patch(Cluster.resource, "quickstart", "default", note)
            await w.advance(minutes=2)
            infra = await w.client.get(DevCluster, "quickstart", "default")
            found = conditions.get(infra.status.conditions, "Ready")
            assert found is not None and found.reason == reason
            assert w.infra.workloads.is_shut(ClusterKey("default", "quickstart")) is (value == "true")
            assert infra.status.initialization is not None and infra.status.initialization.provisioned
        assert await phases(w) == before

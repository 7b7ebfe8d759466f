"""The life of a cluster of containers, from nothing to nothing, on a real engine."""

import pytest

from capi.api.core import annotations
from capi.api.core.v1beta2 import Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from tests.docker import rig
from tests.docker.rig import NEWER, DockerWorld, docker_world

pytestmark = pytest.mark.usefixtures("engine")

PATIENCE = 2.0
"""Seconds in which what happens to a container is to be seen in the API."""
CHECK = {
    "apiVersion": rig.CORE,
    "kind": "MachineHealthCheck",
    "metadata": {"name": "w"},
    "spec": {
        "clusterName": "c1",
        "selector": {"matchLabels": {"cluster.x-k8s.io/pool-name": "w"}},
        "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 5}]},
    },
}


async def test_a_cluster_of_containers_from_nothing_to_nothing(namespace: str) -> None:
    async with docker_world(namespace) as w:
        await w.apply(*rig.cluster(), rig.secret(), *rig.pool(3), CHECK)
        await w.until(lambda: w.running(3))
        await the_load_balancer_is_the_endpoint(w)
        await containers_follow_the_conventions(w)
        await scaling_spares_all_but_the_marked(w)
        await a_removed_container_is_replaced(w)
        await a_stopped_container_is_not_ready_and_replaced_by_its_health_check(w)
        await a_new_image_rolls_without_a_gap(w)
        await nothing_is_left(w)


async def the_load_balancer_is_the_endpoint(w: DockerWorld) -> None:
    infra = await w.get(DevCluster, "c1")
    [balancer] = await w.containers("io.x-k8s.kind.role=external-load-balancer")
    address = next(iter(balancer["NetworkSettings"]["Networks"].values()))["IPAddress"]
    assert infra.spec.control_plane_endpoint is not None
    assert (infra.spec.control_plane_endpoint.host, infra.spec.control_plane_endpoint.port) == (address, 6443)
    assert rig.condition(infra, "LoadBalancerAvailable").status == "True"
    assert balancer["Names"] == ["/c1-lb"]


async def containers_follow_the_conventions(w: DockerWorld) -> None:
    infra = await w.infra_machines()
    nodes = {node["metadata"]["name"]: node for node in await w.workload().list(rig.NODES, "")}
    for machine in (await w.machines()).values():
        [container] = await w.containers(f"dev.cluster.x-k8s.io/machine={machine.name}")
        name = container["Names"][0].lstrip("/")
        assert name == f"c1-{machine.name}"
        assert (
            container["Labels"]
            | {
                "io.x-k8s.kind.cluster": "c1",
                "io.x-k8s.kind.role": "worker",
                "dev.cluster.x-k8s.io/machine-pool": "w",
                "dev.cluster.x-k8s.io/namespace": w.namespace,
            }
            == container["Labels"]
        )
        assert machine.spec.provider_id == infra[machine.name].spec.provider_id == f"docker:////{name}"
        assert nodes[name]["spec"]["providerID"] == f"docker:////{name}"
        types = [(a.type, a.address) for a in machine.status.addresses]
        address = next(iter(container["NetworkSettings"]["Networks"].values()))["IPAddress"]
        assert types == [("Hostname", name), ("InternalIP", address), ("ExternalIP", address)]


async def scaling_spares_all_but_the_marked(w: DockerWorld) -> None:
    before = set(await w.machines())
    await scale(w, 6)
    await w.until(lambda: w.running(6))
    assert before < set(await w.machines())
    marked = sorted(await w.machines())[0]
    await w.patch(Machine, marked, {"metadata": {"annotations": {annotations.DELETE_MACHINE: ""}}})
    await scale(w, 5)
    await w.until(lambda: w.running(5))
    assert marked not in await w.machines()
    six = set(await w.machines())
    await scale(w, 2)
    await w.until(lambda: w.running(2))
    assert set(await w.machines()) < six, "the pool was not shrunk but replaced"

    async def only_two() -> bool:
        return len(await w.containers("dev.cluster.x-k8s.io/machine-pool=w")) == 2

    await w.until(only_two, PATIENCE, "the end of four containers")  # the engine's list lags a little


async def a_removed_container_is_replaced(w: DockerWorld) -> None:
    before = set(await w.machines())
    victim = sorted(before)[0]
    await (await w.docker.containers.get(f"c1-{victim}")).delete(force=True, v=True)

    async def replaced() -> bool:
        return bool(set(await w.machines()) - before)

    await w.until(replaced, PATIENCE, "a new Machine for a removed container")
    await w.until(lambda: w.running(2))
    assert victim not in await w.machines()


async def a_stopped_container_is_not_ready_and_replaced_by_its_health_check(w: DockerWorld) -> None:
    victim = sorted(await w.machines())[0]
    await (await w.docker.containers.get(f"c1-{victim}")).stop(t=0)

    async def unready() -> bool:
        infra = (await w.infra_machines()).get(victim)
        return infra is not None and not rig.is_ready(infra)

    await w.until(unready, PATIENCE, "a stopped container that is not ready")
    stopped = rig.condition((await w.infra_machines())[victim], "ContainerProvisioned")
    assert (stopped.status, stopped.reason) == ("False", "NotProvisioned")
    assert f"c1-{victim} is not running any more" in stopped.message

    async def healed() -> bool:
        return victim not in await w.machines() and await w.running(2)

    await w.until(healed)


async def a_new_image_rolls_without_a_gap(w: DockerWorld) -> None:
    before, fewest, most = set(await w.machines()), 2, 2
    image = {"spec": {"backend": {"docker": {"customImage": NEWER}}}}
    await w.patch(DevMachinePool, "w", image)

    async def rolled() -> bool:
        nonlocal fewest, most
        found = await w.machines()
        fewest = min(fewest, sum(rig.is_ready(m) and not m.deleting for m in found.values()))
        most = max(most, len(found))
        return not before & set(found) and await w.running(2)

    await w.until(rolled)
    assert (fewest, most) == (2, 3), "maxUnavailable is 0 and maxSurge 1"
    assert {c["Image"] for c in await w.containers("dev.cluster.x-k8s.io/machine-pool=w")} == {NEWER}


async def nothing_is_left(w: DockerWorld) -> None:
    await w.delete(MachinePool, "w")
    await w.until(lambda: w.gone(MachinePool, Machine, DevMachine, DevMachinePool))
    assert not await w.containers("dev.cluster.x-k8s.io/machine-pool=w")
    await w.dismantle()
    assert await w.gone(DevCluster)
    assert not await w.containers()


async def scale(w: DockerWorld, replicas: int) -> None:
    await w.patch(MachinePool, "w", {"spec": {"replicas": replicas}})

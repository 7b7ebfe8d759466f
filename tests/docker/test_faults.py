"""What went wrong elsewhere, and what an engine can do to a pool: each must end as if nothing had happened."""

import asyncio
import contextlib
import os

import pytest
from aiodocker import DockerError

from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, DevMachinePool
from tests.docker import rig
from tests.docker.proxy import DockerProxy
from tests.docker.rig import DockerWorld, docker_world

pytestmark = pytest.mark.usefixtures("engine")

CONTAINER = r"/containers/[0-9a-f]{64}"
POOL = "dev.cluster.x-k8s.io/machine-pool=w"


async def a_pool(w: DockerWorld, replicas: int) -> set[str]:
    """Names of its running Machines."""
    await w.apply(*rig.cluster(), rig.secret(), *rig.pool(replicas))
    await w.until(lambda: w.running(replicas))
    return set(await w.machines())


async def scale(w: DockerWorld, replicas: int) -> None:
    await w.patch(MachinePool, "w", {"spec": {"replicas": replicas}})
    await w.until(lambda: w.running(replicas))


async def ids(w: DockerWorld, namespace: str = "") -> dict[str, str]:
    """Container IDs by name."""
    return {c["Names"][0]: c["Id"] for c in await w.containers(namespace=namespace)}


async def test_shrinking_keeps_one_of_the_four(namespace: str) -> None:
    async with docker_world(namespace) as w:
        four = await a_pool(w, 4)
        seen = set(four)
        await w.patch(MachinePool, "w", {"spec": {"replicas": 1}})

        async def shrunk() -> bool:
            seen.update(await w.machines())
            return await w.running(1)

        await w.until(shrunk)
        assert seen == four, "a Machine was made while the pool shrank"
        assert set(await w.machines()) < four
        await w.dismantle()


async def test_a_new_version_rolls_without_a_gap_though_the_image_stays(namespace: str) -> None:
    async with docker_world(namespace) as w:
        before = await a_pool(w, 2)
        fewest = 2
        await w.patch(MachinePool, "w", {"spec": {"template": {"spec": {"version": "v1.34.9"}}}})

        async def rolled() -> bool:
            nonlocal fewest
            found = await w.machines()
            fewest = min(fewest, sum(rig.is_ready(m) and not m.deleting for m in found.values()))
            return not before & set(found) and await w.running(2)

        await w.until(rolled)
        assert fewest == 2
        await w.dismantle()


async def test_a_removal_that_the_engine_refuses_is_not_forgotten(namespace: str, proxy: DockerProxy) -> None:
    async with docker_world(namespace, proxy.host) as w:
        [name] = await a_pool(w, 1)
        refusal = proxy.answer("DELETE", CONTAINER, 500, "cannot remove: device busy", times=2)
        await w.patch(MachinePool, "w", {"spec": {"replicas": 0}})

        async def reported() -> bool:
            found = (await w.infra_machines()).get(name)
            return found is not None and "device busy" in rig.condition(found, "Ready").message

        await w.until(reported, what="a report of the failed removal")
        assert await w.containers(POOL)
        await w.until(lambda: w.gone(DevMachine), what="the second attempt")
        assert refusal.hits == 2
        await w.dismantle()


async def test_clusters_of_one_name_in_two_namespaces_do_not_see_each_other(namespace: str) -> None:
    other = f"{namespace}-b"
    async with docker_world(namespace) as w:
        await a_pool(w, 1)
        await w.apply(*rig.cluster(), rig.secret(), *rig.pool(1), namespace=other)
        await w.until(lambda: w.running(1, namespace=other))
        first, second = await ids(w), await ids(w, other)
        assert len(first) == len(second) == 2
        assert not set(first.values()) & set(second.values())
        await w.dismantle(namespace=other)
        assert not await w.containers(namespace=other)
        assert await ids(w) == first
        assert await w.running(1)
        await w.dismantle()


REQUESTS = {
    "create": ("POST", "/containers/create"),
    "start": ("POST", f"{CONTAINER}/start"),
    "exec": ("POST", f"{CONTAINER}/exec"),
    "exec start": ("POST", "/exec/[0-9a-f]{64}/start"),
    "list": ("GET", "/containers/json"),
    "remove": ("DELETE", CONTAINER),
}
HOW = ("refused", "answer lost", "not heard")
ALL = [(request, how) for request in REQUESTS for how in HOW]
SOME = [
    ("create", "answer lost"),
    ("start", "answer lost"),
    ("exec", "refused"),
    ("exec start", "answer lost"),
    ("remove", "answer lost"),
]
"""Those that leave most behind where they are not thought of; CAPI_ALL_FAULTS=1 tries all."""


@pytest.mark.parametrize(("request_", "how"), ALL if os.environ.get("CAPI_ALL_FAULTS") == "1" else SOME)
async def test_a_request_that_fails_once_changes_nothing_in_the_end(
    namespace: str, proxy: DockerProxy, request_: str, how: str
) -> None:
    method, path = REQUESTS[request_]
    async with docker_world(namespace, proxy.host) as w:
        await w.apply(*rig.cluster())
        await w.until(lambda: has_endpoint(w))
        if how == "refused":
            rule = proxy.answer(method, path, 500, "fault of the test", first=2)
        else:
            rule = proxy.cut(method, path, 0 if how == "answer lost" else None, first=2)
        await w.apply(rig.secret(), *rig.pool(2))
        await w.until(lambda: w.running(2))
        await scale(w, 1)
        await scale(w, 0)
        assert rule.hits == 1, "there was no fault"
        await w.dismantle()
        assert not await w.containers()


async def has_endpoint(w: DockerWorld) -> bool:
    found = await w.get(Cluster, "c1")
    return found.spec.control_plane_endpoint is not None


async def test_an_engine_that_is_away_is_waited_for(namespace: str, proxy: DockerProxy) -> None:
    async with docker_world(namespace, proxy.host) as w:
        before = await a_pool(w, 2)
        containers = await ids(w)

        async def unknown() -> bool:
            found = (await w.infra_machines()).values()
            return all(rig.condition(m, "ContainerProvisioned").status == "Unknown" for m in found)

        async def advised() -> bool:
            found = (await w.infra_machines()).values()
            said = [rig.condition(m, "ContainerProvisioned") for m in found]
            return all(c.reason == "BackendUnavailable" and "start the engine" in c.message for c in said)

        async with proxy.down():
            await w.until(unknown, what="a report that the engine is away")
            await w.until(advised, what="a report of what to do")
            await w.patch(MachinePool, "w", {"spec": {"replicas": 3}})
        await w.until(lambda: w.running(3), what="recovery")
        assert before < set(await w.machines())
        assert containers.items() <= (await ids(w)).items()
        await w.dismantle()


async def test_an_engine_that_breaks_off_in_the_middle_is_asked_again(namespace: str, proxy: DockerProxy) -> None:
    """All connections end while kubeadm runs: it runs on, once."""
    async with docker_world(namespace, proxy.host) as w:
        await w.apply(*rig.cluster(), rig.secret(rig.slow(3)), *rig.pool(1))
        await w.until(lambda: kubeadm_runs(w))
        proxy.cut_all()
        await w.until(lambda: w.running(1))
        [container] = await w.containers(POOL)
        assert await rig.calls_of_kubeadm(w, container["Id"]) == 1
        await w.dismantle()


async def test_controllers_that_restart_during_kubeadm_wait_for_its_end(namespace: str) -> None:
    async with docker_world(namespace) as w:
        await w.apply(*rig.cluster(), rig.secret(rig.slow(4)), *rig.pool(1))
        await w.until(lambda: kubeadm_runs(w))
        await w.stop_controllers()
        await w.start_controllers()
        [container] = await w.containers(POOL)
        while not await rig.joined(w, container["Id"]):
            [infra] = (await w.infra_machines()).values()
            said = rig.condition(infra, "BootstrapCompleted").status
            assert said == "False" or await rig.joined(w, container["Id"]), "bootstrapped, though kubeadm still runs"
            await asyncio.sleep(0.1)
        await w.until(lambda: w.running(1))
        assert await rig.calls_of_kubeadm(w, container["Id"]) == 1
        await w.dismantle()


async def test_a_container_that_restarts_during_kubeadm_has_failed(namespace: str) -> None:
    async with docker_world(namespace) as w:
        await w.apply(*rig.cluster(), rig.secret(rig.slow(30)), *rig.pool(1))
        await w.until(lambda: kubeadm_runs(w))
        [container] = await w.containers(POOL)
        await (await w.docker.containers.get(container["Id"])).restart(timeout=0)

        async def failed() -> bool:
            [infra] = (await w.infra_machines()).values()
            said = rig.condition(infra, "BootstrapCompleted")
            return bool(said.reason == "Failed" and "restarted in the middle" in said.message)

        await w.until(failed)
        await w.dismantle()


async def kubeadm_runs(w: DockerWorld) -> bool:
    """It was called in the one container of the pool, by its own log there."""
    for container in await w.containers(POOL):
        with contextlib.suppress(DockerError):
            return await rig.calls_of_kubeadm(w, container["Id"]) == 1
    return False


async def test_a_pool_without_version_says_so_and_goes_on_with_one(namespace: str) -> None:
    async with docker_world(namespace) as w:
        await w.apply(*rig.cluster(), rig.secret(), *rig.pool(1, image="", template={"version": None}))

        async def explained() -> bool:
            found = list((await w.infra_machines()).values())
            return bool(found) and "version" in rig.condition(found[0], "ContainerProvisioned").message

        await w.until(explained)
        image = {"spec": {"backend": {"docker": {"customImage": rig.IMAGE}}}}
        await w.patch(DevMachinePool, "w", image)
        await w.until(lambda: w.running(1))
        await w.dismantle()


async def test_a_pool_without_backend_is_a_pool_of_containers(namespace: str) -> None:
    async with docker_world(namespace) as w:
        machine_pool, infra = rig.pool(0)
        await w.apply(*rig.cluster(), rig.secret(), machine_pool, {**infra, "spec": {}})
        found = await w.get(DevMachinePool, "w")
        assert found.spec.backend is not None and found.spec.backend.docker is not None
        await w.dismantle()
        assert await w.gone(Machine)

"""DevClusters of containers, from their first pass to their last."""

import pytest

from capi.api.core.v1beta2 import Cluster
from capi.api.infra.v1beta2 import DevCluster, DevMachineTemplate
from capi.kube.types import Object
from tests.docker import rig
from tests.docker.engine import Engine
from tests.docker.proxy import DockerProxy
from tests.docker.rig import DockerWorld, docker_world
from tests.docker.test_load_balancer import BALANCER, available

pytestmark = pytest.mark.usefixtures("engine")

FINALIZER = "dockercluster.infrastructure.cluster.x-k8s.io"
CONTAINER = r"/containers/[0-9a-f]{64}"


async def infra(w: DockerWorld) -> DevCluster:
    return await w.get(DevCluster, "c1")


async def test_from_its_first_pass_to_its_last(namespace: str) -> None:
    domains = [{"name": f"fd{n}", "controlPlane": n < 4} for n in range(1, 9)]
    async with docker_world(namespace, kubelets=False) as w:
        await w.apply(*rig.cluster(failureDomains=domains))
        await w.until(lambda: available(w))
        found = await infra(w)
        [balancer] = await w.containers(BALANCER)
        assert balancer["Names"] == ["/c1-lb"]
        assert FINALIZER in found.metadata.finalizers
        states = {c.type: (c.status, c.reason) for c in found.status.conditions}
        assert states == {
            "Ready": ("True", "Ready"), "LoadBalancerAvailable": ("True", "Available"), "Paused": ("False", "NotPaused"),
        }  # fmt: skip
        assert found.status.initialization is not None and found.status.initialization.provisioned
        assert [domain.name for domain in found.status.failure_domains] == [f"fd{n}" for n in range(1, 9)]
        await w.dismantle()
        assert await w.gone(DevCluster)
        assert await w.containers() == []


async def test_one_that_no_cluster_owns_is_left_alone_and_goes_without_a_word(
    namespace: str, proxy: DockerProxy
) -> None:
    _, alone, _ = rig.cluster()
    managed = {**alone, "metadata": {"name": "managed", "annotations": {"cluster.x-k8s.io/managed-by": "others"}}}
    async with docker_world(namespace, proxy.host, kubelets=False) as w:
        await w.apply(alone, managed)
        await w.apply(*rig.cluster("c2"))

        async def other_is_made() -> bool:
            return rig.condition(await w.get(DevCluster, "c2"), "LoadBalancerAvailable").status == "True"

        await w.until(other_is_made)
        for name in ("c1", "managed"):
            found = await w.get(DevCluster, name)
            assert (found.metadata.finalizers, found.status.conditions) == ((), ())
        before = proxy.kinds()
        await w.delete(DevCluster, "c1")
        assert {cluster.name for cluster in await w.list(DevCluster)} == {"c2", "managed"}
        assert proxy.kinds() == before
        assert len(await w.containers()) == 1
        await w.delete(DevCluster, "managed")
        await w.dismantle("c2")


async def test_an_engine_that_refuses_is_told_and_asked_again(namespace: str, proxy: DockerProxy) -> None:
    async with docker_world(namespace, proxy.host, kubelets=False) as w:
        refused = proxy.answer("POST", "/containers/create", 500, "device busy", times=2)
        await w.apply(*rig.cluster())

        async def told() -> bool:
            found = await infra(w)
            said = rig.condition(found, "LoadBalancerAvailable")
            provisioned = found.status.initialization is not None
            return said.status == "False" and "create container c1-lb: device busy" in said.message and not provisioned

        await w.until(told)
        await w.until(lambda: available(w))
        assert refused.hits == 2
        await w.dismantle()


async def test_a_paused_cluster_asks_nothing_of_the_engine(namespace: str, proxy: DockerProxy) -> None:
    """As when objects are moved: they have their owners, and come paused."""
    paused, own, plane = rig.cluster()
    paused = {**paused, "spec": {**paused["spec"], "paused": True}}
    async with docker_world(namespace, proxy.host, kubelets=False) as w:
        await w.apply(paused)
        uid = (await w.get(Cluster, "c1")).metadata.uid
        owner = {"apiVersion": rig.CORE, "kind": "Cluster", "name": "c1", "uid": uid}
        await w.apply({**own, "metadata": {"name": "c1", "ownerReferences": [owner]}}, plane)

        async def told() -> bool:
            return rig.condition(await infra(w), "Paused").status == "True"

        await w.until(told)
        assert await w.containers() == []
        assert proxy.kinds() == {}
        await w.patch(Cluster, "c1", {"spec": {"paused": False}})
        await w.until(lambda: available(w))
        await w.dismantle()


async def test_a_removal_says_what_it_does_and_why_it_does_not_end(namespace: str, proxy: DockerProxy) -> None:
    async with docker_world(namespace, proxy.host, kubelets=False) as w:
        await w.apply(*rig.cluster())
        await w.until(lambda: available(w))
        removal = proxy.hold("DELETE", CONTAINER)
        await w.delete(Cluster, "c1")
        await removal.reached.wait()
        said = rig.condition(await infra(w), "LoadBalancerAvailable")
        assert (said.status, said.reason, said.message) == ("False", "Deleting", "Removing the load balancer")
        proxy.answer("DELETE", CONTAINER, 500, "device busy", times=1)
        removal.released.set()
        await w.until(lambda: w.gone(Cluster, DevCluster))
        assert await w.containers() == []


async def test_two_management_servers_on_one_engine_do_not_take_each_others_load_balancer(namespace: str) -> None:
    """Both have a cluster of the same name in a namespace of the same name."""
    async with docker_world(namespace, kubelets=False) as one, docker_world(namespace, kubelets=False) as two:
        for w in (one, two):
            await w.apply(*rig.cluster())
            await w.until(lambda w=w: available(w))
        hosts = {(await infra(w)).spec.control_plane_endpoint.host for w in (one, two)}
        first, second = await one.containers(BALANCER)
        assert len(hosts) == 2
        await one.dismantle()
        [left] = await two.containers(BALANCER)
        assert left["Id"] in (first["Id"], second["Id"])
        assert (
            next(iter(left["NetworkSettings"]["Networks"].values()))["IPAddress"]
            == (await infra(two)).spec.control_plane_endpoint.host
        )
        await two.dismantle()
        assert await two.containers() == []


async def test_an_address_that_the_engine_gave_to_another_is_told_with_the_way_out(
    namespace: str, engine: Engine
) -> None:
    async with docker_world(namespace, kubelets=False) as w:
        await w.apply(*rig.cluster())
        await w.until(lambda: available(w))
        endpoint = (await infra(w)).spec.control_plane_endpoint
        assert endpoint is not None
        await w.stop_controllers()
        balancer = await w.docker.containers.get("c1-lb")
        await balancer.stop(t=0)
        squatter = engine.run(
            f"{namespace}-squatter", rig.IMAGE, {"dev.cluster.x-k8s.io/namespace": namespace}, HostConfig={"NetworkMode": "kind"}
        )  # fmt: skip
        await w.start_controllers()

        async def told() -> bool:
            said = rig.condition(await infra(w), "LoadBalancerAvailable")
            return (
                said.reason == "AddressChanged"
                and endpoint.host in said.message
                and "docker restart c1-lb" in said.message
            )

        await w.until(told)
        engine.remove(squatter)
        await balancer.restart(timeout=0)
        await w.until(lambda: available(w))
        await w.dismantle()


async def test_a_template_says_what_its_machines_will_have(namespace: str, engine: Engine) -> None:
    template: Object = {
        "apiVersion": rig.INFRA, "kind": "DevMachineTemplate", "metadata": {"name": "t"},
        "spec": {"template": {"spec": {"backend": {"docker": {}}}}},
    }  # fmt: skip
    info = engine.call("GET", "/info")
    async with docker_world(namespace, kubelets=False) as w:
        await w.apply(template)

        async def measured() -> bool:
            return bool((await w.get(DevMachineTemplate, "t")).status.capacity)

        await w.until(measured)
        found = await w.get(DevMachineTemplate, "t")
        assert dict(found.status.capacity) == {"cpu": str(info["NCPU"]), "memory": str(info["MemTotal"])}

"""DevMachines that are containers, from their first pass to their last."""

import pytest

from capi.api.core.v1beta2 import Machine
from capi.api.infra.v1beta2 import DevMachine
from capi.kube.types import Object
from tests.docker import rig
from tests.docker.engine import Engine
from tests.docker.proxy import DockerProxy
from tests.docker.rig import DockerWorld, docker_world

pytestmark = pytest.mark.usefixtures("engine")

OWN = "dev.cluster.x-k8s.io/machine=m0"
CONTAINER = r"/containers/[0-9a-f]{64}"


def a_machine(name: str = "m0", **docker: object) -> list[Object]:
    """A Machine of its own, a worker."""
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name}
    spec = {
        "clusterName": "c1", "version": "v1.34.0", "failureDomain": "fd4",
        "bootstrap": {"dataSecretName": "w-bootstrap"}, "infrastructureRef": ref,
    }  # fmt: skip
    metadata = {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "c1"}}
    backend = {"docker": {"customImage": rig.IMAGE, **docker}}
    return [
        {"apiVersion": rig.CORE, "kind": "Machine", "metadata": metadata, "spec": spec},
        {"apiVersion": rig.INFRA, "kind": "DevMachine", "metadata": metadata, "spec": {"backend": backend}},
    ]


async def infra(w: DockerWorld) -> DevMachine:
    return await w.get(DevMachine, "m0")


async def runs(w: DockerWorld) -> bool:
    return rig.is_ready(await infra(w)) and (await w.get(Machine, "m0")).status.phase == "Running"


async def test_one_that_no_machine_means_is_left_alone(namespace: str) -> None:
    machine, alone = a_machine()
    async with docker_world(namespace) as w:
        await w.apply(*rig.cluster(), rig.secret(), alone)
        await w.apply(*a_machine("m1"))
        await w.until(lambda: is_running(w, "m1"))
        found = await infra(w)
        assert (found.metadata.finalizers, found.status.conditions) == ((), ())
        assert await w.containers(OWN) == []
        await w.apply(machine)
        await w.until(lambda: runs(w))
        assert (await infra(w)).metadata.finalizers == ("dockermachine.infrastructure.cluster.x-k8s.io",)
        assert rig.condition(await infra(w), "Paused").status == "False"
        await w.dismantle()


async def is_running(w: DockerWorld, name: str) -> bool:
    return (await w.get(Machine, name)).status.phase == "Running"


async def test_what_it_is_made_with_is_seen_by_the_engine(namespace: str, engine: Engine) -> None:
    async with docker_world(namespace) as w:
        mounts = [{"hostPath": "/usr/share", "containerPath": "/shared", "readOnly": True}]
        await w.apply(*rig.cluster(), rig.secret(), *a_machine(extraMounts=mounts))
        await w.until(lambda: runs(w))
        [container] = await w.containers(OWN)
        made = engine.inspect(container["Id"])
        assert made["Config"]["Labels"]["io.x-k8s.cluster.failureDomain"] == "fd4"
        assert (await infra(w)).status.failure_domain == "fd4"
        assert made["HostConfig"]["Binds"] == ["/usr/share:/shared:ro", "/lib/modules:/lib/modules:ro"]
        assert {mount["Destination"]: mount["Type"] for mount in made["Mounts"]}["/var"] == "volume"
        assert set(made["HostConfig"]["Tmpfs"]) == {"/tmp", "/run"}
        assert made["HostConfig"]["CgroupnsMode"] == "private"
        assert engine.exec(container["Id"], "touch", "/shared/x")[0] != 0
        await w.dismantle()


async def test_a_container_that_never_ran_is_made_anew(namespace: str, proxy: DockerProxy, engine: Engine) -> None:
    """The process died between creating and starting it."""
    async with docker_world(namespace, proxy.host) as w:
        await w.apply(*rig.cluster(), rig.secret())
        starting = proxy.hold("POST", f"{CONTAINER}/start", first=2)  # the first is the load balancer's
        await w.apply(*a_machine())
        await starting.reached.wait()
        [before] = engine.containers(f"dev.cluster.x-k8s.io/namespace={namespace}", OWN)
        assert before["State"] == "created"
        proxy.cut_all()
        starting.released.set()
        await w.until(lambda: runs(w))
        [after] = await w.containers(OWN)
        assert after["State"] == "running"
        await w.dismantle()


async def test_one_that_is_deleted_while_it_bootstraps_is_removed_with_its_volumes(
    namespace: str, engine: Engine
) -> None:
    async with docker_world(namespace) as w:
        await w.apply(*rig.cluster(), rig.secret(rig.slow(60)), *a_machine())

        async def bootstraps() -> bool:
            found = await w.containers(OWN)
            return bool(found) and rig.condition(await infra(w), "PreLoadedImagesReady").status == "True"

        await w.until(bootstraps)
        [container] = await w.containers(OWN)
        volumes = {mount["Name"] for mount in engine.inspect(container["Id"])["Mounts"] if mount["Type"] == "volume"}
        assert volumes
        await w.delete(Machine, "m0")
        took = await w.until(lambda: w.gone(Machine, DevMachine))
        assert took < 20, "the bootstrap was waited for"
        assert await w.containers(OWN) == []
        assert not volumes & {volume["Name"] for volume in engine.volumes()}
        await w.dismantle()


async def test_a_removal_says_what_it_does_and_why_it_does_not_end(namespace: str, proxy: DockerProxy) -> None:
    async with docker_world(namespace, proxy.host) as w:
        await w.apply(*rig.cluster(), rig.secret(), *a_machine())
        await w.until(lambda: runs(w))
        removal = proxy.hold("DELETE", CONTAINER)
        await w.delete(Machine, "m0")
        await removal.reached.wait()
        said = rig.condition(await infra(w), "ContainerProvisioned")
        assert (said.status, said.reason, said.message) == ("False", "Deleting", "Removing the container")
        proxy.answer("DELETE", CONTAINER, 500, "device busy", times=1)
        removal.released.set()
        await w.until(lambda: w.gone(Machine, DevMachine))
        assert await w.containers(OWN) == []
        await w.dismantle()

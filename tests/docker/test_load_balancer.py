"""The load balancer of a cluster follows its control plane machines, and comes back."""

import pytest
from aiodocker import DockerError

from capi.api.core.v1beta2 import Machine
from capi.api.infra.v1beta2 import DevCluster, DevMachine
from capi.kube.types import Object
from tests.docker import rig
from tests.docker.rig import DockerWorld, docker_world

pytestmark = pytest.mark.usefixtures("engine")

WEIGHT = "devmachine.infrastructure.cluster.x-k8s.io/weight"
BALANCER = "io.x-k8s.kind.role=external-load-balancer"


def control_plane(name: str) -> list[Object]:
    """A Machine of the control plane, on its own."""
    labels = {"cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/cluster-name": "c1"}
    metadata = {"name": name, "labels": labels}
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name}
    spec = {
        "clusterName": "c1", "version": "v1.34.0", "bootstrap": {"dataSecretName": "w-bootstrap"}, "infrastructureRef": ref,
    }  # fmt: skip
    docker = {"customImage": rig.IMAGE}
    return [
        {"apiVersion": rig.CORE, "kind": "Machine", "metadata": metadata, "spec": spec},
        {"apiVersion": rig.INFRA, "kind": "DevMachine", "metadata": metadata, "spec": {"backend": {"docker": docker}}},
    ]


async def config(w: DockerWorld, name: str = "haproxy.cfg") -> str:
    """What the load balancer was given; "" while there is none."""
    try:
        archive = await w.docker.containers.container("c1-lb").get_archive(f"/usr/local/etc/haproxy/{name}")
    except DockerError:
        return ""
    file = archive.extractfile(name)
    assert file is not None
    return file.read().decode()


async def taken(w: DockerWorld) -> bool:
    """HAProxy runs with what it was given, as far as was seen."""
    return await config(w, "applied.cfg") == await config(w)


async def serves(w: DockerWorld, *weights: tuple[str, int]) -> bool:
    """Exactly these control plane machines are behind it, with these weights."""
    lines = [line.split() for line in (await config(w)).splitlines() if line.split()[:1] == ["server"]]
    found = {line[1]: int(line[line.index("weight") + 1]) for line in lines}
    return found == {f"c1-{name}": weight for name, weight in weights}


async def available(w: DockerWorld) -> bool:
    return rig.condition(await w.get(DevCluster, "c1"), "LoadBalancerAvailable").status == "True"


async def weighed(w: DockerWorld, *names: str) -> bool:
    """The load balancer runs with these machines: what it was given is noted when it has taken it."""
    found = await w.infra_machines()
    return all(found[name].metadata.annotations.get(WEIGHT) == "100" for name in names)


async def dismantled(w: DockerWorld, *names: str) -> None:
    """With a control plane provider, the Machines of the control plane are its to delete; here it has none."""
    for name in names:
        await w.delete(Machine, name)
    await w.until(lambda: w.gone(Machine))
    await w.dismantle()


async def workers_of_haproxy(w: DockerWorld) -> set[str]:
    """Process IDs of its workers: a reload starts a new one."""
    found = await w.docker.containers.container("c1-lb").top(ps_args="-eo pid,ppid")
    pids = {pid for pid, _ in found["Processes"]}
    return {pid for pid, parent in found["Processes"] if parent in pids}


async def test_it_follows_the_control_plane_machines(namespace: str) -> None:
    async with docker_world(namespace) as w:
        await w.apply(*rig.cluster(), rig.secret(), *control_plane("cp0"), *control_plane("cp1"))
        await w.until(lambda: serves(w, ("cp0", 100), ("cp1", 100)))
        await w.until(lambda: weighed(w, "cp0", "cp1"))
        before = await workers_of_haproxy(w)
        await w.patch(
            Machine, "cp0", {"metadata": {"annotations": {"pre-terminate.delete.hook.machine.cluster.x-k8s.io/t": ""}}}
        )
        await w.delete(Machine, "cp0")
        await w.until(lambda: serves(w, ("cp0", 0), ("cp1", 100)), what="draining of one that leaves")

        async def told() -> bool:
            return await workers_of_haproxy(w) != before

        await w.until(told, what="a reload of HAProxy")
        assert (await w.get(DevMachine, "cp0")).deleting is False
        await w.patch(
            Machine,
            "cp0",
            {"metadata": {"annotations": {"pre-terminate.delete.hook.machine.cluster.x-k8s.io/t": None}}},
        )
        await w.until(lambda: serves(w, ("cp1", 100)))
        await w.until(lambda: taken(w), what="the end of the reload")
        settled = await workers_of_haproxy(w)
        await w.stop_controllers()
        await w.start_controllers()
        await w.until(lambda: available(w))
        assert await workers_of_haproxy(w) == settled, "it was reloaded although nothing had changed"
        await dismantled(w, "cp1")


@pytest.mark.parametrize("how", ["stopped", "removed"])
async def test_it_comes_back_as_it_was(namespace: str, how: str) -> None:
    async with docker_world(namespace) as w:
        await w.apply(*rig.cluster(), rig.secret(), *control_plane("cp0"))
        await w.until(lambda: serves(w, ("cp0", 100)))
        endpoint = (await w.get(DevCluster, "c1")).spec.control_plane_endpoint
        [old] = await w.containers(BALANCER)
        container = await w.docker.containers.get("c1-lb")
        await (container.stop(t=0) if how == "stopped" else container.delete(force=True, v=True))

        async def back() -> bool:
            found = await w.containers(BALANCER)
            return bool(found) and found[0]["State"] == "running" and (how == "stopped" or found[0]["Id"] != old["Id"])

        await w.until(back, 2.0, "the load balancer")
        await w.until(lambda: serves(w, ("cp0", 100)))
        await w.until(lambda: available(w))
        [new] = await w.containers(BALANCER)
        assert endpoint is not None
        assert next(iter(new["NetworkSettings"]["Networks"].values()))["IPAddress"] == endpoint.host
        await dismantled(w, "cp0")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        pytest.param(
            "no-such-directive on\n", "refuses the configuration", id="a directive that HAProxy does not know"
        ),
        pytest.param("global\n  maxconn 2000000000\n", "", id="more connections than the container may have"),
        pytest.param("{{ .NoSuchVariable }}\n", "NoSuchVariable", id="a variable that there is not"),
    ],
)
async def test_a_template_that_cannot_be_used_leaves_the_old_configuration_at_work(
    namespace: str, bad: str, reason: str
) -> None:
    good = (
        "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 50s\n  timeout server 50s\nfrontend control-plane\n"
        "  bind *:{{ .FrontendControlPlanePort }}\n  default_backend nodes\nbackend nodes\n"
        "{{- range $name, $server := .BackendServers }}\n"
        "  server {{ $name }} {{ JoinHostPort $server.Address $.BackendControlPlanePort }} weight {{ $server.Weight }}\n"
        "{{- end }}\n"
    )
    async with docker_world(namespace) as w:
        given = {"loadBalancer": {"customHAProxyConfigTemplateRef": {"name": "mine"}}}
        await w.apply(template(good), *rig.cluster("c1", **given), rig.secret(), *control_plane("cp0"))
        await w.until(lambda: serves(w, ("cp0", 100)))
        await w.until(lambda: weighed(w, "cp0"))
        workers = await workers_of_haproxy(w)
        await w.apply(template(bad + good))
        await w.patch(DevCluster, "c1", {"metadata": {"annotations": {"look": "now"}}})

        async def refused() -> bool:
            said = rig.condition(await w.get(DevCluster, "c1"), "LoadBalancerAvailable")
            return said.status == "False" and reason in said.message

        await w.until(refused)
        assert workers <= await workers_of_haproxy(w), "the old workers are gone"
        await w.apply(template(good))
        await w.patch(DevCluster, "c1", {"metadata": {"annotations": {"look": "again"}}})
        await w.until(lambda: available(w))
        await dismantled(w, "cp0")


def template(text: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}, "data": {"value": text}}


async def test_a_configmap_that_is_not_there_is_named(namespace: str) -> None:
    async with docker_world(namespace) as w:
        given = {"loadBalancer": {"customHAProxyConfigTemplateRef": {"name": "mine"}}}
        await w.apply(*rig.cluster("c1", **given))

        async def named() -> bool:
            said = rig.condition(await w.get(DevCluster, "c1"), "LoadBalancerAvailable")
            return "ConfigMap mine" in said.message

        await w.until(named)
        await w.apply({**template(""), "data": {"other": "x"}})
        await w.until(lambda: key_named(w))
        await w.dismantle()


async def key_named(w: DockerWorld) -> bool:
    said = rig.condition(await w.get(DevCluster, "c1"), "LoadBalancerAvailable")
    return "no key value (it has other)" in said.message


async def test_a_machine_is_of_the_control_plane_though_only_its_owner_says_so(namespace: str) -> None:
    async with docker_world(namespace) as w:
        machine, infra = control_plane("cp0")
        await w.apply(*rig.cluster(), rig.secret(), machine, {**infra, "metadata": {"name": "cp0"}})
        await w.until(lambda: serves(w, ("cp0", 100)))
        await w.until(lambda: weighed(w, "cp0"))
        await dismantled(w, "cp0")

"""A real Kubernetes cluster of containers, with kubeadm and kubelets, its bootstrap data written by hand."""

import orjson
import pytest

from capi.aio.clock import SystemClock
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster
from capi.client.pki import KeyPair, client_kubeconfig, issue_client, new_ca
from capi.kube.types import Object
from tests.docker import rig
from tests.docker.rig import DockerWorld, docker_world

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

VERSION = "v1.34.4"
TOKEN = "abcdef.0123456789abcdef"
GIVEN = {"clusterName": "c1", "version": VERSION}


def control_plane(host: str, port: int, authority: KeyPair) -> str:
    """cloud-init of the first control plane machine: the cluster's authority, and kubeadm init."""
    return f"""#cloud-config
write_files:
- path: /etc/kubernetes/pki/ca.crt
  content: |
{_indented(authority.certificate)}
- path: /etc/kubernetes/pki/ca.key
  permissions: "0600"
  content: |
{_indented(authority.key)}
- path: /run/kubeadm/kubeadm.yaml
  content: |
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: InitConfiguration
    bootstrapTokens: [{{token: {TOKEN}}}]
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: ClusterConfiguration
    clusterName: c1
    controlPlaneEndpoint: "{host}:{port}"
    kubernetesVersion: {VERSION}
    networking: {{podSubnet: 192.168.0.0/16, serviceSubnet: 10.128.0.0/12}}
runcmd:
- kubeadm init --config /run/kubeadm/kubeadm.yaml
"""


def worker(host: str, port: int) -> str:
    return f"""#cloud-config
write_files:
- path: /run/kubeadm/kubeadm-join-config.yaml
  content: |
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: JoinConfiguration
    discovery:
      bootstrapToken: {{token: {TOKEN}, apiServerEndpoint: "{host}:{port}", unsafeSkipCAVerification: true}}
runcmd:
- kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml
"""


def infrastructure() -> list[Object]:
    """A Cluster without control plane provider."""
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "c1"}
    metadata = {"name": "c1"}
    return [
        {"apiVersion": rig.CORE, "kind": "Cluster", "metadata": metadata, "spec": {"infrastructureRef": ref}},
        {"apiVersion": rig.INFRA, "kind": "DevCluster", "metadata": metadata, "spec": {"backend": {"docker": {}}}},
    ]


def first_machine() -> list[Object]:
    labels = {"cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/cluster-name": "c1"}
    metadata = {"name": "cp0", "labels": labels}
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "cp0"}
    spec = {**GIVEN, "bootstrap": {"dataSecretName": "cp-bootstrap"}, "infrastructureRef": ref}
    return [
        {"apiVersion": rig.CORE, "kind": "Machine", "metadata": metadata, "spec": spec},
        {"apiVersion": rig.INFRA, "kind": "DevMachine", "metadata": metadata, "spec": {"backend": {"docker": {}}}},
    ]


async def test_a_real_cluster_of_containers(namespace: str, kubernetes_image: str) -> None:
    async with docker_world(namespace) as w:
        await w.apply(*infrastructure())
        await w.until(lambda: has_endpoint(w))
        endpoint = (await w.get(DevCluster, "c1")).spec.control_plane_endpoint
        assert endpoint is not None
        now = SystemClock().now()
        authority = new_ca("kubernetes", now)
        admin = issue_client(authority, "kubernetes-admin", ("system:masters",), now)
        server = f"https://{endpoint.host}:{endpoint.port}"
        access = client_kubeconfig(server=server, ca=authority.certificate, client=admin, cluster="c1", user="admin")
        await w.apply(
            kubeconfig(access),
            rig.secret(control_plane(endpoint.host, endpoint.port, authority), name="cp-bootstrap"),
            rig.secret(worker(endpoint.host, endpoint.port)),
            *first_machine(),
        )
        took = await w.until(lambda: initialized(w), 180, "an initialized control plane")
        print(f"control plane initialized after {took:.1f} s")
        await w.apply(*rig.pool(2, version=VERSION, image=""))
        took = await w.until(lambda: w.running(2), 120, "two workers")
        print(f"pool of 2 running after {took:.1f} s")
        await nodes_know_their_machines(w)
        await w.patch(MachinePool, "w", {"spec": {"replicas": 3}})
        await w.until(lambda: w.running(3), 60)
        victim = sorted(await w.machines())[0]
        await (await w.docker.containers.get(f"c1-{victim}")).delete(force=True, v=True)

        async def healed() -> bool:
            return victim not in await w.machines() and await w.running(3)

        took = await w.until(healed, 60, "healing")
        print(f"a removed node was replaced after {took:.1f} s")
        before = set(await w.machines())
        await w.patch(MachinePool, "w", {"spec": {"replicas": 1}})
        took = await w.until(lambda: w.running(1), 60)
        assert set(await w.machines()) < before
        print(f"3 to 1 after {took:.1f} s")
        await w.dismantle()
        assert not await w.containers()


async def has_endpoint(w: DockerWorld) -> bool:
    found = (await w.get(DevCluster, "c1")).spec.control_plane_endpoint
    return found is not None and found.valid


async def initialized(w: DockerWorld) -> bool:
    found = (await w.get(Cluster, "c1")).status.initialization
    return bool(found is not None and found.control_plane_initialized)


async def nodes_know_their_machines(w: DockerWorld) -> None:
    """Each Node has its Machine's provider ID, from its kubelet."""
    for machine in (*(await w.machines()).values(), await w.get(Machine, "cp0")):
        assert machine.status.node_ref is not None
        assert machine.status.node_ref.name == f"c1-{machine.name}"
        assert machine.spec.provider_id == f"docker:////c1-{machine.name}"
        assert machine.status.node_info is not None
        assert machine.status.node_info.kubelet_version == VERSION


def kubeconfig(access: Object) -> Object:
    """As a control plane provider writes it."""
    made = rig.secret(orjson.dumps(access).decode(), name="c1-kubeconfig")
    made["metadata"]["labels"] = {"cluster.x-k8s.io/cluster-name": "c1"}
    return made


def _indented(pem: bytes) -> str:
    return "\n".join(f"    {line}" for line in pem.decode().splitlines())

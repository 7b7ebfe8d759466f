"""Hosting the API servers of simulated clusters, with real sockets and files."""

import asyncio
import socket
import uuid
from pathlib import Path

import pytest

from capi.aio.clock import SystemClock
from capi.backends.inmemory import ports
from capi.backends.inmemory.nodes import NODES
from capi.backends.inmemory.stores import FileStores
from capi.backends.inmemory.workload import InProcessFirst, WorkloadClusters
from capi.backends.port import PortTaken
from capi.client import http, kubeconfig, pki
from capi.client.client import Client
from capi.client.transport import Transport
from capi.kube import yaml
from capi.kube.errors import NotFound, ServiceUnavailable, TransportError
from capi.kube.types import ResourceType
from capi.runtime.plan import ClusterKey

CLUSTER = ClusterKey("ns", "prod")
NODE = {"metadata": {"name": "a"}, "spec": {"providerID": "in-memory:///ns/prod/a"}}
NAMESPACES = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
CLOCK = SystemClock()


class Elsewhere:
    """A Connector that says where it was asked to go."""

    async def connect(self, cluster: ClusterKey, kubeconfig: bytes) -> Transport:
        raise TransportError(f"elsewhere: {cluster}")


def access(authority: pki.KeyPair, port: int) -> http.HttpTransport:
    client = pki.issue_client(authority, "kubernetes-admin", ("system:masters",), CLOCK.now())
    document = pki.client_kubeconfig(
        server=f"https://127.0.0.1:{port}", ca=authority.certificate, client=client, cluster="prod", user="admin"
    )
    return http.connect(kubeconfig.parse(yaml.dump(document).encode(), source="test"))


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_the_same_cluster_is_served_again_after_a_restart(tmp_path: Path) -> None:
    authority = pki.new_ca("prod", CLOCK.now())
    stores = FileStores(tmp_path)
    async with WorkloadClusters(CLOCK, stores=stores) as first:
        port = first.reserve(CLUSTER, (), uuid.uuid4().hex)
        await first.ensure_running(CLUSTER, port, authority, "v1.35.4")
        outside = Client(access(authority, port))
        uid = (await outside.create(NODES, NODE))["metadata"]["uid"]
        await outside.transport.close()
    async with WorkloadClusters(CLOCK, stores=stores) as second:
        await second.ensure_running(CLUSTER, port, authority, "v1.35.4")
        outside = Client(access(authority, port))
        assert [n["metadata"]["uid"] for n in await outside.list(NODES)] == [uid]
        assert {n["metadata"]["name"] for n in await outside.list(NAMESPACES)} >= {"default", "kube-system"}
        await outside.transport.close()


async def test_a_forgotten_cluster_leaves_no_listener_and_no_file(tmp_path: Path) -> None:
    authority = pki.new_ca("prod", CLOCK.now())
    async with WorkloadClusters(CLOCK, stores=FileStores(tmp_path)) as workloads:
        port = workloads.reserve(CLUSTER, (), uuid.uuid4().hex)
        await workloads.ensure_running(CLUSTER, port, authority, "v1.35.4")
        assert not ports.is_free("127.0.0.1", port)
        await workloads.ensure_absent(CLUSTER)
        await workloads.ensure_absent(CLUSTER)
        assert ports.is_free("127.0.0.1", port)
        assert files(tmp_path) == []
        assert workloads.client(CLUSTER) is None
        await workloads.ensure_running(CLUSTER, port, authority, "v1.35.4")
        again = workloads.client(CLUSTER)
        assert again is not None
        with pytest.raises(NotFound):
            await again.get(NODES, "a")


async def test_a_taken_port_is_named_and_nothing_stays_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        authority = pki.new_ca("prod", CLOCK.now())
        async with WorkloadClusters(CLOCK, stores=FileStores(tmp_path)) as workloads:
            for _ in range(2):  # the store is closed again, so the second attempt fails for the same reason
                with pytest.raises(PortTaken, match=str(port)):
                    await workloads.ensure_running(CLUSTER, port, authority, "v1.35.4")
            assert workloads.client(CLUSTER) is None


async def test_another_authority_or_version_starts_the_server_anew() -> None:
    authority, other = (pki.new_ca("prod", CLOCK.now()) for _ in range(2))
    async with WorkloadClusters(CLOCK) as workloads:
        port = workloads.reserve(CLUSTER, (), uuid.uuid4().hex)
        await workloads.ensure_running(CLUSTER, port, authority, "v1.35.4")
        server = workloads.handler(CLUSTER)
        await workloads.ensure_running(CLUSTER, port, authority, "v1.35.4")
        assert workloads.handler(CLUSTER) is server
        await workloads.ensure_running(CLUSTER, port, other, "v1.36.0")
        outside = Client(access(other, port))
        assert b"v1.36.0" in await outside.send("GET", "/version")
        await outside.transport.close()


async def test_callers_in_the_process_need_no_socket_and_notice_a_stop() -> None:
    async with WorkloadClusters(CLOCK, sockets=False) as workloads:
        connector = InProcessFirst(workloads, Elsewhere())
        with pytest.raises(TransportError, match="elsewhere: ns/prod"):
            await connector.connect(CLUSTER, b"")
        await workloads.ensure_running(CLUSTER, 1, pki.new_ca("prod", CLOCK.now()), "v1.35.4")
        client = Client(await connector.connect(CLUSTER, b""))
        assert await client.list(NODES) == []
        await workloads.ensure_absent(CLUSTER)
        with pytest.raises(ServiceUnavailable, match="ns/prod is stopped"):
            await client.list(NODES)


async def test_clusters_of_one_name_in_two_processes_ask_for_different_ports() -> None:
    async with WorkloadClusters(CLOCK, sockets=False) as one, WorkloadClusters(CLOCK, sockets=False) as other:
        assert one.reserve(CLUSTER, (), "uid-1") != other.reserve(CLUSTER, (), "uid-2")


async def test_many_clusters_at_once_have_ports_of_their_own() -> None:
    async with WorkloadClusters(CLOCK, sockets=False) as workloads:
        keys = [ClusterKey("ns", f"c{i}") for i in range(50)]
        found = {key: workloads.reserve(key, ()) for key in keys}
        assert len(set(found.values())) == 50
        assert all(ports.FIRST <= port <= ports.LAST for port in found.values())
        assert workloads.reserve(keys[0], ()) == found[keys[0]]
        await asyncio.gather(*(workloads.ensure_absent(key) for key in keys))
        assert workloads.reserve(keys[0], {found[keys[0]]}) != found[keys[0]]

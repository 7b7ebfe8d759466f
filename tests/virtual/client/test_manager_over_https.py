"""A manager in another process' place: TLS, a client certificate, and the same life on either kind of server. Real time."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from capi.aio.clock import SystemClock
from capi.client import http, kubeconfig, pki
from capi.client.client import Client
from capi.client.config import ClusterConfig
from capi.client.http import HttpTransport
from capi.kube import yaml
from capi.kube.errors import NotFound, TransportError
from capi.runtime.election import Election
from capi.runtime.manager import Manager
from capi.server.http.app import ApiServer
from capi.server.http.listener import serve
from capi.server.http.tls import server_context
from capi.server.registry.registry import ApiRegistry
from capi.server.store.memory import MemoryStore
from tests.virtual.runtime.embedded import CRDS, a_crd
from tests.virtual.runtime.rig import FINALIZER, Flock, FlockReconciler, Sheep, a_flock, at_work, settle


@asynccontextmanager
async def embedded() -> AsyncIterator[ClusterConfig]:
    """An embedded server behind TLS, and its admin's kubeconfig."""
    now, clock = datetime.now(UTC), SystemClock()
    ca = pki.new_ca("test-ca", now)
    registry = ApiRegistry(MemoryStore(), clock=clock)
    await registry.start()
    context = server_context(pki.issue_serving(ca, ["127.0.0.1"], now), ca.certificate)
    listener = await serve(ApiServer(registry, clock=clock), tls=context)
    admin = pki.issue_client(ca, "admin", ["system:masters"], now)
    document = pki.client_kubeconfig(
        server=f"https://127.0.0.1:{listener.port}", ca=ca.certificate, client=admin, cluster="test", user="admin"
    )
    background = asyncio.ensure_future(registry.run())
    try:
        yield kubeconfig.parse(yaml.dump(document).encode())
    finally:
        background.cancel()
        await listener.close(0)
        await registry.close()


async def life(config: ClusterConfig) -> None:
    """Grow a flock of two, shrink it, delete it: over HTTP, elected by a Lease; then say nothing more."""
    user, ours = http.connect(config), http.connect(config)
    client = Client(user, user_agent="user")
    for kind in (Flock, Sheep):
        await client.create(CRDS, a_crd(kind.resource))
    await _served(client)
    election = Election(namespace="kube-system", name="capi-test")
    manager = Manager(ours, clock=SystemClock(), election=election)
    manager.add(FlockReconciler())
    try:
        async with at_work(manager):
            await _grow_and_shrink(client, manager)
    finally:
        await user.close()
        await ours.close()


async def _served(client: Client) -> None:
    """Wait until the new kinds are served, which a real server does a moment after it accepted them."""
    for kind in (Flock, Sheep):
        async with asyncio.timeout(20):
            while True:
                try:
                    await client.list(kind)
                    break
                except NotFound:
                    await asyncio.sleep(0.1)


async def _grow_and_shrink(client: Client, manager: Manager) -> None:
    await client.create(Flock.resource, a_flock(size=2))
    await settle(manager, limit=20)
    assert [sheep.name for sheep in await client.list(Sheep)] == ["a-0", "a-1"]
    found = await client.get(Flock, "a", "default")
    assert found.metadata.finalizers == (FINALIZER,)
    assert (found.status.sheep, found.status.observed_generation) == (2, 1)
    await client.patch(Flock.resource, "a", "default", {"metadata": {"annotations": {"poke": "1"}}})
    await settle(manager, limit=20)
    poked = await client.get(Flock, "a", "default")
    assert poked.metadata.managed_fields[0].time == found.metadata.managed_fields[0].time
    assert (poked.status, poked.metadata.generation) == (found.status, 1)
    await client.patch(Flock.resource, "a", "default", {"spec": {"size": 1}})
    await settle(manager, limit=20)
    assert [sheep.name for sheep in await client.list(Sheep)] == ["a-0"]
    await client.delete(Flock, "a", "default")
    await settle(manager, limit=20)
    assert await client.list(Sheep) == []
    with pytest.raises(NotFound):
        await client.get(Flock, "a", "default")


async def test_a_life_over_https() -> None:
    async with embedded() as config:
        await life(config)


@pytest.mark.real
async def test_a_life_on_a_real_api_server(real_kubeconfig: Path) -> None:
    await life(kubeconfig.load(real_kubeconfig))


async def test_a_server_of_another_authority_is_not_trusted() -> None:
    async with embedded() as config:
        stranger = pki.new_ca("other-ca", datetime.now(UTC))
        transport = HttpTransport(dataclasses.replace(config, ca=stranger.certificate))
        with pytest.raises(TransportError, match="certificate is not trusted"):
            await Client(transport).send("GET", "/version")
        await transport.close()

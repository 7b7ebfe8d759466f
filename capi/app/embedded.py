"""Composition of the embedded API server: store -> registry (with our admission and CRDs) -> HTTP application."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from capi.admission import ClusterApiAdmission
from capi.aio.clock import Clock
from capi.api import crds
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.kube.types import Object, ResourceType
from capi.server.http.app import ApiServer
from capi.server.registry.registry import ApiRegistry
from capi.server.store.interface import Store

CRD = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
CRD_MANAGER = "capi-crds"


@dataclass(frozen=True, slots=True)
class EmbeddedApi:
    """A started API server without sockets. `run` its registry's background work."""

    registry: ApiRegistry
    handler: ApiServer

    def transport(self, user_agent: str = "capi") -> InProcessTransport:
        return InProcessTransport(self.handler, user_agent=user_agent)


@asynccontextmanager
async def embedded_api(store: Store, clock: Clock) -> AsyncIterator[EmbeddedApi]:
    """The management API over `store`, with our CRDs installed; closes the store at the end."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        registry = ApiRegistry(store, clock=clock, admission=(ClusterApiAdmission(),))
        stack.push_async_callback(registry.close)
        await registry.start()
        api = EmbeddedApi(registry, ApiServer(registry, clock=clock))
        await install_crds(Client(api.transport(CRD_MANAGER)), crds.all())
        yield api


async def install_crds(client: Client, definitions: Iterable[Object]) -> None:
    """Apply CRDs; one that is there already and equal is not written."""
    for definition in definitions:
        await client.apply(CRD, definition, manager=CRD_MANAGER)

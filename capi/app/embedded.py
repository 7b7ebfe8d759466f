"""Composition of the embedded API server: store -> registry (with our admission and CRDs) -> HTTP application."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from capi.admission import ClusterApiAdmission, convert
from capi.aio.clock import Clock
from capi.api import crds
from capi.api.core.contracts import contract_version, plural
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.kube.errors import NotFound
from capi.kube.types import GroupKind, Object, ResourceType
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


class InProcessConversion:
    """Implements `server.registry.interface.Converter` for the kinds of this project."""

    registry: ApiRegistry | None = None
    """Set once it is there: the definitions of referenced kinds are looked up in it."""

    def converts(self, kind: GroupKind) -> bool:
        return convert.converts(kind)

    def convert(self, obj: Object, api_version: str) -> Object:
        return convert.convert(obj, api_version, self.versions)

    def versions(self, kind: GroupKind) -> str:
        """The apiVersion by which objects of a kind are referred to, by its CRD; a guess without one."""
        info = self.registry.lookup(CRD.group, CRD.version, CRD.plural) if self.registry is not None else None
        if self.registry is None or info is None:
            return convert.by_group(kind)
        try:
            definition, _ = self.registry.get(info, "", f"{plural(kind.kind)}.{kind.group}")
        except NotFound:
            return convert.by_group(kind)
        version = contract_version(definition["metadata"].get("labels") or {})
        return f"{kind.group}/{version}" if version else convert.by_group(kind)


@asynccontextmanager
async def embedded_api(store: Store, clock: Clock) -> AsyncIterator[EmbeddedApi]:
    """The management API over `store`, with our CRDs installed; closes the store at the end."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        converter = InProcessConversion()
        registry = ApiRegistry(
            store, clock=clock, admission=(ClusterApiAdmission(converter.versions),), converter=converter
        )
        converter.registry = registry
        stack.push_async_callback(registry.close)
        await registry.start()
        api = EmbeddedApi(registry, ApiServer(registry, clock=clock))
        await install_crds(Client(api.transport(CRD_MANAGER)), crds.all())
        yield api


async def install_crds(client: Client, definitions: Iterable[Object]) -> None:
    """Apply CRDs; one that is there already and equal is not written."""
    for definition in definitions:
        await client.apply(CRD, definition, manager=CRD_MANAGER)

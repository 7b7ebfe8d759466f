"""A fresh embedded API server per test, with the farm's CRDs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from capi.aio.clock import LoopClock
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.kube.types import Object, ResourceType
from capi.server.http.app import ApiServer
from capi.server.registry.registry import ApiRegistry
from capi.server.store.memory import MemoryStore

CRDS = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


def a_crd(resource: ResourceType, labels: dict[str, str] | None = None) -> Object:
    """A CRD with a status subresource that takes anything, its conditions a list keyed by type."""
    conditions = {
        "type": "array",
        "items": {"type": "object", "required": ["type"], "x-kubernetes-preserve-unknown-fields": True,
                  "properties": {"type": {"type": "string"}}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }  # fmt: skip
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"conditions": conditions}}
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {
        "name": resource.version, "served": True, "storage": True, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }  # fmt: skip
    names = {"plural": resource.plural, "kind": resource.kind, "singular": resource.kind.lower()}
    return {
        "metadata": {"name": resource.qualified_plural, "labels": labels or {}},
        "spec": {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


@asynccontextmanager
async def a_server(*kinds: ResourceType) -> AsyncIterator[ApiServer]:
    """A running server on a memory store that serves `kinds` besides the built-in ones."""
    clock = LoopClock()
    registry = ApiRegistry(MemoryStore(), clock=clock)
    await registry.start()
    handler = ApiServer(registry, clock=clock)
    for kind in kinds:
        await a_user(handler).create(CRDS, a_crd(kind))
    async with asyncio.TaskGroup() as group:
        background = group.create_task(registry.run())
        try:
            yield handler
        finally:
            background.cancel()
    await registry.close()


def a_user(handler: ApiServer) -> Client:
    return Client(InProcessTransport(handler), user_agent="user")

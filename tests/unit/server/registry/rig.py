"""Short calls on a registry, for tests."""

import contextlib
from typing import Any

import orjson

from capi.kube.types import GroupKind, Object
from capi.server.registry.interface import DeleteOptions, ListOptions, ResourceInfo, WriteOptions, Written
from capi.server.registry.registry import ApiRegistry
from capi.server.registry.watch import Watch

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class Lines:
    """A sink that keeps what it gets, and is full when `room` bytes are in it."""

    def __init__(self, room: int = 1 << 40) -> None:
        self.data, self.ended, self.room = b"", False, room

    def write(self, data: bytes) -> bool:
        self.data += data
        self.room -= len(data)
        return self.room > 0

    def end(self) -> None:
        self.ended = True

    @property
    def events(self) -> list[Object]:
        return [orjson.loads(line) for line in self.data.splitlines()]

    @property
    def brief(self) -> list[tuple[str, str]]:
        """Type and name of every event; bookmarks have no name."""
        return [(e["type"], e["object"].get("metadata", {}).get("name", "")) for e in self.events]


class Rig:
    """A registry and the kind it is asked for by name, e.g. `rig.create("configmaps", {...})`."""

    def __init__(self, registry: ApiRegistry) -> None:
        self.registry = registry

    def info(self, plural: str) -> ResourceInfo:
        found = [info for info in self.registry.resources() if info.type.plural == plural]
        assert found, f"{plural} is not served"
        return found[0]

    async def create(self, plural: str, obj: Object, *, manager: str = "test", **options: Any) -> Object:
        return (await self.create_(plural, obj, manager=manager, **options)).object

    async def create_(
        self, plural: str, obj: Object, *, manager: str = "test", namespace: str = "ns", **options: Any
    ) -> Written:
        return await self.registry.create(
            self.info(plural), namespace, obj, WriteOptions(field_manager=manager, **options)
        )

    async def update(
        self, plural: str, obj: Object, *, subresource: str = "", manager: str = "test", **options: Any
    ) -> Object:
        meta = obj["metadata"]
        written = await self.registry.update(
            self.info(plural), meta.get("namespace", "ns"), meta["name"], obj,
            WriteOptions(field_manager=manager, **options), subresource=subresource,
        )  # fmt: skip
        return written.object

    async def patch(
        self,
        plural: str,
        name: str,
        body: Any,
        *,
        kind: Any = MERGE,
        subresource: str = "",
        namespace: str = "ns",
        **options: Any,
    ) -> Object:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        written = await self.registry.patch(
            self.info(plural),
            namespace,
            name,
            kind,
            data,
            WriteOptions(**{"field_manager": "test", **options}),
            subresource=subresource,
        )
        return written.object

    async def apply(
        self, plural: str, name: str, body: Object, *, manager: str = "a", subresource: str = "", force: bool = False
    ) -> Object:
        kind = self.info(plural).type
        config = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name, **body.pop("metadata", {})},
            **body,
        }
        return await self.patch(
            plural, name, config, kind=APPLY, subresource=subresource, field_manager=manager, force=force
        )

    def get(self, plural: str, name: str, namespace: str = "ns", **options: Any) -> Object:
        return self.registry.get(self.info(plural), namespace, name, **options)[0]

    async def delete(self, plural: str, name: str, namespace: str = "ns", **options: Any) -> Object:
        return (await self.registry.delete(self.info(plural), namespace, name, DeleteOptions(**options))).object

    def names(self, plural: str, namespace: str = "ns", **options: Any) -> list[str]:
        return [
            item["metadata"]["name"]
            for item in self.registry.list(self.info(plural), namespace, ListOptions(**options)).items
        ]

    def watch(
        self, plural: str, namespace: str = "ns", sink: Lines | None = None, **options: Any
    ) -> tuple[Lines, Watch]:
        """A started watch and what it writes."""
        sink = sink or Lines()
        watch = self.registry.watch(self.info(plural), namespace, ListOptions(**options))
        watch.start(sink)
        return sink, watch

    async def settle(self) -> None:
        """Do all background work that is due."""
        registry = self.registry
        while not registry.idle:
            for ident in registry._garbage.pending.take():
                registry._garbage.process(ident)
            for name in registry._namespaces.pending.take():
                registry._namespaces.process(name)
            if registry._dying.pending.take():
                registry._dying.process()
        await registry._store.durable(registry._store.head_revision)

    def gone(self, plural: str, name: str, namespace: str = "ns") -> bool:
        with contextlib.suppress(Exception):
            self.get(plural, name, namespace)
            return False
        return True

    def kind(self, group: str, kind: str) -> ResourceInfo | None:
        return self.registry.by_kind(GroupKind(group, kind))


def a_config_map(name: str = "a", **meta: Any) -> Object:
    return {"metadata": {"name": name, **meta}, "data": {"k": "1"}}


def owned_by(owner: Object, **more: Any) -> Object:
    ref = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {"ownerReferences": [{**ref, **more}]}


def a_definition(
    plural: str = "widgets",
    kind: str = "Widget",
    *,
    scope: str = "Namespaced",
    schema: Object | None = None,
    **version: Any,
) -> Object:
    spec = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    subresources = {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    served = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": spec},
        "subresources": subresources,
        **version,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.ex.io"},
        "spec": {"group": "ex.io", "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": [served]},
    }


def a_widget(name: str = "w", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"size": 1, **spec}}

"""`ApiRegistry`: API objects with Kubernetes semantics over a Store. The facade; each verb has a module of its own.

Writes work on the head view and answer when their change is durable; so do refusals, which may rest on changes under way.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from capi.aio.clock import Clock
from capi.kube.errors import ApiError, MethodNotAllowed, NotFound
from capi.kube.types import GroupKind, Key, Object
from capi.server.registry import binding, eviction, namespaces
from capi.server.registry.admission import Admission
from capi.server.registry.builtin import table
from capi.server.registry.definitions import Definitions
from capi.server.registry.deletes import Deleter
from capi.server.registry.gc import GarbageCollector
from capi.server.registry.interface import (
    Converter,
    DeleteOptions,
    Listing,
    ListOptions,
    PatchType,
    Representation,
    ResourceInfo,
    WriteOptions,
    Written,
)
from capi.server.registry.persist import NAMESPACES
from capi.server.registry.reads import Reader
from capi.server.registry.served import Catalog, Served
from capi.server.registry.sweeps import DefinitionSweeper, Expiry, NamespaceSweeper
from capi.server.registry.target import Outcome, Target
from capi.server.registry.watch import Watch, WatchHub
from capi.server.registry.writes import Writer
from capi.server.store.interface import Store


class ApiRegistry:
    """Implements `interface.Registry`. `start`, keep `run` running, finally `close` (which closes the store too)."""

    def __init__(
        self, store: Store, *, clock: Clock, admission: Sequence[Admission] = (), converter: Converter | None = None
    ) -> None:
        self._store, self._clock = store, clock
        self._catalog = Catalog(table.kinds())
        self._hub = WatchHub(store)
        self._definitions = Definitions(store, self._catalog, clock, self._hub.close, converter)
        self._reader = Reader(store)
        self._writer = Writer(store, self._catalog, self._definitions, admission, clock)
        self._deleter = Deleter(store, self._definitions, clock)
        self._garbage = GarbageCollector(store, self._catalog, self._deleter, clock)
        self._namespaces = NamespaceSweeper(store, self._catalog, self._deleter, clock)
        self._dying = DefinitionSweeper(store, self._definitions, self._deleter, clock)
        self._expiry = Expiry(store, self._catalog, clock)

    async def start(self) -> None:
        """Serve what is stored and make the namespaces that always exist."""
        self._definitions.start()
        self._garbage.start()
        self._namespaces.start()
        self._dying.start()
        served = self._served_kind(GroupKind("", "Namespace"))
        for name in namespaces.BOOTSTRAP:
            if self._store.head(NAMESPACES, Key("", name)) is None:
                self._writer.create(
                    Target(served, "", name, WriteOptions(field_manager="capi-apiserver")), {"metadata": {"name": name}}
                )
        await self._store.durable(self._store.head_revision)

    async def run(self) -> None:
        """Garbage collection, namespaces, definitions, expiry; until cancelled."""
        async with asyncio.TaskGroup() as group:
            for loop in (self._garbage.run, self._namespaces.run, self._dying.run, self._expiry.run):
                group.create_task(loop())

    async def close(self) -> None:
        """End all watches and close the store."""
        self._hub.close_all()
        await self._store.close()

    @property
    def idle(self) -> bool:
        """The background has nothing to do: for tests."""
        return not (len(self._garbage.pending) or len(self._namespaces.pending) or len(self._dying.pending))

    # -- what is served -----------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        return self._store.revision

    @property
    def discovery_generation(self) -> int:
        return self._catalog.generation

    def resources(self) -> Sequence[ResourceInfo]:
        return [served.info for family in self._catalog.all() for served in family.versions]

    def lookup(self, group: str, version: str, plural: str) -> ResourceInfo | None:
        served = self._catalog.find(group, version, plural)
        return served.info if served else None

    def by_kind(self, group_kind: GroupKind) -> ResourceInfo | None:
        served = self._catalog.by_kind(group_kind)
        return served.info if served else None

    def watches(self) -> int:
        """Number of running watches."""
        return self._hub.count()

    def _served(self, info: ResourceInfo, verb: str) -> Served:
        kind = info.type
        served = self._catalog.find(kind.group, kind.version, kind.plural)
        if served is None:
            raise NotFound("the server could not find the requested resource")
        if verb not in served.info.verbs and not self._is_dying(served):
            if served.custom:
                raise MethodNotAllowed(f'{verb} is not supported on resources of kind "{kind.qualified_plural}"')
            raise MethodNotAllowed()
        return served

    def _is_dying(self, served: Served) -> bool:
        family = self._catalog.family(served.type.group, served.type.plural)
        return family is not None and family.terminating

    def _served_kind(self, kind: GroupKind) -> Served:
        served = self._catalog.by_kind(kind)
        assert served is not None, f"{kind} is not built in"
        return served

    # -- reads --------------------------------------------------------------------------------------------------

    def get(
        self, info: ResourceInfo, namespace: str, name: str, *, resource_version: str = "", subresource: str = ""
    ) -> tuple[Object, bytes]:
        served = self._served(info, "get")
        return self._reader.get(served, _key(served, namespace, name), resource_version, subresource)

    def list(self, info: ResourceInfo, namespace: str, options: ListOptions) -> Listing:
        return self._reader.list(self._served(info, "list"), namespace, options)

    def watch(
        self, info: ResourceInfo, namespace: str, options: ListOptions, representation: Representation | None = None
    ) -> Watch:
        return self._hub.watch(self._served(info, "watch"), namespace, options, representation)

    # -- writes -------------------------------------------------------------------------------------------------

    async def create(
        self,
        info: ResourceInfo,
        namespace: str,
        obj: Object,
        options: WriteOptions,
        *,
        name: str = "",
        subresource: str = "",
    ) -> Written:
        target = Target(self._served(info, "create"), namespace, name, options, subresource)
        if not subresource:
            return await self._settled(lambda: self._writer.create(target, obj), target)
        if target.table == "pods" and subresource == "eviction":
            return await self._settled(
                lambda: eviction.evict(target, obj, self._store, self._deleter, self._clock), target
            )
        if target.table == "pods" and subresource == "binding":
            return await self._settled(lambda: binding.bind(target, obj, self._store, self._clock), target)
        raise MethodNotAllowed()

    async def update(
        self,
        info: ResourceInfo,
        namespace: str,
        name: str,
        obj: Object,
        options: WriteOptions,
        *,
        subresource: str = "",
    ) -> Written:
        target = Target(self._served(info, "update"), namespace, name, options, subresource)
        _check_subresource(target)
        return await self._settled(lambda: self._writer.update(target, obj), target)

    async def patch(  # noqa: PLR0913 - the interface's signature
        self,
        info: ResourceInfo,
        namespace: str,
        name: str,
        patch_type: PatchType,
        body: bytes,
        options: WriteOptions,
        *,
        subresource: str = "",
    ) -> Written:
        target = Target(self._served(info, "patch"), namespace, name, options, subresource)
        _check_subresource(target)
        return await self._settled(lambda: self._writer.patch(target, patch_type, body), target)

    async def delete(self, info: ResourceInfo, namespace: str, name: str, options: DeleteOptions) -> Written:
        served = self._served(info, "delete")
        key = _key(served, namespace, name)
        return await self._settled(lambda: self._deleter.delete(served, key, options))

    async def delete_collection(
        self, info: ResourceInfo, namespace: str, selection: ListOptions, options: DeleteOptions
    ) -> Listing:
        served = self._served(info, "deletecollection")
        listing = self._reader.list(served, namespace, selection)
        for item in listing.items:
            meta = item["metadata"]
            with contextlib.suppress(NotFound):  # gone already: what was asked for
                self._deleter.delete(served, Key(meta.get("namespace", ""), meta["name"]), options)
        await self._store.durable(self._store.head_revision)
        return listing

    async def _settled(self, write: Callable[[], Outcome], target: Target | None = None) -> Written:
        """Do a write and wait until its outcome is durable; a refusal may rest on what is still under way, so it waits too."""
        try:
            outcome = write()
        except ApiError:
            await self._store.durable(self._store.head_revision)
            raise
        await self._store.durable(outcome.revision)
        warnings = tuple(dict.fromkeys(target.warnings)) if target is not None else ()
        return Written(outcome.object, created=outcome.created, warnings=warnings, encoded=outcome.encoded)


def _key(served: Served, namespace: str, name: str) -> Key:
    return Key(namespace if served.type.namespaced else "", name)


def _check_subresource(target: Target) -> None:
    if target.subresource and target.subresource not in target.served.info.subresources:
        raise NotFound("the server could not find the requested resource")

"""The life of CustomResourceDefinitions: accepted names, serving, and the end.

A definition is established in the very write that creates it, and its resources are served when that write is committed.
A changed definition closes the watches of its resources. A deleted one holds a finalizer until its objects are gone.

Upstream: apiextensions-apiserver pkg/controller/{status,establish,finalizer}, pkg/apiserver/customresource_handler.go.
"""

from collections.abc import Callable

from capi.aio.clock import Clock
from capi.kube.types import Key, Object, ResourceType
from capi.server.registry import crd
from capi.server.registry.builtin.rules import KindRules, drop_status, keep_status
from capi.server.registry.interface import Converter, ResourceInfo
from capi.server.registry.served import Catalog, Family, Served
from capi.server.store.interface import Store, StoreEvent

TABLE = "customresourcedefinitions.apiextensions.k8s.io"
_PENDING = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")


class Definitions:
    """Keeps the catalogue in step with the stored definitions."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        clock: Clock,
        on_change: Callable[[str], None],
        converter: Converter | None = None,
    ) -> None:
        """`on_change(table)` is called when a resource changed or is no longer served."""
        self._store, self._catalog, self._clock, self._on_change = store, catalog, clock, on_change
        self._converter = converter
        self._seen: dict[str, Object] = {}
        """Definitions that are being served, by name."""

    def start(self) -> None:
        """Serve what is stored, and follow changes."""
        for key, entry in self._store.scan(TABLE):
            self._serve(key.name, entry.object)
        self._store.subscribe(TABLE, self._follow)

    def with_status(self, table: str, obj: Object) -> Object:
        """A definition that is about to be stored, with its names accepted or not."""
        if table != TABLE or obj["metadata"].get("deletionTimestamp"):
            return obj
        return crd.status(obj, self._others(obj["metadata"]["name"]), self._clock.now())

    def terminating(self, table: str, obj: Object) -> Object:
        """A definition marked for deletion, with the finalizer that outlives its objects. Other objects as they are."""
        if table != TABLE:
            return obj
        meta = obj["metadata"]
        finalizers = list(meta.get("finalizers") or ())
        if crd.condition(obj, "Terminating").get("status") == "True":
            return obj
        if not crd.condition(obj, "Established"):
            return obj
        obj = {**obj, "metadata": {**meta, "finalizers": [*finalizers, crd.FINALIZER]}}
        return crd.terminating(obj, _PENDING, self._clock.now())

    def _others(self, name: str) -> list[Object]:
        heads = (self._store.head(TABLE, key) for key in self._store.head_keys(TABLE) if key.name != name)
        return [entry.object for entry in heads if entry is not None]

    def _follow(self, event: StoreEvent) -> None:
        if event.type == "DELETED":
            self._drop(event.key.name)
        else:
            self._serve(event.key.name, event.new.object)

    def _serve(self, name: str, definition: Object) -> None:
        before = self._seen.get(name)
        if before is not None and _served_parts(before) == _served_parts(definition):
            return
        infos = crd.resources_of(definition)
        if not infos:
            self._drop(name)
            return
        self._seen[name] = definition
        terminating = bool(definition["metadata"].get("deletionTimestamp"))
        conversion = str(((definition["spec"].get("conversion")) or {}).get("strategy") or "None")
        known = frozenset(
            f"{definition['spec']['group']}/{version['name']}" for version in definition["spec"]["versions"]
        )
        kind, converter = infos[0].type.group_kind, self._converter
        convert = converter.convert if converter is not None and converter.converts(kind) else None
        versions = [_version(info, conversion, convert, known) for info in infos]
        self._catalog.replace(Family(versions, owner=name, terminating=terminating))
        if before is not None:
            self._on_change(versions[0].table)

    def _drop(self, name: str) -> None:
        definition = self._seen.pop(name, None)
        if definition is not None:
            spec = definition["spec"]
            self._catalog.remove(spec["group"], spec["names"]["plural"])
            self._on_change(name)

    # -- the end ------------------------------------------------------------------------------------------------

    def emptied(self) -> list[Key]:
        """Definitions under deletion whose objects are gone; their finalizer may go."""
        found = []
        for key, entry in self._store.scan(TABLE):
            finalizers = entry.object["metadata"].get("finalizers") or ()
            if (
                entry.object["metadata"].get("deletionTimestamp")
                and crd.FINALIZER in finalizers
                and not self._store.head_keys(key.name)
            ):
                found.append(key)
        return found

    def dying(self) -> list[Served]:
        """Resources whose definition is being deleted."""
        return [family.preferred for family in self._catalog.all() if family.terminating]

    def conflicted(self) -> list[tuple[Key, Object]]:
        """Definitions whose status changes now that another one is gone, with their new state."""
        found = []
        for key in self._store.head_keys(TABLE):
            entry = self._store.head(TABLE, key)
            if entry is not None and (new := self.with_status(TABLE, entry.object)) is not entry.object:
                found.append((key, new))
        return found


def _served_parts(definition: Object) -> tuple[object, ...]:
    status = definition.get("status") or {}
    states = [(c.get("type"), c.get("status")) for c in status.get("conditions") or ()]
    return (
        definition["spec"],
        status.get("acceptedNames"),
        states,
        bool(definition["metadata"].get("deletionTimestamp")),
    )


def _version(
    info: ResourceInfo, conversion: str, convert: Callable[[Object, str], Object] | None, known: frozenset[str]
) -> Served:
    if "status" in info.subresources:
        rules = KindRules(
            info=info,
            generation=True,
            unconditional_update=False,
            prepare_create=drop_status,
            prepare_update=keep_status,
        )
    else:
        rules = KindRules(info=info, generation=True, unconditional_update=False)
    kind = info.type
    storage = ResourceType(kind.group, info.storage_version, kind.kind, kind.plural, kind.namespaced)
    return Served(rules, storage, conversion=conversion, convert=convert, known_versions=known)

"""Provider kinds: which API version of a kind to use, and the informers of those that were read.

References carry no version. The CRD of the referenced kind says by its contract labels which of its versions follow which
contract: `cluster.x-k8s.io/v1beta2: v1alpha1_v1beta1` lists them, the newest contract and version win.
A kind that was asked for once is watched again whenever its CRD comes, or names another version, and all who asked for it are
subscribed anew: a provider may be installed, upgraded and removed at any time.
Upstream: internal/contract/version.go; docs book, "Version migration" and provider contracts.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

from capi.api.core.contracts import CONTRACTS, contract_version, plural
from capi.kube.errors import ContractError, TransportError, UnknownKind
from capi.kube.objects import Resource
from capi.kube.types import GroupKind, Key, ResourceType
from capi.runtime.informer import Informer
from capi.runtime.informers import Informers

SYNC_TIMEOUT = 15.0
"""Seconds the first reads of a kind wait for its cache; later ones fail at once, lest a kind that cannot be watched keeps all workers."""


class CrdMetadata(Resource):
    """A CustomResourceDefinition without its schemas, which are large and of no use here."""

    resource: ClassVar[ResourceType] = ResourceType(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
    )


class ExternalKinds:
    """Shared by all reconcilers of a manager. A kind's informer starts at its first read and ends with its CRD."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._crds = informers.of(CrdMetadata, metadata_only=True)
        self._types: dict[GroupKind, ResourceType] = {}
        self._running: dict[GroupKind, Informer] = {}
        self._wanted: dict[GroupKind, list[Callable[[Informer], None]]] = {}
        """Kinds that were asked for, and whom to introduce to their informers: nobody, if only the version was asked for."""
        self._late: set[Informer] = set()
        """Informers that were waited for in vain and are not synced yet."""
        self._listeners: list[Callable[[], None]] = []
        self._crds.subscribe(self._crd_changed)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call when a kind that was asked for can be read now, or cannot any more: what failed may go well."""
        self._listeners.append(listener)

    def want(self, kind: GroupKind, meet: Callable[[Informer], None]) -> None:
        """Call `meet` with every informer of a kind, now and later."""
        self._wanted.setdefault(kind, []).append(meet)
        running = self._running.get(kind)
        if running is not None:
            meet(running)

    def type_of(self, kind: GroupKind) -> ResourceType:
        """The version of a provider kind to use. Raises ContractError, UnknownKind among them."""
        known = self._types.get(kind)
        if known is None:
            self._wanted.setdefault(kind, [])
            known = self._types[kind] = self._resolve(kind)
        return known

    def _resolve(self, kind: GroupKind) -> ResourceType:
        name = _crd_name(kind)
        crd: CrdMetadata | None = self._crds.store.get(Key("", name))
        if crd is None:
            raise UnknownKind(f"there is no CustomResourceDefinition {name} for kind {kind}; install its provider")
        best = contract_version(crd.metadata.labels)
        if best:
            return ResourceType(kind.group, best, kind.kind, plural(kind.kind))
        wanted = " or ".join(f"cluster.x-k8s.io/{contract}" for contract in CONTRACTS)
        raise ContractError(
            f"CustomResourceDefinition {crd.name} has no label {wanted}: its provider does not follow the contract"
        )

    async def informer(self, kind: GroupKind) -> Informer:
        """The synced informer of a provider kind. Raises ContractError, and TransportError if it does not sync."""
        informer = self._begun(kind)
        if not informer.synced.is_set() and informer not in self._late:
            with suppress(TimeoutError):
                async with asyncio.timeout(SYNC_TIMEOUT):
                    await informer.synced.wait()
        if not informer.synced.is_set():
            self._late.add(informer)
            plural_ = informer.resource.qualified_plural
            raise TransportError(f"{plural_} cannot be watched: {self._informers.trouble().get(plural_, 'no answer')}")
        return informer

    def _begun(self, kind: GroupKind) -> Informer:
        """The informer of the version to use, started, and introduced to all who want it. Raises ContractError."""
        resource = self.type_of(kind)
        before = self._running.get(kind)
        if before is not None and before.resource == resource:
            return before
        informer = self._running[kind] = self._informers.of(resource)
        for meet in self._wanted.get(kind, ()):
            meet(informer)
        informer.when_reached(1, lambda: self._filled(informer, before))
        if before is not None:
            self._stop(before)
        return informer

    def _filled(self, informer: Informer, before: Informer | None) -> None:
        """The first state is there; objects that went between two versions of a kind are told as deleted."""
        self._late.discard(informer)
        if before is not None:
            before.replace(informer.store.values(), 0)
        self._tell()

    def _stop(self, informer: Informer) -> None:
        self._late.discard(informer)
        self._informers.stop(informer)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    def running(self, resource: ResourceType) -> Informer | None:
        """The informer of a resource if it was read before."""
        found = self._running.get(resource.group_kind)
        return found if found is not None and found.resource == resource else None

    def _crd_changed(self, old: CrdMetadata | None, new: CrdMetadata | None) -> None:
        if old is not None and new is not None and old.metadata.labels == new.metadata.labels:
            return
        name = (new or old or CrdMetadata()).name
        for kind in [kind for kind in self._wanted if _crd_name(kind) == name]:
            self._types.pop(kind, None)
            if new is None:
                self._ended(kind)
            elif self._wanted[kind]:
                with suppress(ContractError):  # whoever reads the kind is told
                    self._begun(kind)
            self._tell()

    def _ended(self, kind: GroupKind) -> None:
        """Nothing of the kind is there any more; its own watch may not have said so yet."""
        informer = self._running.pop(kind, None)
        if informer is not None:
            self._stop(informer)
            informer.replace((), 0)


def _crd_name(kind: GroupKind) -> str:
    return f"{plural(kind.kind)}.{kind.group}"

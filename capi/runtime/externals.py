"""Provider kinds: which API version of a kind to use, and the informers of those that were read.

References carry no version. The CRD of the referenced kind says by its contract labels which of its versions follow which
contract: `cluster.x-k8s.io/v1beta2: v1alpha1_v1beta1` lists them, the newest contract and version win.
Upstream: internal/contract/version.go; docs book, "Version migration" and provider contracts.
"""

import asyncio
from typing import ClassVar

from capi.api.core.contracts import CONTRACTS, contract_version, plural
from capi.kube.errors import ContractError, TransportError, UnknownKind
from capi.kube.objects import Resource
from capi.kube.types import GroupKind, Key, ResourceType
from capi.runtime.informer import Informer
from capi.runtime.informers import Informers

SYNC_TIMEOUT = 15.0
"""Seconds the first read of a kind waits for its cache."""


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
        self._crds.subscribe(self._crd_changed)
        self._types: dict[GroupKind, ResourceType] = {}
        self._running: dict[GroupKind, Informer] = {}

    def type_of(self, kind: GroupKind) -> ResourceType:
        """The version of a provider kind to use. Raises ContractError, UnknownKind among them."""
        known = self._types.get(kind)
        if known is None:
            known = self._types[kind] = self._resolve(kind)
        return known

    def _resolve(self, kind: GroupKind) -> ResourceType:
        name = plural(kind.kind)
        crd: CrdMetadata | None = self._crds.store.get(Key("", f"{name}.{kind.group}"))
        if crd is None:
            raise UnknownKind(
                f"there is no CustomResourceDefinition {name}.{kind.group} for kind {kind}; install its provider"
            )
        best = contract_version(crd.metadata.labels)
        if best:
            return ResourceType(kind.group, best, kind.kind, name)
        wanted = " or ".join(f"cluster.x-k8s.io/{contract}" for contract in CONTRACTS)
        raise ContractError(
            f"CustomResourceDefinition {crd.name} has no label {wanted}: its provider does not follow the contract"
        )

    async def informer(self, kind: GroupKind) -> Informer:
        """The synced informer of a provider kind. Raises ContractError, and TransportError if it does not sync."""
        resource = self.type_of(kind)
        running = self._running.get(kind)
        if running is None or running.resource != resource:
            if running is not None:
                self._informers.stop(running)
            running = self._running[kind] = self._informers.of(resource)
        if not running.synced.is_set():
            try:
                async with asyncio.timeout(SYNC_TIMEOUT):
                    await running.synced.wait()
            except TimeoutError as error:
                reason = self._informers.trouble().get(resource.qualified_plural, "no answer")
                raise TransportError(f"{resource.qualified_plural} cannot be watched: {reason}") from error
        return running

    def running(self, resource: ResourceType) -> Informer | None:
        """The informer of a resource if it was read before."""
        found = self._running.get(resource.group_kind)
        return found if found is not None and found.resource == resource else None

    def _crd_changed(self, old: CrdMetadata | None, new: CrdMetadata | None) -> None:
        crd = new or old
        assert crd is not None
        for kind, known in list(self._types.items()):
            if known.qualified_plural == crd.name:
                del self._types[kind]
        if new is None:
            for kind, informer in list(self._running.items()):
                if informer.resource.qualified_plural == crd.name:
                    del self._running[kind]
                    self._informers.stop(informer)

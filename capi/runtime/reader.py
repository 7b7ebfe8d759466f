"""Reads of a reconciler: caches of declared kinds, provider objects by contract, workload clusters.

Reads are synchronous looks into informer caches; what they return is shared and immutable. Reading a kind that was not
declared in `watches` raises UndeclaredRead at once, so that no watch is forgotten.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from capi.kube.errors import CapiError
from capi.kube.objects import Resource, Unstructured
from capi.kube.types import GroupKind, ResourceType
from capi.runtime.plan import ClusterKey

R = TypeVar("R", bound=Resource)


class UndeclaredRead(CapiError):
    """A reconciler read a kind it does not watch; add it to `watches`."""


@dataclass(frozen=True, slots=True)
class Contact:
    """What is known of the way to a workload cluster."""

    seen: datetime | None = None
    """When it last answered; None: never since the manager started."""
    trouble: str = ""
    """Why there is no connection, as far as that is known."""


class CacheReader(Protocol):
    """Typed reads from the caches of one API server."""

    def get(self, kind: type[R], name: str, namespace: str = "") -> R | None: ...

    def list(self, kind: type[R], namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Sequence[R]:
        """Objects with all `labels`, ordered by namespace and name; None for all namespaces. O(matches) for indexed labels
        (cluster-name, pool-name), else O(kind)."""
        ...

    def index(self, kind: type[R], index: str, value: str) -> Sequence[R]:
        """Objects filed under `value` in an index declared with the watch (e.g. "providerID", "owner", "nodeRef"). O(matches)."""
        ...


class WorkloadReader(CacheReader, Protocol):
    """Caches of a connected workload cluster (Nodes; more kinds when declared)."""

    async def live_list(
        self, kind: type[R], namespace: str | None = None, labels: str = "", fields: str = ""
    ) -> Sequence[R]:
        """Uncached list with label and field selectors (pods of a node)."""
        ...


class Reader(CacheReader, Protocol):
    """What a reconciler may look at."""

    async def external(self, group_kind: GroupKind, name: str, namespace: str) -> Unstructured | None:
        """A provider object by a reference without version: the version is taken from its CRD's contract labels
        (Cluster API's provider contract: `cluster.x-k8s.io/<contract>: <versions>`).

        Starts watching the kind at its first read and maps its events as the reconciler's `external` watches say.
        Returns None when the object does not exist. Raises ContractError when the CRD or its contract label is missing.
        """
        ...

    async def external_list(
        self, group_kind: GroupKind, namespace: str, labels: Mapping[str, str]
    ) -> Sequence[Unstructured]: ...

    async def live_external(self, resource: ResourceType, name: str, namespace: str) -> Unstructured | None:
        """Uncached read of a provider object, for decisions that a late cache could get wrong for good."""
        ...

    async def external_type(self, group_kind: GroupKind) -> ResourceType:
        """The version of a provider kind to use. Raises ContractError."""
        ...

    async def live(self, kind: type[R], name: str, namespace: str = "") -> R | None:
        """Uncached read, for kinds not worth a cache (Secrets, ConfigMaps)."""
        ...

    def workload(self, cluster: ClusterKey) -> WorkloadReader | None:
        """The caches of a workload cluster, None while it is not connected."""
        ...

    def contact(self, cluster: ClusterKey) -> Contact:
        """When a workload cluster last answered, and why it is not connected."""
        ...

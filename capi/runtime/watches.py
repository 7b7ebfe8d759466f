"""What wakes a reconciler. Declared as values; `runtime.controller` starts the informers and maps events to keys.

A mapping sees one object; on a change it is called for the old and the new one and the keys are united.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from capi.api.core import labels
from capi.kube.objects import Resource, Unstructured
from capi.kube.types import Key
from capi.runtime.plan import ClusterKey
from capi.runtime.reader import Reader

Indexes: TypeAlias = Mapping[str, Callable[[Any], Iterable[str]]]
"""Index name → the values an object is filed under."""


@dataclass(frozen=True)
class Watch:
    """A cached kind, and the keys of the reconciled kind that its objects concern.

    `keys` None: only read, never wakes. `changed(old, new)` filters updates (None: every change of resourceVersion).
    """

    kind: type[Resource]
    keys: Callable[[Any, Reader], Iterable[Key]] | None = None
    changed: Callable[[Any, Any], bool] | None = None
    indexes: Indexes = field(default_factory=dict)
    labels: str = ""
    """Restrict the cache to a label selector (Secrets with the cluster-name label)."""


@dataclass(frozen=True)
class Owned:
    """Objects with an ownerReference to the reconciled kind; `controller_only` counts the controller reference alone."""

    kind: type[Resource]
    controller_only: bool = True
    changed: Callable[[Any, Any], bool] | None = None
    indexes: Indexes = field(default_factory=dict)


@dataclass(frozen=True)
class External:
    """Provider objects, of kinds that become known when `Reader.external*` first reads them.

    `keys` None: by ownerReference of the reconciled kind, controller or not.
    """

    keys: Callable[[Unstructured, Reader], Iterable[Key]] | None = None
    label_indexes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workload:
    """A kind cached in every connected workload cluster (Node)."""

    kind: type[Resource]
    keys: Callable[[Any, ClusterKey, Reader], Iterable[Key]] | None = None
    changed: Callable[[Any, Any], bool] | None = None
    indexes: Indexes = field(default_factory=dict)


@dataclass(frozen=True)
class Connections:
    """A workload cluster was connected or lost; with `reasons` also: why it cannot be connected has changed."""

    keys: Callable[[ClusterKey, Reader], Iterable[Key]]
    reasons: bool = False


@dataclass(frozen=True)
class Feed:
    """News from outside Kubernetes (a backend's events). `events` is called once per run; its iterator is closed at the end."""

    events: Callable[[], AsyncIterator[Any]]
    keys: Callable[[Any, Reader], Iterable[Key]]


def watched(obj: Resource, watch_filter: str) -> bool:
    """Whether a manager with that watch filter ("" for none) is to look after `obj`."""
    return not watch_filter or obj.metadata.labels.get(labels.WATCH_FILTER) == watch_filter


AnyWatch: TypeAlias = Watch | Owned | External | Workload | Connections | Feed

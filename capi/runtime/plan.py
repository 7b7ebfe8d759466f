"""What one pass wants: a frozen value that `runtime.execute` carries out.

Order of execution: applies, patches, creates, deletes, evictions, then the status (always), then the removal of the
finalizer (only if nothing failed), then events. Nothing here does I/O.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, NamedTuple, TypeAlias

from capi.kube.errors import CapiError
from capi.kube.objects import Api, Resource, Unstructured, to_wire
from capi.kube.types import Key, Object, ResourceType


class ClusterKey(NamedTuple):
    """A workload cluster: namespace and name of its Cluster object."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Target:
    """Address of one object, in the management cluster (`cluster` None) or in a workload cluster."""

    resource: ResourceType
    namespace: str
    name: str
    uid: str = ""
    """If set, a precondition: another object of the same name is left alone."""
    cluster: ClusterKey | None = None

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


def target(obj: Resource | Unstructured, cluster: ClusterKey | None = None) -> Target:
    """The address of an object that was read, guarded by its uid."""
    return Target(obj.resource, obj.namespace, obj.name, obj.metadata.uid, cluster)


@dataclass(frozen=True, slots=True)
class Apply:
    """Forced server-side apply of `body` as the controller's field manager.

    `body` holds everything this manager owns in the object (what it owned before and is absent now is removed), without
    apiVersion, kind, metadata.name and metadata.namespace. An apply that would change nothing is not sent.
    """

    target: Target
    body: Object
    subresource: str = ""
    must_exist: bool = False
    """Never create: dropped if the object is gone."""


def apply(obj: Resource, cluster: ClusterKey | None = None) -> Apply:
    """Apply a typed object whole (its status excluded)."""
    body = to_wire(obj)
    metadata = {
        k: v
        for k, v in body.get("metadata", {}).items()
        if k in ("labels", "annotations", "ownerReferences", "finalizers")
    }
    kept = {k: v for k, v in body.items() if k not in ("apiVersion", "kind", "metadata", "status")}
    return Apply(
        Target(obj.resource, obj.namespace, obj.name, obj.metadata.uid, cluster),
        {**kept, **({"metadata": metadata} if metadata else {})},
    )


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge or strategic merge patch, for fields that have other owners too (a Node's taints).

    Put `metadata.resourceVersion` into `body` to make it optimistic: a conflict ends the pass quietly and the key is retried.
    """

    target: Target
    body: Object
    type: Literal["merge", "strategic"] = "merge"
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Create:
    """Create if absent; AlreadyExists is success. For objects whose content must not be overwritten (keys, certificates)."""

    target: Target
    body: Object


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete in the background; NotFound is success."""

    target: Target


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict a Pod. NotFound is success; a refusal (429 of a PodDisruptionBudget, or any other) is no error of the pass: the Pod
    stays, and the Plan's `hindsight` is told."""

    target: Target
    grace_seconds: int | None = None
    """None: as the Pod says."""


Write: TypeAlias = Apply | Patch | Create | Delete | Evict
Failures: TypeAlias = Mapping[Target, CapiError]
"""Writes that an API server refused, or that got no answer."""


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event about the reconciled object (or `about`), emitted best effort and de-duplicated."""

    reason: str
    """CamelCase, no blanks."""
    message: str
    type: Literal["Normal", "Warning"] = "Normal"
    about: Resource | Unstructured | None = None


class Told(NamedTuple):
    """What a pass says: a status (None leaves it alone) and Events."""

    status: Api | None
    events: Sequence[Event] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that one pass decided. The empty Plan means: settled, or waiting for a watch to wake this key."""

    writes: Sequence[Write] = ()
    status: Api | None = None
    """The whole status this controller owns (its kind's status struct). Transition times and observedGeneration of its
    conditions, the Paused condition and `observed_generation` are filled in by the runtime. None leaves it alone."""
    hindsight: Callable[[Failures], Told] | None = field(default=None, compare=False)
    """Asked only if writes failed: what to say in place of `status` and `events`, for what is known only then. Pure."""
    finalized: bool = False
    """Nothing is left to clean up: remove the controller's finalizer."""
    events: Sequence[Event] = ()
    requeue_after: timedelta | None = None
    """Wake this key after that time at the latest; for clocks, not for polling what a watch can tell."""
    error: Exception | None = field(default=None, compare=False)
    """Report after all writes: the status is still written, observedGeneration is not advanced, the key backs off."""

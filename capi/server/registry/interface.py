"""The seam between the HTTP front and the registry: what can be asked of a store of API objects.

Objects are parsed JSON dicts, immutable once returned. All refusals are `ApiError`s with Kubernetes' messages. Reads are
synchronous looks at committed state; writes return after the commit is durable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from capi.kube.messages import Sink, UserInfo
from capi.kube.types import GroupKind, Json, Object, ResourceType

PatchType = Literal[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
]


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column (CRD additionalPrinterColumns, or a built-in kind's)."""

    name: str
    type: str
    """string, integer, number, boolean or date."""
    path: str
    """JSONPath like `.spec.clusterName`; "" when `ResourceInfo.cells` computes the cell."""
    priority: int = 0
    """> 0 only with -o wide."""
    description: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the scale subresource finds its fields, as dotted paths like `.spec.replicas`."""

    spec_replicas: str
    status_replicas: str
    selector: str = ""
    """A string field (custom resources) or a LabelSelector object (built-in kinds); "" = none."""


@dataclass(frozen=True, slots=True)
class ResourceInfo:
    """One served resource in one version: all that discovery, printing and verbs need to know."""

    type: ResourceType
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    subresources: tuple[str, ...] = ()
    """Of "status", "scale", and built-in ones."""
    columns: tuple[Column, ...] = ()
    """Without Name, which goes first unless one of them is called Name; empty = Name and Age."""
    schema: Object = field(default_factory=dict)
    """OpenAPI v3 schema with x-kubernetes extensions; {} = anything."""
    builtin: bool = True
    storage_version: str = ""
    deprecation_warning: str = ""
    selectable_fields: tuple[str, ...] = ()
    """Field selectors besides metadata.name and metadata.namespace, e.g. "spec.nodeName"."""
    cells: Callable[[Object, datetime], Sequence[Json]] | None = None
    """Built-in kinds: the cells of `columns` for an object at a time; None = each column's JSONPath."""
    scale: ScalePaths | None = None
    """Set iff "scale" is among the subresources."""


class Converter(Protocol):
    """Conversion between the versions of custom resources in this process, whatever their definitions say of it."""

    def converts(self, kind: GroupKind) -> bool:
        """Whether it knows the kind."""
        ...

    def convert(self, obj: Object, api_version: str) -> Object:
        """`obj` in another version of its kind; `apiVersion` comes first, then `kind`. Raises ApiError."""
        ...


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options common to create, update and patch, already parsed and checked for form."""

    field_manager: str = ""
    """As sent, or derived from the User-Agent; never empty for writes over HTTP."""
    field_validation: Literal["Ignore", "Warn", "Strict"] = "Warn"
    dry_run: bool = False
    force: bool = False
    """Apply only: take conflicting fields over."""
    user: UserInfo | None = None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """metav1.DeleteOptions, parsed. `propagation` "" = the kind's default."""

    propagation: Literal["", "Background", "Foreground", "Orphan"] = ""
    grace_period_seconds: int | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
    user: UserInfo | None = None


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of list, watch and deletecollection as sent; the registry parses selectors and revisions."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    allow_bookmarks: bool = False
    send_initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list. `encoded[i]` is the JSON of `items[i]` as served in lists (shared; do not re-encode): items of
    built-in kinds lack apiVersion and kind there, `items[i]` always carries them."""

    items: Sequence[Object]
    encoded: Sequence[bytes]
    revision: int
    continue_: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """Outcome of a write. `status` is a Status instead of an object when a delete leaves nothing to show."""

    object: Object
    created: bool = False
    warnings: tuple[str, ...] = ()
    encoded: bytes = b""
    """JSON of `object` if it is at hand; empty = encode it."""


class Representation(Protocol):
    """How a watch shows its objects: whole, as PartialObjectMetadata or as Table rows."""

    def encode(self, obj: Object, encoded: bytes) -> bytes:
        """JSON of the watch event's `object`."""
        ...


class Watcher(Protocol):
    """A running watch: writes whole event lines to its sink (see messages.Producer)."""

    def start(self, sink: Sink) -> None: ...
    def resume(self) -> None: ...
    def stop(self) -> None: ...


class Registry(Protocol):
    """A store of API objects with Kubernetes semantics. Implementation: `server.registry.registry.ApiRegistry`."""

    @property
    def revision(self) -> int:
        """The newest committed resourceVersion."""
        ...

    @property
    def discovery_generation(self) -> int:
        """Moves whenever the set of served resources or their schemas changes."""
        ...

    def resources(self) -> Sequence[ResourceInfo]:
        """All served resources, preferred versions first within a group."""
        ...

    def lookup(self, group: str, version: str, plural: str) -> ResourceInfo | None: ...

    def by_kind(self, group_kind: GroupKind) -> ResourceInfo | None:
        """The preferred version of a kind."""
        ...

    def get(
        self, info: ResourceInfo, namespace: str, name: str, *, resource_version: str = "", subresource: str = ""
    ) -> tuple[Object, bytes]:
        """The object (or its scale) and its JSON. Raises NotFound."""
        ...

    def list(self, info: ResourceInfo, namespace: str, options: ListOptions) -> Listing: ...

    def watch(
        self, info: ResourceInfo, namespace: str, options: ListOptions, representation: Representation | None = None
    ) -> Watcher:
        """A watch that has not started. Raises for bad options; an old revision becomes an ERROR event."""
        ...

    async def create(
        self,
        info: ResourceInfo,
        namespace: str,
        obj: Object,
        options: WriteOptions,
        *,
        name: str = "",
        subresource: str = "",
    ) -> Written: ...

    async def update(
        self,
        info: ResourceInfo,
        namespace: str,
        name: str,
        obj: Object,
        options: WriteOptions,
        *,
        subresource: str = "",
    ) -> Written: ...

    async def patch(  # noqa: PLR0913 - everything a PATCH says
        self,
        info: ResourceInfo,
        namespace: str,
        name: str,
        patch_type: PatchType,
        body: bytes,
        options: WriteOptions,
        *,
        subresource: str = "",
    ) -> Written: ...

    async def delete(self, info: ResourceInfo, namespace: str, name: str, options: DeleteOptions) -> Written: ...

    async def delete_collection(
        self, info: ResourceInfo, namespace: str, selection: ListOptions, options: DeleteOptions
    ) -> Listing: ...

"""Names for the shapes that have no class: parsed JSON, keys, and the address of a kind."""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

Json: TypeAlias = Any
"""A parsed JSON value."""
Object: TypeAlias = dict[str, Any]
"""A parsed Kubernetes object. Immutable by convention once it is in a store or a cache: build new ones, share the rest."""


class Key(NamedTuple):
    """Identity of an object within its kind; `namespace` is "" for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class GroupKind(NamedTuple):
    """A kind without its version; `group` is "" for the core group."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One served kind in one version, and where it is served."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Wire `apiVersion`: "v1" or "group/version"."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    @property
    def qualified_plural(self) -> str:
        """`plural.group`, the CRD's name and the way messages name the resource; the core group has no suffix."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of the collection (all namespaces if `namespace` is empty), of one object or of its subresource."""
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if namespace and self.namespaced:
            parts.append(f"namespaces/{quote(namespace, safe='')}")
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=":"))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

"""What is served, arranged for paths and documents: group versions in discovery order, reviews included.

One value per `discovery_generation` of the registry; everything derived from it (discovery, OpenAPI) is cached beside it.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from capi.kube.types import Object
from capi.server.http import responses, reviews
from capi.server.registry.interface import Registry, ResourceInfo


@dataclass(frozen=True, slots=True)
class Document:
    """A prepared answer with its strong ETag."""

    body: bytes
    etag: str

    @classmethod
    def of(cls, value: Object) -> "Document":
        body = responses.json(value).body
        return cls(body, hashlib.sha256(body).hexdigest()[:40].upper())


@dataclass(frozen=True, slots=True)
class Catalog:
    """`versions[group]` are the versions of a group, the preferred one first."""

    versions: dict[str, list[str]]
    resources: dict[tuple[str, str], list[ResourceInfo]]
    documents: dict[str, Document] = field(default_factory=dict)

    def document(self, name: str, build: Callable[[], Object]) -> Document:
        """The document of that name, built at its first use."""
        found = self.documents.get(name)
        if found is None:
            found = self.documents[name] = Document.of(build())
        return found

    def is_builtin(self, group: str, version: str) -> bool:
        return any(info.builtin for info in self.resources.get((group, version), ()))


class Catalogs:
    """The current Catalog of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = -1
        self._current = Catalog({}, {})

    def current(self) -> Catalog:
        if self._registry.discovery_generation != self._generation:
            self._generation = self._registry.discovery_generation
            self._current = build(self._registry.resources())
        return self._current


def build(infos: Iterable[ResourceInfo]) -> Catalog:
    """A catalogue in the order given; the core group first, reviews last."""
    catalog = Catalog({}, {})
    for info in sorted([*infos, *reviews.INFOS], key=lambda info: info.type.group != ""):
        kind = info.type
        versions = catalog.versions.setdefault(kind.group, [])
        if kind.version not in versions:
            versions.append(kind.version)
        listed = catalog.resources.setdefault((kind.group, kind.version), [])
        if all(other.type.plural != kind.plural for other in listed):
            listed.append(info)
    return catalog

"""By which apiVersion provider objects are referred to, for the conversion webhook: looked up in the CRDs, and remembered."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from capi.admission import convert
from capi.aio.clock import Clock
from capi.api.core.contracts import contract_version, plural
from capi.client.client import Client
from capi.kube.errors import NotFound
from capi.kube.types import GroupKind, Object, ResourceType

REMEMBERED = timedelta(minutes=5)
_CRD = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


class ReferencedVersions:
    """`load` what objects refer to, then call it with a kind."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[GroupKind, tuple[str, datetime]] = {}

    def __call__(self, kind: GroupKind) -> str:
        found = self._known.get(kind)
        return found[0] if found is not None else convert.by_group(kind)

    async def load(self, objects: Iterable[Object]) -> None:
        """Look up all kinds that are referred to. Raises ApiError, TransportError."""
        now = self._clock.now()
        for kind in {kind for obj in objects for kind in _referenced(obj.get("spec"))}:
            known = self._known.get(kind)
            if known is None or now - known[1] > REMEMBERED:
                self._known[kind] = await self._look_up(kind), now

    async def _look_up(self, kind: GroupKind) -> str:
        try:
            found: Object = await self._client.get(_CRD, f"{plural(kind.kind)}.{kind.group}")
        except NotFound:
            return convert.by_group(kind)
        version = contract_version(found["metadata"].get("labels") or {})
        return f"{kind.group}/{version}" if version else convert.by_group(kind)


def _referenced(value: Any) -> Iterator[GroupKind]:
    """Kinds of all references below a value."""
    if isinstance(value, dict):
        if isinstance(value.get("apiGroup"), str) and isinstance(value.get("kind"), str):
            yield GroupKind(value["apiGroup"], value["kind"])
        for below in value.values():
            yield from _referenced(below)
    elif isinstance(value, list):
        for below in value:
            yield from _referenced(below)

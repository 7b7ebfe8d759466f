"""By which apiVersion provider objects are referred to, for the conversion webhook: looked up in the CRDs, and remembered."""

import re
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
MOST = 1000
"""Kinds that are remembered; there are never as many, unless somebody makes them up."""
_NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9.]{0,252}")
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

    async def load(self, objects: Iterable[object]) -> None:
        """Look up all kinds that are referred to. Raises ApiError, TransportError."""
        now = self._clock.now()
        if len(self._known) > MOST:
            self._known.clear()
        specs = [obj.get("spec") for obj in objects if isinstance(obj, dict)]
        for kind in {kind for spec in specs for kind in _referenced(spec)}:
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
    """Kinds of all references below a value. Nothing has looked at it yet: it may hold anything."""
    if isinstance(value, dict):
        group, kind = value.get("apiGroup"), value.get("kind")
        if isinstance(group, str) and isinstance(kind, str) and _NAME.fullmatch(group) and _NAME.fullmatch(kind):
            yield GroupKind(group, kind)
        for below in value.values():
            yield from _referenced(below)
    elif isinstance(value, list):
        for below in value:
            yield from _referenced(below)

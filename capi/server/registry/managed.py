"""managedFields of writes, and server-side apply: the registry's use of structured-merge-diff.

Upstream: apimachinery pkg/util/managedfields, apiserver pkg/endpoints/handlers/fieldmanager.
"""

from datetime import datetime
from typing import Any

from capi.kube.types import Object

try:
    from capi.kube import smd
except ImportError:
    smd = None


class MergeSchema:
    """A kind's schema for merging, compiled at first use; without one, structure is deduced from the objects."""

    def __init__(self, openapi: Object) -> None:
        self._openapi = openapi or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        self._compiled: Any = None

    @property
    def compiled(self) -> Any:
        if self._compiled is None:
            self._compiled = smd.Schema.of(self._openapi)
        return self._compiled


def updated(target: Any, old: Object | None, new: Object, now: datetime) -> Object:
    return new


def applied(target: Any, live: Object | None, config: Object, now: datetime) -> Object:
    raise NotImplementedError

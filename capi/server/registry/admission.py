"""The port of admission plug-ins that are compiled in; webhooks will be one of them.

Order on a write: schema defaults → `default` of every plug-in → schema again → validation of the object → `validate`.
"""

from collections.abc import Sequence
from typing import Protocol

from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.interface import ResourceInfo, WriteOptions


class Admission(Protocol):
    """Sees every create and update of the main resource, in the requested version. Pure: never changes its arguments.

    May raise ApiError to refuse a request as a whole (Forbidden).
    """

    def default(self, info: ResourceInfo, obj: Object, old: Object | None, options: WriteOptions) -> Object:
        """The object with defaults filled in; the same object if there are none."""
        ...

    def validate(
        self, info: ResourceInfo, obj: Object, old: Object | None, options: WriteOptions
    ) -> tuple[Sequence[Cause], Sequence[str]]:
        """Causes to refuse (422), and warnings to pass on."""
        ...

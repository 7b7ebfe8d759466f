"""The admission plug-in of the embedded server. Other API servers call the same functions as webhooks (review.py)."""

from collections.abc import Sequence

from capi.admission.kinds import KINDS
from capi.kube.errors import Cause, Forbidden
from capi.kube.types import Object
from capi.server.registry.interface import ResourceInfo, WriteOptions


class ClusterApiAdmission:
    """Implements `server.registry.admission.Admission` for the kinds of this project; others pass."""

    def default(self, info: ResourceInfo, obj: Object, old: Object | None, options: WriteOptions) -> Object:
        """The object with defaults filled in. Raises Forbidden for the creation of a kind nothing acts on."""
        rules = KINDS.get(info.type.group_kind)
        if rules is None:
            return obj
        if rules.refused and old is None:
            raise _refusal(info, obj, rules.refused)
        return rules.default(obj, old)

    def validate(
        self, info: ResourceInfo, obj: Object, old: Object | None, options: WriteOptions
    ) -> tuple[Sequence[Cause], Sequence[str]]:
        """Causes to refuse the write. Objects that are being deleted pass, so that their finalizers can go."""
        rules = KINDS.get(info.type.group_kind)
        if rules is None or (obj.get("metadata") or {}).get("deletionTimestamp"):
            return (), ()
        return rules.validate(obj, old), ()


def _refusal(info: ResourceInfo, obj: Object, why: str) -> Forbidden:
    resource, name = info.type, (obj.get("metadata") or {}).get("name") or ""
    return Forbidden(
        f'{resource.qualified_plural} "{name}" is forbidden: {why}',
        name=name,
        group=resource.group,
        kind=resource.plural,
    )

"""The admission plug-in of the embedded server. Other API servers call the same functions as webhooks (review.py)."""

from collections.abc import Sequence

from capi.admission.convert import ApiVersions, by_group, convert, default_old, hub_of, is_old
from capi.admission.kinds import KINDS
from capi.kube.errors import Cause, Forbidden
from capi.kube.types import Object
from capi.server.registry.interface import ResourceInfo, WriteOptions


class ClusterApiAdmission:
    """Implements `server.registry.admission.Admission` for the kinds of this project; others pass.

    Rules are those of v1beta2: objects of an older version are converted for them.
    """

    def __init__(self, versions: ApiVersions = by_group) -> None:
        self._versions = versions

    def default(self, info: ResourceInfo, obj: Object, old: Object | None, options: WriteOptions) -> Object:
        """The object with defaults filled in. Raises Forbidden for the creation of a kind nothing acts on."""
        rules = KINDS.get(info.type.group_kind)
        if rules is None:
            return obj
        if rules.refused and old is None:
            raise _refusal(info, obj, rules.refused)
        return default_old(obj, old, rules.default) if is_old(obj) else rules.default(obj, old)

    def validate(
        self, info: ResourceInfo, obj: Object, old: Object | None, options: WriteOptions
    ) -> tuple[Sequence[Cause], Sequence[str]]:
        """Causes to refuse the write. Objects that are being deleted pass, so that their finalizers can go."""
        rules = KINDS.get(info.type.group_kind)
        if rules is None or (obj.get("metadata") or {}).get("deletionTimestamp"):
            return (), ()
        if is_old(obj):
            obj, old = self._hub(obj), self._hub(old) if old is not None else None
        return rules.causes(obj, old, dry_run=options.dry_run), ()

    def _hub(self, obj: Object) -> Object:
        """As the rules know it."""
        return convert(obj, hub_of(obj), self._versions)


def _refusal(info: ResourceInfo, obj: Object, why: str) -> Forbidden:
    resource, name = info.type, (obj.get("metadata") or {}).get("name") or ""
    return Forbidden(
        f'{resource.qualified_plural} "{name}" is forbidden: {why}',
        name=name,
        group=resource.group,
        kind=resource.plural,
    )

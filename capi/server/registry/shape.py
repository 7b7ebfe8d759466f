"""The form of an object on its way in: prune, default, admit, validate. Order as upstream (see registry.admission)."""

from collections.abc import Sequence

from capi.kube.errors import BadRequest, Cause
from capi.kube.types import Object
from capi.server.registry import refusals
from capi.server.registry.admission import Admission
from capi.server.registry.metadata import deduplicated_owners, normalised, warnings
from capi.server.registry.target import Target


class Shaper:
    """Brings objects into shape with the kind's schema and rules, and the admission plug-ins."""

    def __init__(self, admission: Sequence[Admission]) -> None:
        self._admission = admission

    def decoded(self, target: Target, obj: Object, *, patch: str = "") -> Object:
        """An object with its type, well-formed metadata and defaults, without unknown fields."""
        unknown: list[str] = []
        obj = normalised(target.served, obj, unknown)
        compiled = target.served.compiled
        if compiled is not None:
            self._check_types(target, obj, patch)
            obj, more = compiled.prune(obj)
            unknown.extend(more)
            obj = compiled.default(obj)
        target.note_unknown(unknown, patch=patch)
        return target.served.rules.default(obj)

    def admitted(self, target: Target, obj: Object, old: Object | None) -> Object:
        """The object with what admission fills in."""
        if target.subresource:
            return obj
        changed = obj
        for plugin in self._admission:
            changed = plugin.default(target.served.info, changed, old, target.options)
        if changed is obj:
            return obj
        compiled = target.served.compiled
        if compiled is not None:
            changed, _ = compiled.prune(changed)
            changed = compiled.default(changed)
        return target.served.rules.default(changed)

    def check(self, target: Target, obj: Object, old: Object | None, causes: list[Cause]) -> None:
        """Raise Invalid for `causes` and whatever else is wrong."""
        served = target.served
        meta, before = obj["metadata"], old["metadata"] if old else {}
        found = [*causes, *self._rules(target, obj, old)]
        if not found and not target.subresource:
            for plugin in self._admission:
                more, notes = plugin.validate(served.info, obj, old, target.options)
                found.extend(more)
                target.warnings.extend(notes)
        if found:
            raise refusals.invalid(served.type, str(meta.get("name") or ""), found)
        target.warnings.extend(warnings(served, meta, before))

    def _rules(self, target: Target, obj: Object, old: Object | None) -> Sequence[Cause]:
        served = target.served
        found: list[Cause] = []
        if served.custom and served.compiled is not None:
            status = target.subresource == "status"
            found.extend(
                served.compiled.validate_status(obj, old)
                if status and old is not None
                else served.compiled.validate(obj, old)
            )
        found.extend(served.rules.validate(obj, old))
        return found

    def _check_types(self, target: Target, obj: Object, patch: str) -> None:
        served = target.served
        if served.custom or served.compiled is None:
            return
        if text := served.compiled.type_error(obj):
            if patch:
                raise refusals.bad_patch(patch, text)
            kind = served.type
            raise BadRequest(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {text}')


def deduplicate_owners(target: Target, obj: Object) -> Object:
    meta = deduplicated_owners(obj["metadata"])
    if meta is obj["metadata"]:
        return obj
    target.warnings.append("metadata.ownerReferences contains duplicate entries; API server dedups owner references")
    return {**obj, "metadata": meta}

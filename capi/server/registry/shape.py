"""The form of an object on its way in: prune, default, admit, validate. Order as upstream (see registry.admission)."""

from collections.abc import Sequence

from capi.kube.errors import BadRequest, Cause
from capi.kube.types import Object
from capi.server.registry import refusals
from capi.server.registry.admission import Admission
from capi.server.registry.metadata import deduplicated_owners, normalised, warnings
from capi.server.registry.schema.compiled import CompiledSchema
from capi.server.registry.target import Target


class Shaper:
    """Brings objects into shape with the kind's schema and rules, and the admission plug-ins."""

    def __init__(self, admission: Sequence[Admission]) -> None:
        self._admission = admission

    def decoded(self, target: Target, obj: Object, *, base: Object | None = None, patch: str = "") -> Object:
        """An object with its type, well-formed metadata and defaults, without unknown fields.

        `base` is the object it was made from by a patch: members that are still the same (identical, not just equal)
        were looked at when they were stored and are not again.
        """
        unknown: list[str] = []
        obj = normalised(target.served, obj, unknown)
        compiled = target.served.compiled
        if compiled is not None:
            self._check_types(target, obj, patch)
            obj = _pruned_and_defaulted(compiled, obj, base or {}, unknown)
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
        if served.custom and served.compiled is not None and not _only_metadata_differs(obj, old):
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


def _pruned_and_defaulted(compiled: CompiledSchema, obj: Object, base: Object, unknown: list[str]) -> Object:
    """The members that are not `base`'s, pruned and defaulted; metadata is taken care of elsewhere."""
    settled = {name for name in base if name == "metadata" or obj.get(name) is base[name]} | {"metadata"}
    part = {name: value for name, value in obj.items() if name not in settled or name in ("apiVersion", "kind")}
    part, more = compiled.prune(part)
    unknown.extend(more)
    part = compiled.default(part)
    kept = {name: value for name, value in obj.items() if name in settled or name in part}
    return {**kept, **{name: value for name, value in part.items() if name not in settled}}


def _only_metadata_differs(obj: Object, old: Object | None) -> bool:
    """All else was valid when it was stored, and stays as it is."""
    if old is None or obj.keys() != old.keys():
        return False
    return all(value is old[name] for name, value in obj.items() if name not in ("metadata", "apiVersion", "kind"))


def deduplicate_owners(target: Target, obj: Object) -> Object:
    meta = deduplicated_owners(obj["metadata"])
    if meta is obj["metadata"]:
        return obj
    target.warnings.append("metadata.ownerReferences contains duplicate entries; API server dedups owner references")
    return {**obj, "metadata": meta}

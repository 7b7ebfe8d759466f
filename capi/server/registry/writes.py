"""Create, update and patch, against the head view: synchronous, so no write ever races with another.

Upstream: apiserver pkg/registry/generic/registry/store.go, pkg/registry/rest/{create,update}.go.
"""

from collections.abc import Sequence
from datetime import datetime

import orjson

from capi.aio.clock import Clock
from capi.kube import names
from capi.kube.errors import BadRequest, Cause, MethodNotAllowed, UnsupportedMediaType
from capi.kube.types import Key, Object
from capi.server.registry import managed, metadata, patches, persist, refusals, scale
from capi.server.registry.admission import Admission
from capi.server.registry.definitions import Definitions
from capi.server.registry.interface import PatchType
from capi.server.registry.namespaces import check_namespace
from capi.server.registry.schema import causes
from capi.server.registry.served import Catalog
from capi.server.registry.shape import Shaper, deduplicate_owners
from capi.server.registry.target import Outcome, Target
from capi.server.store.interface import Entry, Store

_NAME_TRIES = 8
_WITHOUT_EFFECT = {
    "admissionregistration.k8s.io": "this server does not call admission webhooks or policies yet, so it takes no configuration for them"
}
"""API groups whose objects would be promises that nobody keeps."""
_WITHOUT_EFFECT_YET = {
    "rbac.authorization.k8s.io": "stored, but this server does not evaluate roles and bindings yet: only members of the group system:masters may use its resources"
}
"""API groups whose objects are only stored, which is safe; whoever creates one is told."""


class Writer:
    """The verbs that carry an object. Every method raises ApiError and leaves the store alone, or returns an Outcome."""

    def __init__(
        self, store: Store, catalog: Catalog, definitions: Definitions, admission: Sequence[Admission], clock: Clock
    ) -> None:
        self._store, self._catalog, self._definitions, self._clock = store, catalog, definitions, clock
        self._shaper = Shaper(admission)

    # -- create -------------------------------------------------------------------------------------------------

    def create(self, target: Target, obj: Object) -> Outcome:
        obj = self._shaper.decoded(target, obj)
        target.check_namespace(obj)
        if obj["metadata"].get("resourceVersion"):
            raise refusals.plain("resourceVersion should not be set on objects to be created")
        return self._create(target, obj)

    def _create(self, target: Target, obj: Object, *, applied: bool = False) -> Outcome:
        """`obj` is decoded; `applied` says that its managedFields are right already."""
        served, now = target.served, self._clock.now()
        self._check_place(target, obj)
        meta = metadata.fresh(obj["metadata"], target.key.namespace, now, generation=served.rules.generation)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._unique_name(target, str(meta["generateName"]))
        target.name = str(meta.get("name") or "")
        obj = served.rules.prepare_create(served.rules.default({**obj, "metadata": meta}))
        if not applied:
            obj = managed.updated(target, None, obj, now)
        obj = deduplicate_owners(target, self._shaper.admitted(target, obj, None))
        self._shaper.check(target, obj, None, metadata.create_causes(served, obj["metadata"]))
        if (existing := self._store.head(served.table, target.key)) is not None:
            deleting = bool(existing.object["metadata"].get("deletionTimestamp"))
            raise refusals.already_exists(served.type, target.name, deleting=deleting)
        if target.options.dry_run:
            return Outcome(served.settled(obj), 0, created=True)
        stored = self._definitions.with_status(target.table, served.to_storage(obj))
        persist.check_size(stored)
        return self._outcome(target, self._store.put(served.table, target.key, stored), created=True)

    def _check_place(self, target: Target, obj: Object) -> None:
        """There must be a namespace that takes new objects, and a definition that does."""
        served = target.served
        name = str(obj["metadata"].get("name") or obj["metadata"].get("generateName") or "")
        if served.type.group in _WITHOUT_EFFECT:
            raise refusals.forbidden(served.type, name, _WITHOUT_EFFECT[served.type.group])
        if served.type.group in _WITHOUT_EFFECT_YET:
            target.warnings.append(_WITHOUT_EFFECT_YET[served.type.group])
        if served.type.namespaced:
            check_namespace(self._store, served.type, target.namespace, name)
        family = self._catalog.family(served.type.group, served.type.plural)
        if family is not None and family.terminating:
            raise refusals.forbidden(
                served.type, name, "create not allowed while custom resource definition is terminating"
            )

    def _unique_name(self, target: Target, base: str) -> str:
        for _ in range(_NAME_TRIES):
            name = names.generate(base)
            if self._store.head(target.table, Key(target.key.namespace, name)) is None:
                return name
        raise refusals.no_unique_name(target.served.type, base)

    # -- update -------------------------------------------------------------------------------------------------

    def update(self, target: Target, obj: Object) -> Outcome:
        if target.subresource == "scale":
            entry = self._existing(target)
            return self._scale(target, entry, obj)
        obj = self._shaper.decoded(target, obj)
        target.check_name(obj)
        found = self._store.head(target.table, target.key)
        return self._create_on_update(target, obj) if found is None else self._replace(target, found, obj)

    def _create_on_update(self, target: Target, obj: Object) -> Outcome:
        served, meta = target.served, obj["metadata"]
        if target.subresource or not served.rules.create_on_update:
            raise refusals.not_found(served.type, target.name)
        if meta.get("uid"):
            text = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: "
            raise refusals.conflict(served.type, target.name, text)
        return self._create(target, {**obj, "metadata": {k: v for k, v in meta.items() if k != "resourceVersion"}})

    def _existing(self, target: Target) -> Entry:
        entry = self._store.head(target.table, target.key)
        if entry is None:
            raise refusals.not_found(target.served.type, target.name)
        return entry

    def _replace(self, target: Target, entry: Entry, sent: Object, *, applied: bool = False) -> Outcome:
        """Everything between a decoded new state and the store."""
        served = target.served
        old = served.from_storage(entry.object)
        self._check_preconditions(target, sent["metadata"], entry)
        new = self._prepared(target, sent, old)
        if not applied:
            new = managed.updated(target, old, new, self._clock.now())
        new = deduplicate_owners(target, self._shaper.admitted(target, new, old))
        found: list[Cause] = metadata.update_causes(served, sent["metadata"], new["metadata"], old["metadata"])
        if new is not old and new != old:
            self._shaper.check(target, new, old, found)
        elif found:
            raise refusals.invalid(served.type, target.name, found)
        new = self._with_generation(target, new, old)
        return self._finish(target, entry, old, new)

    def _prepared(self, target: Target, sent: Object, old: Object) -> Object:
        """`sent` with everything this subresource does not change taken from `old`."""
        rules = target.served.rules
        if target.subresource == "status":
            new = rules.prepare_status(sent, old)
        elif target.subresource == "finalize":
            new = {
                **old,
                "spec": {**(old.get("spec") or {}), "finalizers": (sent.get("spec") or {}).get("finalizers") or []},
            }
        else:
            new = rules.prepare_update(sent, old)
        meta = metadata.restored(new["metadata"], old["metadata"])
        if "managedFields" not in sent["metadata"] and "managedFields" in old["metadata"]:
            meta["managedFields"] = old["metadata"]["managedFields"]
        return {**new, "metadata": meta}

    def _check_preconditions(self, target: Target, meta: Object, entry: Entry) -> None:
        served, current = target.served, entry.object["metadata"]
        if (uid := meta.get("uid")) and uid != current["uid"]:
            text = (
                f"StorageError: invalid object, Code: 4, Key: /registry/{target.table}/{target.key}, ResourceVersion: 0,"
                f" AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {current['uid']}"
            )
            raise refusals.conflict(served.type, target.name, text)
        revision = str(meta.get("resourceVersion") or "")
        if revision in ("", "0"):
            if not served.rules.unconditional_update:
                cause = causes.invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise refusals.invalid_resource(served.type, target.name, [cause])
        elif revision != str(entry.revision):
            if not revision.isdigit():
                cause = causes.invalid(
                    "metadata.resourceVersion", revision, f'strconv.ParseUint: parsing "{revision}": invalid syntax'
                )
                raise refusals.invalid_resource(served.type, target.name, [cause])
            raise refusals.modified(served.type, target.name)

    def _with_generation(self, target: Target, new: Object, old: Object) -> Object:
        served = target.served
        if not served.rules.generation or target.subresource == "status":
            return new
        skipped = {"metadata", "status"} if served.has_status else {"metadata"}
        if {k: v for k, v in new.items() if k not in skipped} == {k: v for k, v in old.items() if k not in skipped}:
            return new
        return {**new, "metadata": {**new["metadata"], "generation": int(old["metadata"].get("generation") or 0) + 1}}

    def _finish(self, target: Target, entry: Entry, old: Object, new: Object) -> Outcome:
        served, store = target.served, self._store
        if persist.same(old, new) and not _outdated(target, entry) and not persist.deletion_complete(target.table, old):
            return self._outcome(target, entry)
        if target.options.dry_run:
            return Outcome(served.settled(new), entry.revision)
        stored = served.to_storage(new)
        if target.subresource != "status":
            stored = self._definitions.with_status(target.table, stored)
        persist.check_size(stored, len(entry.encoded))
        return self._outcome(target, persist.replace(store, target.table, target.key, stored))

    def _outcome(self, target: Target, entry: Entry, *, created: bool = False) -> Outcome:
        obj, encoded = target.served.present(entry)
        return Outcome(obj, entry.revision, encoded, created)

    # -- patch --------------------------------------------------------------------------------------------------

    def patch(self, target: Target, patch_type: PatchType, body: bytes) -> Outcome:
        if target.subresource == "finalize":
            raise MethodNotAllowed()
        if patch_type == "application/strategic-merge-patch+json" and target.served.custom:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json,"
                " application/merge-patch+json, application/apply-patch+yaml"
            )
        if patch_type == "application/apply-patch+yaml":
            return self._apply(target, patches.parse_apply(body))
        entry = self._existing(target)
        current = target.served.present(entry)[0]
        if target.subresource == "scale":
            shown = scale.get(current, target.served.info.scale)
            return self._scale(target, entry, patches.patched(shown, patch_type, body, schema={}))
        patched = patches.patched(current, patch_type, body, schema=target.served.info.schema)
        if patched is current and not _outdated(target, entry):
            return self._outcome(target, entry)
        decoded = self._shaper.decoded(target, patched, base=current, patch=body.decode("utf-8", "replace"))
        target.check_name(decoded)
        return self._replace(target, entry, decoded)

    def _scale(self, target: Target, entry: Entry, shown: Object) -> Outcome:
        served = target.served
        old = served.from_storage(entry.object)
        changed = scale.put(old, shown, served.info.scale)
        meta = {k: v for k, v in (shown.get("metadata") or {}).items() if k in ("uid", "resourceVersion") and v}
        meta = {"resourceVersion": str(entry.revision), **meta}
        decoded = self._shaper.decoded(target, {**changed, "metadata": {**changed["metadata"], **meta}})
        outcome = self._replace(target, entry, decoded)
        result = scale.get(outcome.object, served.info.scale)
        return Outcome(result, outcome.revision, orjson.dumps(result))

    def _apply(self, target: Target, config: Object) -> Outcome:
        served, now = target.served, self._clock.now()
        patches.check_apply(target, config)
        entry = self._store.head(target.table, target.key)
        if entry is None:
            return self._apply_new(target, config, now)
        if target.subresource == "scale":
            raise BadRequest("server-side apply to the scale subresource is not supported; use a merge patch")
        live = served.present(entry)[0]
        sent = config.get("metadata") or {}
        self._check_preconditions(target, {"resourceVersion": str(entry.revision), **sent}, entry)
        untouched = {k: v for k, v in sent.items() if k not in ("resourceVersion", "uid")}
        merged = managed.applied(target, live, {**config, "metadata": untouched}, now)
        if merged is live and not _outdated(target, entry):
            return self._outcome(target, entry)
        decoded = self._shaper.decoded(target, merged, base=live)
        return self._replace(target, entry, decoded, applied=True)

    def _apply_new(self, target: Target, config: Object, now: datetime) -> Outcome:
        served, meta = target.served, config.get("metadata") or {}
        if target.subresource:
            raise refusals.not_found(served.type, target.name)
        if uid := meta.get("uid"):
            text = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise refusals.conflict(served.type, target.name, text)
        config = {**config, "metadata": {**meta, "name": target.name}}
        merged = managed.applied(target, None, config, now)
        decoded = self._shaper.decoded(target, merged)
        target.check_namespace(decoded)
        kept = {k: v for k, v in decoded["metadata"].items() if k != "resourceVersion"}
        return self._create(target, {**decoded, "metadata": kept}, applied=True)


def _outdated(target: Target, entry: Entry) -> bool:
    """Stored in another version than today's: any write, also one without effect, stores it anew."""
    return not entry.encoded.startswith(target.served.storage_prefix)

"""DELETE: preconditions, propagation policies, grace periods, finalizers.

Upstream: apiserver pkg/registry/rest/delete.go, pkg/registry/generic/registry/store.go (Delete, deletionFinalizers).
"""

from datetime import timedelta

from capi.aio.clock import Clock
from capi.kube import times
from capi.kube.errors import Invalid
from capi.kube.types import Key, Object
from capi.server.registry import persist, refusals
from capi.server.registry.definitions import Definitions
from capi.server.registry.interface import DeleteOptions
from capi.server.registry.schema import causes
from capi.server.registry.served import Served
from capi.server.registry.target import Outcome
from capi.server.store.interface import Entry, Store

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_KEPT_NAMESPACES = frozenset(("default", "kube-system", "kube-public"))
_POLICIES = ("", "Background", "Foreground", "Orphan")
_DEFAULT_POD_GRACE = 30
_MAX_GRACE = 10 * 366 * 86_400
"""Longer ones end after the last representable year."""


class Deleter:
    """Deletes in the head view; await the outcome's revision before telling anyone."""

    def __init__(self, store: Store, definitions: Definitions, clock: Clock) -> None:
        self._store, self._definitions, self._clock = store, definitions, clock

    def delete(self, served: Served, key: Key, options: DeleteOptions) -> Outcome:
        """Remove or mark for removal. Raises NotFound, Conflict, Forbidden and Invalid."""
        if options.propagation not in _POLICIES:
            cause = causes.not_supported(
                "propagationPolicy", options.propagation, ("Background", "Foreground", "Orphan", "nil")
            )
            raise Invalid(
                f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {cause.message}',
                kind="DeleteOptions",
                causes=[cause],
            )
        entry = self._store.head(served.table, key)
        if entry is None:
            raise refusals.not_found(served.type, key.name)
        _check_preconditions(served, key, entry, options)
        if served.table == persist.NAMESPACES and key.name in _KEPT_NAMESPACES:
            raise refusals.forbidden(served.type, key.name, "this namespace may not be deleted")
        current = entry.object
        grace = _grace_seconds(served, current, options)
        finalizers = _finalizers(current, options)
        marked = self._marked(served, current, finalizers, grace)
        if persist.deletion_complete(served.table, marked):
            return self._remove(served, key, current, options)
        if marked == current:
            return Outcome(served.present(entry)[0], entry.revision)
        if options.dry_run:
            return Outcome(served.from_storage(marked), entry.revision)
        stored = self._store.put(served.table, key, marked)
        return Outcome(*self._shown(served, stored))

    def _remove(self, served: Served, key: Key, current: Object, options: DeleteOptions) -> Outcome:
        if options.dry_run:
            return Outcome(_success(served, key, current), self._store.head_revision)
        gone = self._store.remove(served.table, key)
        if served.rules.returns_deleted:
            return Outcome(*self._shown(served, gone))
        return Outcome(_success(served, key, current), gone.revision)

    def _shown(self, served: Served, entry: Entry) -> tuple[Object, int, bytes]:
        obj, encoded = served.present(entry)
        return obj, entry.revision, encoded

    def _marked(self, served: Served, current: Object, finalizers: list[str], grace: int) -> Object:
        """The object as it looks while it is being deleted."""
        meta = {**current["metadata"], "finalizers": finalizers}
        if not finalizers:
            del meta["finalizers"]
        had = meta.get("deletionGracePeriodSeconds")
        if not meta.get("deletionTimestamp") or (had is not None and grace < had):
            if not meta.get("deletionTimestamp") and (finalizers or grace) and meta.get("generation"):
                meta["generation"] += 1
            meta["deletionTimestamp"] = times.format(self._clock.now() + timedelta(seconds=grace))
            meta["deletionGracePeriodSeconds"] = grace
        marked = {**current, "metadata": meta}
        if served.table == persist.NAMESPACES:
            return {**marked, "status": {**(current.get("status") or {}), "phase": "Terminating"}}
        return self._definitions.terminating(served.table, marked)


def background(uid: str) -> DeleteOptions:
    """Options of a deletion that must only hit this very object."""
    return DeleteOptions(propagation="Background", uid=uid)


def _check_preconditions(served: Served, key: Key, entry: Entry, options: DeleteOptions) -> None:
    uid, revision = entry.object["metadata"]["uid"], str(entry.revision)
    kind = "UID" if options.uid and options.uid != uid else "ResourceVersion"
    wanted, found = (options.uid, uid) if kind == "UID" else (options.resource_version, revision)
    if wanted and wanted != found:
        text = (
            f"the {kind} in the precondition ({wanted}) does not match the {kind} in record ({found})."
            " The object might have been deleted and then recreated"
        )
        error = refusals.conflict(served.type, key.name, text)
        error.kind = served.type.kind
        raise error


def _finalizers(current: Object, options: DeleteOptions) -> list[str]:
    """Finalizers under a propagation policy; without one, those of an earlier deletion stay."""
    present: list[str] = list(current["metadata"].get("finalizers") or ())
    if options.propagation:
        wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(options.propagation)
        present = [name for name in present if name == wanted or name not in (ORPHAN, FOREGROUND)]
        if wanted and wanted not in present:
            present.append(wanted)
    return present


def _grace_seconds(served: Served, current: Object, options: DeleteOptions) -> int:
    """Seconds that a scheduled, running Pod may take to stop; 0 for everything else."""
    if served.table != "pods":
        return 0
    spec, status = current.get("spec") or {}, current.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    had = current["metadata"].get("deletionGracePeriodSeconds")
    grace = options.grace_period_seconds
    if grace is None:
        grace = had if had is not None else spec.get("terminationGracePeriodSeconds")
    grace = _DEFAULT_POD_GRACE if grace is None else 1 if grace < 0 else grace
    return int(min(grace, _MAX_GRACE if had is None else had))


def _success(served: Served, key: Key, current: Object) -> Object:
    kind = served.type
    details = {"name": key.name, "group": kind.group, "kind": kind.plural, "uid": current["metadata"]["uid"]}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {name: value for name, value in details.items() if value},
    }

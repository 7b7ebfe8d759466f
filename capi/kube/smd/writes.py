"""Server-side apply, and the book-keeping of every other write.

Source: structured-merge-diff merge/update.go; k8s.io/apimachinery/pkg/util/managedfields (the chain of managers).
Differs: without a conversion (`views`), entries of other API versions are read by the given schema.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple, TypeAlias

import capi.kube.smd.fields as fields
import capi.kube.smd.last_applied as last_applied
import capi.kube.smd.managed as managed
import capi.kube.smd.typed as typed
from capi.kube import times
from capi.kube.errors import ApiError, BadRequest
from capi.kube.smd.compare import Comparison, compare
from capi.kube.smd.conflicts import ApplyConflict
from capi.kube.smd.fields import FieldSet
from capi.kube.smd.managed import Entry, Managed, Manager
from capi.kube.smd.merge import merge, prune, without_emptied
from capi.kube.smd.schema import Schema
from capi.kube.types import Json, Object

KUBECTL = "kubectl"


class View(NamedTuple):
    """How objects are seen in another API version."""

    convert: Callable[[Object], Object]
    back: Callable[[Object], Object]
    schema: Schema


Views: TypeAlias = Callable[[str], View | None]
"""By apiVersion; None where an object looks the same."""


def same(api_version: str) -> None:
    """All versions look the same."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Which fields a (sub)resource's writes never own: those of `exclude`, and all but `keep` if that is given."""

    exclude: FieldSet = field(default_factory=dict)
    keep: FieldSet | None = None

    def filter(self, owned: FieldSet) -> FieldSet:
        owned = fields.recursive_difference(owned, self.exclude) if self.exclude else owned
        return owned if self.keep is None else fields.only(owned, self.keep)


NO_RESET = Reset()
NOT_STATUS = Reset(exclude={"f:status": fields.MEMBER})
"""Main resource of a kind whose status is a subresource."""
ONLY_STATUS = Reset(keep={"f:status": fields.MEMBER})
"""The status subresource."""


@dataclass(frozen=True, slots=True)
class _Write:
    """Who writes, how and when."""

    schema: Schema
    manager: Manager
    api_version: str
    reset: Reset
    time: str
    force: bool = True
    known: Collection[str] | None = None
    views: Views = same

    def view(self, entry: Entry) -> View | None:
        """How the object is seen in the version of an entry; None: as it is written."""
        return None if entry.api_version == self.api_version else self.views(entry.api_version)

    def schema_of(self, entry: Entry) -> Schema:
        """The schema by which an entry is read."""
        seen = self.view(entry)
        return self.schema if seen is None else seen.schema


def apply(  # noqa: PLR0913 - all of them are the request's
    live: Object | None,
    config: Object,
    *,
    schema: Schema,
    manager: str,
    api_version: str,
    subresource: str = "",
    force: bool = False,
    now: datetime,
    reset: Reset | FieldSet = NO_RESET,
    versions: Collection[str] | None = None,
    views: Views = same,
) -> Object:
    """`live` with `config` applied by `manager`, managedFields included; `live` itself if nothing changes.

    `live` None: the object is created. `versions`: the API versions still served (None = all); entries of others are
    dropped. Raises ApplyConflict; BadRequest for managedFields in `config`; ApiError (500, as the real server answers)
    when `config` does not fit the schema.
    """
    if (config.get("metadata") or {}).get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    write = _Write(
        schema, managed.applier(manager, subresource), api_version, _reset(reset), times.format(now), force, versions, views
    )  # fmt: skip
    try:
        owned = typed.config_set(config, schema.root)
    except typed.Mismatch:
        raise _misfit(config, schema) from None
    if live is None:
        entry = Entry(write.manager, api_version, managed.stripped(write.reset.filter(owned)), write.time)
        return managed.attach(config, {write.manager: entry} if entry.fields else {}, None)
    entries = _entries(live)
    if not entries:
        entries = _first_apply(live, write)
    result = _apply(live, config, owned, entries, write)
    return last_applied.synchronized(result, config) if manager == KUBECTL and result is not live else result


def _apply(live: Object, config: Object, owned: FieldSet, entries: Managed, write: _Write) -> Object:
    try:
        return _applied(live, config, owned, entries, write)
    except ApplyConflict as conflict:
        if write.manager.name != KUBECTL:
            raise
        allowed = last_applied.allowed(live, write.schema, write.api_version)
        if allowed is None:
            raise
        rest = {m: left for m, taken in conflict.conflicts.items() if (left := fields.difference(taken, allowed))}
        if rest:
            raise ApplyConflict(rest) from None
    return _applied(live, config, owned, entries, replace(write, force=True))


def _applied(live: Object, config: Object, owned: FieldSet, entries: Managed, write: _Write) -> Object:
    schema = write.schema
    entries = managed.settle(entries, write.schema_of)
    merged = merge(live, config, schema.root)
    owned = managed.stripped(write.reset.filter(owned))
    last = entries.get(write.manager)
    kept = owned if last is None or last.fields != owned else last.fields
    others = {m: e for m, e in entries.items() if m != write.manager}
    drops = last is not None and kept is not last.fields and bool(fields.difference(last.fields, owned))
    new = _pruned(merged, last.fields, owned, others, schema) if drops and last is not None else merged
    if new is not merged and (given := _given_back(merged, new, others, write)) is not new:
        new, drops = given, False
    after = _others(others, compare(live, new, schema.root), live, new, write)
    if drops and last is not None:
        new = without_emptied(new, merged, last.fields)
    if kept:
        after[write.manager] = _own_entry(last, kept, write, changed=new is not live)
    return managed.attach(new, after, live["metadata"].get("managedFields"))


def _pruned(merged: Object, last: FieldSet, owned: FieldSet, others: Managed, schema: Schema) -> Object:
    keep = owned
    for entry in others.values():
        keep = fields.union(keep, entry.fields)
    return prune(merged, schema.root, last, keep)


def _own_entry(last: Entry | None, owned: FieldSet, write: _Write, *, changed: bool) -> Entry:
    """The time moves only when the object changes: a manager that merely joins others has none, as upstream."""
    if last is not None and owned is last.fields and last.api_version == write.api_version and not changed:
        return last
    time = write.time if changed else last.time if last is not None else ""
    return Entry(write.manager, write.api_version, owned, time)


def _given_back(merged: Object, pruned: Object, others: Managed, write: _Write) -> Object:
    """`pruned` with what managers of other versions own of `merged`, under the names it has there."""
    for version in sorted({entry.api_version for entry in others.values()} - {write.api_version}):
        view = write.views(version)
        if view is None:
            continue
        owned: FieldSet = {}
        for entry in others.values():
            if entry.api_version == version:
                owned = fields.union(owned, entry.fields)
        before = _bare(view.convert(merged))
        gone = compare(before, _bare(view.convert(pruned)), view.schema.root).removed
        if fields.intersection(owned, gone):
            kept = view.back(without_emptied(prune(before, view.schema.root, gone, owned), before, gone))
            pruned = {**kept, "metadata": pruned["metadata"]}
    return pruned


def _seen(changes: Comparison, old: Object | None, new: Object, entry: Entry, write: _Write) -> Comparison:
    """The changes in the version of an entry."""
    view = write.view(entry)
    if view is None:
        return changes
    return _changes(view.convert(old) if old is not None else None, view.convert(new), view.schema)


def _others(entries: Managed, same: Comparison, old: Object | None, new: Object, write: _Write) -> Managed:
    """The other managers' entries once `old` has become `new`. Raises ApplyConflict unless forced."""
    if same.empty:
        return {m: e for m, e in entries.items() if _known(e, write)}
    conflicts: dict[Manager, FieldSet] = {}
    result: Managed = {}
    for manager, entry in entries.items():
        if not _known(entry, write):
            continue
        changes = _seen(same, old, new, entry, write)
        taken = write.reset.filter(fields.union(changes.modified, changes.added))
        removed = write.reset.filter(changes.removed)
        if conflict := fields.intersection(entry.fields, taken):
            conflicts[manager] = conflict
        left = fields.difference(fields.difference(entry.fields, taken), removed)
        if left:
            result[manager] = entry.having(left)
    if conflicts and not write.force:
        raise ApplyConflict(conflicts)
    return result


def _known(entry: Entry, write: _Write) -> bool:
    return write.known is None or entry.api_version == write.api_version or entry.api_version in write.known


def _first_apply(live: Object, write: _Write) -> Managed:
    """Everything in an object that nobody owns yet belongs to `before-first-apply`."""
    owned = managed.stripped(write.reset.filter(typed.full_set(_bare(live), write.schema.root)))
    manager = managed.updater(managed.BEFORE_FIRST_APPLY, write.api_version, write.manager.subresource)
    return {manager: Entry(manager, write.api_version, owned, write.time)} if owned else {}


def update(  # noqa: PLR0913 - all of them are the request's
    old: Object | None,
    new: Object,
    *,
    schema: Schema,
    manager: str,
    api_version: str,
    subresource: str = "",
    now: datetime,
    reset: Reset | FieldSet = NO_RESET,
    empty_resets: bool = False,
    versions: Collection[str] | None = None,
    views: Views = same,
) -> Object:
    """`new` with managedFields as they are after `manager` has changed `old` into it (any write but apply).

    `old` None: the object is created. managedFields in `new`: absent or invalid, those of `old` are kept; `[{}]` clears
    them (and `[]` too if `empty_resets`: built-in kinds); a valid list replaces them; in subresources they are ignored.
    """
    write = _Write(
        schema, managed.updater(manager, api_version, subresource), api_version, _reset(reset), times.format(now), True, versions, views
    )  # fmt: skip
    sent = (new.get("metadata") or {}).get("managedFields")
    entries = _requested(old, sent, bool(subresource), empty_resets)
    if not entries and old is not None:
        return managed.attach(new, {}, sent)
    entries = managed.settle(entries, write.schema_of)
    changes = _changes(old, new, schema)
    after = _others(entries, changes, old, new, write)
    own = managed.stripped(write.reset.filter(fields.union(changes.modified, changes.added)))
    if own:
        before = entries.get(write.manager)
        kept = (
            own if before is None else fields.union(after[write.manager].fields if write.manager in after else {}, own)
        )
        after[write.manager] = Entry(write.manager, api_version, kept, write.time)
    return managed.attach(new, managed.capped(after), sent)


def _changes(old: Object | None, new: Object, schema: Schema) -> Comparison:
    if old is None:
        return Comparison({}, {}, typed.full_set(_bare(new), schema.root))
    if old is new:
        return Comparison({}, {}, {})
    return compare(_bare(old), _bare(new), schema.root)


def _bare(obj: Object) -> Object:
    """Without managedFields."""
    metadata = obj.get("metadata") or {}
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def _requested(old: Object | None, sent: Json, subresource: bool, empty_resets: bool) -> Managed:
    present = (old or {}).get("metadata", {}).get("managedFields")
    if subresource or sent is None or sent is present:
        return _entries(old) if old is not None else _parsed(sent)
    if sent == [{}] or (sent == [] and empty_resets):
        return {}
    return _parsed(sent) or (_entries(old) if old is not None else {})


def _parsed(sent: Json) -> Managed:
    try:
        return managed.decode(sent or (), trusted=False)
    except (ValueError, AttributeError, TypeError):
        return {}


def _entries(obj: Object) -> Managed:
    try:
        return managed.decode((obj.get("metadata") or {}).get("managedFields") or ())
    except ValueError:
        return {}


def _reset(reset: Reset | FieldSet) -> Reset:
    return reset if isinstance(reset, Reset) else Reset(exclude=reset) if reset else NO_RESET


def _misfit(config: Object, schema: Schema) -> ApiError:
    metadata = config.get("metadata") or {}
    version, kind = config.get("apiVersion", ""), config.get("kind", "")
    where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {version}, Kind={kind}"
    reasons = typed.errors(config, schema.root)
    text = reasons[0] if len(reasons) == 1 else "errors:\n" + "\n".join(f"  {reason}" for reason in reasons)
    return ApiError(f"failed to create typed patch object ({where}): {text}", code=500)

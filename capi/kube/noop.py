"""Would a server-side apply change anything? Answered from the object alone, without a schema.

The manager's own managedFields entry tells which lists are keyed and what it owned before. `changes_nothing` is True iff
every leaf of the body has its value already and is owned already, and nothing that is owned is missing from the body.
Empty maps and lists are the one doubtful case, since the entry does not say whether they are atomic: an empty map over a
filled one counts as a change, and filling a map that was applied empty with exactly its present content as none.
"""

from functools import lru_cache
from typing import Any

import orjson

from capi.kube.equal import same
from capi.kube.types import Json, Object

_IDENTITY = frozenset(("apiVersion", "kind"))
_UNTRACKED = frozenset(
    ("name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion", "selfLink", "managedFields")
)
_NONE: Object = {}


def changes_nothing(current: Object, body: Object, manager: str, subresource: str = "") -> bool:
    """True if applying `body` as `manager` would leave `current` as it is, its managedFields included.

    Fields of `body` that the server never tracks (apiVersion, kind, name, …) are not looked at. Costs O(body).
    """
    version = str(body.get("apiVersion") or current.get("apiVersion") or "")
    owned = owned_fields(current, manager, subresource, version) or _NONE
    seen = 0
    for key, value in body.items():
        if key in _IDENTITY:
            continue
        if key == "metadata":
            tracked = {k: v for k, v in value.items() if k not in _UNTRACKED}
            if not tracked:
                continue
            value = tracked
        name = "f:" + key
        if name not in owned or key not in current or not _settled(current[key], value, owned[name]):
            return False
        seen += 1
    return seen == len(owned)


def owned_fields(obj: Object, manager: str, subresource: str = "", api_version: str = "") -> Object | None:
    """FieldsV1 of the manager's Apply entry, None if it has none (or one of another version)."""
    for entry in obj["metadata"].get("managedFields") or ():
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and (entry.get("subresource") or "") == subresource
            and (not api_version or entry.get("apiVersion") == api_version)
        ):
            fields: Object = entry.get("fieldsV1") or _NONE
            return fields
    return None


def _settled(live: Json, value: Json, owned: Object) -> bool:
    """`value` equals `live` wherever this manager owns, and owns all of itself. `owned` {} = one leaf."""
    if not owned:
        # Compound leaves: atomic ones, or empty granular ones; either way owned as a whole.
        return same(live, value)
    if isinstance(value, dict):
        return isinstance(live, dict) and _settled_map(live, value, owned)
    if isinstance(value, list):
        return isinstance(live, list) and _settled_list(live, value, owned)
    return False


def _settled_map(live: Object, value: Object, owned: Object) -> bool:
    seen = 0
    for key, item in value.items():
        fields = owned.get("f:" + key)
        if fields is None:
            if item == [] and live.get(key) == []:
                continue  # nobody owns an empty list
            return False
        if type(item) is str:
            if item != live.get(key) or fields:
                return False
        elif key not in live or not _settled(live[key], item, fields):
            return False
        seen += 1
    return seen == len(owned) - ("." in owned)


def _settled_list(live: list[Any], value: list[Any], owned: Object) -> bool:
    names = [name for name in owned if name != "."]
    if len(value) != len(names) or not names:
        return False
    if names[0].startswith("v:"):
        return _in_order(live, value) and all(any(same(_parsed(name), item) for item in value) for name in names)
    return names[0].startswith("k:") and _settled_items(live, value, {name: owned[name] for name in names})


def _in_order(live: list[Any], value: list[Any]) -> bool:
    """`value` is a subsequence of `live`: an apply would move its items otherwise."""
    rest = iter(live)
    return all(any(same(item, present) for present in rest) for item in value)


def _settled_items(live: list[Any], value: list[Any], owned: Object) -> bool:
    """Every owned key names one item of `value` and one of `live`, in the same order."""
    keys = tuple(_parsed(next(iter(owned))))
    single = keys[0] if len(keys) == 1 else ""
    fields_by_key = {_key_values(name): fields for name, fields in owned.items()}
    rest = iter(live)
    for item in value:
        if type(item) is not dict:
            return False
        key = (item.get(single),) if single else tuple(item.get(name) for name in keys)
        if None in key:
            key = _with_defaults(keys, key, fields_by_key)
        fields = fields_by_key.pop(key, None)
        if fields is None:
            return False
        for present in rest:
            if all(_same_key(present, item, name, part) for name, part in zip(keys, key, strict=True)):
                break
        else:
            return False
        if not _settled(present, item, fields):
            return False
    return True


def _same_key(present: Object, item: Object, name: str, part: Json) -> bool:
    """A key that both leave to its default is the same too."""
    return bool(present.get(name, part if name not in item else None) == part)


def _with_defaults(
    keys: tuple[str, ...], key: tuple[Any, ...], owned: dict[tuple[Any, ...], Object]
) -> tuple[Any, ...]:
    """The owned key that agrees with `key` where it is given, and owns no field where the server filled in a default."""
    for candidate, fields in owned.items():
        if all(
            g == c if g is not None else "f:" + n not in fields for n, g, c in zip(keys, key, candidate, strict=True)
        ):
            return candidate
    return key


@lru_cache(maxsize=8192)
def _parsed(name: str) -> Json:
    """The JSON behind a `k:` or `v:` path element. Shared: do not change it."""
    return orjson.loads(name[2:])


@lru_cache(maxsize=8192)
def _key_values(name: str) -> tuple[Any, ...]:
    return tuple(orjson.loads(name[2:]).values())

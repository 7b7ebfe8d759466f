"""Strategic merge patch: lists of built-in kinds merge by key, as their schema says, and directives steer the rest.

Directives: `$patch: delete|replace` in maps and list items, `$setElementOrder/F`, `$deleteFromPrimitiveList/F`,
`$retainKeys`. The schema is OpenAPI with x-kubernetes-patch-strategy and x-kubernetes-patch-merge-key.

Source: k8s.io/apimachinery/pkg/util/strategicpatch/patch.go.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from capi.kube.equal import same
from capi.kube.errors import ApiError
from capi.kube.types import Json, Object

_PATCH, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"
_DROP: Any = object()


def strategic(target: Object, patch: Object, schema: Object) -> Object:
    """`target` after the patch; neither is changed. Raises ApiError with Kubernetes' text (500) for a patch that makes no sense."""
    return _map(target, patch, schema)


def _fail(text: str) -> NoReturn:
    raise ApiError(text, code=500)


def _map(target: Object, patch: Object, schema: Object) -> Object:
    if _PATCH in patch:
        if patch[_PATCH] == "replace":
            return {k: v for k, v in patch.items() if k != _PATCH}
        if patch[_PATCH] == "delete":
            return {}
        _fail(f"unknown patch type: {patch[_PATCH]} in map: {_go(patch)}")
    result = _retained(target, patch)
    orders = {key.removeprefix(_ORDER): value for key, value in patch.items() if key.startswith(_ORDER)}
    for key, value in patch.items():
        if key == _RETAIN or key.startswith(_ORDER):
            continue
        if key.startswith(_DELETE):
            _delete_from_list(result, key.removeprefix(_DELETE), value)
        elif value is None:
            result.pop(key, None)
        else:
            _set(result, key, value, _property(schema, key), target)
    for name, order in orders.items():
        _reorder(result, name, order, (target.get(name), patch.get(name)), _property(schema, name))
    return (
        target
        if len(result) == len(target) and all(k in target and v is target[k] for k, v in result.items())
        else result
    )


def _retained(target: Object, patch: Object) -> Object:
    retain = patch.get(_RETAIN)
    if retain is None:
        return dict(target)
    named = [k for k, v in patch.items() if v is not None and not k.startswith((_DELETE, _ORDER)) and k != _RETAIN]
    if not isinstance(retain, list) or any(name not in retain for name in named):
        _fail("invalid patch format of retainKeys")
    return {k: v for k, v in target.items() if k in retain}


def _set(result: Object, key: str, value: Json, schema: Object, target: Object) -> None:
    present = result.get(key)
    if isinstance(present, dict) and isinstance(value, dict) and not _replaces(schema):
        result[key] = _map(present, value, schema)
    elif isinstance(present, list) and isinstance(value, list) and _merges(schema):
        result[key] = _list(present, value, schema, key)
    elif isinstance(present, dict) and isinstance(value, dict):
        result[key] = value
    elif key in target and same(present, value):
        return
    elif (clean := _clean(value)) is _DROP:
        result.pop(key, None)
    else:
        result[key] = clean


def _clean(value: Json) -> Any:
    """A value that is new: without nulls and directives; _DROP for a map that is itself a directive."""
    if isinstance(value, dict):
        if _PATCH in value:
            return _DROP
        cleaned = {
            k: _clean(v)
            for k, v in value.items()
            if v is not None and k != _RETAIN and not k.startswith((_ORDER, _DELETE))
        }
        return {k: v for k, v in cleaned.items() if v is not _DROP}
    if isinstance(value, list):
        return [item for item in map(_clean, value) if item is not _DROP]
    return value


def _list(target: list[Any], patch: list[Any], schema: Object, name: str) -> list[Any]:
    if not target and not patch:
        return target
    if not all(isinstance(item, dict) for item in (*target, *patch)):
        merged = list(target)
        merged += [item for item in patch if item not in merged]
        return _ordered(merged, patch, target, "")
    key = str(schema.get("x-kubernetes-patch-merge-key") or "")
    if not key:
        _fail(f"cannot merge lists without merge key for {name}")
    kept, wanted = _directives(target, patch, key)
    merged = list(kept)
    for item in wanted:
        at = _find(merged, key, _key(item, key))
        if at is None:
            merged.append(_clean(item))
        else:
            merged[at] = _map(merged[at], item, schema.get("items") or {})
    return _ordered(merged, wanted, kept, key)


def _directives(target: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The target without deleted items (empty if it is replaced), and the patch's ordinary items."""
    kept, wanted, replaced = target, [], False
    for item in patch:
        directive = item.get(_PATCH)
        if _PATCH not in item:
            wanted.append(item)
        elif directive == "delete":
            value = _key(item, key)
            kept = [old for old in kept if not same(old.get(key), value)]
        elif directive == "replace":
            replaced = True
        elif directive == "merge":
            _fail("merging lists cannot yet be specified in the patch")
        else:
            _fail(f"unknown patch type: {directive} in map: {_go(item)}")
    return (wanted, []) if replaced else (kept, wanted)


def _key(item: Json, key: str) -> Json:
    if not isinstance(item, dict) or key not in item:
        _fail(f"map: {_go(item)} does not contain declared merge key: {key}")
    return item[key]


def _find(items: Sequence[Json], key: str, value: Json) -> int | None:
    found = (i for i, item in enumerate(items) if isinstance(item, dict) and key in item and same(item[key], value))
    return next(found, None)


def _ordered(merged: list[Any], wanted: list[Any], before: list[Any], key: str) -> list[Any]:
    """Items of the patch in its order, the others in theirs; where both were there before, in the order they had."""

    def index(items: list[Any], item: Any) -> int:
        if key:
            found = _find(items, key, _key(item, key))
            return -1 if found is None else found
        return next((i for i, other in enumerate(items) if same(other, item)), -1)

    ours = sorted((item for item in merged if index(wanted, item) >= 0), key=lambda item: index(wanted, item))
    theirs = [item for item in merged if index(wanted, item) < 0]
    result: list[Any] = []
    while ours and theirs:
        left, right = index(before, theirs[0]), index(before, ours[0])
        result.append(theirs.pop(0) if 0 <= left < right else ours.pop(0))
    return result + ours + theirs


def _reorder(result: Object, name: str, order: Json, lists: tuple[Json, Json], schema: Object) -> None:
    merged, (before, patched) = result.get(name), lists
    if not isinstance(order, list) or not isinstance(patched, list | None):
        _fail("invalid patch format of setElementOrder list")
    if not isinstance(merged, list) or not _merges(schema):
        return
    key = str(schema.get("x-kubernetes-patch-merge-key") or "")
    _check_order([item for item in patched or () if not (isinstance(item, dict) and _PATCH in item)], order, key)
    result[name] = _ordered(merged, order, before if isinstance(before, list) else [], key)


def _check_order(patched: list[Any], order: list[Any], key: str) -> None:
    """The patch's items must be a subsequence of the order."""
    rest = iter([_key(item, key) for item in order] if key else order)
    if order and not all(any(same(_key(item, key) if key else item, other) for other in rest) for item in patched):
        _fail(f"The order in patch list:\n{_go(patched)}\n doesn't match $setElementOrder list:\n{_go(order)}\n")


def _delete_from_list(result: Object, name: str, gone: Json) -> None:
    present = result.get(name)
    if isinstance(present, list) and isinstance(gone, list):
        result[name] = [item for item in present if not any(same(item, other) for other in gone)]


def _property(schema: Object, name: str) -> Object:
    properties: Object = schema.get("properties") or {}
    found = properties.get(name) or schema.get("additionalProperties")
    return found if isinstance(found, dict) else {}


def _strategies(schema: Object) -> list[str]:
    return str(schema.get("x-kubernetes-patch-strategy") or "").split(",")


def _merges(schema: Object) -> bool:
    return "merge" in _strategies(schema)


def _replaces(schema: Object) -> bool:
    return "replace" in _strategies(schema)


def _go(value: Json) -> str:
    """A value as Go's %v prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{_go(v)}" for k, v in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)

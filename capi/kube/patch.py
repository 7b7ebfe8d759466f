"""Patches of parsed JSON: merge patches (RFC 7386), JSON Patch (RFC 6902) and Kubernetes' strategic merge.

Nothing here changes its input: results are new along the changed paths and share all else with the target.
"""

from typing import Any

from capi.kube.equal import same
from capi.kube.operations import json_patch
from capi.kube.strategic import strategic
from capi.kube.types import Json, Object

__all__ = ["diff", "json_patch", "merge", "same", "strategic"]


def merge(target: Json, patch: Json) -> Any:
    """`target` after JSON merge patch `patch`: null deletes, objects merge, all else replaces.

    Returns `target` itself when nothing changes.
    """
    if not isinstance(patch, dict):
        return patch
    old: Object = target if isinstance(target, dict) else {}
    result: Object | None = None if old is target else {}
    for key, value in patch.items():
        if value is None:
            if key in old:
                result = dict(old) if result is None else result
                del result[key]
            continue
        present = old.get(key)
        merged = merge(present, value)
        if merged is not present and (key not in old or not same(merged, present)):
            result = dict(old) if result is None else result
            result[key] = merged
    return old if result is None else result


def diff(old: Object, new: Object) -> Object:
    """The smallest merge patch that turns `old` into `new`; {} when they are equal.

    A null inside `new` cannot be expressed by a merge patch and counts as absent.
    """
    patch: Object = {key: None for key in old if key not in new or (new[key] is None and old[key] is not None)}
    for key, value in new.items():
        if value is None:
            continue
        present = old.get(key)
        if present is value:
            continue
        if isinstance(present, dict) and isinstance(value, dict):
            if changed := diff(present, value):
                patch[key] = changed
        elif not same(present, value):
            patch[key] = value
    return patch

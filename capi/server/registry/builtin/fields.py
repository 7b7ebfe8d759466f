"""Small reads and rebuilds of parsed objects, shared by the kinds' rules."""

from collections.abc import Iterator
from typing import Any

import orjson

from capi.kube.types import Object


def at(obj: Any, *path: str) -> Any:
    """The value at a path of object members, None when any step is missing."""
    for step in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(step)
    return obj


def text(obj: Object, path: str) -> str:
    """A dotted path's value as field selectors compare it: absent is "", booleans are true and false."""
    value = at(obj, *path.split("."))
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def with_member(obj: Object, name: str, value: Any) -> Object:
    """A copy whose member `name` is `value`; None removes it. The same object when nothing changes."""
    if value is None:
        return {k: v for k, v in obj.items() if k != name} if name in obj else obj
    return obj if name in obj and obj[name] is value else {**obj, name: value}


def with_default(obj: Object, name: str, value: Any) -> Object:
    """A copy where a missing or null member `name` is `value`."""
    return obj if obj.get(name) is not None else {**obj, name: value}


def section(obj: Object, name: str) -> Object:
    """The member object `name`; {} when it is missing."""
    return obj.get(name) or {}


def elements(obj: Any, *path: str) -> Iterator[Object]:
    """Object elements of the list at a path."""
    for element in at(obj, *path) or ():
        if isinstance(element, dict):
            yield element


def thawed(obj: Object) -> Object:
    """A private deep copy that may be changed."""
    copied: Object = orjson.loads(orjson.dumps(obj))
    return copied

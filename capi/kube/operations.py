"""JSON Patch (RFC 6902) as API servers read it, copying only what an operation touches.

Source: evanphx/json-patch v4. Its reading: replacing a missing member adds it; removing or testing a missing one, and
adding below a missing parent, fail; negative list indexes count from the end.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from capi.kube.equal import same
from capi.kube.errors import BadRequest, Invalid
from capi.kube.types import Json, Object

MAX_COPIED = 3 * 1024 * 1024
"""Bytes of JSON that the copies of one patch may add together: each may double the object (AccumulatedCopySizeLimit)."""
_INDEX = re.compile(r"-?[0-9]{1,9}")
REFUSED = "the server rejected our request due to an error in our request"

_Edit = Callable[[Any, str], Any]
"""A container and a key in it → the container's new version."""


def json_patch(target: Json, operations: Sequence[Object]) -> Any:
    """`target` after all operations. Raises Invalid if one cannot be done, BadRequest for what is no JSON patch."""
    copied = 0
    try:
        for operation in operations:
            if not isinstance(operation, dict):
                raise BadRequest(
                    "error decoding patch: json: cannot unmarshal into Go value of type jsonpatch.Operation"
                )
            if operation.get("op") == "copy":
                copied += len(orjson.dumps(_get(target, _pointer(operation.get("from")))))
                if copied > MAX_COPIED:
                    raise Invalid(f"the copies of the patch add more than {MAX_COPIED} bytes")
            target = _apply(target, operation)
    except (RecursionError, orjson.JSONEncodeError):
        raise Invalid("the operations of the patch nest the object too deep") from None
    return target


def _apply(target: Json, operation: Object) -> Any:
    kind = operation.get("op")
    path = _pointer(operation.get("path"))
    if kind in ("add", "replace"):
        value = operation.get("value")
        return _edited(target, path, _adding(value) if kind == "add" else _replacing(value))
    if kind == "remove":
        return _edited(target, path, _removed)
    if kind == "test":
        if not same(_get(target, path), operation.get("value")):
            raise Invalid(REFUSED)
        return target
    if kind in ("copy", "move"):
        source = _pointer(operation.get("from"))
        value = _get(target, source)
        if kind == "move":
            target = _edited(target, source, _removed)
        return _edited(target, path, _adding(value))
    raise Invalid(REFUSED)


def _pointer(text: Json) -> list[str]:
    if not isinstance(text, str) or not text.startswith("/"):
        raise Invalid(REFUSED)
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _edited(target: Json, path: list[str], edit: _Edit) -> Any:
    """`target` with the container at the end of `path` edited; containers on the way are copied."""
    name, *rest = path
    if not rest:
        return edit(target, name)
    below = _edited(_child(target, name), rest, edit)
    if isinstance(target, dict):
        return {**target, name: below}
    changed = list(target)
    changed[_index(name, len(target) - 1)] = below
    return changed


def _get(target: Json, path: list[str]) -> Any:
    for name in path:
        target = _child(target, name)
    return target


def _child(container: Json, name: str) -> Any:
    if isinstance(container, dict) and name in container:
        return container[name]
    if isinstance(container, list):
        return container[_index(name, len(container) - 1)]
    raise Invalid(REFUSED)


def _index(name: str, last: int) -> int:
    """A list index of 0…last; negative ones count from `last`."""
    index = int(name) if _INDEX.fullmatch(name) else last + 1
    index = index + last + 1 if index < 0 else index
    if not 0 <= index <= last:
        raise Invalid(REFUSED)
    return index


def _adding(value: Json) -> _Edit:
    def add(container: Any, name: str) -> Any:
        if isinstance(container, dict):
            return {**container, name: value}
        if isinstance(container, list):
            at = len(container) if name == "-" else _index(name, len(container))
            return [*container[:at], value, *container[at:]]
        raise Invalid(REFUSED)

    return add


def _replacing(value: Json) -> _Edit:
    def replace(container: Any, name: str) -> Any:
        if isinstance(container, dict):
            return {**container, name: value}
        if isinstance(container, list):
            at = _index(name, len(container) - 1)
            return [*container[:at], value, *container[at + 1 :]]
        raise Invalid(REFUSED)

    return replace


def _removed(container: Any, name: str) -> Any:
    if isinstance(container, dict) and name in container:
        return {key: value for key, value in container.items() if key != name}
    if isinstance(container, list):
        at = _index(name, len(container) - 1)
        return container[:at] + container[at + 1 :]
    raise Invalid(REFUSED)

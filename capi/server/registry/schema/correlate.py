"""Which old value belongs to a new one, and whether they are equal, as validation ratcheting sees it.

Objects correlate by declared properties and map keys, lists with list-type map by their items' keys, other lists not at
all. Equality follows the same lines: what cannot be correlated counts as changed, so an object with undeclared fields
(a whole resource, whose schema need not name apiVersion) is never equal to its old self.

Source: pkg/cel/common/equality.go and maplist.go of k8s.io/apiserver.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from capi.kube.types import Object

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()
"""The old value of something that has none to compare with."""
Equal: TypeAlias = Callable[[Any, Any], bool]
"""(value, old); old may be MISSING."""
Find: TypeAlias = Callable[[Any], Any]
"""An item of a list -> its old item, or MISSING."""


def member(old: Any, name: str) -> Any:
    """The old value of an object's member; null is none."""
    if not isinstance(old, dict):
        return MISSING
    value = old.get(name)
    return MISSING if value is None else value


def items(schema: Object) -> Callable[[Any], Find]:
    """For a list node: old list -> how to find the old item of a new one."""
    if schema.get("x-kubernetes-list-type") != "map":
        return lambda old: lambda item: MISSING
    names = tuple(schema.get("x-kubernetes-list-map-keys") or ())

    def find_in(old: Any) -> Find:
        by_key: dict[Any, Any] = {}
        for candidate in old if isinstance(old, list) else ():
            if (key := _key(candidate, names)) is not None:
                by_key.setdefault(key, candidate)
        return lambda item: by_key.get(_key(item, names), MISSING)

    return find_in


def _key(item: Any, names: tuple[str, ...]) -> tuple[Any, ...] | None:
    """The key of a map-list's item: its type matters too; None when a key field is missing or no scalar."""
    if not isinstance(item, dict):
        return None
    values = [item.get(name) for name in names]
    if not all(isinstance(value, str | int | float) for value in values):
        return None
    return tuple((type(value), value) for value in values)


def equality(schema: Object) -> Equal:
    """Whether a value of this node is the same as its old value."""
    properties = {name: equality(child) for name, child in (schema.get("properties") or {}).items()}
    additional, below = schema.get("additionalProperties"), schema.get("items")
    others = equality(additional) if isinstance(additional, dict) else None
    each = equality(below) if isinstance(below, dict) else None
    keyed = schema.get("x-kubernetes-list-type") == "map"
    find_in = items(schema)

    def equal(value: Any, old: Any) -> bool:
        if type(value) is not type(old):
            return False
        if isinstance(value, dict):
            return len(value) == len(old) and all(
                name in old and (same := properties.get(name, others)) is not None and same(child, old[name])
                for name, child in value.items()
            )
        if isinstance(value, list) and keyed and each is not None and value:
            find = find_in(old)
            return len(value) == len(old) and all(each(item, find(item)) for item in value)
        return bool(value == old)

    return equal

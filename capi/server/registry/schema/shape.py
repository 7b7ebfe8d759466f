"""Pruning and defaulting by a structural schema.

Both walk an object along its schema and return it unchanged (the same object) when there is nothing to do; what
changes is copied along the path, never modified.

Source: pkg/apiserver/schema/{pruning,defaulting} of k8s.io/apiextensions-apiserver.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from capi.kube.types import Object
from capi.server.registry.builtin import catalog

Prune: TypeAlias = Callable[[Any, str, list[str]], Any]
"""(value, path, dropped) -> value; appends the paths of dropped fields."""
Default: TypeAlias = Callable[[Any], Any]

_META = ("apiVersion", "kind", "metadata")


def pruner(schema: Object, root: bool = False) -> Prune | None:
    """Drops what the schema does not declare, whatever the type of the value; None when nothing below can be dropped."""
    additional = schema.get("additionalProperties")
    keep_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or additional is True
    properties = {name: pruner(child) for name, child in (schema.get("properties") or {}).items()}
    if root or schema.get("x-kubernetes-embedded-resource"):
        for name in _META:
            properties.setdefault(name, pruner(_object_meta()) if name == "metadata" else None)
    others = pruner(additional) if isinstance(additional, dict) else None
    items = schema.get("items")
    each = pruner(items) if isinstance(items, dict) else None if keep_unknown else _bare
    if keep_unknown and each is None and not any(properties.values()):
        return None
    in_object = _object_pruner(properties, others, keep_unknown or isinstance(additional, dict))

    def prune(value: Any, path: str, dropped: list[str]) -> Any:
        if isinstance(value, dict):
            return in_object(value, path, dropped)
        if isinstance(value, list) and each is not None:
            return _pruned_list(value, each, path, dropped)
        return value

    return _bare if schema.get("type") in _SCALARS else prune


_SCALARS = ("string", "integer", "number", "boolean")


def _bare(value: Any, path: str, dropped: list[str]) -> Any:
    """Nothing is declared here: objects become empty, also in lists."""
    if isinstance(value, dict):
        dropped.extend(f"{path}.{name}" for name in value)
        return {} if value else value
    return _pruned_list(value, _bare, path, dropped) if isinstance(value, list) else value


def _pruned_list(value: list[Any], each: Prune, path: str, dropped: list[str]) -> list[Any]:
    pruned = [each(item, f"{path}[{index}]", dropped) for index, item in enumerate(value)]
    return value if all(new is old for new, old in zip(pruned, value, strict=True)) else pruned


def _object_meta() -> Object:
    return catalog.load().definitions["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]


def _object_pruner(properties: dict[str, Prune | None], others: Prune | None, keep_unknown: bool) -> Prune:
    def prune(value: Any, path: str, dropped: list[str]) -> Any:
        changed: Object = {}
        gone: list[str] = []
        for name, child in value.items():
            if name in properties:
                below = properties[name]
            elif keep_unknown:
                below = others
            else:
                gone.append(name)
                dropped.append(f"{path}.{name}" if path else name)
                continue
            if below is not None and (new := below(child, f"{path}.{name}" if path else name, dropped)) is not child:
                changed[name] = new
        if not changed and not gone:
            return value
        return {name: changed.get(name, child) for name, child in value.items() if name not in gone}

    return prune


def defaulter(schema: Object) -> Default | None:
    """Fills in defaults of objects that exist and drops nulls where null is not allowed."""
    if schema.get("items") is not None:
        return _list_defaulter(schema["items"])
    additional = schema.get("additionalProperties")
    properties = {name: _Property(child) for name, child in (schema.get("properties") or {}).items()}
    others = _Property(additional) if isinstance(additional, dict) else None
    return _object_defaulter(properties, others) if properties or others else None


class _Property:
    """How one member is defaulted."""

    __slots__ = ("below", "default", "nullable")

    def __init__(self, schema: Object) -> None:
        self.default = schema.get("default")
        self.nullable = bool(schema.get("nullable")) or not _typed(schema)
        self.below = defaulter(schema)


def _typed(schema: Object) -> bool:
    """An untyped node that preserves unknown fields says nothing about null."""
    return bool(schema.get("type")) or not schema.get("x-kubernetes-preserve-unknown-fields")


def _list_defaulter(items: Object) -> Default | None:
    item = _Property(items)
    below, default, nullable = item.below, item.default, item.nullable
    if below is None and default is None:
        return None

    def fill(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        filled = [default if child is None and not nullable else child for child in value]
        if below is not None:
            filled = [below(child) for child in filled]
        return value if all(new is old for new, old in zip(filled, value, strict=True)) else filled

    return fill


def _object_defaulter(properties: dict[str, _Property], others: _Property | None) -> Default:
    defaulted = {name: _filled(prop) for name, prop in properties.items() if prop.default is not None}

    def fill(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        changed: Object = {name: default for name, default in defaulted.items() if name not in value}
        gone = False
        for name, child in value.items():
            prop = properties.get(name, others)
            if prop is None:
                continue
            new = _filled(prop) if child is None and not prop.nullable else prop.below(child) if prop.below else child
            if new is not child:
                changed[name] = new
            gone = gone or (new is None and not prop.nullable)
        if not changed and not gone:
            return value
        merged = {**value, **changed}
        return (
            {n: c for n, c in merged.items() if c is not None or _keeps_null(properties.get(n, others))}
            if gone
            else merged
        )

    return fill


def _filled(prop: _Property) -> Any:
    """The default of a member, itself defaulted."""
    return prop.below(prop.default) if prop.below is not None else prop.default


def _keeps_null(prop: _Property | None) -> bool:
    return prop is None or prop.nullable

"""Quantities in their canonical spelling, wherever a kind's schema has one: "1024Mi" is stored as "1Gi".

Source: k8s.io/apimachinery/pkg/api/resource/quantity.go (CanonicalizeBytes).
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from capi.kube import quantity
from capi.kube.types import Object

Walk: TypeAlias = Callable[[Any], Any]


def canonicalizer(schema: Object) -> Walk | None:
    """A function that rewrites quantities, copying only what changes; None when the schema has none."""
    if schema.get("format") == "quantity":
        return _canonical
    each = canonicalizer(schema["items"]) if isinstance(schema.get("items"), dict) else None
    if each is not None:
        return _for_list(each)
    properties = {n: walk for n, child in (schema.get("properties") or {}).items() if (walk := canonicalizer(child))}
    additional = schema.get("additionalProperties")
    others = canonicalizer(additional) if isinstance(additional, dict) else None
    return _for_object(properties, others) if properties or others else None


def _canonical(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        text = quantity.canonical(str(value))
    except ValueError:
        return value
    return value if text == value else text


def _for_list(each: Walk) -> Walk:
    def walk(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        new = [each(item) for item in value]
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new

    return walk


def _for_object(properties: dict[str, Walk], others: Walk | None) -> Walk:
    def walk(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        changed: Object = {}
        for name, child in value.items():
            below = properties.get(name, others)
            if below is not None and (new := below(child)) is not child:
                changed[name] = new
        return {**value, **changed} if changed else value

    return walk

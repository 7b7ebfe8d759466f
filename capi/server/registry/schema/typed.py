"""Type errors of built-in kinds, in the words of Go's JSON decoder.

Built-in kinds are decoded into structs before anything else: a wrong type is a bad request, not an invalid object.

Source: encoding/json (UnmarshalTypeError), as used by sigs.k8s.io/json.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from capi.kube import quantity
from capi.kube.types import Object
from capi.server.registry.schema.values import json_type

Checker: TypeAlias = Callable[[Any], str]
_Walk: TypeAlias = Callable[[Any, str], str]

_GO_NAMES = {"integer": "number", "number": "number", "boolean": "bool"}
_INTEGERS = {"int32": ("int32", 2**31), "int64": ("int64", 2**63)}


def checker(schema: Object) -> Checker:
    """ "" or what is wrong with an object's types."""
    walk = _walk(schema)
    return lambda obj: walk(obj, "") if walk is not None else ""


def _walk(schema: Object) -> _Walk | None:
    if schema.get("format") == "quantity":
        return _quantity
    if schema.get("x-kubernetes-int-or-string"):
        return _int_or_string
    kind = schema.get("type")
    if kind == "object":
        return _object(schema)
    if kind == "array":
        return _array(schema)
    return _scalar(str(kind), str(schema.get("format") or "")) if kind else None


def _complaint(value: Any, path: str, go_type: str) -> str:
    got = json_type(value)
    return f"json: cannot unmarshal {_GO_NAMES.get(got, got)} into Go struct field {path} of type {go_type}"


def _scalar(kind: str, format_: str) -> _Walk:
    go_type = {"boolean": "bool", "number": "float64"}.get(kind, kind)
    bound = None
    if kind == "integer":
        go_type, bound = _INTEGERS.get(format_, ("int64", 2**63))

    def walk(value: Any, path: str) -> str:
        got = json_type(value)
        if got in ("null", kind) or (kind == "number" and got == "integer"):
            if bound is None or value is None or -bound <= value < bound:
                return ""
            return f"json: cannot unmarshal number {value} into Go struct field {path} of type {go_type}"
        return _complaint(value, path, go_type)

    return walk


def _int_or_string(value: Any, path: str) -> str:
    return (
        ""
        if json_type(value) in ("integer", "string", "number", "null")
        else _complaint(value, path, "intstr.IntOrString")
    )


def _quantity(value: Any, path: str) -> str:
    if json_type(value) not in ("integer", "string", "number"):
        return "" if value is None else _complaint(value, path, "resource.Quantity")
    try:
        quantity.parse(str(value))
    except ValueError as error:
        return str(error)
    return ""


def _array(schema: Object) -> _Walk:
    each = _walk(schema.get("items") or {})

    def walk_items(value: Any, path: str) -> str:
        if value is None:
            return ""
        if not isinstance(value, list):
            return _complaint(value, path, "[]interface {}")
        if each is None:
            return ""
        if None in value:  # upstream makes an empty element of it, which no list of any kind has a use for
            return _complaint(None, path, "list element")
        return next((text for item in value if (text := each(item, path))), "")

    return walk_items


def _object(schema: Object) -> _Walk:
    children = {name: _walk(child) for name, child in (schema.get("properties") or {}).items()}
    additional = schema.get("additionalProperties")
    others = _walk(additional) if isinstance(additional, dict) else None

    def walk_members(value: Any, path: str) -> str:
        if value is None:
            return ""
        if not isinstance(value, dict):
            return _complaint(value, path, "map[string]interface {}")
        for name, child in value.items():
            known = name in children
            below = children[name] if known else others
            where = f"{path}.{name}" if path and known else name if known else path
            if below is not None and (text := below(child, where)):
                return text
        return ""

    return walk_members

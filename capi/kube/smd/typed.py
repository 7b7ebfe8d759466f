"""Values seen through their types: which fields a configuration mentions, and what is wrong with it.

Source: structured-merge-diff typed/tofieldset.go, typed/validate.go.
"""

from collections.abc import Iterator
from typing import Any

from capi.kube.smd.fields import MEMBER, FieldSet
from capi.kube.smd.schema import KeyMissing, Node
from capi.kube.types import Json, Object


class Mismatch(ValueError):
    """The value does not fit its type; `errors` says where."""


def config_set(config: Object, node: Node) -> FieldSet:
    """The fields an apply configuration mentions: leaves, list items, members of open maps; not the structs around them.

    Raises Mismatch when the value does not fit (call `errors` for the reasons).
    """
    return _field_set(config, node) or MEMBER


def _field_set(value: Json, node: Node) -> FieldSet | None:
    """The set below a value; None if nothing is owned in it (an empty granular list, or a map of such)."""
    if type(value) is dict:
        if not node.is_map:
            raise Mismatch
        if node.atomic_map:
            _check(value, node)
            return MEMBER
        return _map_set(value, node)
    if type(value) is list:
        if not node.is_list:
            raise Mismatch
        if node.list_type == "atomic":
            _check(value, node)
            return MEMBER
        return _list_set(value, node)
    if value is not None and not _scalar_fits(value, node.scalar):
        raise Mismatch
    return MEMBER


def _map_set(value: Object, node: Node) -> FieldSet | None:
    result: FieldSet = {}
    fields = node.fields
    for name, item in value.items():
        declared = fields.get(name)
        kind = declared or node.element
        if kind is None:
            raise Mismatch
        below = _field_set(item, kind)
        if below:
            result["f:" + name] = below if declared else {".": MEMBER, **below}
        elif below is not None or not declared:
            result["f:" + name] = MEMBER
    return result if result or not value else None


def _list_set(value: list[Any], node: Node) -> FieldSet | None:
    result: FieldSet = {}
    items = node.items
    assert items is not None
    for item in value:
        try:
            name = node.path_element(item)
        except KeyMissing as error:
            raise Mismatch from error
        if name in result:
            raise Mismatch
        below = _field_set(item, items)
        result[name] = {".": MEMBER, **below} if below else MEMBER
    return result or None


def _check(value: Json, node: Node) -> None:
    """Types inside an atomic value."""
    if node.deduced or node.items is node:
        return
    if next(_errors(value, node, ""), None) is not None:
        raise Mismatch


def full_set(value: Json, node: Node) -> FieldSet:
    """All of a value that is new to an object: every leaf, item, and the containers themselves (the result's root excepted).

    Lenient: what does not fit its type counts as a leaf; duplicates in a list are one item.
    """
    if type(value) is dict:
        if not value or node.leaf(value):
            return MEMBER
        return {"f:" + name: _full_node(item, node.member(name)) for name, item in value.items()}
    if type(value) is list and value and not node.leaf(value):
        return _full_list(value, node)
    return MEMBER


def _full_node(value: Json, node: Node) -> FieldSet:
    below = full_set(value, node)
    return {".": MEMBER, **below} if below else MEMBER


def _full_list(value: list[Any], node: Node) -> FieldSet:
    items = node.items
    assert items is not None
    result: FieldSet = {}
    for item in value:
        try:
            name = node.path_element(item)
        except KeyMissing:
            continue
        result[name] = MEMBER if name in result else _full_node(item, items)
    return result


full_node = _full_node
"""`full_set` with the container itself as a member, as it stands in its parent's set."""


def errors(value: Json, node: Node) -> list[str]:
    """Why `value` does not fit: `.spec.size: expected numeric (int or float), got string`."""
    return list(_errors(value, node, ""))


def _errors(value: Json, node: Node, path: str) -> Iterator[str]:
    if value is None:
        return
    if isinstance(value, dict) and node.is_map:
        for name, item in value.items():
            kind = node.fields.get(name) or node.element
            if kind is None:
                yield f"{path}.{name}: field not declared in schema"
            else:
                yield from _errors(item, kind, f"{path}.{name}")
    elif isinstance(value, list) and node.is_list:
        yield from _list_errors(value, node, path)
    elif isinstance(value, dict | list) or not _scalar_fits(value, node.scalar):
        yield f"{path}: {_expected(value, node)}" if path else _expected(value, node)


def _list_errors(value: list[Any], node: Node, path: str) -> Iterator[str]:
    from capi.kube.smd.fields import path_string

    assert node.items is not None
    seen: set[str] = set()
    for index, item in enumerate(value):
        name = f"i:{index}"
        if node.list_type != "atomic":
            try:
                name = node.path_element(item)
            except KeyMissing as error:
                yield f"{path}: element {index}: {error}"
                return
            if name in seen:
                yield f"{path}: duplicate entries for key {path_string((name,))}"
            seen.add(name)
        yield from _errors(item, node.items, path + path_string((name,)))


def _scalar_fits(value: Json, scalar: str) -> bool:
    if scalar == "string":
        return isinstance(value, str)
    if scalar == "numeric":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "boolean":
        return isinstance(value, bool)
    return scalar in ("untyped", "formatted")


_GO_TYPES: dict[type, str] = {
    str: "string", bool: "bool", int: "int64", float: "float64", dict: "map[string]interface {}", list: "[]interface {}",
}  # fmt: skip


def _expected(value: Json, node: Node) -> str:
    if node.is_map:
        return f"expected map, got &{{{_go(value)}}}"
    if node.scalar == "numeric":
        return f"expected numeric (int or float), got {_GO_TYPES[type(value)]}"
    if node.scalar == "string":
        return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    if node.scalar:
        what = "boolean" if node.scalar == "boolean" else "any scalar"
        return f"expected {what}, got &{{{_go(value)}}}"
    return f"expected list, got &{{{_go(value)}}}"


def _go(value: Json) -> str:
    """A value as Go's %v prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{_go(v)}" for k, v in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go, value)) + "]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _go_syntax(value: Json) -> str:
    """A value as Go's %#v prints it."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "map[string]interface {}{" + ", ".join(f'"{k}":{_go_syntax(v)}' for k, v in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(_go_syntax, value)) + "}"
    return "interface {}(nil)" if value is None else _go(value)

"""Types for merging: what of an OpenAPI v3 schema decides how fields are owned and merged.

A node may allow a scalar, a map and a list at once (untyped values); the value then decides. Maps and lists are either
granular (their members are owned one by one) or atomic (owned as one leaf).

Source: k8s.io/kube-openapi/pkg/schemaconv, structured-merge-diff schema and typed/helpers.go.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from capi.kube.types import Json, Object

_MAX_CACHED_ELEMENTS = 4096


class KeyMissing(ValueError):
    """An item of a keyed list has none of its keys, or cannot be one."""


class Node:
    """The type of one value. Immutable once `Schema.of` has returned it."""

    __slots__ = (
        "_elements",
        "_exact",
        "atomic_map",
        "deduced",
        "defaults",
        "element",
        "fields",
        "is_list",
        "is_map",
        "items",
        "keys",
        "list_type",
        "scalar",
    )  # fmt: skip

    def __init__(self) -> None:
        self.scalar = ""
        """numeric, string, boolean, formatted (a string, but any scalar is let through) or untyped; "" = none allowed."""
        self.is_map = False
        self.fields: dict[str, Node] = {}
        self.element: Node | None = None
        """Type of undeclared members; None = there may be none."""
        self.atomic_map = False
        self.is_list = False
        self.items: Node | None = None
        self.list_type = "atomic"
        """atomic, set or map."""
        self.keys: tuple[str, ...] = ()
        self.defaults: dict[str, Json] = {}
        """Defaults of the key fields of a keyed list's items."""
        self.deduced = False
        """A map without declared fields whose values have no declared type either."""
        self._elements: dict[Any, str] = {}
        self._exact: bool | None = None

    @property
    def exact(self) -> bool:
        """True if every scalar below has one declared type, so that Python's equality is JSON's (true is not 1)."""
        if self._exact is None:
            self._exact = True  # while it is looked at, for types that contain themselves
            below = [node for node in (*self.fields.values(), self.element, self.items) if node is not None]
            self._exact = not self.deduced and self.scalar != "untyped" and all(node.exact for node in below)
        return self._exact

    def leaf(self, value: Json) -> bool:
        """True if `value` is owned as a whole: a scalar, null, or an atomic map or list."""
        if type(value) is dict:
            return self.atomic_map or not self.is_map
        if type(value) is list:
            return self.list_type == "atomic" or not self.is_list
        return True

    def member(self, name: str) -> "Node":
        """The type of a map's member; undeclared ones in closed maps count as untyped."""
        return self.fields.get(name) or self.element or DEDUCED

    def path_element(self, item: Json) -> str:
        """FieldsV1 name of a set's or keyed list's item: `v:<json>` or `k:{…}`. Raises KeyMissing."""
        if self.list_type == "set":
            key: Any = item
            if isinstance(item, dict | list) or item is None:
                raise KeyMissing(_SET_ITEM[type(item)])
        elif not isinstance(item, dict):
            what = "a null element" if item is None else "non-map elements"
            raise KeyMissing(f"associative list with keys may not have {what}")
        elif len(self.keys) == 1:
            key = item.get(self.keys[0], self)
        else:
            key = tuple(item.get(name, self) for name in self.keys)
        if type(key) is str:
            found = self._elements.get(key)
            return found if found is not None else self._remember(key, item)
        return self._element(item)

    def _remember(self, key: str, item: Json) -> str:
        if len(self._elements) >= _MAX_CACHED_ELEMENTS:
            self._elements.clear()
        found = self._elements[key] = self._element(item)
        return found

    def _element(self, item: Json) -> str:
        if self.list_type == "set":
            return "v:" + canonical(item)
        keys = {
            name: item.get(name, self.defaults.get(name))
            for name in self.keys
            if name in item or self.defaults.get(name) is not None
        }
        if not keys:
            names = " ".join(f'"{name}"' for name in self.keys)
            raise KeyMissing(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return "k:" + canonical(dict(sorted(keys.items())))


_SET_ITEM = {
    dict: "associative list without keys has an element that's a map type",
    list: "not supported: associative list with lists as elements",
    type(None): "associative list without keys has an element that's an explicit null",
}


def _whole(value: Json) -> Json:
    """A whole float as an integer, if it is one of 64 bits."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else value


def canonical(value: Json) -> str:
    """JSON as Go writes it: no blanks, HTML characters escaped, whole floats as integers."""
    value = {k: _whole(v) for k, v in value.items()} if isinstance(value, dict) else _whole(value)
    text = orjson.dumps(value).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text


def _untyped_atomic() -> Node:
    node = Node()
    node.scalar, node.is_map, node.is_list = "untyped", True, True
    node.atomic_map, node.element, node.items, node.deduced = True, node, node, True
    return node


def _deduced() -> Node:
    node = Node()
    node.scalar, node.is_map, node.is_list = "untyped", True, True
    node.element, node.items, node.deduced = node, UNTYPED, True
    return node


UNTYPED = _untyped_atomic()
"""Anything, owned as a whole."""
DEDUCED = _deduced()
"""Anything: maps member by member, lists as a whole."""


class Schema:
    """The compiled type of a kind."""

    __slots__ = ("root", "settled")

    def __init__(self, root: Node) -> None:
        self.root = root
        self.settled: dict[int, Object] = {}
        """Field sets, by identity, that are known to fit this schema (see `managed.settle`)."""

    @classmethod
    def of(cls, openapi: Object) -> "Schema":
        """From an OpenAPI v3 (structural) schema with x-kubernetes extensions. Shared sub-schemas are compiled once.

        `$ref`s are followed into the schema's own `definitions` or `components.schemas`; {} is a deduced type.
        """
        if not openapi:
            return cls(DEDUCED)
        components = (openapi.get("components") or {}).get("schemas") or openapi.get("definitions") or {}
        return cls(_Compiler(components).node(openapi, False))


class _Compiler:
    def __init__(self, components: Mapping[str, Object]) -> None:
        self.components = components
        self.done: dict[tuple[int, bool], Node] = {}

    def node(self, schema: Object, preserve: bool) -> Node:
        schema = self._resolved(schema)
        preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        key = (id(schema), preserve)
        if key in self.done:
            return self.done[key]
        node = self.done[key] = Node()
        kind = schema.get("type") or ""
        if schema.get("x-kubernetes-int-or-string"):
            node.scalar = "untyped"
        elif kind in ("", "object", "array"):
            if kind != "array":
                self._map(node, schema, preserve)
            if kind != "object":
                self._list(node, schema, preserve)
            node.scalar = "untyped" if kind == "" else ""
        else:
            node.scalar = _scalar(kind, schema.get("format") or "")
        return node

    def _resolved(self, schema: Object) -> Object:
        parts = schema.get("allOf")
        ref = schema.get("$ref") or (parts[0].get("$ref") if isinstance(parts, list) and len(parts) == 1 else None)
        if not ref:
            return schema
        target = self.components.get(str(ref).rpartition("/")[2], {})
        override = schema.get("x-kubernetes-map-type")
        return {**target, "x-kubernetes-map-type": override} if override else target

    def _map(self, node: Node, schema: Object, preserve: bool) -> None:
        node.is_map = True
        node.atomic_map = schema.get("x-kubernetes-map-type") == "atomic"
        properties: Object = schema.get("properties") or {}
        if schema.get("x-kubernetes-embedded-resource"):
            properties = {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
            } | properties
        node.fields = {name: self.node(member, preserve) for name, member in properties.items()}
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) and extra:
            node.element = self.node(extra, preserve)
        elif extra is None:
            node.element = DEDUCED if preserve or not properties else None
        else:
            node.element = DEDUCED if extra is not False else None
        node.deduced = not node.fields and node.element is DEDUCED

    def _list(self, node: Node, schema: Object, preserve: bool) -> None:
        node.is_list = True
        node.list_type, node.keys = _list_type(schema)
        items = schema.get("items")
        node.items = self.node(items, preserve) if isinstance(items, dict) and items else UNTYPED
        if node.keys and isinstance(items, dict):
            properties = self._resolved(items).get("properties") or {}
            node.defaults = {k: properties[k]["default"] for k in node.keys if "default" in properties.get(k, {})}


def _list_type(schema: Object) -> tuple[str, tuple[str, ...]]:
    declared = schema.get("x-kubernetes-list-type")
    if declared == "map":
        return "map", tuple(sorted(schema.get("x-kubernetes-list-map-keys") or ()))
    if declared:
        return str(declared), ()
    if "merge" in str(schema.get("x-kubernetes-patch-strategy") or ""):
        key = schema.get("x-kubernetes-patch-merge-key")
        return ("map", (str(key),)) if key else ("set", ())
    return "atomic", ()


def _scalar(kind: str, form: str) -> str:
    if kind == "string":
        return "string" if form in ("", "byte") else "formatted"
    return {"integer": "numeric", "number": "numeric", "boolean": "boolean"}.get(kind, "untyped")

"""A look at compiled CEL expressions: which names they use, and whether the fields they select exist.

The engine hands out a serialized google.api.expr CheckedExpr; this reads the few fields of it that matter. Fields are
numbered as in google/api/expr/v1alpha1/{checked,syntax}.proto.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from capi.kube.types import Object
from capi.server.registry.schema.celnames import escape

Typed: TypeAlias = tuple[Object, bool] | None
"""The schema of an expression's value and whether it is a whole resource; None when it is not known."""


@dataclass(frozen=True, slots=True)
class Node:
    """One expression: `kind` of ident, select, call, comprehension, other."""

    id: int
    kind: str
    name: str = ""
    """Identifier, field or function; of a comprehension its iteration variable."""
    children: tuple["Node", ...] = ()
    """Of a select its operand, of a call its target (if any) and arguments, of a comprehension range, then the rest."""


@dataclass(frozen=True, slots=True)
class Tree:
    root: Node
    offsets: Mapping[int, int] = field(default_factory=dict)
    """Position in the source by node id."""


def parse(data: bytes) -> Tree:
    """The tree of a serialized expression: a google.protobuf.Any around a CheckedExpr."""
    message = _message(_bytes(_message(data), 2))
    info = _message(_bytes(message, 5))
    entries = [_message(entry) for entry in info.get(4, []) if isinstance(entry, bytes)]
    offsets = {_int(entry, 1): _int(entry, 2) for entry in entries}
    return Tree(_node(_bytes(message, 4)), offsets)


_Fields: TypeAlias = dict[int, list[int | bytes]]


def _message(data: bytes) -> _Fields:
    """Fields of a protobuf message by number; varints and length-delimited ones."""
    found: _Fields = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        value: int | bytes
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = 8 if wire == 1 else 4
            value, at = data[at : at + size], at + size
        found.setdefault(number, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _bytes(message: _Fields, number: int) -> bytes:
    value = message.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _int(message: _Fields, number: int) -> int:
    value = message.get(number, [0])[-1]
    return value if isinstance(value, int) else 0


def _all(message: _Fields, number: int) -> tuple[Node, ...]:
    return tuple(_node(value) for value in message.get(number, []) if isinstance(value, bytes))


def _node(data: bytes) -> Node:
    message = _message(data)
    id_ = _int(message, 2)
    if 4 in message:
        return Node(id_, "ident", _bytes(_message(_bytes(message, 4)), 1).decode().lstrip("."))
    if 5 in message:
        select = _message(_bytes(message, 5))
        return Node(id_, "select", _bytes(select, 2).decode(), _all(select, 1))
    if 6 in message:
        call = _message(_bytes(message, 6))
        return Node(id_, "call", _bytes(call, 2).decode(), _all(call, 1) + _all(call, 3))
    if 9 in message:
        loop = _message(_bytes(message, 9))
        parts = tuple(child for number in (2, 4, 5, 6, 7) for child in _all(loop, number))
        return Node(id_, "comprehension", _bytes(loop, 1).decode(), parts)
    children = _all(_message(_bytes(message, 7)), 1)
    for entry in _message(_bytes(message, 8)).get(2, []):
        if isinstance(entry, bytes):
            children += _all(_message(entry), 3) + _all(_message(entry), 4)
    return Node(id_, "other", "", children)


def identifiers(tree: Tree) -> set[str]:
    """Every name the expression refers to, loop variables included."""

    def walk(node: Node) -> Iterator[str]:
        if node.kind == "ident":
            yield node.name
        for child in node.children:
            yield from walk(child)

    return set(walk(tree.root))


def undefined_field(tree: Tree, scope: Mapping[str, Typed], text: str) -> str:
    """The compiler's complaint about the first select of an undeclared field; "" when there is none."""
    problems: list[tuple[int, str]] = []
    _infer(tree.root, scope, tree.offsets, problems)
    if not problems:
        return ""
    offset, name = min(problems)
    line = text.count("\n", 0, offset) + 1
    start = text.rfind("\n", 0, offset) + 1
    source = text[start:].partition("\n")[0]
    column = offset - start
    return f"ERROR: <input>:{line}:{column + 1}: undefined field '{name}'\n | {source}\n | {'.' * column}^"


def _infer(
    node: Node, scope: Mapping[str, Typed], offsets: Mapping[int, int], problems: list[tuple[int, str]]
) -> Typed:
    if node.kind == "ident":
        return scope.get(node.name)
    if node.kind == "comprehension":
        over = _infer(node.children[0], scope, offsets, problems)
        inner = {**scope, node.name: _element(over)}
        for child in node.children[1:]:
            _infer(child, inner, offsets, problems)
        return None
    children = [_infer(child, scope, offsets, problems) for child in node.children]
    if node.kind == "select" and children and children[0] is not None:
        return _member(children[0], node, offsets, problems)
    if node.kind == "call" and node.name == "_[_]" and children[0] is not None:
        schema = children[0][0]
        inner_schema = schema.get("items") or schema.get("additionalProperties")
        return (inner_schema, False) if isinstance(inner_schema, dict) else None
    return None


def _element(over: Typed) -> Typed:
    """What a loop over a list binds; over a map it binds keys."""
    if over is None or not isinstance(over[0].get("items"), dict):
        return None
    return over[0]["items"], False


def _member(
    typed: tuple[Object, bool], node: Node, offsets: Mapping[int, int], problems: list[tuple[int, str]]
) -> Typed:
    schema, root = typed
    if schema.get("type") != "object":
        return None
    if isinstance(additional := schema.get("additionalProperties"), dict):
        return additional, False
    if root or schema.get("x-kubernetes-embedded-resource"):
        if node.name in ("apiVersion", "kind"):
            return None
        if node.name == "metadata":
            return _NAMES, False
    declared = {escape(name): child for name, child in (schema.get("properties") or {}).items()}
    if node.name in declared:
        return declared[node.name], False
    problems.append((offsets.get(node.id, 0), node.name))
    return None


_NAMES: Object = {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}

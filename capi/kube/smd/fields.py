"""Sets of fields, in the shape of the wire's FieldsV1.

A FieldSet is a tree of dicts: a key is a path element (`f:name`, `k:{…}`, `v:…`), its value the set below it. An element
is itself a member if its value is empty or has the key `.`. Sets are immutable; operations share what they can, and
return their first argument itself when nothing changes.

Source: structured-merge-diff fieldpath/set.go, serialize.go.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import orjson

from capi.kube.smd.schema import canonical
from capi.kube.types import Json

FieldSet: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]
MEMBER: FieldSet = {}
"""The value of an element that is a member and has nothing below. Shared: never change it."""
_SELF: FieldSet = {}


def is_member(node: FieldSet) -> bool:
    return not node or "." in node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in either."""
    if left is right or not right:
        return left
    if not left:
        return right
    result: FieldSet | None = None
    for name, theirs in right.items():
        ours = left.get(name)
        merged = theirs if ours is None else _union_node(ours, theirs)
        if merged is not ours:
            result = dict(left) if result is None else result
            result[name] = merged
    return left if result is None else result


def _union_node(ours: FieldSet, theirs: FieldSet) -> FieldSet:
    if ours is theirs or (not ours and not theirs):
        return ours
    if not ours:
        return theirs if "." in theirs else {".": _SELF, **theirs}
    if not theirs:
        return ours if "." in ours else {".": _SELF, **ours}
    return union(ours, theirs)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in `left` and not in `right`; a member of `right` does not take what is below it along."""
    result: FieldSet | None = None
    for name, theirs in right.items():
        ours = left.get(name)
        if ours is None or name == ".":
            continue
        rest = _difference_node(ours, theirs)
        if rest is ours:
            continue
        result = dict(left) if result is None else result
        if rest is None:
            del result[name]
        else:
            result[name] = rest
    return left if result is None else result


def _difference_node(ours: FieldSet, theirs: FieldSet) -> FieldSet | None:
    taken = is_member(theirs)
    if not ours:
        return None if taken else ours
    rest = difference(ours, theirs) if theirs else ours
    if taken and "." in rest:
        rest = {name: below for name, below in rest.items() if name != "."}
    elif len(rest) == 1 and "." in rest:
        return MEMBER
    return rest or None


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Like `difference`, but members of `right` take all below them along."""
    result: FieldSet | None = None
    for name, theirs in right.items():
        ours = left.get(name)
        if ours is None or name == ".":
            continue
        rest = None if is_member(theirs) else _normal(recursive_difference(ours, theirs), ours)
        if rest is ours:
            continue
        result = dict(left) if result is None else result
        if rest is None:
            del result[name]
        else:
            result[name] = rest
    return left if result is None else result


def _normal(rest: FieldSet, before: FieldSet) -> FieldSet | None:
    """The node that is left; None if nothing is."""
    if rest is before:
        return before
    if len(rest) == 1 and "." in rest:
        return MEMBER
    return rest or None


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in both."""
    result: FieldSet = {}
    for name, theirs in right.items():
        ours = left.get(name)
        if ours is None or name == ".":
            continue
        below = intersection(ours, theirs) if ours and theirs else {}
        if is_member(ours) and is_member(theirs):
            result[name] = {".": _SELF, **below} if below else MEMBER
        elif below:
            result[name] = below
    return result


def only(fields: FieldSet, prefixes: FieldSet) -> FieldSet:
    """What is at or below a member of `prefixes`."""
    result: FieldSet = {}
    for name, wanted in prefixes.items():
        ours = fields.get(name)
        if ours is None or name == ".":
            continue
        if is_member(wanted):
            result[name] = ours
        elif below := only(ours, wanted):
            result[name] = below
    return result


def has(fields: FieldSet, path: Path) -> bool:
    for name in path:
        below = fields.get(name)
        if below is None:
            return False
        fields = below
    return bool(path) and is_member(fields)


def paths(fields: FieldSet) -> Iterator[Path]:
    """All members in Kubernetes' order: those of one level first, then what is below them."""
    names = sorted((name for name in fields if name != "."), key=_order)
    for name in names:
        if is_member(fields[name]):
            yield (name,)
    for name in names:
        for below in paths(fields[name]):
            yield (name, *below)


def of(*dotted: str) -> FieldSet:
    """The set of plain field paths: `of(".spec.replicas")`."""
    result: FieldSet = {}
    for path in dotted:
        leaf: FieldSet = MEMBER
        for name in reversed(path.strip(".").split(".")):
            leaf = {"f:" + name: leaf}
        result = union(result, leaf)
    return result


def path_string(path: Path) -> str:
    """As conflicts show it: `.spec.containers[name="c"].image`."""
    return "".join(map(_shown, path))


def _shown(name: str) -> str:
    kind, body = name[0], name[2:]
    if kind == "f":
        return "." + body
    if kind == "i":
        return f"[{body}]"
    value = orjson.loads(body)
    if kind == "k":
        return "[" + ",".join(f"{k}={_scalar(v)}" for k, v in value.items()) + "]"
    return f"[={_scalar(value)}]"


def _scalar(value: Json) -> str:
    return orjson.dumps(value).decode()


@lru_cache(maxsize=8192)
def _order(name: str) -> tuple[Any, ...]:
    kind, body = name[0], name[2:]
    if kind == "f":
        return (0, body)
    if kind == "i":
        return (3, int(body))
    value = orjson.loads(body)
    if kind == "k":
        return (1, tuple(part for k, v in value.items() for part in (k, _rank(v))))
    return (2, _rank(value))


def _rank(value: Json) -> tuple[int, Any]:
    """Numbers before strings before booleans."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, str(value))


def normalized(fields: Json) -> FieldSet:
    """A set that came from outside: path elements in canonical spelling, unknown ones dropped. Raises ValueError."""
    if not isinstance(fields, dict):
        raise ValueError("a field set is a JSON object")
    result: FieldSet = {}
    for name, below in fields.items():
        if name == ".":
            result["."] = MEMBER
        elif len(name) < 2 or name[1] != ":":
            raise ValueError(f"missing colon: {name}")
        elif name[0] in "fkvi":
            result[_element(name)] = normalized(below)
    return MEMBER if len(result) == 1 and "." in result else result


def _element(name: str) -> str:
    if name[0] == "k":
        return "k:" + canonical(dict(sorted(orjson.loads(name[2:]).items())))
    return "v:" + canonical(orjson.loads(name[2:])) if name[0] == "v" else name

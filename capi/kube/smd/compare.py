"""What differs between two objects, as field sets. Sub-trees that are one Python object are not looked into.

Source: structured-merge-diff typed/compare.go.
"""

from typing import Any, NamedTuple

from capi.kube.equal import same
from capi.kube.smd.fields import MEMBER, FieldSet
from capi.kube.smd.schema import KeyMissing, Node
from capi.kube.smd.typed import full_node
from capi.kube.types import Json, Object


class Comparison(NamedTuple):
    """No field is in more than one of the sets."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def empty(self) -> bool:
        return not (self.removed or self.modified or self.added)


def compare(old: Object, new: Object, node: Node) -> Comparison:
    """From `old` to `new`. Containers that come or go are in the sets themselves, with all below them."""
    result = Comparison({}, {}, {})
    _maps(old, new, node, result)
    return result


def _values(old: Json, new: Json, node: Node, element: str, into: Comparison) -> None:
    """Adds what differs between two present values to `into`, under `element`."""
    if old is new or (node.exact and old == new):
        return
    old_map, new_map = _granular_map(old, node), _granular_map(new, node)
    old_list, new_list = _granular_list(old, node), _granular_list(new, node)
    if (old_map or new_map) and (old_map is not None or old is None) and (new_map is not None or new is None):
        _below(element, into, _maps, old_map or {}, new_map or {}, node)
    elif (old_list or new_list) and (old_list is not None or old is None) and (new_list is not None or new is None):
        _below(element, into, _lists, old_list or [], new_list or [], node)
    elif not same(old, new):
        if old_map or new_map:
            _below(element, into, _maps, old_map or {}, new_map or {}, node)
        if old_list or new_list:
            _below(element, into, _lists, old_list or [], new_list or [], node)
        below = into.modified.get(element)
        into.modified[element] = {".": MEMBER, **below} if below else MEMBER


def _granular_map(value: Json, node: Node) -> Object | None:
    return value if type(value) is dict and node.is_map and not node.atomic_map else None


def _granular_list(value: Json, node: Node) -> list[Any] | None:
    return value if type(value) is list and node.is_list and node.list_type != "atomic" else None


def _below(element: str, into: Comparison, walk: Any, old: Any, new: Any, node: Node) -> None:
    inner = Comparison({}, {}, {})
    walk(old, new, node, inner)
    for mine, theirs in zip(into, inner, strict=True):
        if theirs:
            mine[element] = theirs


def _maps(old: Object, new: Object, node: Node, into: Comparison) -> None:
    for name, value in old.items():
        if name not in new:
            into.removed["f:" + name] = full_node(value, node.member(name))
    for name, value in new.items():
        if name not in old:
            into.added["f:" + name] = full_node(value, node.member(name))
        elif value is not (present := old[name]) and (type(value) is not str or value != present):
            _values(present, value, node.member(name), "f:" + name, into)


def _lists(old: list[Any], new: list[Any], node: Node, into: Comparison) -> None:
    before, after = _grouped(old, node), _grouped(new, node)
    items = node.items
    assert items is not None
    for name in {**before, **after}:
        was, now = before.get(name, []), after.get(name, [])
        if len(was) > 1 or len(now) > 1:
            _duplicates(name, was, now, items, into)
        elif not was:
            into.added[name] = full_node(now[0], items)
        elif not now:
            into.removed[name] = full_node(was[0], items)
        else:
            _values(was[0], now[0], items, name, into)


def _duplicates(name: str, was: list[Any], now: list[Any], items: Node, into: Comparison) -> None:
    """Items that share a key are owned together, as one leaf."""
    if len(was) > 1 and len(now) > 1:
        if not same(was, now):
            into.modified[name] = MEMBER
    elif len(was) > 1:
        into.removed[name] = MEMBER
        if now:
            into.added[name] = full_node(now[0], items)
    else:
        into.added[name] = MEMBER
        if was:
            into.removed[name] = full_node(was[0], items)


def _grouped(value: list[Any], node: Node) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for index, item in enumerate(value):
        try:
            name = node.path_element(item)
        except KeyMissing:
            name = f"i:{index}"
        groups.setdefault(name, []).append(item)
    return groups

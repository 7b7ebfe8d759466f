"""Merging a configuration into a live object, and removing what is no longer wanted.

Both return the old value itself (and old sub-trees) wherever nothing changes.

Source: structured-merge-diff typed/merge.go, typed/remove.go, merge/update.go (prune).
"""

from typing import Any

from capi.kube.equal import same
from capi.kube.smd.fields import FieldSet, is_member
from capi.kube.smd.schema import KeyMissing, Node
from capi.kube.types import Json, Object

_NOTHING: FieldSet = {}
_GONE: Any = object()


def merge(live: Json, config: Json, node: Node) -> Any:
    """`live` with all that `config` says: granular maps member by member, keyed lists and sets item by item."""
    if type(config) is dict:
        if node.exact and live == config:
            return live
        if type(live) is dict and live and not node.leaf(config):
            return _merge_map(live, config, node)
    elif type(config) is list:
        if type(live) is list and live and not node.leaf(config):
            return _merge_list(live, config, node)
    elif config is None and live and isinstance(live, dict | list) and not node.leaf(live):
        return live
    return live if same(live, config) else config


def _merge_map(live: Object, config: Object, node: Node) -> Object:
    result: Object | None = None
    for name, item in config.items():
        if name in live:
            present = live[name]
            merged = merge(present, item, node.member(name))
            if merged is present:
                continue
        else:
            merged = item
        result = dict(live) if result is None else result
        result[name] = merged
    return live if result is None else result


def _merge_list(live: list[Any], config: list[Any], node: Node) -> list[Any]:
    if not config:
        return live
    items = node.items
    assert items is not None
    theirs = _elements(live, node)
    ours = [node.path_element(item) for item in config]
    wanted = dict(zip(ours, config, strict=True))
    present: dict[str, Json] = {}
    for name, item in zip(theirs, live, strict=True):
        present[name] = None if name in present else item  # duplicates are replaced, not merged

    def merged(name: str) -> Json:
        return merge(present[name], wanted[name], items) if name in present else wanted[name]

    result = [
        item if name is None else merged(name) for name, item in _order(theirs, live, ours, wanted, present)
    ]  # fmt: skip
    if len(result) == len(live) and all(new is old for new, old in zip(result, live, strict=True)):
        return live
    return result


def _order(
    theirs: list[str], live: list[Any], ours: list[str], wanted: dict[str, Json], present: dict[str, Json]
) -> list[tuple[str | None, Json]]:
    """The merged order: (element of the configuration, _) or (None, item that only `live` has).

    Live items keep their places; shared ones come in the configuration's order, new ones after the shared one before them.
    """
    out: list[tuple[str | None, Json]] = []
    shared = iter([name for name in ours if name in present])
    next_shared = next(shared, None)
    done: set[str] = set()
    left = right = 0
    while left < len(theirs) or right < len(ours):
        if left < len(theirs):
            name = theirs[left]
            if right < len(ours) and name == ours[right]:
                out.append((name, None))
                done.add(name)
                left, right, next_shared = left + 1, right + 1, next(shared, None)
                continue
            if right < len(ours) and name in wanted and next_shared is not None and name != next_shared:
                left += 1  # shared, but not its turn
                continue
            if name not in wanted:
                out.append((None, live[left]))
                left += 1
                continue
            if name in done:
                left += 1
        if right < len(ours):
            name = ours[right]
            out.append((name, None))
            done.add(name)
            right += 1
            if name == next_shared:
                next_shared = next(shared, None)
    return out


def _elements(items: list[Any], node: Node) -> list[str]:
    """Path elements of live items; one that has no key stands for itself."""
    names = []
    for index, item in enumerate(items):
        try:
            names.append(node.path_element(item))
        except KeyMissing:
            names.append(f"i:{index}")
    return names


def prune(value: Object, node: Node, last: FieldSet, keep: FieldSet) -> Object:
    """`value` without what is in `last` (owned before) but not in `keep` (owned now, by anyone).

    A container of which nothing is kept goes as a whole; one that is kept but empty becomes null (see `without_emptied`).
    `metadata` and its name always stay.
    """
    if "f:metadata" in last:
        keep = {**keep, "f:metadata": {"f:name": _NOTHING, **keep.get("f:metadata", _NOTHING)}}
    return _prune_map(value, node, last, keep, False) or {}


def without_emptied(pruned: Json, before: Json, last: FieldSet) -> Any:
    """`pruned` without the nulls that pruning has left in place of containers of `before`."""
    if pruned is before or type(pruned) is not type(before):
        return pruned
    if isinstance(pruned, list):
        return [without_emptied(item, item, last) for item in pruned if item is not None]
    result = dict(pruned)
    for element, below in last.items():
        name = element[2:]
        if name not in pruned or pruned[name] is before[name]:
            continue
        if pruned[name] is None:
            del result[name]
        else:
            result[name] = without_emptied(pruned[name], before[name], below)
    return result


def _prune(value: Json, node: Node, last: FieldSet, keep: FieldSet, inside: bool) -> Any:
    if type(value) is dict and value and not node.leaf(value):
        return _prune_map(value, node, last, keep, inside)
    if type(value) is list and value and not node.leaf(value):
        return _prune_list(value, node, last, keep, inside)
    return value


def _prune_map(value: Object, node: Node, last: FieldSet, keep: FieldSet, inside: bool) -> Any:
    result: Object | None = None
    for element, was in last.items():
        name = element[2:]
        if element[0] != "f" or name not in value:
            continue
        declared = name in node.fields
        kept = keep.get(element, _NOTHING)
        is_kept = element in keep and (is_member(kept) or declared)
        if declared and is_kept and _hollow(value[name], node.fields[name], kept):
            is_kept = False
        was_owned = (declared and not _untracked(value[name], node.fields[name])) or (not declared and is_member(was))
        left = _prune_member(value[name], node.member(name), (was, was_owned), (kept, is_kept), inside)
        if left is value[name]:
            continue
        result = dict(value) if result is None else result
        if left is _GONE:
            del result[name]
        else:
            result[name] = left
    return value if result is None else result or None


def _untracked(value: Json, node: Node) -> bool:
    """True for what no configuration can own: an empty granular list, or a granular map of nothing else."""
    if not isinstance(value, dict | list) or node.leaf(value):
        return False
    if not value or isinstance(value, list):
        return value == []
    return all(name in node.fields and _untracked(item, node.fields[name]) for name, item in value.items())


def _hollow(value: Json, node: Node, kept: FieldSet) -> bool:
    """True if all that would be kept of a granular map is untracked, so that the map itself is not seen either."""
    if type(value) is not dict or node.leaf(value):
        return False
    left = False
    for name, item in value.items():
        kind = node.fields.get(name)
        if kind is not None and _untracked(item, kind):
            left = True
        elif (below := kept.get("f:" + name)) is not None and (kind is not None or is_member(below)):
            if kind is None or not _hollow(item, kind, below):
                return False
            left = True
    return left


def _prune_list(value: list[Any], node: Node, last: FieldSet, keep: FieldSet, inside: bool) -> Any:
    items = node.items
    assert items is not None
    result = []
    changed = False
    for element, item in zip(_elements(value, node), value, strict=True):
        left = item
        if (was := last.get(element)) is not None:
            kept = keep.get(element, _NOTHING)
            is_kept = element in keep and is_member(kept)
            left = _prune_member(item, items, (was, is_member(was)), (kept, is_kept), inside)
        changed = changed or left is not item
        if left is not _GONE:
            result.append(left)
    return (result or None) if changed else value


def _prune_member(
    value: Json, node: Node, was: tuple[FieldSet, bool], keep: tuple[FieldSet, bool], inside: bool
) -> Any:
    """One member: `was` and `keep` are the sets below it, and whether they contain it. `inside`: below something owned before."""
    last, was_owned = was
    kept, is_kept = keep
    if was_owned and not is_kept:
        return _GONE
    if inside and not is_kept:
        kept = _NOTHING
    return _prune(value, node, last, kept, inside or was_owned)

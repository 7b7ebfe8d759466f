"""Merge patches, JSON Patch and strategic merge patches."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.kube import patch
from capi.kube.errors import ApiError, BadRequest, Invalid

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.sampled_from(["x", "y"]), st.just(1.0))
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


def without_nulls(value: Any) -> Any:
    """Merge patches cannot say null inside objects."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return value


@pytest.mark.parametrize(
    ("target", "change", "result"),
    [
        pytest.param({"a": 1}, {"a": None, "b": 2}, {"b": 2}, id="null deletes"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}, id="objects merge"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists replace"),
        pytest.param({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="nulls in new objects vanish"),
        pytest.param({}, {"a": {"b": None}}, {"a": {}}, id="an object of nulls becomes empty"),
        pytest.param({"a": 1}, {"a": True}, {"a": True}, id="true is not 1"),
        pytest.param({"a": None}, {}, {"a": None}, id="nulls that are there stay"),
    ],
)
def test_a_merge_patch_merges(target: Any, change: Any, result: Any) -> None:
    merged = patch.merge(target, change)
    assert patch.same(merged, result)


def test_a_merge_patch_that_changes_nothing_returns_its_target() -> None:
    target = {"a": {"b": [1, {"c": 2}]}, "d": 1}
    assert patch.merge(target, {"a": {"b": [1, {"c": 2}]}, "e": None}) is target


@given(OBJECTS, OBJECTS)
def test_a_diff_turns_the_old_object_into_the_new(old: Any, new: Any) -> None:
    new = without_nulls(new)
    before = copy.deepcopy(old)
    assert patch.same(patch.merge(old, patch.diff(old, new)), new)
    assert patch.same(old, before)


@given(OBJECTS)
def test_equal_objects_have_an_empty_diff(value: Any) -> None:
    assert patch.diff(value, copy.deepcopy(value)) == {}


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_is_idempotent(target: Any, change: Any) -> None:
    once = patch.merge(target, change)
    assert patch.merge(once, change) is once


@given(JSON, JSON)
def test_same_is_an_equivalence_that_sees_booleans(left: Any, right: Any) -> None:
    assert patch.same(left, left)
    assert patch.same(left, right) is patch.same(right, left)
    if patch.same(left, right):
        assert left == right


def test_json_patch_adds_replaces_removes_moves_copies_and_tests() -> None:
    target = {"a": [1, 2], "b": {"c": 1}, "x/y": 0}
    before = copy.deepcopy(target)
    result = patch.json_patch(
        target,
        [
            {"op": "test", "path": "/b", "value": {"c": 1}},
            {"op": "add", "path": "/a/1", "value": 9},
            {"op": "add", "path": "/a/-", "value": 3},
            {"op": "remove", "path": "/a/0"},
            {"op": "replace", "path": "/b/c", "value": 2},
            {"op": "copy", "from": "/b", "path": "/d"},
            {"op": "move", "from": "/x~1y", "path": "/b/e"},
        ],
    )
    assert result == {"a": [9, 2, 3], "b": {"c": 2, "e": 0}, "d": {"c": 2}}
    assert target == before


def test_json_patch_reads_replace_of_a_missing_member_as_add() -> None:
    assert patch.json_patch({"a": {}}, [{"op": "replace", "path": "/a/b", "value": 1}]) == {"a": {"b": 1}}


def test_json_patch_counts_negative_indexes_from_the_end() -> None:
    assert patch.json_patch([1, 2, 3], [{"op": "remove", "path": "/-1"}]) == [1, 2]


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "remove", "path": "/nope"}, id="remove of a missing member"),
        pytest.param({"op": "add", "path": "/nope/a", "value": 1}, id="add below a missing parent"),
        pytest.param({"op": "test", "path": "/nope", "value": None}, id="test of a missing member"),
        pytest.param({"op": "test", "path": "/a", "value": "other"}, id="failing test"),
        pytest.param({"op": "test", "path": "/one", "value": True}, id="true is not 1"),
        pytest.param({"op": "add", "path": "/l/5", "value": 1}, id="index beyond the end"),
        pytest.param({"op": "add", "path": "/l/x", "value": 1}, id="index that is no number"),
        pytest.param({"op": "copy", "from": "/nope", "path": "/b"}, id="copy of nothing"),
        pytest.param({"op": "add", "path": "/a/b", "value": 1}, id="add below a scalar"),
        pytest.param({"op": "replace", "path": "/a/b", "value": 1}, id="replace below a scalar"),
        pytest.param({"op": "remove", "path": "/a/b"}, id="remove below a scalar"),
        pytest.param({"op": "frob", "path": "/a"}, id="unknown operation"),
        pytest.param({"op": "add", "path": "a"}, id="no pointer"),
        pytest.param({"op": "add"}, id="no path"),
    ],
)
def test_a_json_patch_that_cannot_be_done_is_invalid(operation: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="the server rejected our request due to an error in our request"):
        patch.json_patch({"a": "x", "l": [1], "one": 1}, [operation])


def test_a_json_patch_is_a_list_of_objects() -> None:
    with pytest.raises(BadRequest):
        patch.json_patch({}, [1])  # type: ignore[list-item]


@given(OBJECTS, OBJECTS)
def test_json_patches_made_by_others_work(old: Any, new: Any) -> None:
    operations = jsonpatch.make_patch(old, new).patch
    assert patch.json_patch(old, operations) == new


POD: Any = {
    "properties": {
        "metadata": {"properties": {"finalizers": {"x-kubernetes-patch-strategy": "merge"}}},
        "spec": {
            "properties": {
                "containers": {
                    "x-kubernetes-patch-strategy": "merge",
                    "x-kubernetes-patch-merge-key": "name",
                    "items": {
                        "properties": {
                            "env": {
                                "x-kubernetes-patch-strategy": "merge",
                                "x-kubernetes-patch-merge-key": "name",
                                "items": {},
                            },
                        }
                    },
                },
                "volumes": {
                    "x-kubernetes-patch-strategy": "merge,retainKeys",
                    "x-kubernetes-patch-merge-key": "name",
                    "items": {},
                },
                "tolerations": {},
            }
        },
    }
}


def containers(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(items), **more}}


@pytest.mark.parametrize(
    ("target", "change", "result"),
    [
        pytest.param(
            containers({"name": "a", "image": "i"}, {"name": "b"}),
            containers({"name": "b", "image": "j"}),
            containers({"name": "a", "image": "i"}, {"name": "b", "image": "j"}),
            id="items merge by key and keep their order",
        ),
        pytest.param(
            containers({"name": "a"}, {"name": "b"}),
            containers({"name": "a", "$patch": "delete"}),
            containers({"name": "b"}),
            id="$patch: delete removes an item",
        ),
        pytest.param(
            containers({"name": "a"}),
            containers({"name": "b"}, {"$patch": "replace"}),
            containers({"name": "b"}),
            id="$patch: replace replaces a list",
        ),
        pytest.param(
            containers({"name": "a"}, {"name": "b"}),
            containers({"name": "c"}, **{"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]}),
            containers({"name": "c"}, {"name": "b"}, {"name": "a"}),
            id="$setElementOrder orders",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b"]}},
            {"metadata": {"finalizers": ["b", "a"]}},
            id="primitives are united, new ones first",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b"]}},
            id="$deleteFromPrimitiveList removes",
        ),
        pytest.param(
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            {"spec": {"volumes": [{"name": "v", "hostPath": {}, "$retainKeys": ["name", "hostPath"]}]}},
            {"spec": {"volumes": [{"name": "v", "hostPath": {}}]}},
            id="$retainKeys drops the others",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"key": "a"}]}},
            {"spec": {"tolerations": [{"key": "b"}]}},
            {"spec": {"tolerations": [{"key": "b"}]}},
            id="lists without a tag are replaced",
        ),
        pytest.param({"data": {"a": "1", "b": "2"}}, {"data": {"a": None}}, {"data": {"b": "2"}}, id="null deletes"),
        pytest.param(
            {"data": {"a": "1"}},
            {"data": {"$patch": "replace", "b": "2"}},
            {"data": {"b": "2"}},
            id="$patch: replace replaces a map",
        ),
        pytest.param(
            {"data": {"a": "1"}}, {"data": {"$patch": "delete"}}, {"data": {}}, id="$patch: delete empties a map"
        ),
    ],
)
def test_a_strategic_patch_merges_as_the_schema_says(target: Any, change: Any, result: Any) -> None:
    before, asked = copy.deepcopy(target), copy.deepcopy(change)
    assert patch.strategic(target, change, POD) == result
    assert (target, change) == (before, asked)


def test_a_strategic_patch_that_changes_nothing_returns_its_target() -> None:
    target = {"data": {"a": "1"}}
    assert patch.strategic(target, {"data": {"a": "1"}}, POD) is target


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (containers({"image": "i"}), "map: map[image:i] does not contain declared merge key: name"),
        (containers({"name": "a", "$patch": "frob"}), "unknown patch type: frob in map: map[$patch:frob name:a]"),
        (containers({"name": "a", "$patch": "merge"}), "merging lists cannot yet be specified in the patch"),
        ({"spec": {"$patch": "frob"}}, "unknown patch type: frob in map: map[$patch:frob]"),
    ],
)
def test_a_strategic_patch_without_sense_is_refused_as_upstream_does(change: Any, message: str) -> None:
    with pytest.raises(ApiError) as error:
        patch.strategic(containers({"name": "a"}), change, POD)
    assert (error.value.message, error.value.status_code) == (message, 500)


@pytest.mark.parametrize("order", [["name"], [1], [None], [["name"]], [{"name": "a"}, 1]])
@pytest.mark.parametrize("items", [{}, {"containers": [{"name": "a"}]}, {"containers": [5]}, {"containers": [None]}])
def test_an_order_of_other_things_than_items_is_refused(order: Any, items: Any) -> None:
    with pytest.raises(ApiError):
        patch.strategic(
            containers({"name": "a"}, {"name": "b"}), {"spec": {"$setElementOrder/containers": order, **items}}, POD
        )

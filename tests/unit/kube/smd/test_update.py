"""Book-keeping of creates, updates and patches."""

from typing import Any

import pytest

from capi.kube import smd
from tests.unit.kube.smd.rig import OPENAPI, STRING, T0, a_widget, apply, bare, entries, keyed, owned, structure, update


def changed(old: Any, **spec: Any) -> Any:
    """`old` with other spec members; None removes."""
    members = {**old.get("spec", {}), **spec}
    return {**old, "spec": {k: v for k, v in members.items() if v is not None}}


def test_a_creator_owns_everything_and_the_containers() -> None:
    live = update(None, a_widget({"size": 1, "items": [{"name": "a"}]}, {"phase": "P"}, labels={"a": "b"}), "x")
    assert owned(live, "x", "Update") == {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {".": {}, "f:size": {}, "f:items": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}}}},
    }


def test_a_changed_field_changes_its_owner() -> None:
    live = apply(None, a_widget({"size": 1, "mode": "a"}))
    live = update(live, changed(live, size=2), "u", at=5)
    assert owned(live, "m1") == {"f:spec": {"f:mode": {}}}
    assert owned(live, "u", "Update") == {"f:spec": {"f:size": {}}}
    assert entries(live)[1]["time"] == "2026-01-01T00:00:05Z"


def test_a_removed_field_has_no_owner() -> None:
    live = apply(None, a_widget({"size": 1, "gmap": {"a": "1"}}))
    live = update(live, changed(live, gmap=None), "u")
    assert owned(live, "m1") == {"f:spec": {"f:size": {}}}
    assert owned(live, "u", "Update") is None


def test_an_update_that_changes_nothing_keeps_entries_and_times() -> None:
    live = update(None, a_widget({"size": 1}), "x")
    again = {**live, "metadata": {**live["metadata"], "resourceVersion": "7"}}
    assert entries(update(live, again, "y", at=9)) == entries(live)


def test_reordering_a_keyed_list_changes_no_owner() -> None:
    live = apply(None, a_widget({"items": [{"name": "a"}, {"name": "b"}]}))
    after = update(live, changed(live, items=[{"name": "b"}, {"name": "a"}]), "u")
    assert entries(after) == entries(live)


def test_items_that_share_a_key_are_owned_as_one() -> None:
    live = update(None, a_widget({"items": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]}), "x")
    assert owned(live, "x", "Update")["f:spec"]["f:items"] == {".": {}, 'k:{"name":"a"}': {}}


def test_managed_fields_that_are_left_out_are_kept() -> None:
    live = apply(None, a_widget({"size": 1}))
    assert entries(update(live, bare(live))) == entries(live)


@pytest.mark.parametrize("sent", [None, [{"manager": "x"}], "nonsense", [1], []])
def test_managed_fields_that_make_no_sense_are_ignored(sent: Any) -> None:
    live = apply(None, a_widget({"size": 1}))
    new = {**live, "metadata": {**live["metadata"], "managedFields": sent}}
    assert entries(update(live, new)) == entries(live)


def test_a_list_with_one_empty_entry_clears_them() -> None:
    live = apply(None, a_widget({"size": 1}))
    cleared = update(live, {**live, "metadata": {**live["metadata"], "managedFields": [{}]}})
    assert "managedFields" not in cleared["metadata"]
    assert "managedFields" not in update(cleared, changed(cleared, size=2))["metadata"]
    assert owned(apply(cleared, a_widget({"size": 1})), "before-first-apply", "Update") == {
        "f:spec": {".": {}, "f:size": {}}
    }


def test_an_empty_list_clears_them_for_built_in_kinds_only() -> None:
    live = apply(None, a_widget({"size": 1}))
    new = {**live, "metadata": {**live["metadata"], "managedFields": []}}
    assert "managedFields" not in update(live, new, empty_resets=True)["metadata"]


def test_a_valid_list_replaces_them_in_canonical_spelling() -> None:
    live = apply(None, a_widget({"items": [{"name": "<a>"}]}))
    entry = {
        **entries(live)[0],
        "manager": "new",
        "fieldsV1": {"f:spec": {"f:items": {'k:{"name": "<a>"}': {".": {}}}}},
    }
    after = update(live, {**live, "metadata": {**live["metadata"], "managedFields": [entry]}})
    assert owned(after, "new") == {"f:spec": {"f:items": {'k:{"name":"\\u003ca\\u003e"}': {}}}}
    assert owned(after, "m1") is None


def test_a_subresource_cannot_set_them() -> None:
    live = apply(None, a_widget({"size": 1}))
    new = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    assert entries(update(live, new, subresource="status")) == entries(live)


def test_status_updates_own_status_alone() -> None:
    live = update(None, a_widget({"size": 1}), "x")
    after = update(live, {**changed(live, size=2), "status": {"phase": "P"}}, "y", subresource="status")
    assert owned(after, "y", "Update", "status") == {"f:status": {".": {}, "f:phase": {}}}


def test_more_than_ten_updaters_are_merged_into_ancient_changes() -> None:
    live = update(None, a_widget({"gmap": {"first": "1"}}), "u0")
    for number in range(1, 13):
        live = update(live, changed(live, gmap={**live["spec"]["gmap"], f"k{number}": "1"}), f"u{number}", at=number)
    updaters = [e["manager"] for e in entries(live)]
    assert updaters == ["ancient-changes", *(f"u{n}" for n in range(4, 13))][: len(updaters)]
    assert len(updaters) == 10
    assert owned(live, "ancient-changes", "Update")["f:spec"]["f:gmap"].keys() >= {"f:first", "f:k1", "f:k2", "f:k3"}


def test_entries_are_ordered_by_operation_time_and_name() -> None:
    live = update(None, a_widget({"size": 1}), "z", at=1)
    live = update(live, changed(live, mode="x"), "a", at=1)
    live = apply(live, a_widget({"on": True}), "late", at=9)
    live = apply(live, a_widget({"amount": "1"}), "early", at=2)
    assert [e["manager"] for e in entries(live)] == ["early", "late", "a", "z"]


def test_a_write_that_moves_only_times_is_none() -> None:
    live = update(None, a_widget({"size": 1}), "x")
    later = {
        **live,
        "metadata": {**live["metadata"], "managedFields": [{**entries(live)[0], "time": "2030-01-01T00:00:00Z"}]},
    }
    assert smd.keep_times(live, later) is live
    assert smd.keep_times(live, changed(later, size=2)) != live
    assert smd.keep_times(live, live) is live


@pytest.mark.parametrize("part", ["labels", "extra", "fields", "entries"])
def test_any_other_difference_is_a_write(part: str) -> None:
    live = update(None, a_widget({"size": 1}, labels={"a": "1"}), "x")
    meta = live["metadata"]
    new = {
        "labels": {**live, "metadata": {**meta, "labels": {"a": "2"}}},
        "extra": {**live, "status": {}},
        "fields": {**live, "metadata": {**meta, "managedFields": [{**entries(live)[0], "fieldsV1": {}}]}},
        "entries": bare(live),
    }[part]
    assert smd.keep_times(live, new) is new


def test_duplicates_that_end_or_begin_change_owners_as_a_whole() -> None:
    twice = [{"name": "a", "value": 1}, {"name": "a", "value": 2}]
    live = update(None, a_widget({"items": twice}), "x")
    same = update(live, changed(live, items=[dict(item) for item in twice]), "y")
    assert entries(same) == entries(live)
    mended = update(live, changed(live, items=[{"name": "a", "value": 1}]), "y")
    assert owned(mended, "y", "Update") == {
        "f:spec": {"f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:value": {}}}}
    }
    broken = update(mended, changed(mended, items=twice), "z")
    assert owned(broken, "z", "Update") == {"f:spec": {"f:items": {'k:{"name":"a"}': {}}}}
    other = update(live, changed(live, items=[twice[0], twice[0]]), "y")
    assert owned(other, "y", "Update") == {"f:spec": {"f:items": {'k:{"name":"a"}': {}}}}


def test_a_value_of_another_kind_is_modified_and_its_content_added() -> None:
    live = update(None, a_widget({"free": {"p": 1}}), "x")
    after = update(live, changed(live, free={"p": {"q": 1}}), "y")
    assert owned(after, "y", "Update") == {"f:spec": {"f:free": {"f:p": {".": {}, "f:q": {}}}}}
    back = update(after, changed(after, free={"p": 1}), "z")
    assert owned(back, "z", "Update") == {"f:spec": {"f:free": {"f:p": {}}}}


def test_a_map_over_null_is_added_member_by_member() -> None:
    live = update(None, a_widget({"gmap": None, "size": 1}), "x")
    after = update(live, changed(live, gmap={"a": "1"}), "y")
    assert owned(after, "y", "Update") == {"f:spec": {"f:gmap": {"f:a": {}}}}


def test_entries_are_read_by_the_schema_of_their_own_version() -> None:
    """A list by key in one version may have the name of a whole in another."""
    other = smd.Schema.of(
        structure(
            metadata=OPENAPI["properties"]["metadata"], spec=structure(atom=keyed(structure(name=STRING), "name"))
        )
    )
    owned_: Any = {"f:spec": {"f:atom": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}}
    entry = {
        "manager": "other", "operation": "Apply", "apiVersion": "x/v2", "fieldsType": "FieldsV1", "fieldsV1": owned_, "time": "2026-01-01T00:00:00Z"
    }  # fmt: skip
    old = {"apiVersion": "x/v1", "metadata": {"name": "n", "managedFields": [entry]}, "spec": {"size": 1}}
    seen = {"apiVersion": "x/v2", "metadata": {"name": "n"}, "spec": {"atom": [{"name": "a"}]}}
    found = smd.update(
        old, {**old, "spec": {"size": 2}}, schema=smd.Schema.of(OPENAPI), manager="me", api_version="x/v1", now=T0,
        views=lambda version: smd.View(lambda obj: seen, lambda obj: old, other) if version == "x/v2" else None,
    )  # fmt: skip
    [kept] = [e["fieldsV1"] for e in found["metadata"]["managedFields"] if e["manager"] == "other"]
    assert kept == owned_

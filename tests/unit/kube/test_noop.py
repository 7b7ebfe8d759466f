"""Applies that need not be sent."""

from typing import Any

import pytest

from capi.kube import noop
from tests.unit.kube.smd.rig import a_widget, apply, update

SPEC: Any = {
    "size": 1,
    "gmap": {"a": "1"},
    "amap": {"a": "1"},
    "atom": ["x", "y"],
    "names": ["b", "<a>"],
    "items": [{"name": "a", "value": 1}, {"name": "b"}],
    "ports": [{"port": 80, "name": "http"}],
    "deep": {"a": {"b": 1}},
}


def live() -> Any:
    obj = apply(None, a_widget(SPEC, labels={"a": "b"}, ownerReferences=[{"uid": "u", "name": "o"}]))
    return update(obj, {**obj, "spec": {**obj["spec"], "mode": "x", "gmap": {"a": "1", "other": "2"}}}, "other")


def body(**changes: Any) -> Any:
    spec = {k: v for k, v in {**SPEC, **changes}.items() if v is not None}
    return {"metadata": {"labels": {"a": "b"}, "ownerReferences": [{"uid": "u", "name": "o"}]}, "spec": spec}


def test_the_same_body_changes_nothing() -> None:
    assert noop.changes_nothing(live(), body(), "m1")


def test_the_same_body_of_another_manager_changes_ownership() -> None:
    assert not noop.changes_nothing(live(), body(), "m2")
    assert not noop.changes_nothing(live(), body(), "m1", "status")


def test_what_the_server_never_tracks_is_not_looked_at() -> None:
    sent = {"apiVersion": "ex.io/v1", "kind": "Widget", **body()}
    sent["metadata"] = {**sent["metadata"], "name": "w", "namespace": "n", "resourceVersion": "1", "uid": "u"}
    assert noop.changes_nothing(live(), sent, "m1")


def test_an_entry_of_another_version_does_not_count() -> None:
    assert not noop.changes_nothing(live(), {"apiVersion": "ex.io/v2", **body()}, "m1")


def test_an_empty_list_that_is_there_is_no_change() -> None:
    obj = apply(None, a_widget({"size": 1, "names": []}))
    assert noop.changes_nothing(obj, {"spec": {"size": 1, "names": []}}, "m1")
    assert not noop.changes_nothing(obj, {"spec": {"size": 1, "items": []}}, "m1")


def test_a_body_without_tracked_fields_changes_nothing_of_a_manager_without_any() -> None:
    assert noop.changes_nothing(live(), {"metadata": {"name": "w"}}, "m2")
    assert not noop.changes_nothing(live(), {"metadata": {"name": "w"}}, "m1")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"size": 2}, id="another value"),
        pytest.param({"size": True}, id="true is not 1"),
        pytest.param({"size": None}, id="a dropped field"),
        pytest.param({"mode": "x"}, id="a field that another owns, with its value"),
        pytest.param({"gmap": {"a": "2"}}, id="another value in a map"),
        pytest.param({"gmap": {"a": "1", "b": "1"}}, id="a new key"),
        pytest.param({"gmap": "x"}, id="a scalar for a map"),
        pytest.param({"amap": {"a": "1", "b": "1"}}, id="a changed atomic map"),
        pytest.param({"atom": ["y", "x"]}, id="a reordered atomic list"),
        pytest.param({"names": ["<a>", "b"]}, id="a reordered set"),
        pytest.param({"names": ["b"]}, id="a dropped item of a set"),
        pytest.param({"names": ["b", "c"]}, id="another item in a set"),
        pytest.param({"items": [{"name": "b"}, {"name": "a", "value": 1}]}, id="a reordered keyed list"),
        pytest.param({"items": [{"name": "a", "value": 2}, {"name": "b"}]}, id="another value in an item"),
        pytest.param({"items": [{"name": "a", "value": 1}, {"name": "c"}]}, id="another item"),
        pytest.param({"items": [{"name": "a", "value": 1}, "b"]}, id="an item that is no object"),
        pytest.param({"items": [{"name": "a"}, {"name": "b"}]}, id="a dropped field of an item"),
        pytest.param({"items": {}}, id="a map for a list"),
        pytest.param({"ports": [{"port": 80, "name": "web"}]}, id="another value in an item with a defaulted key"),
        pytest.param({"ports": [{"port": 80, "protocol": "UDP", "name": "http"}]}, id="another key"),
        pytest.param({"deep": {"a": {"b": 1, "c": 1}}}, id="a new field deep down"),
    ],
)
def test_a_change_is_seen(changes: Any) -> None:
    obj = live()
    assert not noop.changes_nothing(obj, body(**changes), "m1")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"size": 7}, id="a value changed by another"),
        pytest.param({"size": None}, id="a value removed by another"),
        pytest.param({"items": [{"name": "b"}, {"name": "a", "value": 1}]}, id="a list reordered by another"),
        pytest.param({"items": [{"name": "b"}]}, id="an item removed by another"),
        pytest.param({"gmap": None}, id="a map removed by another"),
    ],
)
def test_what_others_did_is_seen(change: Any) -> None:
    obj = live()
    spec = {k: v for k, v in {**obj["spec"], **change}.items() if v is not None}
    assert not noop.changes_nothing(update(obj, {**obj, "spec": spec}, "other"), body(), "m1")

"""Stores, decoding and informers: values only, no server."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.kube.types import Key, ResourceType
from capi.runtime.decode import decoder
from capi.runtime.informer import Informer
from capi.runtime.store import Store
from tests.virtual.runtime.rig import Flock

BARN = ResourceType("builders.io", "v1", "Barn", "barns")


def raw(name: str, revision: int = 1, **metadata: Any) -> bytes:
    meta = {"name": name, "namespace": "n", "uid": f"u-{name}", "resourceVersion": str(revision), **metadata}
    return orjson.dumps({"apiVersion": "farm.io/v1", "kind": "Flock", "metadata": meta, "spec": {"size": 1}})


def entry(manager: str) -> dict[str, Any]:
    fields = {"f:spec": {"f:size": {}}}
    return {"manager": manager, "operation": "Apply", "apiVersion": "farm.io/v1", "fieldsV1": fields}


@pytest.mark.parametrize("kind", [Flock, BARN], ids=["typed", "untyped"])
def test_only_our_managed_fields_are_kept_and_shared(kind: Any) -> None:
    decode = decoder(kind)
    first, second = (
        decode(raw(name, managedFields=[entry("kubectl"), entry("capi-flock")], labels={"a": "b"})) for name in "xy"
    )
    assert first.metadata.labels is second.metadata.labels
    if kind is Flock:
        assert [e.manager for e in first.metadata.managed_fields] == ["capi-flock"]
        assert first.metadata.managed_fields[0].fields_v1 is second.metadata.managed_fields[0].fields_v1
    else:
        assert [e["manager"] for e in first.raw["metadata"]["managedFields"]] == ["capi-flock"]


def sizes(flock: Flock) -> list[str]:
    return [str(flock.spec.size or 0)]


operations = st.lists(
    st.tuples(st.sampled_from(["put", "drop"]), st.sampled_from("abcd"), st.sampled_from("xyz"), st.integers(0, 3)),
    max_size=40,
)


@given(operations)
def test_indexes_always_agree_with_the_objects(steps: list[tuple[str, str, str, int]]) -> None:
    store: Store[Flock] = Store(["color"])
    store.add_index(sizes)
    model: dict[Key, Flock] = {}
    decode = decoder(Flock)
    for action, name, color, size in steps:
        key = Key("n", name)
        if action == "put":
            body = orjson.loads(raw(name, labels={"color": color, "other": color}))
            model[key] = decode(orjson.dumps({**body, "spec": {"size": size}}))
            store.put(key, model[key])
        else:
            model.pop(key, None)
            store.drop(key)
    ordered = [model[key] for key in sorted(model)]
    assert store.list() == ordered and len(store) == len(model)
    for color in "xyz":
        wanted = [flock for flock in ordered if flock.metadata.labels["color"] == color]
        assert store.list("n", {"color": color, "other": color}) == wanted
        assert store.list("elsewhere", {"color": color}) == []
    for size in range(4):
        assert store.by_index(sizes, str(size)) == [flock for flock in ordered if (flock.spec.size or 0) == size]


async def test_a_full_state_reports_what_came_changed_and_went() -> None:
    informer, seen = Informer(Flock), []
    informer.subscribe(lambda old, new: seen.append((old and old.name, new and new.name)))
    informer.replace([informer.decode(raw("a")), informer.decode(raw("b"))], 10)
    informer.replace([informer.decode(raw("b")), informer.decode(raw("c", 12))], 12)
    assert seen == [(None, "a"), (None, "b"), (None, "c"), ("a", None)]
    assert informer.revision == 12


async def test_waiting_for_a_revision_and_for_an_object_to_go() -> None:
    informer, told = Informer(Flock), []
    informer.replace([informer.decode(raw("a"))], 10)
    informer.when_reached(12, lambda: told.append("reached"))
    informer.when_gone(Key("n", "a"), lambda: told.append("gone"))
    informer.changed(informer.decode(raw("b", 11)), 11)
    assert told == []
    informer.deleted(Key("n", "a"), 12)
    assert told == ["gone", "reached"]


async def test_a_handler_that_raises_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    informer, seen = Informer(Flock), []

    def bad(old: Any, new: Any) -> None:
        raise KeyError("a bug")

    informer.subscribe(bad)
    informer.subscribe(lambda old, new: seen.append(new.name))
    informer.changed(informer.decode(raw("a")), 1)
    assert seen == ["a"] and "Mapping an event failed" in caplog.text

"""Passes, plans and consistency of a whole manager, on virtual time."""

import pytest

from tests.virtual.fake_api import FakeApi
from tests.virtual.runtime.rig import FINALIZER, FLOCKS, FlockReconciler, a_flock, flock, names, running, settle

pytestmark = pytest.mark.looptime


async def test_children_status_and_finalizer_are_written() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=3))
    async with running(api) as manager:
        await settle(manager)
    assert names(api) == ["a-0", "a-1", "a-2"]
    found = flock(api)
    assert found["metadata"]["finalizers"] == [FINALIZER]
    assert found["status"]["sheep"] == 3
    assert found["status"]["observedGeneration"] == 1
    assert [(c["type"], c["status"]) for c in found["status"]["conditions"]] == [("Ready", "True"), ("Paused", "False")]


async def test_settled_means_silent() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=3))
    async with running(api) as manager:
        await settle(manager)
        before = len(api.writes)
        api.edit(FLOCKS, "default", "a", {"metadata": {"annotations": {"note": "x"}}})
        await settle(manager)
    assert len(api.writes) == before


async def test_a_restart_writes_nothing() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=3))
    async with running(api) as manager:
        await settle(manager)
    before = len(api.writes)
    async with running(api) as manager:
        await settle(manager)
    assert len(api.writes) == before


async def test_a_deleted_object_goes_after_its_children() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=2))
    async with running(api) as manager:
        await settle(manager)
        api.remove(FLOCKS, "default", "a")
        await settle(manager)
    assert names(api) == [] and names(api, FLOCKS) == []


async def test_a_paused_object_gets_its_condition_and_nothing_else() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=2, paused=True))
    async with running(api) as manager:
        await settle(manager)
        assert names(api) == []
        [paused] = flock(api)["status"]["conditions"]
        assert (paused["status"], paused["message"]) == ("True", "spec.paused is set")
        api.edit(FLOCKS, "default", "a", {"spec": {"paused": None}})
        await settle(manager)
    assert names(api) == ["a-0", "a-1"]
    assert [c["status"] for c in flock(api)["status"]["conditions"]] == ["True", "False"]


async def test_a_pass_sees_the_writes_of_the_pass_before() -> None:
    api, reconciler = FakeApi(), FlockReconciler()
    api.create(FLOCKS, a_flock(size=2))
    async with running(api, reconciler) as manager:
        await settle(manager)
    assert reconciler.seen == [0, *[2] * (len(reconciler.seen) - 1)]

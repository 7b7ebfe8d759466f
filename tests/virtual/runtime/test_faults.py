"""Any single failed, lost, delayed or repeated write, and any trouble with watches, ends in the same world."""

import asyncio

import pytest

from capi.client.inprocess import InProcessTransport
from capi.kube.errors import TransportError
from capi.runtime.reflector import GRACE, LIFETIME
from tests.virtual.fake_api import FakeApi
from tests.virtual.runtime.rig import (
    FINALIZER,
    FLOCKS,
    SHEEP,
    Faults,
    FlockReconciler,
    a_flock,
    flock,
    names,
    running,
    settle,
)

pytestmark = pytest.mark.looptime
WRITES = 6
"""Of the life below: finalizer, two sheep, two states of the status, and some for deletion."""


async def life(api: FakeApi, faults: Faults) -> None:
    """Grow a flock of two, shrink it to one, delete it; the world is checked at each step."""
    api.create(FLOCKS, a_flock(size=2))
    async with running(api, faults=faults) as manager:
        await settle(manager)
        assert names(api) == ["a-0", "a-1"]
        assert flock(api)["metadata"]["finalizers"] == [FINALIZER]
        assert (flock(api)["status"]["sheep"], flock(api)["status"]["observedGeneration"]) == (2, 1)
        api.edit(FLOCKS, "default", "a", {"spec": {"size": 1}})
        await settle(manager)
        assert names(api) == ["a-0"]
        assert (flock(api)["status"]["sheep"], flock(api)["status"]["observedGeneration"]) == (1, 2)
        api.remove(FLOCKS, "default", "a")
        await settle(manager)
        assert names(api) == [] and names(api, FLOCKS) == []


@pytest.mark.parametrize("number", range(12))
async def test_any_one_write_may_fail(number: int) -> None:
    api = FakeApi()
    await life(api, Faults(InProcessTransport(api), fail={number}))


@pytest.mark.parametrize("number", range(12))
async def test_any_one_answer_may_be_lost(number: int) -> None:
    api = FakeApi()
    await life(api, Faults(InProcessTransport(api), fail_after={number}))


@pytest.mark.parametrize("number", range(12))
async def test_any_one_write_may_be_late(number: int) -> None:
    api = FakeApi()
    await life(api, Faults(InProcessTransport(api), delay={number: 45.0}))


async def test_any_two_writes_may_fail() -> None:
    for first in range(10):
        api = FakeApi()
        await life(api, Faults(InProcessTransport(api), fail={first}, fail_after={first + 2}))


async def test_a_lost_watch_is_taken_up_again() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=1))
    async with running(api) as manager:
        await settle(manager)
        api.drop_watches()
        api.edit(FLOCKS, "default", "a", {"spec": {"size": 3}})
        await asyncio.sleep(5)
        await settle(manager)
        assert len(names(api)) == 3


async def test_after_a_forgotten_revision_missed_changes_and_deletions_are_acted_on() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=2))
    async with running(api) as manager:
        await settle(manager)
        api.drop_watches()
        api.remove(SHEEP, "default", "a-1")
        api.edit(FLOCKS, "default", "a", {"spec": {"size": 3}})
        api.forget_history()
        await asyncio.sleep(30)
        assert names(api) == ["a-0", "a-1", "a-2"]


async def test_a_silent_watch_is_noticed() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=1))
    async with running(api) as manager:
        await settle(manager)
        api.muted = True
        api.remove(SHEEP, "default", "a-0")
        api.muted = False
        await asyncio.sleep(LIFETIME[1] + 2 * GRACE)
        assert names(api) == ["a-0"]


async def test_a_missed_own_write_renews_the_watch_within_seconds() -> None:
    api, reconciler = FakeApi(), FlockReconciler()
    api.create(FLOCKS, a_flock(size=1))
    async with running(api, reconciler) as manager:
        await settle(manager)
        api.edit(FLOCKS, "default", "a", {"spec": {"size": 2}})
        api.muted = True
        await asyncio.sleep(2)
        api.muted = False
        api.edit(FLOCKS, "default", "a", {"metadata": {"annotations": {"poke": "1"}}})
        await asyncio.sleep(10)
        assert names(api) == ["a-0", "a-1"]
        assert flock(api)["status"]["sheep"] == 2


async def test_a_server_without_watch_list_is_listed() -> None:
    api = FakeApi()
    api.watch_list = False
    api.create(FLOCKS, a_flock(size=2))
    async with running(api) as manager:
        await settle(manager)
        assert names(api) == ["a-0", "a-1"]
        api.drop_watches()
        api.edit(FLOCKS, "default", "a", {"spec": {"size": 3}})
        await asyncio.sleep(5)
        assert len(names(api)) == 3


async def test_a_server_that_counts_anew_is_listed_anew() -> None:
    api, faults = FakeApi(), Faults(InProcessTransport(FakeApi()))
    api.revision = api.oldest = 5000
    api.create(FLOCKS, a_flock(size=1))
    faults.inner = InProcessTransport(api)
    async with running(api, faults=faults) as manager:
        await settle(manager)
        fresh = FakeApi()
        fresh.create(FLOCKS, a_flock("b", size=2))
        faults.dead = True
        faults.inner = InProcessTransport(fresh)
        api.drop_watches()
        await asyncio.sleep(5)
        faults.dead = False
        await asyncio.sleep(60)
        assert {"b-0", "b-1"} <= set(names(fresh))


async def test_a_conflict_is_retried_quietly(caplog: pytest.LogCaptureFixture) -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=1))
    faults = Faults(InProcessTransport(api), delay={0: 1.0})
    async with running(api, faults=faults) as manager:
        await asyncio.sleep(0.5)  # the finalizer is on its way, with the revision that was read
        api.edit(FLOCKS, "default", "a", {"metadata": {"annotations": {"other": "writer"}}})
        await settle(manager)
    assert flock(api)["metadata"]["finalizers"] == [FINALIZER]
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


async def test_a_server_that_is_away_for_ten_minutes_is_waited_for() -> None:
    api = FakeApi()
    faults = Faults(InProcessTransport(api))
    api.create(FLOCKS, a_flock(size=1))
    async with running(api, faults=faults) as manager:
        await settle(manager)
        faults.dead = True
        api.edit(FLOCKS, "default", "a", {"spec": {"size": 2}})
        await asyncio.sleep(600)
        faults.dead = False
        await asyncio.sleep(70)
        assert names(api) == ["a-0", "a-1"]


async def test_one_failing_object_does_not_stop_the_others() -> None:
    class Picky(FlockReconciler):
        async def reconcile(self, obj, reader, now):  # type: ignore[no-untyped-def]
            if obj.name == "bad":
                raise TransportError("its backend is away")
            return await super().reconcile(obj, reader, now)

    api = FakeApi()
    api.create(FLOCKS, a_flock("bad"))
    api.create(FLOCKS, a_flock("good", size=1))
    async with running(api, Picky()):
        await asyncio.sleep(60)
    assert names(api) == ["good-0"]

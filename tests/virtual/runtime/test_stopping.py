"""How a manager ends: gracefully when asked, with a clear error when a part of it crashes; and Events."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from capi.aio.clock import LoopClock
from capi.client.inprocess import InProcessTransport
from capi.kube.errors import TerminalError
from capi.kube.messages import Request
from capi.runtime.manager import Manager, ManagerFailed
from capi.runtime.plan import Event, Plan
from capi.runtime.reader import Reader
from tests.virtual.fake_api import FakeApi
from tests.virtual.runtime.rig import FLOCKS, Flock, FlockReconciler, a_flock, names, running, settle

pytestmark = pytest.mark.looptime


class Slow(FlockReconciler):
    """Takes ten seconds for a decision."""

    async def reconcile(self, obj: Flock, reader: Reader, now: datetime) -> Plan:
        await asyncio.sleep(10)
        return await super().reconcile(obj, reader, now)


async def test_passes_in_hand_are_finished() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=1))
    async with running(api, Slow()):
        await asyncio.sleep(1)
    assert names(api) == ["a-0"]


async def test_a_crash_of_the_runtime_ends_the_manager() -> None:
    class Buggy(InProcessTransport):
        def stream(self, request: Request) -> Any:
            raise RuntimeError("a bug")

    manager = Manager(Buggy(FakeApi()), clock=LoopClock())
    manager.add(FlockReconciler())
    with pytest.raises(ManagerFailed, match="a part of the manager crashed: RuntimeError: a bug"):
        await manager.run()
    assert not manager.working


async def test_garbage_in_a_watch_is_survived() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=1))
    async with running(api) as manager:
        await settle(manager)
        for watch in list(api.watches):
            assert watch.sink is not None
            watch.sink.write(b'{"type": "ADDED", "object": {"metadata": 1}}\nnot json at all\n')
        await asyncio.sleep(5)
        api.edit(FLOCKS, "default", "a", {"spec": {"size": 2}})
        await settle(manager)
        assert names(api) == ["a-0", "a-1"]


async def test_an_error_for_good_is_not_retried_until_the_spec_changes() -> None:
    class Hopeless(FlockReconciler):
        async def reconcile(self, obj: Flock, reader: Reader, now: datetime) -> Plan:
            self.passes.append(now.timestamp())
            raise TerminalError("size must be even")

    api, reconciler = FakeApi(), Hopeless()
    api.create(FLOCKS, a_flock(size=1))
    async with running(api, reconciler):
        await asyncio.sleep(300)
        assert len(reconciler.passes) == 1
        api.edit(FLOCKS, "default", "a", {"spec": {"size": 2}})
        await asyncio.sleep(300)
        assert len(reconciler.passes) == 2


async def test_events_are_written_once() -> None:
    class Loud(FlockReconciler):
        async def reconcile(self, obj: Flock, reader: Reader, now: datetime) -> Plan:
            return Plan(events=[Event("Counted", f"size {obj.spec.size}")])

    api = FakeApi()
    api.create(FLOCKS, a_flock(size=1))
    async with running(api, Loud()) as manager:
        await settle(manager)
        for number in range(5):
            api.edit(FLOCKS, "default", "a", {"metadata": {"annotations": {"poke": str(number)}}})
            await settle(manager)
        events = [obj for key, obj in api.objects.items() if key[0] == "v1/events"]
        assert [(e["reason"], e["message"], e["involvedObject"]["name"]) for e in events] == [
            ("Counted", "size 1", "a")
        ]

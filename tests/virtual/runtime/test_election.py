"""Leader election: at most one manager works."""

import asyncio

import pytest

from capi.client.inprocess import InProcessTransport
from capi.runtime.election import Election, LeadershipLost
from capi.runtime.manager import Manager
from tests.virtual.fake_api import FakeApi
from tests.virtual.runtime.rig import FLOCKS, Faults, FlockReconciler, LoopClock, a_flock, names, running, settle

pytestmark = pytest.mark.looptime
LEASE = ("coordination.k8s.io/v1/leases", "kube-system", "capi")


def election(identity: str) -> Election:
    return Election(namespace="kube-system", name="capi", identity=identity)


def a_manager(api: FakeApi, identity: str, faults: Faults | None = None) -> Manager:
    manager = Manager(faults or InProcessTransport(api), clock=LoopClock(), election=election(identity))
    manager.add(FlockReconciler())
    return manager


async def test_only_the_leader_works() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=1))
    async with running(api, election=election("one")) as one:
        await settle(one)
        async with running(api, election=election("two")) as two:
            await asyncio.sleep(120)
            assert (one.working, two.working) == (True, False)
            assert two.synced


async def test_a_stopped_leader_hands_over_at_once() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=1))
    async with running(api, election=election("two")) as two, asyncio.TaskGroup() as group:
        await asyncio.sleep(1)
        assert two.leading
        one = a_manager(api, "one")
        task = group.create_task(one.run())
        await asyncio.sleep(20)
        two.stop()
        await asyncio.sleep(5)
        assert one.leading
        one.stop()
        await task
    assert api.objects[LEASE]["spec"]["leaseTransitions"] == 1


async def test_a_leader_without_contact_stops_before_another_may_start() -> None:
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=1))
    loop = asyncio.get_running_loop()
    faults = Faults(InProcessTransport(api))
    one, two = a_manager(api, "one", faults), a_manager(api, "two")
    first = asyncio.ensure_future(one.run())
    await asyncio.sleep(1)
    second = asyncio.ensure_future(two.run())
    await asyncio.sleep(60)
    assert (one.leading, two.leading) == (True, False)
    faults.dead = True
    with pytest.raises(LeadershipLost):
        await first
    lost = loop.time()
    assert not two.leading
    while not two.leading:  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(0.1)
    assert 1 < loop.time() - lost < 20
    two.stop()
    await second


async def test_a_skewed_clock_steals_nothing() -> None:
    """Another holder's renewTime may lie far in the past by our clock; only its silence counts."""
    api = FakeApi()
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": "2001-01-01T00:00:00.000000Z"}
    api.create(LEASE[0], {"metadata": {"name": "capi", "namespace": "kube-system"}, "spec": spec})
    manager = a_manager(api, "one")
    task = asyncio.ensure_future(manager.run())
    await asyncio.sleep(14)
    assert not manager.leading
    api.edit(*LEASE, {"spec": {"renewTime": "2001-01-01T00:00:10.000000Z"}})
    await asyncio.sleep(14)
    assert not manager.leading
    await asyncio.sleep(6)
    assert manager.leading
    manager.stop()
    await task


async def test_a_lost_lease_stops_the_work() -> None:
    api = FakeApi()
    manager = a_manager(api, "one")
    task = asyncio.ensure_future(manager.run())
    await asyncio.sleep(1)
    api.edit(*LEASE, {"spec": {"holderIdentity": "thief"}})
    with pytest.raises(LeadershipLost):
        await task
    api.create(FLOCKS, a_flock(size=1))
    await asyncio.sleep(60)
    assert names(api) == []


class Stopped(LoopClock):
    """The clock of a process that was stopped for a while: its timers ring late, all at once."""

    lost = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.lost


async def test_a_leader_that_was_stopped_for_long_writes_nothing_before_it_has_looked_at_its_lease() -> None:
    api, clock = FakeApi(), Stopped()
    manager = Manager(InProcessTransport(api), clock=clock, election=election("one"))
    manager.add(FlockReconciler())
    task = asyncio.ensure_future(manager.run())
    await asyncio.sleep(1)
    api.create(FLOCKS, a_flock("before", size=1))
    await asyncio.sleep(1)
    there = names(api)
    assert there
    clock.lost = 60
    api.create(FLOCKS, a_flock("after", size=1))
    with pytest.raises(LeadershipLost):
        await task
    assert names(api) == there

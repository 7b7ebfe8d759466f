"""A key waits for its own writes: a cache that is late but moves is waited for, one that stands still is not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from capi.client.inprocess import InProcessTransport
from capi.kube.messages import Request
from tests.virtual.fake_api import FakeApi
from tests.virtual.runtime.rig import FLOCKS, Faults, FlockReconciler, a_flock, names, running, settle

pytestmark = pytest.mark.looptime


@dataclass
class Slow(Faults):
    """Events of Sheep come one at a time, `pause` seconds apart."""

    inner: InProcessTransport = field(default_factory=lambda: InProcessTransport(FakeApi()))
    pause: float = 3.0

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self.inner.stream(request) as lines:
            yield self._late(lines) if request.path.endswith("/sheep") else lines

    async def _late(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            if b'"BOOKMARK"' not in line:
                await asyncio.sleep(self.pause)
            yield line


async def test_a_cache_that_is_late_but_moves_is_waited_for() -> None:
    """Four sheep take twelve seconds to show; deciding after five would be deciding on one or two of them."""
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=4))
    reconciler = FlockReconciler()
    async with running(api, reconciler, Slow(InProcessTransport(api))) as manager:
        await settle(manager)
        assert names(api) == ["a-0", "a-1", "a-2", "a-3"]
        assert set(reconciler.seen) == {0, 4}


async def test_a_cache_that_stands_still_is_not_waited_for_for_ever() -> None:
    """Twenty seconds without an event are no progress: the key goes on with what is known, and nothing is made twice."""
    api = FakeApi()
    api.create(FLOCKS, a_flock(size=2))
    reconciler = FlockReconciler()
    async with running(api, reconciler, Slow(InProcessTransport(api), pause=20.0)) as manager:
        await asyncio.sleep(15)
        assert len(reconciler.passes) >= 2, "it did not wait for the event"
        await settle(manager)
        assert names(api) == ["a-0", "a-1"]


async def test_a_busy_controller_lets_others_have_their_turn() -> None:
    """Hundreds of keys whose passes never wait: something else that is due is not held up until they are through."""
    api = FakeApi()
    for number in range(300):
        api.create(FLOCKS, a_flock(f"f{number}", size=1))
    reconciler = FlockReconciler()
    turns = 0

    async def other() -> None:
        nonlocal turns
        while len(names(api)) < 300:
            turns += 1
            await asyncio.sleep(0)

    async with running(api, reconciler) as manager:
        await asyncio.gather(other(), settle(manager))
    assert turns > 50

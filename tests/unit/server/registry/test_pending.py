"""The work list of the background loops."""

import asyncio

import pytest

from capi.aio.clock import LoopClock
from capi.server.registry.pending import Pending, work_off
from capi.server.store.memory import MemoryStore


async def test_a_key_that_cannot_be_processed_ends_nothing_but_itself(caplog: pytest.LogCaptureFixture) -> None:
    pending: Pending[str] = Pending()
    done = asyncio.Queue[str]()

    def process(key: str) -> None:
        if key == "bad":
            raise ValueError(key)
        done.put_nowait(key)

    work = asyncio.create_task(work_off(pending, process, MemoryStore(), LoopClock()))
    pending.update(["a", "bad", "b"])
    async with asyncio.timeout(5):
        assert [await done.get(), await done.get()] == ["a", "b"]
        pending.add("c")
        assert await done.get() == "c"
    work.cancel()
    assert [record.getMessage() for record in caplog.records] == ["Processing bad failed"]

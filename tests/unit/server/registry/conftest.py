"""A registry over a memory store, its clock, and builders."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from capi.aio.clock import LoopClock
from capi.server.registry.registry import ApiRegistry
from capi.server.store.memory import MemoryStore
from tests.unit.server.registry.rig import Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    """A registry with namespace `ns`, without its background loops; `rig.settle()` does their work."""
    registry = ApiRegistry(MemoryStore(), clock=LoopClock(time=lambda: 0.0))
    rig = Rig(registry)
    run(registry.start())
    run(rig.create("namespaces", {"metadata": {"name": "ns"}}, namespace=""))
    run(rig.settle())
    yield rig
    run(registry.close())


def run(work: Coroutine[Any, Any, object]) -> None:
    """In a loop of its own: a memory store belongs to none."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(work)
    finally:
        loop.close()

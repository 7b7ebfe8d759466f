"""A registry over a memory store, its clock, and builders."""

from collections.abc import AsyncIterator

import pytest

from capi.aio.clock import LoopClock
from capi.server.registry.registry import ApiRegistry
from capi.server.store.memory import MemoryStore
from tests.unit.server.registry.rig import Rig


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """A registry with namespace `ns`, without its background loops; `rig.settle()` does their work."""
    registry = ApiRegistry(MemoryStore(), clock=LoopClock())
    await registry.start()
    rig = Rig(registry)
    await rig.create("namespaces", {"metadata": {"name": "ns"}}, namespace="")
    await rig.settle()
    yield rig
    await registry.close()

"""What the registry does as time passes: bookmarks, the end of watches, background loops, expiry."""

import asyncio

import pytest

from capi.aio.clock import LoopClock
from capi.server.registry.registry import ApiRegistry
from capi.server.store.memory import MemoryStore
from tests.unit.server.registry.rig import Rig, a_config_map, owned_by


async def a_rig() -> Rig:
    registry = ApiRegistry(MemoryStore(), clock=LoopClock())
    await registry.start()
    rig = Rig(registry)
    await rig.create("namespaces", {"metadata": {"name": "ns"}}, namespace="")
    return rig


@pytest.mark.looptime
async def test_bookmarks_come_every_minute_and_before_the_end() -> None:
    rig = await a_rig()
    seen, _ = rig.watch("configmaps", allow_bookmarks=True, timeout_seconds=150, resource_version="1")
    plain, _ = rig.watch("configmaps", timeout_seconds=150)
    await asyncio.sleep(149)
    await rig.create("secrets", {"metadata": {"name": "moves-the-revision"}})
    assert [event["type"] for event in seen.events] == ["BOOKMARK"] * 3
    assert seen.events[-1]["object"]["metadata"] == {"resourceVersion": "5"}
    assert not seen.ended and plain.events == []
    await asyncio.sleep(2)
    assert seen.ended and plain.ended and rig.registry.watches() == 0


@pytest.mark.looptime
async def test_a_watch_without_timeout_ends_within_an_hour() -> None:
    rig = await a_rig()
    seen, _ = rig.watch("configmaps")
    await asyncio.sleep(1790)
    assert not seen.ended
    await asyncio.sleep(1820)
    assert seen.ended


@pytest.mark.looptime
async def test_the_background_collects_empties_and_expires() -> None:
    rig = await a_rig()
    background = asyncio.ensure_future(rig.registry.run())
    owner = await rig.create("configmaps", a_config_map("owner"))
    await rig.create("configmaps", a_config_map("child", **owned_by(owner)))
    await rig.create("events", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "ns"}})
    await rig.delete("configmaps", "owner")
    await asyncio.sleep(1)
    assert rig.names("configmaps") == [] and rig.names("events") == ["e"]
    await asyncio.sleep(3700)
    assert rig.names("events") == []
    await rig.create("configmaps", a_config_map())
    await rig.delete("namespaces", "ns", "")
    await asyncio.sleep(1)
    assert rig.gone("namespaces", "ns", "")
    background.cancel()
    with pytest.raises(asyncio.CancelledError):
        await background


@pytest.mark.looptime
async def test_an_idle_registry_writes_nothing() -> None:
    rig = await a_rig()
    background = asyncio.ensure_future(rig.registry.run())
    await asyncio.sleep(1)
    before = rig.registry.revision
    await asyncio.sleep(3600)
    assert rig.registry.revision == before
    background.cancel()
    with pytest.raises(asyncio.CancelledError):
        await background

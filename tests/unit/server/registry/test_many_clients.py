"""Many clients at once: answers are snapshots, nothing is lost between a list and a watch, nothing is left behind."""

import asyncio
import random
from pathlib import Path

import orjson

from capi.aio.clock import SystemClock
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.kube.types import Object, ResourceType
from capi.server.http.app import ApiServer
from capi.server.registry.registry import ApiRegistry
from capi.server.store.memory import MemoryStore
from capi.server.store.sqlite import SqliteStore

CONFIG_MAPS = ResourceType("", "v1", "ConfigMap", "configmaps")
OBJECTS, CLIENTS, ROUNDS, WATCHES = 60, 20, 25, 100


def a_config_map(name: str, **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


async def work(client: Client, seed: int, sums: dict[str, int]) -> None:
    """Patch, get and list; revisions of an object never go back, and an answer stays as it was."""
    rng, seen = random.Random(seed), dict[str, int]()
    for n in range(ROUNDS):
        name = f"o{rng.randrange(OBJECTS)}"
        patched = await client.patch(CONFIG_MAPS, name, "default", {"data": {f"by{seed}": str(n)}})
        before = orjson.dumps(patched)
        sums[f"{name}/{seed}"] = n
        for found in (await client.get(CONFIG_MAPS, name, "default"), *await client.list(CONFIG_MAPS, "default")):
            meta = found["metadata"]
            assert int(meta["resourceVersion"]) >= seen.get(meta["name"], 0)
            seen[meta["name"]] = int(meta["resourceVersion"])
        assert orjson.dumps(patched) == before


async def look(client: Client) -> None:
    """Open watches and leave them in the midst of their events."""
    for n in range(WATCHES):
        async with client.watch(CONFIG_MAPS, "default") as events:
            for _ in range(n % 5):
                await anext(events)
        await asyncio.sleep(0)


async def test_all_answers_are_whole_and_no_watch_stays_behind() -> None:
    registry = ApiRegistry(MemoryStore(), clock=SystemClock())
    await registry.start()
    client = Client(InProcessTransport(ApiServer(registry, clock=SystemClock())))
    for n in range(OBJECTS):
        await client.create(CONFIG_MAPS, a_config_map(f"o{n}"))
    sums: dict[str, int] = {}
    async with asyncio.timeout(60):
        await asyncio.gather(*(work(client, seed, sums) for seed in range(CLIENTS)), look(client), look(client))
    for found in await client.list(CONFIG_MAPS, "default"):
        mine = {
            key.partition("/")[2]: n for key, n in sums.items() if key.partition("/")[0] == found["metadata"]["name"]
        }
        assert found.get("data", {}) == {f"by{seed}": str(n) for seed, n in mine.items()}, "no write was lost"
    await asyncio.sleep(0)
    assert registry.watches() == 0
    await registry.close()


async def test_what_changes_between_a_list_and_its_watch_is_seen_once_and_in_order(tmp_path: Path) -> None:
    """Also when nothing at all was written since the server started."""
    path = tmp_path / "store.db"
    for _ in range(2):
        store = SqliteStore.open(path)
        registry = ApiRegistry(store, clock=SystemClock())
        await registry.start()
        serving = asyncio.ensure_future(registry.run())
        client = Client(InProcessTransport(ApiServer(registry, clock=SystemClock())))
        if not await client.list(CONFIG_MAPS, "default"):
            await client.create(CONFIG_MAPS, a_config_map("b"))
        serving.cancel()
        await asyncio.wait([serving])
        await registry.close()
        await store.close()
    store = SqliteStore.open(path)
    registry = ApiRegistry(store, clock=SystemClock())
    await registry.start()
    client = Client(InProcessTransport(ApiServer(registry, clock=SystemClock())))
    empty, page = await client.page(CONFIG_MAPS, "kube-system"), await client.page(CONFIG_MAPS, "default")
    assert int(empty.revision) == int(page.revision) > 0
    await client.create(CONFIG_MAPS, a_config_map("a"))
    await client.patch(CONFIG_MAPS, "a", "default", {"data": {"k": "v"}})
    await client.delete(CONFIG_MAPS, "b", "default")
    async with client.watch(CONFIG_MAPS, "default", (("resourceVersion", page.revision),)) as events:
        seen = [await anext(events) for _ in range(3)]
    assert [(e.type, e.object["metadata"]["name"]) for e in seen] == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]
    revisions = [int(e.object["metadata"]["resourceVersion"]) for e in seen]
    assert revisions == sorted(set(revisions)) and revisions[0] > int(page.revision)
    await registry.close()
    await store.close()

"""The registry over a durable store: acknowledged means on disk, nothing is shown before, nothing is lost by kill -9."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from capi.aio.clock import SystemClock
from capi.kube.errors import AlreadyExists, InternalError, NotFound
from capi.server.registry.interface import WriteOptions
from capi.server.registry.registry import ApiRegistry
from capi.server.store.sqlite import SqliteStore
from tests.unit.server.registry.rig import Lines, Rig, a_config_map, a_definition, a_widget, owned_by


async def opened(path: Path) -> Rig:
    registry = ApiRegistry(SqliteStore.open(path), clock=SystemClock())
    await registry.start()
    return Rig(registry)


async def test_nothing_is_shown_before_it_is_durable(tmp_path: Path) -> None:
    rig = await opened(tmp_path / "state.db")
    seen, _ = rig.watch("configmaps", "default")
    first = asyncio.ensure_future(rig.create("configmaps", a_config_map(), namespace="default"))
    again = asyncio.ensure_future(rig.create("configmaps", a_config_map(), namespace="default"))
    await asyncio.sleep(0)
    assert rig.gone("configmaps", "a", "default") and seen.events == [] and not again.done()
    made = await first
    assert rig.get("configmaps", "a", "default") == made and seen.brief == [("ADDED", "a")]
    with pytest.raises(AlreadyExists):
        await again
    await rig.registry.close()


async def test_a_write_that_the_disk_refuses_never_happened(tmp_path: Path) -> None:
    rig = await opened(tmp_path / "state.db")
    store = rig.registry._store
    assert isinstance(store, SqliteStore)
    store._db.set_authorizer(lambda *_: 1)  # SQLite refuses every statement, as it does on a full disk
    with pytest.raises(InternalError, match="Internal error occurred: writing"):
        await rig.create("configmaps", a_config_map(), namespace="default")
    store._db.set_authorizer(None)
    with pytest.raises(NotFound):
        await rig.delete("configmaps", "a", "default")
    await rig.create("configmaps", a_config_map(), namespace="default")
    await rig.registry.close()


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    rig = await opened(tmp_path / "state.db")
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    widget = await rig.create("widgets", a_widget(), namespace="default")
    await rig.create("configmaps", a_config_map("kept", **owned_by(widget)), namespace="default")
    before = rig.registry.revision
    await rig.registry.close()

    rig = await opened(tmp_path / "state.db")
    assert rig.registry.revision == before, "a restart writes nothing"
    assert rig.get("widgets", "w", "default") == widget
    seen = Lines()
    rig.watch("widgets", "default", seen, resource_version=str(before))
    stale = Lines()
    rig.watch("widgets", "default", stale, resource_version=str(before - 1))
    assert stale.events[0]["object"]["code"] == 410
    await rig.settle()
    assert rig.names("configmaps", "default") == ["kept"]
    changed = await rig.registry.patch(
        rig.info("widgets"), "default", "w", "application/merge-patch+json", b'{"spec":{"size":2}}', options()
    )
    assert int(changed.object["metadata"]["resourceVersion"]) > before and seen.brief == [("MODIFIED", "w")]
    await rig.registry.close()


def options() -> WriteOptions:
    return WriteOptions(field_manager="test")


_WRITER = """
import asyncio, sys
from pathlib import Path
from tests.unit.server.registry.test_durability import opened
from tests.unit.server.registry.rig import a_config_map, owned_by

async def work(rig, worker):
    for n in range(100_000):
        name = f"w{worker}-{n}"
        owner = await rig.create("configmaps", a_config_map(name), namespace="default")
        await rig.create("secrets", {"metadata": {"name": name, **owned_by(owner)}}, namespace="default")
        if n % 3 == 0:
            await rig.delete("configmaps", name, "default")
        print(worker, n, rig.registry.revision, flush=True)

async def main():
    rig = await opened(Path(sys.argv[1]))
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.registry.run())
        for worker in range(4):
            group.create_task(work(rig, worker))

asyncio.run(main())
"""


async def test_kill_9_loses_no_answer_and_garbage_collection_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    child = subprocess.Popen([sys.executable, "-c", _WRITER, str(file)], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220 - it is killed, not awaited
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(60)]
    os.kill(child.pid, signal.SIGKILL)
    lines += child.stdout.readlines()
    child.stdout.close()
    child.wait()
    answered = [tuple(map(int, line.split())) for line in lines if line.endswith("\n")]

    rig = await opened(file)
    await rig.settle()
    assert rig.registry.revision >= max(revision for _, _, revision in answered)
    owners, dependents = set(rig.names("configmaps", "default")), set(rig.names("secrets", "default"))
    for worker, n, _ in answered:
        name = f"w{worker}-{n}"
        assert (name in owners) == (n % 3 != 0) and (name in dependents) == (n % 3 != 0), name
    await rig.registry.close()

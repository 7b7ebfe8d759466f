"""Both stores behave as one revision log."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from capi.kube.errors import InternalError
from capi.kube.types import Key, Object
from capi.server.store.interface import Compacted, Store, StoreError, StoreEvent
from capi.server.store.memory import MemoryStore
from capi.server.store.sqlite import SqliteStore

A, B = Key("ns", "a"), Key("ns", "b")


def an_object(value: int = 0) -> Object:
    return {"metadata": {"name": "a"}, "value": value}


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened: Store = MemoryStore() if request.param == "memory" else SqliteStore.open(tmp_path / "data" / "state.db")
    yield opened
    loop = asyncio.new_event_loop()
    loop.run_until_complete(opened.close())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


async def test_a_change_is_seen_at_the_head_at_once_and_committed_when_durable(store: Store) -> None:
    entry = store.put("pods", A, an_object(1))
    assert store.head("pods", A) is entry
    await store.durable(entry.revision)
    assert store.get("pods", A) is entry
    assert entry.object["metadata"]["resourceVersion"] == "1"
    assert store.revision == store.head_revision == 1


async def test_events_come_in_revision_order_with_old_and_new(store: Store) -> None:
    seen: list[StoreEvent] = []
    store.subscribe("pods", seen.append)
    store.put("pods", A, an_object(1))
    store.put("pods", A, an_object(2))
    store.put("nodes", Key("", "n"), an_object())
    last = store.remove("pods", A)
    await store.durable(last.revision)
    assert [(e.revision, e.type) for e in seen] == [(1, "ADDED"), (2, "MODIFIED"), (4, "DELETED")]
    assert seen[1].old is not None and seen[1].old.object["value"] == 1
    assert seen[2].new.object["metadata"]["resourceVersion"] == "4"
    assert store.events("pods", 1) == seen[1:]
    assert store.get("pods", A) is None


async def test_a_list_of_an_earlier_revision_undoes_later_changes(store: Store) -> None:
    store.put("pods", A, an_object(1))
    store.put("pods", B, an_object(2))
    then = store.head_revision
    store.put("pods", A, an_object(3))
    store.remove("pods", B)
    await store.durable(store.put("pods", Key("ns", "c"), an_object(4)).revision)
    assert [(k.name, e.object["value"]) for k, e in store.scan_at("pods", then)] == [("a", 1), ("b", 2)]
    assert [(k.name, e.object["value"]) for k, e in store.scan("pods")] == [("a", 3), ("c", 4)]
    assert [k.name for k, _ in store.scan_at("pods", then, after=A)] == ["b"]


async def test_scans_are_ordered_by_namespace_and_name(store: Store) -> None:
    for key in (Key("b", "x"), Key("a", "z"), Key("a", "y")):
        revision = store.put("pods", key, an_object()).revision
    await store.durable(revision)
    assert [str(k) for k, _ in store.scan("pods")] == ["a/y", "a/z", "b/x"]
    assert [str(k) for k, _ in store.scan("pods", "a")] == ["a/y", "a/z"]
    assert [str(k) for k, _ in store.scan("pods", after=Key("a", "y"))] == ["a/z", "b/x"]
    assert (store.count("pods"), store.count("pods", "b")) == (3, 1)


async def test_compacted_history_is_refused(store: Store) -> None:
    await store.durable(store.put("pods", A, an_object()).revision)
    await store.durable(store.put("pods", A, an_object(1)).revision)
    store.compact(1)  # type: ignore[attr-defined]  # both stores have it
    with pytest.raises(Compacted):
        store.events("pods", 0)
    assert [e.revision for e in store.events("pods", 1)] == [2]


async def test_an_unsubscribed_listener_hears_nothing_more(store: Store) -> None:
    seen: list[StoreEvent] = []
    store.subscribe("", seen.append)()
    await store.durable(store.put("pods", A, an_object()).revision)
    assert seen == []


async def test_objects_and_revisions_survive_a_restart(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "state.db")
    store.put("pods", A, an_object(7))
    store.put("pods", B, an_object())
    await store.durable(store.remove("pods", B).revision)
    await store.close()
    again = SqliteStore.open(tmp_path / "state.db")
    entry = again.get("pods", A)
    assert entry is not None and entry.object["value"] == 7
    assert again.get("pods", B) is None
    assert again.revision == 3
    assert again.put("pods", B, an_object()).revision == 4
    with pytest.raises(Compacted):
        again.events("pods", 2)
    assert again.events("pods", 3) == []
    await again.close()


async def test_changes_of_one_turn_share_a_transaction(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "state.db")
    revisions = [store.put("pods", Key("ns", str(i)), an_object()).revision for i in range(100)]
    assert store.revision == 0 and len(store.head_keys("pods")) == 100
    assert store.get("pods", Key("ns", "0")) is None
    await asyncio.gather(*map(store.durable, revisions))
    assert store.revision == 100
    await store.close()


async def test_a_second_process_is_told_which_file_is_in_use(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "state.db")
    with pytest.raises(StoreError, match=r"state\.db is in use by another process \(process \d+\)"):
        SqliteStore.open(tmp_path / "state.db")
    await store.close()
    await SqliteStore.open(tmp_path / "state.db").close()


async def test_the_data_file_is_private(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "data" / "state.db")
    await store.durable(store.put("pods", A, an_object()).revision)
    for file in (tmp_path / "data").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    await store.close()


@pytest.mark.parametrize(
    "content", [b"this is not a database, whatever its name says" * 20, b"SQLite format 3\0" + b"\xff" * 200]
)
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "state.db"
    file.write_bytes(content)
    with pytest.raises(StoreError, match=str(file)):
        SqliteStore.open(file)
    assert file.read_bytes() == content


def test_an_unusable_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot use the data directory .*file"):
        SqliteStore.open(tmp_path / "file" / "state.db")


async def test_a_failed_commit_fails_its_writers_and_undoes_the_head(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "state.db")
    await store.durable(store.put("pods", A, an_object(1)).revision)
    store._db.set_authorizer(lambda *_: 1)  # SQLite refuses every statement, as it does on a full disk
    lost = store.put("pods", A, an_object(2))
    with pytest.raises(InternalError, match=r"state\.db"):
        await store.durable(lost.revision)
    store._db.set_authorizer(None)
    head = store.head("pods", A)
    assert head is not None and head.object["value"] == 1
    after = store.put("pods", A, an_object(3))
    await store.durable(after.revision)
    assert after.revision == 3
    await store.close()


async def test_a_listener_that_fails_keeps_nobody_waiting(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = SqliteStore.open(tmp_path / "state.db")
    seen: list[int] = []

    def broken(event: StoreEvent) -> None:
        raise ValueError("broken")

    store.subscribe("pods", broken)
    store.subscribe("pods", lambda event: seen.append(event.revision))
    for value in (1, 2):
        await store.durable(store.put("pods", A, an_object(value)).revision)
    assert seen == [1, 2]
    assert [record.getMessage() for record in caplog.records] == [
        f"A listener failed at revision {revision}: pods {A}" for revision in (1, 2)
    ]
    await store.close()


async def test_a_disk_that_is_full_and_then_not_is_told_twice(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = SqliteStore.open(tmp_path / "state.db")
    full = int(store._db.execute("PRAGMA page_count").get)
    big = {"metadata": {}, "data": "x" * 100_000}
    store._db.execute(f"PRAGMA max_page_count = {full}")
    for name in ("a", "b"):
        with pytest.raises(InternalError, match="database or disk is full"):
            await store.durable(store.put("pods", Key("ns", name), big).revision)
    store._db.execute("PRAGMA max_page_count = 100000")
    await store.durable(store.put("pods", Key("ns", "c"), big).revision)
    await store.close()
    assert [record.getMessage().rpartition("state.db ")[2] for record in caplog.records] == [
        "failed: database or disk is full",
        "works again",
    ]
    again = SqliteStore.open(tmp_path / "state.db")
    assert [key.name for key, _ in again.scan("pods")] == ["c"]
    await again.close()


_WRITER = """
import asyncio, sys
from capi.kube.types import Key
from capi.server.store.sqlite import SqliteStore

async def write(store, worker):
    for n in range(100_000):
        entry = store.put("pods", Key("ns", f"w{worker}"), {"metadata": {}, "n": n})
        await store.durable(entry.revision)
        sys.stdout.write(f"{worker} {n} {entry.revision}\\n")
        sys.stdout.flush()

async def main():
    store = SqliteStore.open(sys.argv[1])
    await asyncio.gather(*(write(store, w) for w in range(8)))

asyncio.run(main())
"""


async def test_no_acknowledged_write_is_lost_by_kill_9(tmp_path: Path) -> None:
    file, newest = tmp_path / "state.db", 0
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", _WRITER, str(file)], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220 - it is killed, not awaited
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(200)]
        os.kill(child.pid, signal.SIGKILL)
        lines += child.stdout.readlines()
        child.stdout.close()
        child.wait()
        acknowledged = [tuple(map(int, line.split())) for line in lines if line.endswith("\n")]
        assert min(revision for _, _, revision in acknowledged) > newest, "revisions go on upward"
        newest = max(revision for _, _, revision in acknowledged)
        store = SqliteStore.open(file)
        assert store.revision >= newest
        for worker in range(8):
            entry = store.get("pods", Key("ns", f"w{worker}"))
            assert entry is not None
            assert entry.object["n"] >= max(n for w, n, _ in acknowledged if w == worker)
            assert entry.object["metadata"]["resourceVersion"] == str(entry.revision)
        await store.close()

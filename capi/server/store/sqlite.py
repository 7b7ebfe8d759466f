"""A durable store: SQLite in WAL mode with `synchronous=FULL`, written by one thread, read never.

All objects live in memory; the file is read once, at start. Group commit: while one transaction runs, every further
change queues for the next, so throughput grows with load while each change is still fsynced before it is acknowledged.
A failed transaction rolls back everything that was queued; its writers get the error, later writers start afresh.

Recent events are not stored: after a restart, a watch from an older revision gets 410 and its client lists again.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import apsw

from capi.kube.errors import InternalError
from capi.kube.types import Key, Object
from capi.server.store.interface import Entry, StoreError
from capi.server.store.log import Change, RevisionLog

_log = logging.getLogger(__name__)

FORMAT = 1
"""`PRAGMA user_version` of the file."""
_APPLICATION_ID = 0x63617069  # "capi"

_SCHEMA = f"""
CREATE TABLE object (
    id INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    revision INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE (resource, namespace, name));
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counter VALUES ('revision', 0);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
"""
_UPSERT = """
INSERT INTO object (resource, namespace, name, revision, value) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (resource, namespace, name) DO UPDATE SET revision = excluded.revision, value = excluded.value"""
_DELETE = "DELETE FROM object WHERE resource = ? AND namespace = ? AND name = ?"
_COUNT = "UPDATE counter SET value = ? WHERE name = 'revision'"


class _Batch:
    """Changes of one transaction, and the future of everybody who waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.changes: list[Change] = []
        self.done: asyncio.Future[None] = loop.create_future()

    @property
    def last(self) -> int:
        return self.changes[-1].entry.revision

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()  # somebody may wait for it; nobody has to


_Job: TypeAlias = "tuple[asyncio.AbstractEventLoop, _Batch]"


class SqliteStore:
    """Implements `store.interface.Store`. Make one with `open`; use it from one event loop."""

    def __init__(self, path: Path, db: apsw.Connection, lock: int, log: RevisionLog) -> None:
        self._path, self._db, self._lock, self._log = path, db, lock, log
        self.get, self.head, self.scan, self.scan_at = log.get, log.head, log.scan, log.scan_at
        self.count, self.head_keys, self.resources = log.count, log.head_keys, log.resources
        self.events, self.subscribe, self.compact = log.events, log.subscribe, log.compact
        self._queued: _Batch | None = None
        self._running: _Batch | None = None
        self._closed = self._failing = False
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="capi-store-writer", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "SqliteStore":
        """Open or create the file (mode 0600; its directory is made if missing) and load it. Blocking.

        Raises StoreError, naming the path, if it cannot be used or another process has it open.
        """
        file = Path(path)
        lock = _lock(file)
        try:
            db = _connect(file)
            log = _load(db)
        except apsw.Error as error:
            os.close(lock)
            remedy = "free some space" if isinstance(error, apsw.FullError) else "move it away or restore a backup"
            raise StoreError(f"cannot use the data file {file}: {error}; {remedy}") from error
        except StoreError:
            os.close(lock)
            raise
        return cls(file, db, lock, log)

    @property
    def revision(self) -> int:
        return self._log.revision

    @property
    def head_revision(self) -> int:
        return self._log.head_revision

    def put(self, resource: str, key: Key, obj: Object) -> Entry:
        batch = self._batch()
        batch.changes.append(change := self._log.put(resource, key, obj))
        return change.entry

    def remove(self, resource: str, key: Key, last: Object | None = None) -> Entry:
        batch = self._batch()
        batch.changes.append(change := self._log.remove(resource, key, last))
        return change.entry

    async def durable(self, revision: int) -> None:
        if revision <= self._log.revision:
            return
        running = self._running
        batch = running if running is not None and revision <= running.last else self._queued
        if batch is not None:
            await asyncio.shield(batch.done)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        while (batch := self._queued or self._running) is not None:
            with contextlib.suppress(InternalError):  # its writers were told
                await asyncio.shield(batch.done)
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    # -- group commit -------------------------------------------------------------------------------------------

    def _batch(self) -> _Batch:
        if self._closed:
            raise StoreError(f"the data file {self._path} is closed")
        if self._queued is None:
            loop = asyncio.get_running_loop()
            self._queued = _Batch(loop)
            loop.call_soon(self._start)  # whatever this turn of the loop still writes joins in
        return self._queued

    def _start(self) -> None:
        batch = self._queued
        if batch is None or self._running is not None or not batch.changes:
            return
        self._queued, self._running = None, batch
        self._jobs.put((asyncio.get_running_loop(), batch))

    def _finish(self, batch: _Batch, error: Exception | None) -> None:
        self._running = None
        if (error is None) == self._failing:
            self._failing = not self._failing
            _log.error("Writing %s %s", self._path, f"failed: {error}" if error else "works again")
        if error is not None:
            self._fail(batch, error)
            return
        for change in batch.changes:
            self._log.commit(change)
        batch.done.set_result(None)
        self._start()

    def _fail(self, batch: _Batch, error: Exception) -> None:
        failure = InternalError(f"Internal error occurred: writing {self._path}: {error}")
        queued, self._queued = self._queued, None
        for lost in (batch, queued):
            if lost is not None:
                self._log.rollback(lost.changes)
                lost.fail(failure)

    # -- the writer's thread ------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, batch = job
            error: Exception | None = None
            try:
                _write(self._db, batch.changes)
            except Exception as raised:  # whatever it was, the writers must hear of it
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
                loop.call_soon_threadsafe(self._finish, batch, error)
        self._db.close()
        os.close(self._lock)


def _write(db: apsw.Connection, changes: Sequence[Change]) -> None:
    """One transaction; of several changes of one object only the last is written."""
    last = {(change.resource, change.key): change for change in changes}
    rows = [(c.resource, *c.key, c.entry.revision, c.entry.encoded) for c in last.values() if not c.removed]
    gone = [(c.resource, *c.key) for c in last.values() if c.removed]
    db.execute("BEGIN IMMEDIATE")
    try:
        if rows:
            db.executemany(_UPSERT, rows)
        if gone:
            db.executemany(_DELETE, gone)
        db.execute(_COUNT, (changes[-1].entry.revision,))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _lock(file: Path) -> int:
    """An exclusive lock that dies with the process; returns its descriptor."""
    path = file.with_name(file.name + ".lock")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"cannot use the data directory {file.parent}: {error.strerror or error}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        who = f" (process {owner})" if owner else ""
        raise StoreError(
            f"the data file {file} is in use by another process{who}; stop it or use another data directory"
        ) from error
    with contextlib.suppress(OSError):  # a full disk: the lock holds, only its message to others lacks the number
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _connect(file: Path) -> apsw.Connection:
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.fchmod(descriptor, 0o600)
        os.close(descriptor)
    except OSError as error:
        raise StoreError(f"cannot use the data file {file}: {error.strerror or error}") from error
    db = apsw.Connection(str(file))
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    version = db.execute("PRAGMA user_version").get
    if version == 0 and not db.execute("SELECT count(*) FROM sqlite_schema").get:
        db.execute(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT")
    elif version != FORMAT or db.execute("PRAGMA application_id").get != _APPLICATION_ID:
        raise StoreError(
            f"{file} is not a data file of this version (its format is {version}, this version reads {FORMAT});"
            " start the capi that wrote it, or use another data directory"
        )
    return db


def _load(db: apsw.Connection) -> RevisionLog:
    log = RevisionLog(int(db.execute("SELECT value FROM counter WHERE name = 'revision'").get))
    for resource, namespace, name, revision, value in db.execute(
        "SELECT resource, namespace, name, revision, value FROM object"
    ):
        log.load(str(resource), Key(str(namespace), str(name)), Entry(int(revision), bytes(value)))
    return log

"""Where simulated clusters keep their objects: one file per cluster, or memory."""

import time
from pathlib import Path
from typing import Protocol

from capi.kube.errors import BackendError
from capi.runtime.plan import ClusterKey
from capi.server.store.interface import Store, StoreError
from capi.server.store.memory import MemoryStore
from capi.server.store.sqlite import SqliteStore


class Stores(Protocol):
    """Opens and forgets the stores of clusters."""

    def open(self, cluster: ClusterKey) -> Store:
        """The cluster's store with what it held before. Raises BackendError."""
        ...

    def forget(self, cluster: ClusterKey) -> None:
        """Remove what the (closed) store held; idempotent."""
        ...


class MemoryStores:
    """Nothing outlives the process.

    Revisions begin at the present microsecond: a client that resumes its watch at the address of a server which has ended
    is told that its revision is too old, and lists anew, however many changes the new server has seen meanwhile.
    """

    def open(self, cluster: ClusterKey) -> Store:
        return MemoryStore(time.time_ns() // 1000)

    def forget(self, cluster: ClusterKey) -> None:
        """Nothing was kept."""


class FileStores:
    """One SQLite file per cluster in `directory`. Kubernetes names hold no underscore, so the file name is unique."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, cluster: ClusterKey) -> Path:
        return self._directory / f"{cluster.namespace}_{cluster.name}.db"

    def open(self, cluster: ClusterKey) -> Store:
        try:
            return SqliteStore.open(self.path(cluster))
        except StoreError as error:
            raise BackendError(error.message, reason="StoreUnavailable") from error

    def forget(self, cluster: ClusterKey) -> None:
        path = self.path(cluster)
        for suffix in ("", "-wal", "-shm", ".lock"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)

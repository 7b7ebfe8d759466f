"""The work list of a background loop: each key once, first come, first served."""

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from capi.aio.clock import Clock
from capi.kube.errors import InternalError
from capi.server.store.interface import Store

_log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

BATCH = 200
"""Keys handled between two looks at everything else."""
_RETRY_SECONDS = 1.0


class Pending(Generic[K]):
    """An ordered set that can be awaited. Unbounded, but never larger than the number of objects."""

    def __init__(self) -> None:
        self._keys: dict[K, None] = {}
        self._wake = asyncio.Event()

    def add(self, key: K) -> None:
        self._keys[key] = None
        self._wake.set()

    def update(self, keys: Iterable[K]) -> None:
        for key in keys:
            self.add(key)

    def __len__(self) -> int:
        return len(self._keys)

    def take(self, limit: int = BATCH) -> list[K]:
        """Up to `limit` keys, at once; possibly none."""
        taken = list(self._keys)[:limit] if len(self._keys) > limit else list(self._keys)
        for key in taken:
            del self._keys[key]
        if not self._keys:
            self._wake.clear()
        return taken

    async def batch(self, limit: int = BATCH) -> list[K]:
        """Up to `limit` keys; waits for the first one."""
        await self._wake.wait()
        return self.take(limit)


async def work_off(pending: Pending[K], process: Callable[[K], None], store: Store, clock: Clock) -> None:
    """Process keys until cancelled, a batch per commit; a batch whose commit fails was undone and is done again."""
    while True:
        batch = await pending.batch()
        for key in batch:
            try:
                process(key)
            except Exception:  # one object that cannot be processed must not end the work on all others
                _log.exception("Processing %s failed", key)
        try:
            await store.durable(store.head_revision)
        except InternalError:
            await clock.sleep(_RETRY_SECONDS)
            pending.update(batch)

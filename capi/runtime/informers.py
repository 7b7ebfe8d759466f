"""The informers of one API server: one per kind and selector, shared by all who read that kind."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from capi.aio.clock import Clock
from capi.client.client import Client
from capi.kube.objects import Resource
from capi.kube.types import ResourceType
from capi.runtime.informer import Informer
from capi.runtime.reflector import Reflector

logger = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds between two words about a cache that does not fill."""
Kind: TypeAlias = type[Resource] | ResourceType


class Informers:
    """Creates informers on demand and runs their reflectors in the task group given to `start`.

    `namespace` restricts namespaced kinds; None caches all namespaces.
    """

    def __init__(self, client: Client, clock: Clock, namespace: str | None = None) -> None:
        self.client = client
        self._clock = clock
        self._namespace = namespace
        self._informers: dict[tuple[Kind, str], tuple[Informer, Reflector]] = {}
        self._tasks: dict[Informer, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def of(
        self,
        kind: Kind,
        labels: str = "",
        *,
        keep: Callable[[Any], bool] | None = None,
        metadata_only: bool = False,
    ) -> Informer:
        """The informer of a kind; created, and started if the others run, at the first call. Later options are ignored."""
        found = self._informers.get((kind, labels))
        if found is None:
            informer = Informer(kind, labels, keep)
            namespace = self._namespace if informer.resource.namespaced else None
            found = informer, Reflector(self.client, informer, self._clock, namespace, metadata_only)
            self._informers[kind, labels] = found
            if self._group is not None:
                self._run(self._group, *found)
        return found[0]

    def start(self, group: asyncio.TaskGroup) -> None:
        """Run all informers, those of the future too, as tasks of `group`."""
        self._group = group
        for informer, reflector in self._informers.values():
            self._run(group, informer, reflector)

    def _run(self, group: asyncio.TaskGroup, informer: Informer, reflector: Reflector) -> None:
        self._tasks[informer] = group.create_task(reflector.run(), name=f"reflector {informer.resource.plural}")

    def stop(self, informer: Informer) -> None:
        """Forget an informer; its cache stays as it is."""
        for key, (known, _) in list(self._informers.items()):
            if known is informer:
                del self._informers[key]
        task = self._tasks.pop(informer, None)
        if task is not None:
            task.cancel()

    def stop_all(self) -> None:
        for informer, _ in list(self._informers.values()):
            self.stop(informer)
        self._group = None

    async def wait_synced(self) -> None:
        """Return when every informer created so far has its first full state."""
        for informer, reflector in list(self._informers.values()):
            while not informer.synced.is_set():
                try:
                    async with asyncio.timeout(PATIENCE):
                        await informer.synced.wait()
                except TimeoutError:
                    why = reflector.error.message if reflector.error else "no answer yet"
                    logger.warning("Waiting for %s: %s", informer.resource.qualified_plural, why)

    @property
    def synced(self) -> bool:
        return all(informer.synced.is_set() for informer, _ in self._informers.values())

    def trouble(self, patience: float = 0.0) -> dict[str, str]:
        """Kinds without contact for more than `patience` seconds, or not yet synced, and why."""
        troubled = {}
        for informer, reflector in self._informers.values():
            if not informer.synced.is_set() or reflector.silent_for() > patience:
                error = reflector.error
                troubled[informer.resource.qualified_plural] = error.message if error else "not synced yet"
        return troubled

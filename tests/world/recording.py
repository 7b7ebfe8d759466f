"""What a watcher saw, in the order of the server's revisions."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from capi.client.client import Client
from capi.kube.objects import Resource


@dataclass(frozen=True, slots=True)
class Seen:
    """One watch event; revisions order events of all kinds, since the store has one log."""

    type: str
    object: Resource

    @property
    def kind(self) -> str:
        return self.object.resource.kind

    @property
    def revision(self) -> int:
        return int(self.object.metadata.resource_version)


class Recording:
    """All events since the recording began."""

    def __init__(self) -> None:
        self._seen: list[Seen] = []

    def add(self, seen: Seen) -> None:
        self._seen.append(seen)

    def __iter__(self) -> Iterator[Seen]:
        return iter(sorted(self._seen, key=lambda seen: seen.revision))

    def kinds(self, type_: str) -> list[str]:
        """Kinds of the events of a type, in order."""
        return [seen.kind for seen in self if seen.type == type_]


@asynccontextmanager
async def recording(client: Client, *kinds: type[Resource]) -> AsyncIterator[Recording]:
    """Watch kinds from their present state on."""
    made = Recording()
    starts = {kind: (await client.page(kind, limit=1)).revision for kind in kinds}

    async def follow(kind: type[Resource], revision: str) -> None:
        async with client.watch(kind, None, (("resourceVersion", revision),)) as events:
            async for event in events:
                made.add(Seen(event.type, event.object))

    tasks = [asyncio.ensure_future(follow(kind, revision)) for kind, revision in starts.items()]
    try:
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()

"""Every write of the controllers, with who wrote it: a Transport that notes what passes."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import orjson

from capi.client.transport import Transport
from capi.kube.messages import Request, Response

CORE = ("capi-cluster", "capi-machine", "capi-machinehealthcheck", "capi-machinepool")
"""Field managers of the core controllers; the others are an infrastructure provider's."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One write that was answered without an error."""

    writer: str
    """The field manager, or the component of an Event; "" for deletes and evictions, which name nobody."""
    verb: str
    resource: str
    """Plural, with the subresource: `machines/status`."""
    name: str


@dataclass(slots=True)
class Ledger:
    """Writes in their order; leases left out."""

    entries: list[Entry] = field(default_factory=list)

    def wire(self, transport: Transport) -> Transport:
        return Noting(transport, self.entries.append)

    def clear(self) -> None:
        self.entries.clear()

    def count(self, *resources: str, writers: tuple[str, ...] = CORE) -> int:
        """Writes of `writers` to `resources` (none: to all)."""
        return sum(e.writer in writers and (not resources or e.resource in resources) for e in self.entries)

    def by_resource(self, writers: tuple[str, ...] = CORE) -> Counter[str]:
        return Counter(e.resource for e in self.entries if e.writer in writers)


@dataclass(slots=True)
class Noting:
    """Passes everything on."""

    inner: Transport
    note: Callable[[Entry], None]

    async def request(self, request: Request) -> Response:
        answer = await self.inner.request(request)
        if request.method != "GET" and "/leases" not in request.path and answer.status < 400:
            self.note(entry(request))
        return answer

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self.inner.stream(request)

    async def close(self) -> None:
        await self.inner.close()


def entry(request: Request) -> Entry:
    """What a write is, by its path and who says that it is theirs."""
    parts = request.path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    plural, name, subresource = (*rest, "", "")[:3]
    writer = dict(request.query).get("fieldManager", "")
    if plural == "events":
        writer = orjson.loads(request.body).get("source", {}).get("component", "")
    return Entry(writer, request.method, f"{plural}/{subresource}" if subresource else plural, name)

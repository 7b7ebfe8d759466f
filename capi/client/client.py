"""Calls on one API server: paths, options and bodies in; objects or the ApiError tree out. No caching, no policy.

Every call takes a kind (a Resource class) and gives typed objects, or a ResourceType and gives parsed JSON. Typed objects
are never PUT (decoding drops what they do not know): they are created or applied.
Retries: only an answer 429 with a time to wait, which promises that nothing was done.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, overload

import msgspec
import orjson

from capi.client.answers import check, parse
from capi.client.transport import Transport
from capi.kube.errors import ApiError, Expired, TooManyRequests, TransportError, from_status
from capi.kube.messages import Request
from capi.kube.objects import R, Resource, from_wire, to_wire
from capi.kube.types import Object, ResourceType

PAGE = 500
"""Objects per page of a list, as client-go asks."""
_PATIENCE = 4
"""Attempts at a request that is answered 429."""
_LONGEST_WAIT = 10.0
"""Seconds; a server that asks for more is told to the caller instead."""

Kind = type[Resource] | ResourceType
Query = tuple[tuple[str, str], ...]
PATCH_TYPES: Mapping[str, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
T = TypeVar("T")
Listed: TypeAlias = list[T]
"""A name for the built-in type inside a class that has a method `list`."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list, undecoded items apart."""

    items: list[Any]
    revision: str
    continue_: str = ""


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One change. A BOOKMARK's object is parsed JSON whatever the kind asked for; an ERROR is raised, never an event."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: T


class RawEvent(msgspec.Struct, gc=False):
    """A watch line before its object is decoded."""

    type: str
    object: msgspec.Raw


decode_event = msgspec.json.Decoder(RawEvent).decode


def resource_of(kind: Kind) -> ResourceType:
    return kind if isinstance(kind, ResourceType) else kind.resource


class Client:
    """Verbs over a Transport. Raises ApiError for refusals and TransportError when there is no answer."""

    def __init__(self, transport: Transport, *, user_agent: str = "capi") -> None:
        self.transport = transport
        self._agent = user_agent
        self._headers = {"user-agent": user_agent, "accept": "application/json"}

    async def send(self, method: str, path: str, query: Query = (), body: bytes = b"", content_type: str = "") -> bytes:
        """The body of a 2xx answer."""
        headers = {**self._headers, "content-type": content_type or "application/json"} if body else self._headers
        request = Request(method, path, query, headers, body)
        for attempt in range(_PATIENCE):
            try:
                return check(await self.transport.request(request))
            except TooManyRequests as error:
                wait = error.retry_after
                if not 0 < wait <= _LONGEST_WAIT or attempt == _PATIENCE - 1 or path.endswith("/eviction"):
                    raise
            await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    @overload
    async def get(self, kind: type[R], name: str, namespace: str = "", *, subresource: str = "") -> R: ...
    @overload
    async def get(self, kind: ResourceType, name: str, namespace: str = "", *, subresource: str = "") -> Object: ...
    async def get(self, kind: Kind, name: str, namespace: str = "", *, subresource: str = "") -> Resource | Object:
        """One object. Raises NotFound."""
        path = resource_of(kind).path(namespace, name, subresource)
        decoded: Resource | Object = _decoded(kind, await self.send("GET", path))
        return decoded

    @overload
    async def list(
        self, kind: type[R], namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> Listed[R]: ...
    @overload
    async def list(
        self, kind: ResourceType, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> Listed[Object]: ...
    async def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> Listed[Any]:
        """All objects that match the selectors, read in pages; None for all namespaces."""
        items: Listed[Any] = []
        continue_ = ""
        while True:
            try:
                page = await self.page(kind, namespace, labels=labels, fields=fields, continue_=continue_)
            except Expired:
                if not continue_:
                    raise
                items, continue_ = [], ""  # the list took longer than the server remembers: begin again
                continue
            items += page.items
            continue_ = page.continue_
            if not continue_:
                return items

    async def page(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        continue_: str = "",
        limit: int = PAGE,
    ) -> Page:
        """One page of a list; typed kinds are decoded."""
        options = (
            ("labelSelector", labels),
            ("fieldSelector", fields),
            ("limit", str(limit or "")),
            ("continue", continue_),
        )
        query = tuple((name, value) for name, value in options if value)
        raw = parse(await self.send("GET", resource_of(kind).path(namespace), query))
        items = raw.get("items") or []
        metadata = raw.get("metadata") or {}
        if not isinstance(kind, ResourceType):
            items = [from_wire(kind, item) for item in items]
        return Page(items, metadata.get("resourceVersion", ""), metadata.get("continue") or "")

    @overload
    async def create(self, what: R, body: None = None, *, manager: str = "") -> R: ...
    @overload
    async def create(self, what: ResourceType, body: Object, *, manager: str = "") -> Object: ...
    async def create(
        self, what: Resource | ResourceType, body: Object | None = None, *, manager: str = ""
    ) -> Resource | Object:
        """Create a typed object, or `body` as a resource. Raises AlreadyExists."""
        kind: Kind = what if isinstance(what, ResourceType) else type(what)
        resource = resource_of(kind)
        raw = to_wire(what) if isinstance(what, Resource) else body or {}
        metadata = raw.get("metadata") or {}
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **raw}
        path = resource.path(metadata.get("namespace"))
        decoded: Resource | Object = _decoded(kind, await self.send("POST", path, _by(manager), orjson.dumps(full)))
        return decoded

    async def apply(
        self, resource: ResourceType, body: Object, *, manager: str = "", subresource: str = "", force: bool = True
    ) -> Object:
        """Server-side apply of `body`, whose metadata names the object, as `manager` (the User-Agent's name if empty)."""
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        query = (*_by(manager or self._agent.partition("/")[0]), *((("force", "true"),) if force else ()))
        return parse(await self.send("PATCH", path, query, orjson.dumps(full), PATCH_TYPES["apply"]))

    async def patch(  # noqa: PLR0913 - the parts of a request
        self,
        resource: ResourceType,
        name: str,
        namespace: str,
        body: Any,
        *,
        type_: Literal["merge", "strategic", "json"] = "merge",
        subresource: str = "",
        manager: str = "",
    ) -> Object:
        """Patch one object or its subresource."""
        path = resource.path(namespace, name, subresource)
        return parse(await self.send("PATCH", path, _by(manager), orjson.dumps(body), PATCH_TYPES[type_]))

    async def update_raw(
        self, resource: ResourceType, body: Object, *, subresource: str = "", manager: str = ""
    ) -> Object:
        """PUT a whole parsed object, read before. Raises Conflict when its resourceVersion is not the newest."""
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
        return parse(await self.send("PUT", path, _by(manager), orjson.dumps(body)))

    async def delete(
        self, kind: Kind, name: str, namespace: str = "", *, uid: str = "", propagation: str = "Background"
    ) -> Object:
        """Delete one object: the object when it has finalizers to wait for, else a Status. Raises NotFound, Conflict (uid)."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if uid:
            options["preconditions"] = {"uid": uid}
        return parse(await self.send("DELETE", resource_of(kind).path(namespace, name), (), orjson.dumps(options)))

    async def evict(self, name: str, namespace: str, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """Evict a Pod. Raises TooManyRequests while a PodDisruptionBudget forbids it, Conflict (uid), NotFound."""
        options: Object = {}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        body: Object = {"apiVersion": "policy/v1", "kind": "Eviction"}
        body["metadata"] = {"name": name, "namespace": namespace}
        if options:
            body["deleteOptions"] = options
        await self.send("POST", PODS.path(namespace, name, "eviction"), (), orjson.dumps(body))

    async def scale(self, kind: Kind, name: str, namespace: str, replicas: int) -> Object:
        """Set the replicas of a scalable kind through its scale subresource."""
        body = {"spec": {"replicas": replicas}}
        return await self.patch(resource_of(kind), name, namespace, body, subresource="scale")

    @overload
    def watch(self, kind: type[R], namespace: str | None = None, query: Query = ()) -> "_Watch[R]": ...
    @overload
    def watch(self, kind: ResourceType, namespace: str | None = None, query: Query = ()) -> "_Watch[Object]": ...
    def watch(self, kind: Kind, namespace: str | None = None, query: Query = ()) -> "_Watch[Any]":
        """Changes of one kind: `async with client.watch(Machine) as events: async for event in events`.

        `query` holds further options, such as resourceVersion. Raises the ApiError of an ERROR event.
        """
        return _Watch(self, kind, namespace, query)

    @asynccontextmanager
    async def lines(self, path: str, query: Query, accept: str = "") -> AsyncIterator[AsyncIterator[bytes]]:
        """The undecoded lines of a watch."""
        headers = {**self._headers, "accept": accept} if accept else self._headers
        async with self.transport.stream(Request("GET", path, query, headers)) as lines:
            yield lines


class _Watch(Generic[T]):
    """An asynchronous context manager that opens the stream and gives its events."""

    def __init__(self, client: Client, kind: Kind, namespace: str | None, query: Query) -> None:
        self._kind = kind
        self._stream = client.lines(resource_of(kind).path(namespace), (("watch", "true"), *query))

    async def __aenter__(self) -> AsyncIterator[WatchEvent[T]]:
        return self._events(await self._stream.__aenter__())

    async def __aexit__(self, *exc: Any) -> bool | None:
        return await self._stream.__aexit__(*exc)

    async def _events(self, lines: AsyncIterator[bytes]) -> AsyncIterator[WatchEvent[T]]:
        async for line in lines:
            event: Any = parse(line)
            if event.get("type") == "ERROR":
                raise from_status(event.get("object") or {})
            obj: Any = event.get("object") or {}
            if event["type"] != "BOOKMARK" and not isinstance(self._kind, ResourceType):
                obj = from_wire(self._kind, obj)
            yield WatchEvent(event["type"], obj)


PODS = ResourceType("", "v1", "Pod", "pods")


def _by(manager: str) -> Query:
    return (("fieldManager", manager),) if manager else ()


def _decoded(kind: Kind, body: bytes) -> Any:
    if isinstance(kind, ResourceType):
        return parse(body)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise TransportError(f"the server's answer is not a {kind.resource.kind}: {error}") from error


__all__ = ["ApiError", "Client", "Page", "WatchEvent"]

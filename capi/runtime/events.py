"""Kubernetes Events: what people see under `kubectl describe`. Best effort: a lost Event is no error, and no pass waits.

The same thing said about the same object again within `REPEAT` is not written again.
"""

import asyncio
import logging
import secrets
from collections import OrderedDict, deque
from typing import Any

import orjson

from capi.aio.clock import Clock
from capi.client.client import Client
from capi.kube import times
from capi.kube.errors import ApiError, TransportError
from capi.kube.objects import Resource
from capi.kube.types import Object, ResourceType
from capi.runtime.plan import Event

logger = logging.getLogger(__name__)

EVENTS = ResourceType("", "v1", "Event", "events")
REPEAT = 600.0
"""Seconds within which a repetition is swallowed."""
_REMEMBERED = 4096
_WAITING = 1000
"""Events that may wait to be written; the oldest are lost then."""
_MESSAGE = 1024
"""Characters of a message that the API accepts."""


class EventRecorder:
    """Queues Events and writes them from its own task (`run`)."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._queue: deque[Object] = deque(maxlen=_WAITING)
        self._said: OrderedDict[tuple[str, ...], float] = OrderedDict()
        self._filled = asyncio.Event()

    def record(self, component: str, obj: Resource, event: Event) -> None:
        """Say something about `obj` (or `event.about`) in the name of a controller. Never blocks."""
        about: Any = event.about or obj
        now = self._clock.monotonic()
        said = (about.metadata.uid, component, event.type, event.reason, event.message)
        if now - self._said.get(said, -REPEAT) < REPEAT:
            return
        self._said[said] = now
        self._said.move_to_end(said)
        if len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
        self._queue.append(self._body(component, about, event))
        self._filled.set()

    def _body(self, component: str, about: Any, event: Event) -> Object:
        now = times.format(self._clock.now())
        namespace = about.namespace or "default"
        return {
            "metadata": {"name": f"{about.name}.{secrets.token_hex(8)}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": about.resource.api_version,
                "kind": about.resource.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.metadata.uid,
                "resourceVersion": about.metadata.resource_version,
            },
            "reason": event.reason,
            "message": event.message[:_MESSAGE],
            "type": event.type,
            "source": {"component": component},
            "reportingComponent": component,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write what is waiting; refusals and lost connections are only logged."""
        while self._queue:
            body = {"apiVersion": "v1", "kind": "Event", **self._queue.popleft()}
            try:
                await self._client.send("POST", EVENTS.path(body["metadata"]["namespace"]), (), orjson.dumps(body))
            except (ApiError, TransportError) as error:
                logger.debug("Losing an Event", extra={"reason": body["reason"], "error": error.message})

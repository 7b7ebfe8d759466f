"""The containers of this provider as they are now: the engine's event stream over a list that is renewed from time to time.

The stream is opened at the engine's own time of before the list, so nothing falls between them. When it breaks, whoever asks
is told that the engine does not answer, until a new list has been read; every container is then news.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from capi.aio.backoff import Attempts, Backoff
from capi.aio.clock import Clock
from capi.backends.docker import labels
from capi.backends.docker.engine import Container, Engine, EngineInfo
from capi.backends.port import BackendUnavailable
from capi.kube.errors import BackendError
from capi.kube.types import Object
from capi.runtime.plan import ClusterKey

logger = logging.getLogger(__name__)

RELIST = 60.0
"""Seconds between two lists of all containers, against events that were lost."""
RETRY = Backoff(base=0.5, cap=10.0, jitter=0.2)
LAG = 1.0
"""Seconds after which the engine's list can be believed to show what an event has told."""
_CLAIMS = {"die": "exited", "pause": "paused"}
_MOMENT = 0.5
"""Seconds."""


class World:
    """A view of one engine. `run` until cancelled; reads wait for its first list."""

    def __init__(self, engine: Engine, clock: Clock, changed: Callable[[Container], None]) -> None:
        """`changed` is told of every container that appeared, changed its state or vanished; it must not block."""
        self._engine = engine
        self._clock = clock
        self._changed = changed
        self._containers: dict[str, Container] = {}
        self._machines: dict[tuple[ClusterKey, str], dict[str, Container]] = {}
        """The same by cluster and machine: each pass over a machine asks for its own."""
        self._info: EngineInfo | None = None
        self._trouble: BackendError | None = None
        self._settled = asyncio.Event()
        """The first attempt to list has ended, one way or the other."""
        self._again = asyncio.Event()
        self._looking: set[asyncio.Task[None]] = set()
        self._claims: dict[str, tuple[str, float]] = {}
        """States that events have told lately, by container ID, and when."""

    async def run(self) -> None:
        """Follow the engine; what it refuses is tried again."""
        attempts = Attempts(RETRY)
        while True:
            try:
                await self._follow(attempts)
            except BackendError as error:
                self._lost(error)
            except Exception as bug:
                logger.exception("following the Docker engine failed")
                self._lost(BackendError(f"internal error: {bug!r}; see the log"))
            self._again.clear()
            await self._wait(attempts.failed())

    async def ready(self) -> EngineInfo:
        """Wait until something is known. Raises BackendUnavailable while the engine does not answer."""
        await self._settled.wait()
        if self._trouble is not None or self._info is None:
            self._again.set()
            why = self._trouble.message if self._trouble is not None else "it has not answered yet"
            raise BackendUnavailable(why)
        return self._info

    @property
    def info(self) -> EngineInfo | None:
        """What the engine said of itself when it last answered."""
        return self._info

    def machine(self, cluster: ClusterKey, name: str) -> Sequence[Container]:
        """Containers of one machine; more than one only if somebody made them by hand."""
        return list(self._machines.get((cluster, name), {}).values())

    def pool(self, cluster: ClusterKey, pool: str) -> Sequence[Container]:
        """Containers of a pool's machines, ordered by name."""
        own = (c for c in self._containers.values() if labels.cluster_of(c.labels) == cluster)
        found = (c for c in own if labels.MACHINE in c.labels and c.labels.get(labels.POOL) == pool)
        return sorted(found, key=lambda c: c.name)

    def balancers(self, cluster: ClusterKey) -> Sequence[Container]:
        """Load balancers of a cluster."""
        wanted = labels.LOAD_BALANCER
        return [
            c
            for c in self._containers.values()
            if labels.cluster_of(c.labels) == cluster and c.labels.get(labels.KIND_ROLE) == wanted
        ]

    @property
    def empty(self) -> bool:
        return not self._containers

    async def look_for(self, cluster: ClusterKey, machine: str) -> Sequence[Container]:
        """Ask the engine for a machine's containers: for decisions that a lost event must not spoil."""
        asked = self._clock.monotonic()
        found = await self._engine.containers(labels.to_find(cluster, machine))
        return [self._note(container, asked) for container in found]

    async def refresh(self, id_: str) -> Container | None:
        """Look at one container again, at once."""
        asked = self._clock.monotonic()
        found = await self._engine.containers(id=[id_])
        one = next((c for c in found if c.id == id_), None)
        if one is None:
            self._forget(id_)
            return None
        return self._note(one, asked)

    async def started(self, id_: str, name: str) -> Container:
        """A container that was started a moment ago. Raises BackendError, with its last words, if it runs no more."""
        container = await self.refresh(id_)
        if container is None or not container.running:
            words = await self._engine.last_words(id_, name) if container is not None else "it was removed"
            raise BackendError(f"container {name} ended at once: {words}", reason="ContainerEnded")
        return container

    def removed(self, id_: str) -> None:
        """It was removed by us; the event that says so is no news."""
        self._drop(id_)

    async def _follow(self, attempts: Attempts) -> None:
        """Until the engine breaks off. Events are asked for from before the list: none falls between."""
        self._info = await self._engine.info()
        await self._relist()
        attempts.succeeded()
        relisting = asyncio.ensure_future(self._relist_often())
        try:
            async with aclosing(self._engine.events(self._info.time)) as events:
                async for event in events:
                    await self._take(event)
        finally:
            for task in (relisting, *self._looking):
                task.cancel()
            await asyncio.wait([relisting, *self._looking])
        raise BackendUnavailable("the Docker engine ended its event stream")

    async def _relist_often(self) -> None:
        while True:
            await self._clock.sleep(RELIST)
            try:
                await self._relist()
            except BackendError as error:
                logger.warning("listing containers failed: %s", error.message)

    async def _relist(self) -> None:
        asked = self._clock.monotonic()
        found = {c.id: c for c in await self._engine.containers()}
        recovered, self._trouble = self._trouble is not None, None
        self._settled.set()
        for id_ in self._containers.keys() - found.keys():
            self._forget(id_)
        for container in found.values():
            self._note(container, asked, always=recovered)

    async def _take(self, event: Object) -> None:
        """The engine's list lags behind its events: what the event says counts, and the list is looked at again later."""
        actor = event.get("Actor") or {}
        id_, action = str(actor.get("ID") or ""), str(event.get("Action") or "")
        if action == "destroy":
            self._forget(id_)
        elif action in ("start", "unpause"):
            await self.refresh(id_)
            self._claim(id_, "running")
        elif action in _CLAIMS:
            self._claim(id_, _CLAIMS[action])
        elif id_ in self._containers:
            await self.refresh(id_)

    def _claim(self, id_: str, state: str) -> None:
        """So an event says; an old one, told again, is set right by the next look."""
        known = self._containers.get(id_)
        if known is not None:
            self._claims[id_] = (state, self._clock.monotonic())
            self._note(replace(known, state=state), self._clock.monotonic())
            task = asyncio.ensure_future(self._look_again(id_))
            self._looking.add(task)
            task.add_done_callback(self._looking.discard)

    async def _look_again(self, id_: str) -> None:
        await self._clock.sleep(LAG + _MOMENT)
        try:
            await self.refresh(id_)
        except BackendError as error:
            logger.info("looking at a container again failed: %s", error.message)

    def _note(self, container: Container, asked: float, *, always: bool = False) -> Container:
        """As the engine said when it was `asked`; a state that it has told of just before counts more."""
        state, told = self._claims.get(container.id, ("", 0.0))
        if state and asked < told + LAG:
            container = replace(container, state=state)
        else:
            self._claims.pop(container.id, None)
        before = self._containers.get(container.id)
        self._keep(container)
        if always or before != container:
            self._changed(container)
        return container

    def _keep(self, container: Container) -> None:
        self._containers[container.id] = container
        if (key := _machine_of(container)) is not None:
            self._machines.setdefault(key, {})[container.id] = container

    def _drop(self, id_: str) -> Container | None:
        gone = self._containers.pop(id_, None)
        if gone is not None and (key := _machine_of(gone)) is not None:
            of_machine = self._machines[key]
            del of_machine[id_]
            if not of_machine:
                del self._machines[key]
        return gone

    def _forget(self, id_: str) -> None:
        gone = self._drop(id_)
        self._claims.pop(id_, None)
        if gone is not None:
            self._changed(gone)

    def _lost(self, error: BackendError) -> None:
        known = self._trouble is not None
        self._trouble = error
        self._settled.set()
        if not known:
            logger.warning("the Docker engine is not available: %s", error.message)
            for container in self._containers.values():
                self._changed(container)

    async def _wait(self, seconds: float) -> None:
        """So long, or, after a moment, until somebody asks."""
        await self._clock.sleep(min(seconds, _MOMENT))
        asking = asyncio.ensure_future(self._again.wait())
        sleeping = asyncio.ensure_future(self._clock.sleep(max(0.0, seconds - _MOMENT)))
        try:
            await asyncio.wait((asking, sleeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (asking, sleeping):
                task.cancel()
            await asyncio.wait((asking, sleeping))


def _machine_of(container: Container) -> tuple[ClusterKey, str] | None:
    name = container.labels.get(labels.MACHINE)
    return (labels.cluster_of(container.labels), name) if name is not None else None

"""Everything that runs: informers, workload connections, election, controllers, in one tree of tasks.

An error in one reconciler is that reconciler's (logged, counted, retried). A crash of anything else, or the loss of the
lease, ends `run` with an error that says so: a half-working manager would be worse than one that is restarted.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any

from capi.aio import collector
from capi.aio.clock import Clock, SystemClock
from capi.client.client import Client
from capi.client.transport import Transport
from capi.kube.errors import CapiError
from capi.runtime.caches import ManagementReader
from capi.runtime.clusters import ClusterConnections, Connector
from capi.runtime.controller import Controller
from capi.runtime.election import Election, LeaderElector
from capi.runtime.events import EventRecorder
from capi.runtime.externals import ExternalKinds
from capi.runtime.informers import Informers
from capi.runtime.metrics import Metrics
from capi.runtime.queue import Pace
from capi.runtime.reconciler import Reconciler

logger = logging.getLogger(__name__)

STALE = 60.0
"""Seconds without contact after which an informer counts as unhealthy."""
STOP_TIMEOUT = 30.0
"""Seconds the passes in hand may take to end once the manager is told to stop."""
FLUSH_TIMEOUT = 2.0
CONNECT_PATIENCE = 5.0
"""Seconds that controllers wait at the start for workload clusters to be connected."""


class ManagerFailed(CapiError):
    """A part of the manager crashed; this is a bug."""


class Manager:
    """Runs reconcilers against one API server. `add` them all, then `run` once.

    `connector` reaches workload clusters; without it, reconcilers that watch them are refused. `election` None: no leader
    election. `namespace` restricts the caches, `watch_filter` what is reconciled: to objects whose label
    `cluster.x-k8s.io/watch-filter` has that value. `tune_gc` changes the garbage collector of the whole process.
    """

    def __init__(  # noqa: PLR0913 - ports and options
        self,
        transport: Transport,
        *,
        clock: Clock | None = None,
        connector: Connector | None = None,
        election: Election | None = None,
        namespace: str | None = None,
        watch_filter: str = "",
        metrics: Metrics | None = None,
        user_agent: str = "capi",
        tune_gc: bool = False,
    ) -> None:
        self.clock = clock or SystemClock()
        self.client = Client(transport, user_agent=user_agent)
        self.metrics = metrics or Metrics()
        self._informers = Informers(self.client, self.clock, namespace)
        self._externals = ExternalKinds(self._informers)
        self.connections: ClusterConnections | None = None
        if connector is not None:
            self.connections = ClusterConnections(self.client, self._informers, connector, self.clock, watch_filter)
        self._recorder = EventRecorder(self.client, self.clock)
        self._elector = LeaderElector(self.client, self.clock, election) if election is not None else None
        self._election = election
        self._controllers: list[Controller] = []
        self._watch_filter = watch_filter
        self._tune_gc = tune_gc
        self._stopping = asyncio.Event()
        self.working = False
        """True while controllers run: caches synced and, if elections are held, elected."""

    def add(self, reconciler: Reconciler[Any], workers: int = 32, pace: Pace | None = None) -> None:
        """Run `reconciler` with that many passes at a time; `pace` overrides its own. Before `run` only."""
        reader = ManagementReader(reconciler.manager, self.client, self._informers, self._externals, self.connections)
        controller = Controller(
            reconciler,
            reader,
            self.client,
            self.clock,
            self._recorder,
            self.metrics.controller(reconciler.manager, workers),
            workers=workers,
            pace=pace,
            watch_filter=self._watch_filter,
            may_write=self._elector.may_write if self._elector is not None else lambda: True,
        )
        controller.connect(self.connections)
        self._externals.listen(controller.queue.hurry)
        self._controllers.append(controller)

    @property
    def synced(self) -> bool:
        """True once every declared kind is cached."""
        return self._informers.synced

    @property
    def healthy(self) -> bool:
        """True while every cache is in contact with the API server, or was within the last minute."""
        return not self.trouble()

    @property
    def leading(self) -> bool:
        return self._elector is None or self._elector.leading

    def trouble(self) -> dict[str, str]:
        """Kinds whose cache is stale, and why."""
        return self._informers.trouble(STALE)

    def idle(self, within: float = 0.0) -> bool:
        """True if the manager works and no key is queued, in hand, held, or due within that many seconds."""
        return self.working and all(controller.idle(within) for controller in self._controllers)

    def stop(self) -> None:
        """Ask `run` to finish: passes in hand end, the lease is released."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until `stop`. Raises LeadershipLost or ManagerFailed; when cancelled everything is dropped at once."""
        try:
            async with asyncio.TaskGroup() as group:
                background = self._start(group)
                try:
                    await self._main(group)
                finally:
                    self.working = False
                    self._informers.stop_all()
                    for task in background:
                        task.cancel()
        except BaseExceptionGroup as failures:
            raise _clear(failures) from failures

    def _start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Informers, events and connections: they run whether leading or not, so that a successor starts at once."""
        self._informers.start(group)
        background = [group.create_task(self._recorder.run(), name="event recorder")]
        if self.connections is not None:
            background.append(group.create_task(self.connections.run(), name="workload clusters"))
        return background

    async def _main(self, group: asyncio.TaskGroup) -> None:
        if not await self._unless_stopped(self._fill_caches()):
            return
        if self._tune_gc:
            collector.settle()
        if self._elector is not None and not await self._unless_stopped(self._elector.acquire()):
            return
        self.working = True
        controllers = [group.create_task(c.run(), name=c.name) for c in self._controllers]
        lease = group.create_task(self._hold(), name="lease")
        await self._stopping.wait()
        self.working = False
        for controller in self._controllers:
            controller.stop()
        if controllers:
            _, late = await asyncio.wait(controllers, timeout=STOP_TIMEOUT)
            for task in late:
                logger.warning("Cutting off a pass that does not end", extra={"controller": task.get_name()})
                task.cancel()
        with contextlib.suppress(TimeoutError):  # Events are best effort
            async with asyncio.timeout(FLUSH_TIMEOUT):
                await self._recorder.flush()
        lease.cancel()
        await asyncio.wait([lease])
        if self._elector is not None:
            await self._elector.release()
            self._mark_leading(0)

    async def _fill_caches(self) -> None:
        """All declared kinds, and workload clusters too if they answer soon: a restart should not look like their loss."""
        await self._informers.wait_synced()
        if self.connections is not None:
            with contextlib.suppress(TimeoutError):  # clusters that hang are connected later
                async with asyncio.timeout(CONNECT_PATIENCE):
                    await self.connections.first_round()

    async def _hold(self) -> None:
        if self._elector is not None:
            self._mark_leading(1)
            await self._elector.hold()

    def _mark_leading(self, value: int) -> None:
        if self._election is not None:
            self.metrics.leader.labels(self._election.name).set(value)

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Await `work`; False if the manager was told to stop first."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
                return not self._stopping.is_set()
            return False
        finally:
            for future in (task, stop):
                future.cancel()


def _clear(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error to show: what the runtime itself says, or the first crash."""
    first: BaseException = failures
    while isinstance(first, BaseExceptionGroup):
        known = [error for error in first.exceptions if isinstance(error, CapiError)]
        first = known[0] if known else first.exceptions[0]
    if isinstance(first, CapiError) or not isinstance(first, Exception):
        return first
    return ManagerFailed(f"a part of the manager crashed: {type(first).__name__}: {first}")

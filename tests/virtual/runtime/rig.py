"""Kinds and reconcilers small enough that only the runtime is under test."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

from capi.aio.clock import LoopClock
from capi.client.inprocess import InProcessTransport
from capi.client.transport import Transport
from capi.kube.conditions import Condition
from capi.kube.errors import TransportError
from capi.kube.messages import Request, Response
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType
from capi.runtime.manager import Manager
from capi.runtime.plan import Apply, Delete, Plan, Target, target
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Owned
from tests.virtual.fake_api import FakeApi

FLOCKS, SHEEP = "farm.io/v1/flocks", "farm.io/v1/sheep"
FINALIZER = "farm.io/flock"


class FlockSpec(Api):
    size: int | None = None
    paused: bool | None = None


class FlockStatus(Api):
    sheep: int | None = None
    conditions: tuple[Condition, ...] = ()
    observed_generation: int | None = None


class Flock(Resource):
    resource: ClassVar[ResourceType] = ResourceType("farm.io", "v1", "Flock", "flocks")
    spec: FlockSpec = FlockSpec()
    status: FlockStatus = FlockStatus()


class SheepSpec(Api):
    number: int | None = None


class Sheep(Resource):
    resource: ClassVar[ResourceType] = ResourceType("farm.io", "v1", "Sheep", "sheep")
    spec: SheepSpec = SheepSpec()


class FlockReconciler:
    """As many Sheep as spec.size says."""

    kind = Flock
    manager: ClassVar[str] = "capi-flock"
    finalizer: ClassVar[str | None] = FINALIZER
    watches: Sequence[AnyWatch] = (Owned(Sheep),)

    def __init__(self) -> None:
        self.passes: list[float] = []
        self.seen: list[int] = []

    def paused(self, obj: Flock, reader: Reader) -> Sequence[str]:
        return ("spec.paused is set",) if obj.spec.paused else ()

    async def reconcile(self, obj: Flock, reader: Reader, now: datetime) -> Plan:
        self.passes.append(asyncio.get_running_loop().time())
        sheep = reader.list(Sheep, obj.namespace, {"flock": obj.name})
        self.seen.append(len(sheep))
        if obj.deleting:
            return Plan(writes=[Delete(target(s)) for s in sheep], finalized=not sheep)
        return Plan(writes=[*self._applies(obj), *self._deletes(obj, sheep)], status=_status(obj, len(sheep)))

    def _applies(self, flock: Flock) -> Iterable[Apply]:
        owner = {
            "apiVersion": "farm.io/v1", "kind": "Flock", "name": flock.name, "uid": flock.metadata.uid, "controller": True,
        }  # fmt: skip
        for number in range(flock.spec.size or 0):
            metadata = {"labels": {"flock": flock.name}, "ownerReferences": [owner]}
            at = Target(Sheep.resource, flock.namespace, f"{flock.name}-{number}")
            yield Apply(at, {"metadata": metadata, "spec": {"number": number}})

    def _deletes(self, flock: Flock, sheep: Sequence[Sheep]) -> Iterable[Delete]:
        return [Delete(target(s)) for s in sheep if (s.spec.number or 0) >= (flock.spec.size or 0)]


def _status(flock: Flock, count: int) -> FlockStatus:
    full = count == (flock.spec.size or 0)
    ready = Condition(type="Ready", status="True" if full else "False", reason="Full" if full else "Growing")
    return FlockStatus(sheep=count, conditions=(ready,))


@dataclass
class Faults(Transport):
    """A Transport that breaks chosen writes. `fail_after` lists writes that are done, but whose answer is lost."""

    inner: Transport = field(default_factory=lambda: InProcessTransport(FakeApi()))
    fail: set[int] = field(default_factory=set)
    fail_after: set[int] = field(default_factory=set)
    delay: dict[int, float] = field(default_factory=dict)
    dead: bool = False
    count: int = 0

    async def request(self, request: Request) -> Response:
        if self.dead:
            raise TransportError("connection refused")
        number = -1
        if request.method != "GET" and not request.path.endswith("/events"):
            number, self.count = self.count, self.count + 1
        if number in self.fail:
            raise TransportError("connection reset before the request")
        await asyncio.sleep(self.delay.get(number, 0))
        response = await self.inner.request(request)
        if number in self.fail_after:
            raise TransportError("connection reset before the answer")
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        if self.dead:
            raise TransportError("connection refused")
        async with self.inner.stream(request) as lines:
            yield lines

    async def close(self) -> None:
        await self.inner.close()


def a_flock(name: str = "a", size: int = 2, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "farm.io/v1", "kind": "Flock", "metadata": metadata, "spec": {"size": size, **spec}}


@asynccontextmanager
async def running(
    api: FakeApi, reconciler: Any | None = None, faults: Faults | None = None, **options: Any
) -> AsyncIterator[Manager]:
    """A manager at work on `api`, stopped at the end."""
    manager = Manager(faults or InProcessTransport(api), clock=LoopClock(), **options)
    manager.add(reconciler or FlockReconciler(), workers=4)
    async with at_work(manager):
        yield manager


@asynccontextmanager
async def at_work(manager: Manager) -> AsyncIterator[None]:
    """Runs a manager, and stops it at the end."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        try:
            yield
        finally:
            manager.stop()
            await asyncio.wait([task])


async def settle(manager: Manager, within: timedelta = timedelta(minutes=2), limit: float = 600.0) -> None:
    """Let time pass until nothing is left to do, nor will be within the given time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + limit
    while loop.time() < end:
        await asyncio.sleep(0.05)
        if manager.idle(within.total_seconds()):
            await asyncio.sleep(0.05)
            if manager.idle(within.total_seconds()):
                return
    raise AssertionError(f"not settled after {limit} s: {manager.trouble()}")


def names(api: FakeApi, collection: str = SHEEP) -> list[str]:
    return sorted(key[2] for key in api.objects if key[0] == collection)


def flock(api: FakeApi, name: str = "a") -> dict[str, Any]:
    return api.objects[FLOCKS, "default", name]

"""What each kind of write in a Plan means, pass by pass, on the embedded server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, ClassVar

import pytest

from capi.aio.clock import LoopClock
from capi.client.client import PODS, Client
from capi.kube.errors import BackendError
from capi.kube.types import Key, Object, ResourceType
from capi.runtime.manager import Manager
from capi.runtime.plan import Apply, Create, Delete, Evict, Patch, Plan, Target
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Feed, Owned
from tests.virtual.runtime.embedded import a_server, a_user
from tests.virtual.runtime.rig import (
    Faults,
    Flock,
    FlockReconciler,
    FlockStatus,
    InProcessTransport,
    Sheep,
    a_flock,
    at_work,
)

pytestmark = pytest.mark.looptime
SECRETS = ResourceType("", "v1", "Secret", "secrets")
S = Target(Sheep.resource, "default", "s")
Planner = Callable[[Flock, Reader], Plan]


class Scripted(FlockReconciler):
    """Does what a function says; no finalizer."""

    finalizer: ClassVar[str | None] = None

    def __init__(self, planner: Planner, *watches: AnyWatch) -> None:
        super().__init__()
        self.planner = planner
        self.watches: Sequence[AnyWatch] = (Owned(Sheep), *watches)

    async def reconcile(self, obj: Flock, reader: Reader, now: datetime) -> Plan:
        self.passes.append(asyncio.get_running_loop().time())
        return self.planner(obj, reader)


@asynccontextmanager
async def a_farm(planner: Planner, *watches: AnyWatch) -> AsyncIterator[tuple[Client, Faults, Scripted]]:
    """A user, the manager's transport and its reconciler, with one Sheep `s` and one Flock `a`."""
    async with a_server(Flock.resource, Sheep.resource) as handler:
        user, faults, scripted = a_user(handler), Faults(), Scripted(planner, *watches)
        faults.inner = InProcessTransport(handler)
        await user.create(Sheep.resource, a_sheep("s"))
        manager = Manager(faults, clock=LoopClock())
        manager.add(scripted)
        async with at_work(manager):
            await asyncio.sleep(1)
            await user.create(Flock.resource, a_flock())
            await asyncio.sleep(1)
            yield user, faults, scripted


def a_sheep(name: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"number": 1}}


def writes(*found: Any) -> Planner:
    return lambda flock, reader: Plan(writes=found)


async def test_an_apply_that_changes_nothing_is_not_sent() -> None:
    async with a_farm(writes(Apply(S, {"spec": {"number": 7}}))) as (user, faults, _):
        assert (await user.get(Sheep, "s", "default")).spec.number == 7
        before = faults.count
        await user.patch(Flock.resource, "a", "default", {"metadata": {"labels": {"poke": "1"}}})
        await asyncio.sleep(1)
        assert faults.count == before == 1


async def test_what_someone_else_changed_is_put_right() -> None:
    async with a_farm(writes(Apply(S, {"spec": {"number": 7}}))) as (user, _, _):
        await user.patch(Sheep.resource, "s", "default", {"spec": {"number": 8}})
        await user.patch(Flock.resource, "a", "default", {"metadata": {"labels": {"poke": "1"}}})
        await asyncio.sleep(1)
        assert (await user.get(Sheep, "s", "default")).spec.number == 7


async def test_an_object_that_must_exist_is_never_created() -> None:
    missing = Target(Sheep.resource, "default", "missing")
    async with a_farm(writes(Apply(missing, {"spec": {"number": 1}}, must_exist=True))) as (user, _, _):
        assert [sheep.name for sheep in await user.list(Sheep)] == ["s"]


@pytest.mark.parametrize(
    "write", [Delete(Target(Sheep.resource, "default", "s", "other-uid")), Apply(Target(Sheep.resource, "default", "s", "other-uid"), {"spec": {"number": 9}})],
    ids=["delete", "apply"],
)  # fmt: skip
async def test_another_object_of_the_same_name_is_left_alone(write: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with a_farm(writes(write)) as (user, _, _):
        assert (await user.get(Sheep, "s", "default")).spec.number == 1
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


async def test_what_exists_is_not_created_over() -> None:
    target = Target(SECRETS, "default", "keys")
    async with a_farm(writes(Create(target, {"stringData": {"key": "new"}}))) as (user, _, _):
        first = await user.get(SECRETS, "keys", "default")
        await user.patch(Flock.resource, "a", "default", {"metadata": {"labels": {"poke": "1"}}})
        await asyncio.sleep(1)
        assert await user.get(SECRETS, "keys", "default") == first


async def test_a_failed_write_stops_neither_the_others_nor_the_status() -> None:
    bad = Apply(Target(Sheep.resource, "no-such-namespace", "x"), {"spec": {}})
    good = Apply(Target(Sheep.resource, "default", "t"), {"spec": {"number": 1}})

    def planner(flock: Flock, reader: Reader) -> Plan:
        return Plan(writes=[bad, good], status=FlockStatus(sheep=5))

    async with a_farm(planner) as (user, _, scripted):
        assert (await user.get(Sheep, "t", "default")).spec.number == 1
        status = (await user.get(Flock, "a", "default")).status
        assert (status.sheep, status.observed_generation) == (5, None)
        assert len(scripted.passes) > 3


async def test_a_plans_error_is_reported_after_its_writes() -> None:
    def planner(flock: Flock, reader: Reader) -> Plan:
        error = BackendError("no capacity") if flock.spec.size == 2 else None
        return Plan(status=FlockStatus(sheep=flock.spec.size), error=error)

    async with a_farm(planner) as (user, _, _):
        first = (await user.get(Flock, "a", "default")).status
        assert (first.sheep, first.observed_generation) == (2, None)
        await user.patch(Flock.resource, "a", "default", {"spec": {"size": 3}})
        await asyncio.sleep(1)
        second = (await user.get(Flock, "a", "default")).status
        assert (second.sheep, second.observed_generation) == (3, 2)


async def test_a_stale_optimistic_patch_is_a_quiet_retry(caplog: pytest.LogCaptureFixture) -> None:
    def planner(flock: Flock, reader: Reader) -> Plan:
        tries.append(1)
        revision = "1" if len(tries) < 3 else sheep_revision(reader)
        body = {"metadata": {"resourceVersion": revision, "labels": {"tries": str(len(tries))}}}
        return Plan(writes=[Patch(S, body)] if len(tries) < 4 else [])

    tries: list[int] = []
    async with a_farm(planner) as (user, _, _):
        assert (await user.get(Sheep, "s", "default")).metadata.labels == {"tries": "3"}
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def sheep_revision(reader: Reader) -> str:
    sheep = reader.get(Sheep, "s", "default")
    assert sheep is not None
    return sheep.metadata.resource_version


async def test_evicting_a_pod_that_has_gone_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async with a_farm(writes(Evict(Target(PODS, "default", "gone")))) as (_, _, scripted):
        assert len(scripted.passes) == 1
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


async def test_a_feed_wakes_its_keys_and_is_closed_at_the_end() -> None:
    closed: list[bool] = []

    async def news() -> AsyncIterator[str]:
        try:
            for _ in range(3):
                await asyncio.sleep(10)
                yield "a"
            await asyncio.sleep(10**6)
        finally:
            closed.append(True)

    feed = Feed(news, lambda event, reader: [Key("default", event)])
    async with a_farm(lambda flock, reader: Plan(), feed) as (_, _, scripted):
        await asyncio.sleep(60)
        assert [round(time) % 10 for time in scripted.passes[1:]] == [0, 0, 0]
    assert closed == [True]


async def test_writes_of_a_pass_go_out_together() -> None:
    sheep = [
        Apply(Target(Sheep.resource, "default", f"s{number}"), {"spec": {"number": number}}) for number in range(64)
    ]
    async with a_farm(lambda flock, reader: Plan(writes=sheep if flock.spec.size == 2 else ())) as (user, faults, _):
        faults.delay = dict.fromkeys(range(faults.count, faults.count + 64), 1.0)
        await user.patch(Flock.resource, "a", "default", {"spec": {"size": 2}})
        await asyncio.sleep(3)
        assert len(await user.list(Sheep, "default")) == 65, "64 writes of a second each took two"

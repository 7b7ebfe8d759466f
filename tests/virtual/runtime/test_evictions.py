"""Evictions in a Plan: what is said against them is no error, and the status of the same pass knows it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from capi.api.builtin import Event as EventRecord
from capi.api.builtin import Pod
from capi.client.client import PODS, Client
from capi.kube.errors import CapiError, TooManyRequests
from capi.kube.types import Object, ResourceType
from capi.runtime.plan import Apply, Event, Evict, Failures, Plan, Target, Told
from capi.runtime.reader import Reader
from tests.virtual.runtime.rig import Faults, Flock, FlockStatus, Sheep
from tests.virtual.runtime.test_execute import Scripted, a_farm

pytestmark = pytest.mark.looptime
BUDGETS = ResourceType("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")


class Drainer:
    """Evicts when it is told to; its status counts what failed."""

    def __init__(self) -> None:
        self.writes: list[Any] = []
        self.told: list[Failures] = []

    def __call__(self, flock: Flock, reader: Reader) -> Plan:
        events = (Event("Evicted", "all of them"),) if self.writes else ()
        return Plan(writes=self.writes, status=FlockStatus(sheep=0), events=events, hindsight=self._hindsight)

    def _hindsight(self, failures: Failures) -> Told:
        self.told.append(dict(failures))
        return Told(FlockStatus(sheep=len(failures)), (Event("Refused", f"{len(failures)} evictions"),))

    @property
    def refused(self) -> dict[str, CapiError]:
        return {target.name: error for target, error in self.told[-1].items()} if self.told else {}


@asynccontextmanager
async def a_drain() -> AsyncIterator[tuple[Client, Faults, Scripted, Drainer]]:
    drainer = Drainer()
    async with a_farm(drainer) as (user, faults, scripted):
        yield user, faults, scripted, drainer


async def a_pod(user: Client, name: str, app: str = "web") -> Target:
    """A Pod that runs on a Node."""
    spec: Object = {"nodeName": "n", "containers": [{"name": "c", "image": "i:1"}]}
    metadata: Object = {"name": name, "namespace": "default", "labels": {"app": app}}
    made = await user.create(PODS, {"metadata": metadata, "spec": spec})
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await user.patch(PODS, name, "default", {"status": ready}, subresource="status")
    return Target(PODS, "default", name, made["metadata"]["uid"])


async def protect(user: Client, app: str, allowed: int) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
    await user.create(BUDGETS, {"metadata": {"name": app, "namespace": "default"}, "spec": spec})
    status = {"observedGeneration": 1, "disruptionsAllowed": allowed, "desiredHealthy": 2, "currentHealthy": 2}
    status["expectedPods"] = 2
    await user.patch(BUDGETS, app, "default", {"status": status}, subresource="status")


async def poke(user: Client, seconds: float = 1) -> int | None:
    """Starts a pass; what its status says."""
    await user.patch(Flock.resource, "a", "default", {"metadata": {"labels": {"poke": str(asyncio.get_running_loop().time())}}})  # fmt: skip
    await asyncio.sleep(seconds)
    return (await user.get(Flock, "a", "default")).status.sheep


async def said(user: Client, reason: str) -> list[str]:
    """Messages of Events."""
    return [found.message for found in await user.list(EventRecord, "default") if found.reason == reason]


async def ending(user: Client) -> list[str]:
    return sorted(pod.name for pod in await user.list(Pod) if pod.deleting)


async def test_pods_are_evicted_with_the_grace_that_was_asked_for() -> None:
    async with a_drain() as (user, _, _, drainer):
        drainer.writes = [Evict(await a_pod(user, "a")), Evict(await a_pod(user, "b"), 1)]
        assert await poke(user) == 0
        found = {pod.name: pod.metadata.deletion_grace_period_seconds for pod in await user.list(Pod)}
        assert found == {"a": 30, "b": 1} and drainer.told == []


async def test_a_refusal_is_told_in_the_status_of_the_same_pass_and_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with a_drain() as (user, _, scripted, drainer):
        await protect(user, "guarded", 1)
        drainer.writes = [Evict(await a_pod(user, name, "guarded")) for name in "abc"]
        drainer.writes.append(Evict(await a_pod(user, "free")))
        before = len(scripted.passes)
        assert await poke(user, 0.5) == 2
        assert len(await ending(user)) == 2 and "free" in await ending(user)
        assert {type(error) for error in drainer.refused.values()} == {TooManyRequests}
        [cause] = next(iter(drainer.refused.values())).causes  # type: ignore[attr-defined] # a refusal has causes
        assert cause.reason == "DisruptionBudget" and "needs 2 healthy pods" in cause.message
        assert len(scripted.passes) - before <= 2, "the poke, and the status that was written"
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


async def test_events_are_those_of_hindsight_when_something_was_refused() -> None:
    async with a_drain() as (user, _, _, drainer):
        await protect(user, "guarded", 1)
        drainer.writes = [Evict(await a_pod(user, name, "guarded")) for name in "ab"]
        await poke(user)
        assert await said(user, "Refused") == ["1 evictions"]
        assert await said(user, "Evicted") == []


async def test_any_other_refusal_is_told_too() -> None:
    async with a_drain() as (user, faults, _, drainer):
        drainer.writes = [Evict(await a_pod(user, "a")), Evict(await a_pod(user, "b"))]
        faults.fail = set(range(faults.count, faults.count + 2))
        await poke(user, 0.2)
        assert {error.message for error in drainer.refused.values()} == {"connection reset before the request"}


async def test_another_pod_of_the_same_name_is_left_alone() -> None:
    async with a_drain() as (user, _, _, drainer):
        await a_pod(user, "a")
        drainer.writes = [Evict(Target(PODS, "default", "a", "of-yesterday")), Evict(Target(PODS, "default", "gone"))]
        assert await poke(user) == 0
        assert await ending(user) == [] and drainer.told == []


async def test_evictions_that_hang_hold_a_pass_up_for_ten_seconds_in_all() -> None:
    async with a_drain() as (user, faults, _, drainer):
        drainer.writes = [Evict(await a_pod(user, f"p{number}")) for number in range(100)]
        faults.delay = dict.fromkeys(range(faults.count + 10, faults.count + 200), 3600.0)
        await poke(user, 9.9)
        assert drainer.told == []
        await asyncio.sleep(0.2)
        assert len(await ending(user)) == 10 and len(drainer.refused) == 90
        assert {error.message for error in drainer.refused.values()} == {
            "eviction timeout of 10s reached, eviction will be retried"
        }


async def test_a_pass_evicts_many_at_once() -> None:
    async with a_drain() as (user, faults, _, drainer):
        drainer.writes = [Evict(await a_pod(user, f"p{number}")) for number in range(96)]
        faults.delay = dict.fromkeys(range(faults.count, faults.count + 96), 1.0)
        await poke(user, 3.5)
        assert len(await ending(user)) == 96


async def test_other_writes_that_fail_are_told_and_stay_errors() -> None:
    async with a_drain() as (user, _, scripted, drainer):
        bad = Target(Sheep.resource, "no-such-namespace", "x")
        drainer.writes = [Apply(bad, {"spec": {}})]
        assert await poke(user) == 1
        assert list(drainer.told[0]) == [bad] and len(scripted.passes) > 2, "it is repeated"

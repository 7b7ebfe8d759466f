"""Pods of simulated clusters run and end, and budgets count them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from capi.api.builtin import Pod
from capi.backends.inmemory import nodes, pods
from capi.kube.errors import NotFound, TooManyRequests
from capi.kube.objects import Unstructured, from_wire
from capi.kube.types import Object
from tests.world.rig import World, world

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
STAMP = "2026-01-01T12:00:00Z"
WEB = {"matchLabels": {"app": "web"}}


def a_pod(name: str, *, app: str = "web", phase: str = "Running", ready: str = "True", **meta: Any) -> Pod:
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}, **meta}
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    return from_wire(Pod, {"metadata": metadata, "spec": {"nodeName": "n"}, "status": status})


def a_budget(status: Object | None = None, **spec: Any) -> Unstructured:
    metadata = {"name": "guard", "namespace": "default", "generation": 3}
    raw = {"metadata": metadata, "spec": {"selector": WEB, **spec}, "status": status or {}}
    return Unstructured.of(pods.BUDGETS, raw)


def counted(budget: Unstructured, *found: Pod) -> tuple[int, int, int, int]:
    status = pods.budget_status(budget, found, NOW)
    assert status["observedGeneration"] == 3
    return (
        status["expectedPods"], status["currentHealthy"], status["desiredHealthy"], status["disruptionsAllowed"],
    )  # fmt: skip


FOUR = [a_pod(name) for name in "abcd"]
GOING = {"deletionTimestamp": STAMP}


@pytest.mark.parametrize(
    ("spec", "found", "numbers"),
    [
        pytest.param({"minAvailable": 1}, FOUR, (4, 4, 1, 3), id="a number that must stay"),
        pytest.param({"minAvailable": "51%"}, FOUR, (4, 4, 3, 1), id="a share that must stay, rounded up"),
        pytest.param({"maxUnavailable": 1}, FOUR, (4, 4, 3, 1), id="a number that may go"),
        pytest.param({"maxUnavailable": "30%"}, FOUR, (4, 4, 2, 2), id="a share that may go, rounded up"),
        pytest.param({"maxUnavailable": 9}, FOUR, (4, 4, 0, 4), id="more than there are"),
        pytest.param({"minAvailable": 9}, FOUR, (4, 4, 9, 0), id="never enough"),
        pytest.param({"minAvailable": 0}, [], (0, 0, 0, 0), id="nobody"),
        pytest.param({}, FOUR, (4, 4, 4, 0), id="nothing is said: all must stay"),
        pytest.param({"minAvailable": 1}, [*FOUR, a_pod("x", app="db")], (4, 4, 1, 3), id="others do not count"),
        pytest.param({"minAvailable": 1}, [*FOUR, a_pod("x", phase="Failed")], (4, 4, 1, 3), id="nor what has ended"),
        pytest.param({"minAvailable": 1}, [*FOUR[:3], a_pod("d", **GOING)], (4, 3, 1, 2), id="what goes is not healthy"),
        pytest.param({"minAvailable": 1}, [*FOUR[:3], a_pod("d", ready="False")], (4, 3, 1, 2), id="nor what is unready"),
    ],
)  # fmt: skip
def test_a_budget_counts_its_pods(spec: Any, found: list[Pod], numbers: tuple[int, int, int, int]) -> None:
    assert counted(a_budget(**spec), *found) == numbers


def test_an_eviction_that_was_allowed_counts_until_it_shows_or_two_minutes() -> None:
    old = {"disruptedPods": {"a": STAMP, "gone": STAMP}}
    budget = a_budget(old, minAvailable=1)
    status = pods.budget_status(budget, FOUR, NOW)
    assert status["disruptedPods"] == {"a": STAMP} and status["disruptionsAllowed"] == 2
    assert pods.recheck(status, NOW) == timedelta(minutes=2)
    assert "disruptedPods" not in pods.budget_status(budget, [a_pod("a", **GOING)], NOW)
    assert "disruptedPods" not in pods.budget_status(budget, FOUR, NOW + timedelta(minutes=2))


def test_a_status_that_says_the_same_is_the_same() -> None:
    first = pods.budget_status(a_budget(minAvailable=1), FOUR, NOW)
    assert pods.budget_status(a_budget(first, minAvailable=1), FOUR, NOW + timedelta(hours=1)) == first


@asynccontextmanager
async def one_machine() -> AsyncIterator[tuple[World, str]]:
    """A world with one simulated machine, and the name of its Node."""
    async with world() as w:
        await w.cluster_with_pool(replicas=1)
        [name] = await w.machines()
        yield w, name


def bound(name: str, node: str, **meta: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}, **meta}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i:1"}]}}


@pytest.mark.looptime
async def test_a_pod_runs_on_its_node_and_ends_when_it_is_deleted() -> None:
    async with one_machine() as (w, node):
        await w.workload().create(Pod.resource, bound("a", node))
        await w.settle()
        pod = await w.workload().get(Pod, "a", "default")
        assert pod.status.phase == "Running"
        assert {c.type for c in pod.status.conditions if c.status == "True"} >= {"Ready", "PodScheduled"}
        await w.workload().delete(Pod, "a", "default")
        await w.settle()
        assert await w.workload().list(Pod) == []


@pytest.mark.looptime
async def test_a_node_that_does_not_answer_or_exist_does_nothing() -> None:
    async with one_machine() as (w, node):
        await w.workload().create(Pod.resource, bound("a", node))
        await w.workload().create(Pod.resource, bound("b", "nowhere"))
        await w.settle()
        [machine] = (await w.machines()).values()
        await w.infra.backend.lose(machine.spec.provider_id)
        await w.workload().delete(Pod, "a", "default")
        await w.settle()
        assert {pod.name: pod.status.phase for pod in await w.workload().list(Pod)} == {"a": "Running", "b": "Pending"}


@pytest.mark.looptime
async def test_a_kubelet_that_answers_again_sees_to_the_pods_that_waited_for_it() -> None:
    async with one_machine() as (w, node):
        workload = w.workload()
        await workload.create(Pod.resource, bound("early", "node-to-be"))
        await w.settle()
        await workload.create(Pod.resource, bound("going", node))
        await w.settle()
        await workload.patch(nodes.NODES, node, "", nodes.unreachable(NOW), type_="strategic", subresource="status")
        await workload.create(Pod.resource, bound("late", node))
        await w.settle()
        await workload.delete(Pod, "going", "default")
        await w.settle()
        assert (await workload.get(Pod, "going", "default")).deleting
        heard = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await workload.patch(nodes.NODES, node, "", heard, type_="strategic", subresource="status")
        await workload.create(nodes.NODES, {"metadata": {"name": "node-to-be"}})
        await w.settle()
        phases = {pod.name: pod.status.phase for pod in await workload.list(Pod)}
        assert phases == {"early": "Running", "late": "Running"}


@pytest.mark.looptime
async def test_evictions_are_refused_and_allowed_by_what_is_counted() -> None:
    async with one_machine() as (w, node):
        workload = w.workload()
        spec = {"minAvailable": 1, "selector": WEB}
        await workload.create(pods.BUDGETS, {"metadata": {"name": "guard", "namespace": "default"}, "spec": spec})
        for name in "ab":
            await workload.create(Pod.resource, bound(name, node, finalizers=["example.com/slow"]))
        await w.settle()
        await workload.evict("a", "default")
        with pytest.raises(TooManyRequests):
            await workload.evict("b", "default")
        await w.settle()
        with pytest.raises(TooManyRequests, match="disruption budget"):
            await workload.evict("b", "default")
        await workload.delete(pods.BUDGETS, "guard", "default")
        await workload.evict("b", "default")
        with pytest.raises(NotFound):
            await workload.evict("c", "default")

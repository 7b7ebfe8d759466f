"""The work queue on virtual time."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.aio.clock import LoopClock
from capi.kube.types import Key
from capi.runtime.queue import Pace, WorkQueue

A, B = Key("n", "a"), Key("n", "b")


def a_queue(pace: Pace | None = None) -> WorkQueue:
    return WorkQueue(LoopClock(), pace=pace)


async def taken(queue: WorkQueue, seconds: float) -> list[tuple[float, Key]]:
    """Everything handed out within that time, and when."""
    found, start = [], asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(seconds):
            while (key := await queue.get()) is not None:
                found.append((round(asyncio.get_running_loop().time() - start, 3), key))
                queue.done(key)
    except TimeoutError:
        pass
    return found


@pytest.mark.looptime
async def test_a_key_is_queued_once() -> None:
    queue = a_queue()
    for key in (A, B, A, A):
        queue.add(key)
    assert await taken(queue, 1) == [(0, A), (0, B)]


@pytest.mark.looptime
async def test_a_key_in_hand_is_handed_out_again_only_when_given_back() -> None:
    queue = a_queue()
    queue.add(A)
    assert await queue.get() == A
    queue.add(A)
    assert await taken(queue, 1) == []
    queue.done(A)
    assert await taken(queue, 1) == [(0, A)]


@pytest.mark.looptime
async def test_of_several_delays_the_earliest_counts() -> None:
    queue = a_queue()
    queue.add_after(A, 30)
    queue.add_after(A, 10)
    queue.add_after(A, 20)
    assert not queue.idle(15) and queue.idle(5)
    assert await taken(queue, 60) == [(10, A)]


@pytest.mark.looptime
async def test_taking_a_key_cancels_its_delay() -> None:
    queue = a_queue()
    queue.add_after(A, 10)
    queue.add(A)
    assert await taken(queue, 60) == [(0, A)]


@pytest.mark.looptime
async def test_failures_back_off_and_success_resets() -> None:
    queue = a_queue()
    times = []
    for _ in range(12):
        queue.retry(A)
        start = asyncio.get_running_loop().time()
        queue.done(await queue.get() or B)
        times.append(asyncio.get_running_loop().time() - start)
    assert times == sorted(times) and times[0] < 0.01 and 5 < times[-1] < 70
    queue.forget(A)
    queue.retry(A)
    assert [key for _, key in await taken(queue, 0.01)] == [A]


@pytest.mark.looptime
async def test_pace_coalesces_what_comes_too_soon() -> None:
    queue = a_queue(Pace(timedelta(seconds=0.1)))
    queue.add(A)
    assert await taken(queue, 0.01) == [(0, A)]
    for _ in range(50):
        queue.add(A)
    assert not queue.idle()
    assert await taken(queue, 5) == [(0.09, A)]
    assert queue.idle(60)


@pytest.mark.looptime
async def test_pace_follows_the_cost_of_the_last_decision() -> None:
    queue = a_queue(Pace(timedelta(seconds=0.1)))
    queue.add(A)
    assert await queue.get() == A
    queue.add(A)
    queue.done(A, cost=0.05)
    assert await taken(queue, 5) == [(0.5, A)]


@pytest.mark.looptime
async def test_a_pass_that_decided_nothing_sets_no_pace() -> None:
    queue = a_queue(Pace(timedelta(seconds=0.1)))
    queue.add(A)
    assert await queue.get() == A
    queue.add(A)
    queue.done(A, cost=None)
    assert await taken(queue, 5) == [(0, A)]


@pytest.mark.looptime
async def test_shutting_down_releases_the_workers() -> None:
    queue = a_queue()
    waiting = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    await asyncio.sleep(1)
    queue.shut_down()
    assert await asyncio.gather(*waiting) == [None, None, None]


steps = st.lists(st.sampled_from(["add", "after", "get", "done", "retry", "wait"]), max_size=40)


@given(steps, st.booleans())
def test_no_key_is_lost_nor_in_two_hands(actions: list[str], paced: bool) -> None:
    asyncio.run(_play(actions, Pace(timedelta(seconds=0.001)) if paced else None))


async def _play(actions: list[str], pace: Pace | None) -> None:
    queue, wanted, held = a_queue(pace), False, False
    for action in actions:
        if action == "add":
            queue.add(A)
            wanted = True
        elif action == "after":
            queue.add_after(A, 0.001)
            wanted = True
        elif action == "retry" and held:
            queue.retry(A)
            wanted = True
        elif action == "get" and len(queue):
            assert not held
            assert await queue.get() == A
            held, wanted = True, False
        elif action == "done" and held:
            queue.done(A)
            held = False
        elif action == "wait":
            await asyncio.sleep(0)
    if held:
        queue.done(A)
    if wanted:
        async with asyncio.timeout(5):
            assert await queue.get() == A
            queue.done(A)
    queue.shut_down()

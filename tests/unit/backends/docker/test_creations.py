"""Containers that are made before everything else, few at a time."""

import asyncio

import pytest

from capi.backends.docker.creations import FIRST, Creations

pytestmark = pytest.mark.looptime


async def test_only_so_many_are_made_at_one_time() -> None:
    creations, under_way, most = Creations(2), 0, 0

    async def make() -> None:
        nonlocal under_way, most
        async with creations.one():
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(1)
            under_way -= 1

    began = asyncio.get_running_loop().time()
    await asyncio.gather(*(make() for _ in range(5)))
    assert most == 2
    assert asyncio.get_running_loop().time() - began == pytest.approx(3)


async def test_the_rest_waits_for_the_last_one_even_one_that_fails_or_waits_for_its_turn() -> None:
    creations, loop = Creations(1), asyncio.get_running_loop()

    async def fail() -> None:
        async with creations.one():
            await asyncio.sleep(1)
            raise ValueError

    began = loop.time()
    making = [asyncio.ensure_future(fail()) for _ in range(3)]
    await asyncio.sleep(0)
    await creations.over()
    assert loop.time() - began == pytest.approx(3)
    assert all(isinstance(task.exception(), ValueError) for task in making)


async def test_it_does_not_wait_long_and_not_at_all_when_nothing_is_made() -> None:
    creations, loop = Creations(1), asyncio.get_running_loop()
    began = loop.time()
    await creations.over()
    assert loop.time() == began
    async with creations.one():
        await creations.over()
        assert loop.time() - began == pytest.approx(FIRST)

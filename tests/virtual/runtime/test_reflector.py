"""A reflector whose watch runs out at the very moment somebody doubts it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from capi.aio.clock import LoopClock
from capi.client.client import Client
from capi.kube.messages import Request, Response
from capi.kube.types import Key
from capi.runtime.informer import Informer
from capi.runtime.outcome import Expectation, newest
from capi.runtime.reflector import GRACE, Reflector
from tests.virtual.runtime.rig import Sheep


class Silence:
    """An API server that takes every watch and says nothing."""

    async def request(self, request: Request) -> Response:
        raise AssertionError("only watches are expected")

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        async def nothing() -> AsyncIterator[bytes]:
            await asyncio.Event().wait()
            yield b""

        yield nothing()

    async def close(self) -> None: ...


@pytest.mark.looptime
@pytest.mark.parametrize("turns", range(6))
async def test_a_doubt_at_the_moment_a_watch_runs_out_changes_nothing(turns: int) -> None:
    """In whatever turn of the loop: before the watch is cut off, between that and its end, or after."""
    informer = Informer(Sheep)
    reflector = Reflector(Client(Silence()), informer, LoopClock())
    loop = asyncio.get_running_loop()
    failures: list[BaseException] = []

    def doubt(turns: int) -> None:
        if turns:
            loop.call_soon(doubt, turns - 1)
            return
        try:
            reflector.suspect()
        except BaseException as error:
            failures.append(error)

    following = asyncio.ensure_future(reflector.run())
    await asyncio.sleep(0)
    loop.call_at(loop.time() + GRACE, doubt, turns)
    await asyncio.sleep(3 * GRACE)
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
    assert failures == []
    assert reflector.error is not None and "silent" in reflector.error.message


def test_of_many_writes_of_a_kind_the_newest_is_waited_for() -> None:
    """Else a pass that made a thousand objects looks a thousand times at a thousand demands."""
    informer, other = Informer(Sheep), Informer(Sheep)
    wanted = [Expectation(informer, Key("default", str(n)), n, "") for n in (3, 9, 5)]
    elsewhere = Expectation(other, Key("default", "x"), 4, "")
    removed = [Expectation(informer, Key("default", name), 0, "u") for name in "ab"]
    assert newest([*wanted, elsewhere, *removed]) == [wanted[1], elsewhere, *removed]

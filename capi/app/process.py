"""What every long-running command shares: the event loop, stop signals, background tasks that end the command if they crash."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias, TypeVar

from capi.kube.errors import CapiError

T = TypeVar("T")
Start: TypeAlias = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]
"""Starts a named background task."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a command on the fastest event loop there is."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main)
    finally:
        main.close()  # Ctrl-C before it began: else Python complains that nobody awaited it


def stop_signal() -> asyncio.Event:
    """Set by the first SIGINT or SIGTERM; a second one ends the process at once."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopped.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt instead
            loop.add_signal_handler(number, stop)
    return stopped


@asynccontextmanager
async def background() -> AsyncIterator[Start]:
    """Tasks that live as long as the block. The first that crashes ends the block and is raised, its own error unwrapped."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[None]] = []

            def start(work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
                tasks.append(group.create_task(work, name=name))
                return tasks[-1]

            try:
                yield start
            finally:
                for task in tasks:
                    task.cancel()
    except BaseExceptionGroup as failures:
        raise _foremost(failures) from failures


def _foremost(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """What to tell: our own errors first."""
    flat: list[BaseException] = []
    pending: list[BaseException] = [failures]
    while pending:
        error = pending.pop(0)
        if isinstance(error, BaseExceptionGroup):
            pending = [*error.exceptions, *pending]
        else:
            flat.append(error)
    return next((error for error in flat if isinstance(error, CapiError)), flat[0])

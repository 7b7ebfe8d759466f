"""`capi up` and `capi manager`: what starts in which order, what is waited for, how it stops.

up:      data directory → store → API server with our CRDs → listener and kubeconfig → controllers → files → progress
manager: kubeconfig → connection and CRDs checked → controllers, by lease

Both stop on SIGINT and SIGTERM: passes in hand end, connections are drained, the store is closed. A second signal, or
kill -9, is safe too: what was acknowledged is on disk.
"""

import asyncio
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from capi.aio.clock import Clock, SystemClock
from capi.app import embedded, inputs, waiting
from capi.app.datadir import DataDir
from capi.app.health import serve_health
from capi.app.progress import Progress
from capi.app.settings import ManagerSettings, UpSettings
from capi.client import http, kubeconfig
from capi.client.client import Client
from capi.kube.errors import CapiError, NotFound
from capi.kube.messages import Handler
from capi.kube.types import Key, ResourceType
from capi.runtime.election import Election
from capi.runtime.manager import Manager
from capi.server.http.listener import Listener, ListenError, serve
from capi.server.http.tls import server_context
from capi.server.store.interface import Store
from capi.server.store.memory import MemoryStore
from capi.server.store.sqlite import SqliteStore

T = TypeVar("T")

DRAIN = 2.0
"""Seconds that open requests get when the server stops; watches are ended at once."""

Finish = Callable[[Client, Sequence[Key]], Awaitable[None]]
"""Called once everything runs, with the Clusters that were waited for: draws the result."""


class Timeout(CapiError):
    """Not everything was running in time."""


class MissingKinds(CapiError):
    """The API server does not know Cluster API's kinds."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a command on the fastest event loop there is."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


async def up(settings: UpSettings, progress: Progress, finish: Finish | None = None) -> int:
    """Exit code: 0, or 1 when `wait` ran out of time. Raises CapiError for what the user can mend; nothing is left then."""
    manifests = inputs.read(settings.files)
    clock = SystemClock()
    stopped = _stop_signal()
    async with AsyncExitStack() as stack:
        data = DataDir(settings.data_dir)
        _prepare(data, settings, stack)
        began = clock.monotonic()
        api = await stack.enter_async_context(embedded.embedded_api(_store(data, settings), clock))
        background = await stack.enter_async_context(_background())
        background(api.registry.run(), "api server")
        listener = await _listen(api.handler, data, settings, clock)
        stack.push_async_callback(listener.close, DRAIN)
        client = Client(api.transport(inputs.MANAGER))
        progress.step(
            f"API server ready at https://{listener.host}:{listener.port} in {clock.monotonic() - began:.1f} s"
        )
        if settings.controllers:
            from capi.app import compose  # see its docstring: not before the API serves

            infra = await stack.enter_async_context(
                compose.infrastructure(
                    clock, directory=None if settings.ephemeral else data.clusters, host=settings.host
                )
            )
            manager = compose.manager(api.transport(), clock, infra, tune_gc=True)
            running = background(manager.run(), "controllers")
            stack.push_async_callback(_stop_manager, manager, running)
        if manifests:
            await inputs.apply(client, manifests)
            progress.step(f"applied {len(manifests)} objects of {', '.join(str(file) for file in settings.files)}")
        in_time = await _wait(settings, client, clock, manifests, progress, stopped)
        if in_time is not None and finish is not None:
            await finish(client, [_key(m) for m in manifests if m.body["kind"] == "Cluster"])
        if in_time is False:
            progress.note(
                f"not everything runs after {settings.timeout.total_seconds():g} s; --timeout gives it longer"
            )
        if not settings.once and not stopped.is_set():
            progress.note(_how_to(data))
            await stopped.wait()
    return 1 if in_time is False else 0


def _prepare(data: DataDir, settings: UpSettings, stack: AsyncExitStack) -> None:
    """Make the data directory; what this start made is removed again if it is ephemeral or comes to nothing."""
    missing = [path for path in (data.path, *data.path.parents) if not path.exists()]
    data.prepare()
    if settings.ephemeral:
        for name in ("kubeconfig", "pki", "port"):
            stack.callback(_remove, data.path / name)
    if missing:
        stack.callback(_remove_if_empty, missing)


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _remove_if_empty(paths: Sequence[Path]) -> None:
    with suppress(OSError):  # not empty: it is in use
        for path in paths:
            path.rmdir()


def _store(data: DataDir, settings: UpSettings) -> Store:
    return MemoryStore() if settings.ephemeral else SqliteStore.open(data.store)


async def _listen(handler: Handler, data: DataDir, settings: UpSettings, clock: Clock) -> Listener:
    hosts = tuple(dict.fromkeys((settings.host, "localhost", "127.0.0.1", "::1")))
    certificates = data.certificates(hosts, clock.now())
    tls = server_context(certificates.serving, certificates.ca.certificate)
    remembered = data.remembered_port() if settings.port is None else None
    try:
        listener = await serve(handler, settings.host, settings.port or remembered or 0, tls)
    except ListenError:
        if remembered is None:
            raise
        listener = await serve(handler, settings.host, 0, tls)  # the port of the last start is taken: any other will do
    data.remember_port(listener.port)
    data.write_kubeconfig(f"https://{_literal(settings.host)}:{listener.port}", certificates)
    return listener


def _literal(host: str) -> str:
    """A host as it stands in a URL."""
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


async def _wait(
    settings: UpSettings,
    client: Client,
    clock: Clock,
    manifests: Sequence[inputs.Manifest],
    progress: Progress,
    stopped: asyncio.Event,
) -> bool | None:
    """Whether everything runs; None if it was not asked for, or a signal came first."""
    if not (settings.wait or settings.once):
        return None
    pools = [_key(m) for m in manifests if m.body["kind"] == "MachinePool"] if manifests else None
    timeout = settings.timeout.total_seconds()
    running = asyncio.ensure_future(waiting.until_running(client, clock, pools, progress, timeout))
    stopping = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
        return running.result() if running.done() else None
    finally:
        for task in (running, stopping):
            task.cancel()
        await asyncio.wait((running, stopping))


def _key(manifest: inputs.Manifest) -> Key:
    metadata = manifest.body["metadata"]
    return Key(metadata.get("namespace") or "default", metadata["name"])


def _how_to(data: DataDir) -> str:
    return f"kubectl: export KUBECONFIG={data.kubeconfig.absolute()}\nCtrl-C stops capi; what it keeps in {data.path} stays."


async def manager(settings: ManagerSettings, progress: Progress) -> int:
    """Runs until a signal. Exit code 0. Raises CapiError; LeadershipLost when another manager may have taken over."""
    from capi.app import compose

    clock = SystemClock()
    stopped = _stop_signal()
    config = kubeconfig.load(settings.kubeconfig, context=settings.context)
    async with AsyncExitStack() as stack:
        transport = http.connect(config)
        stack.push_async_callback(transport.close)
        client = Client(transport)
        await _check(client, config.server)
        if settings.data_dir is not None:
            DataDir(settings.data_dir).prepare()
        infra = await stack.enter_async_context(
            compose.infrastructure(clock, directory=settings.data_dir, host=settings.workload_host)
        )
        election = (
            Election(namespace=settings.lease_namespace, name=settings.lease_name) if settings.leader_elect else None
        )
        if election is not None:
            await _ensure_namespace(client, settings.lease_namespace)
        running = compose.manager(transport, clock, infra, only=settings.controllers, election=election, tune_gc=True)
        if settings.health_port is not None:
            health = await serve_health(running, settings.health_host, settings.health_port)
            stack.push_async_callback(health.close, 0.0)
            progress.step(f"health and metrics at http://{health.host}:{health.port}")
        progress.step(f"controllers run against {config.server}")
        await _until_stopped(running, stopped)
    return 0


async def _until_stopped(running: Manager, stopped: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(running.run(), name="controllers")
        stopping = group.create_task(stopped.wait(), name="signal")
        await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
        running.stop()
        stopping.cancel()


async def _check(client: Client, server: str) -> None:
    """The server answers and knows our kinds. Raises TransportError, ApiError, MissingKinds."""
    try:
        await client.send("GET", "/apis/cluster.x-k8s.io/v1beta2")
    except NotFound as error:
        raise MissingKinds(
            f"{server} does not serve cluster.x-k8s.io/v1beta2; install the CRDs first:"
            " capi manifests --only crds | kubectl apply --server-side -f -"
        ) from error


async def _ensure_namespace(client: Client, name: str) -> None:
    namespaces = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
    try:
        await client.get(namespaces, name)
    except NotFound:
        await client.apply(namespaces, {"metadata": {"name": name}}, manager="capi-manager")


async def _stop_manager(running: Manager, task: "asyncio.Task[None]") -> None:
    running.stop()
    await asyncio.wait([task])


@asynccontextmanager
async def _background() -> AsyncIterator[Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]]:
    """Tasks that live as long as the block; the first that crashes ends it with its own error."""
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
        raise _first(failures) from failures


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
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


def _stop_signal() -> asyncio.Event:
    """Set by the first SIGINT or SIGTERM; the second one ends the process at once."""
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

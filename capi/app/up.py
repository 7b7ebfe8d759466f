"""`capi up`: data directory, store, API server with our CRDs, listener and kubeconfig, controllers, files, progress.

It stops on SIGINT and SIGTERM: passes in hand end, connections are drained, the store is closed. A second signal, or
kill -9, is safe too: what was acknowledged is on disk.
"""

import asyncio
import shlex
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from capi.aio.clock import Clock, SystemClock
from capi.api.core.v1beta2 import Cluster, MachinePool
from capi.app import embedded, inputs, waiting
from capi.app.datadir import DataDir, DataDirError
from capi.app.process import background, stop_signal
from capi.app.progress import Progress
from capi.app.settings import UpSettings, default_data_dir
from capi.client.client import Client
from capi.kube.errors import CapiError
from capi.kube.messages import Handler
from capi.kube.objects import Resource
from capi.kube.types import Key
from capi.server.http.listener import Listener, ListenError, serve
from capi.server.http.tls import server_context
from capi.server.store.interface import Store
from capi.server.store.memory import MemoryStore
from capi.server.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from capi.backends.inmemory.workload import WorkloadClusters
    from capi.backends.port import Backend
    from capi.runtime.manager import Manager

INTERRUPTED = 130
DRAIN = 2.0
"""Seconds that open requests get when the server stops; watches are ended at once."""

Provide = Callable[["WorkloadClusters"], Mapping[str, "Backend"]]
"""Makes backends that are not this program's own (capi.provider)."""
Finish = Callable[[Client, Sequence[Key]], Awaitable[None]]
"""Called once everything runs, with the Clusters that were waited for: draws the result."""


async def up(
    settings: UpSettings, progress: Progress, finish: Finish | None = None, provide: Provide | None = None
) -> int:
    """`provide`: further backends, by name. Exit code: 0; 1 when `wait` ran out of time; 130 when a signal came before `once` was satisfied.

    Raises CapiError for what the user can mend; nothing is left then.
    """
    manifests = inputs.read(settings.files)
    stopped = stop_signal()
    async with AsyncExitStack() as stack:
        data = DataDir(settings.data_dir or _usual_dir(settings, stack))
        fresh = _prepare(data, settings, stack)
        try:
            clock = SystemClock()
            client = await _serve(settings, data, manifests, clock, progress, stack, provide)
        except (CapiError, OSError):
            stack.callback(_remove_fresh, data, fresh)  # nobody has been served yet: leave nothing behind
            raise
        if manifests:
            await inputs.apply(client, manifests)
            progress.step(f"applied {len(manifests)} objects of {', '.join(map(inputs.named, settings.files))}")
        in_time = await _wait(settings, client, clock, manifests, progress, stopped)
        if in_time is not None and finish is not None:
            await finish(client, _keys(manifests, Cluster))
        if in_time is False:
            progress.note(
                f"not everything runs after {settings.timeout.total_seconds():g} s; --timeout gives it longer"
            )
        if not settings.once and not stopped.is_set():
            progress.note(_how_to(data, settings.ephemeral))
            await stopped.wait()
    if settings.once and in_time is None:
        return INTERRUPTED
    return 1 if in_time is False else 0


async def _serve(  # noqa: PLR0913 - what there is to start
    settings: UpSettings,
    data: DataDir,
    manifests: Sequence[inputs.Manifest],
    clock: Clock,
    progress: Progress,
    stack: AsyncExitStack,
    provide: Provide | None,
) -> Client:
    """Start everything; `stack` stops it. Manifests are checked before the first client is served."""
    began = clock.monotonic()
    api = await stack.enter_async_context(embedded.embedded_api(_store(data, settings), clock))
    start = await stack.enter_async_context(background())
    start(api.registry.run(), "api server")
    client = Client(api.transport(inputs.MANAGER))
    await inputs.check(client, manifests)
    listener = await _listen(api.handler, data, settings, clock)
    stack.push_async_callback(listener.close, DRAIN)
    where = f"https://{listener.host}:{listener.port}"
    progress.step(f"API server ready at {where} in {clock.monotonic() - began:.1f} s")
    if settings.controllers:
        from capi.app import compose  # see its docstring: not before the API serves

        directory = None if settings.ephemeral else data.clusters
        infra = await stack.enter_async_context(
            compose.infrastructure(clock, directory=directory, host=settings.host, docker=True, provide=provide)
        )
        manager = compose.manager(api.transport(), clock, infra, tune_gc=True)
        stack.push_async_callback(_stop_manager, manager, start(manager.run(), "controllers"))
    return client


def _usual_dir(settings: UpSettings, stack: AsyncExitStack) -> Path:
    if settings.ephemeral:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="capi-")))
    return default_data_dir()


def _prepare(data: DataDir, settings: UpSettings, stack: AsyncExitStack) -> Sequence[Path]:
    """Make the data directory; the directories that were missing, innermost first. An ephemeral start removes its files."""
    missing = [path for path in (data.path, *data.path.parents) if not path.exists()]
    data.prepare()
    if settings.ephemeral:
        if data.store.exists():
            raise DataDirError(
                f"data directory {data.path}: it holds the data of a lasting capi; --ephemeral needs another"
            )
        stack.callback(_remove_dirs, missing)
        for name in ("kubeconfig", "pki", "port"):
            stack.callback(_remove, data.path / name)
    return missing


def _remove_fresh(data: DataDir, missing: Sequence[Path]) -> None:
    """Undo a start that came to nothing, if the data directory was made for it."""
    if data.path in missing:
        shutil.rmtree(data.path, ignore_errors=True)
        _remove_dirs(missing[1:])


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _remove_dirs(paths: Sequence[Path]) -> None:
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
    wanted = waiting.Wanted(_keys(manifests, MachinePool), _keys(manifests, Cluster)) if manifests else waiting.Wanted()
    timeout = settings.timeout.total_seconds()
    running = asyncio.ensure_future(waiting.until_running(client, clock, wanted, progress, timeout))
    stopping = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
        return running.result() if running.done() else None
    finally:
        for task in (running, stopping):
            task.cancel()
        await asyncio.wait((running, stopping))


def _keys(manifests: Sequence[inputs.Manifest], kind: type[Resource]) -> list[Key]:
    return [_key(m) for m in manifests if m.group_kind == kind.resource.group_kind]


def _key(manifest: inputs.Manifest) -> Key:
    metadata = manifest.body["metadata"]
    return Key(metadata.get("namespace") or "default", metadata["name"])


def _how_to(data: DataDir, ephemeral: bool) -> str:
    kept = "nothing is kept" if ephemeral else f"what it keeps in {data.path} stays"
    return (
        f"In another terminal:  export KUBECONFIG={shlex.quote(str(data.kubeconfig.absolute()))}\n"
        f"                      kubectl get machines\nCtrl-C stops capi; {kept}."
    )


async def _stop_manager(running: "Manager", task: "asyncio.Task[None]") -> None:
    running.stop()
    await asyncio.wait([task])

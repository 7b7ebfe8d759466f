"""The Docker engine, reduced to what this provider asks of it. Errors are BackendErrors that say what to do.

Which engine: see location.py; it is looked for when it is first needed, so nothing here fails before a container is wanted.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from capi.backends.docker import labels, location
from capi.backends.docker.errors import NameTaken, NotThere, explained
from capi.backends.port import BackendUnavailable
from capi.kube import times
from capi.kube.errors import BackendError
from capi.kube.types import Object

if TYPE_CHECKING:  # its import is a quarter of a second of CPU, and most who start capi want no container
    from aiodocker import Docker
    from aiodocker.containers import DockerContainer

_CONNECTIONS = 512
"""Every running exec holds one."""
_CONNECT, _CALL = 5.0, 120.0
"""Seconds to reach the engine, and for a call that is no stream; creating a container under load takes a while."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container of this provider, as the engine has it."""

    id: str
    name: str
    labels: Mapping[str, str]
    state: str
    """In the engine's words: created, running, paused, restarting, exited, dead, removing."""
    ipv4: str = ""
    ipv6: str = ""
    network: str = ""

    @property
    def running(self) -> bool:
        return self.state == "running"


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine says of itself."""

    cpus: int
    memory: int
    """Bytes."""
    architecture: str
    storage_driver: str
    rootless: bool
    remapped: bool
    """It maps user IDs (userns-remap)."""
    selinux: bool
    """It labels what containers may touch: mounts are labelled anew for them."""
    time: datetime


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that ended in a container."""

    code: int
    output: str


class Engine:
    """One engine. `aclose` when it is no longer needed."""

    def __init__(self, host: str | None = None) -> None:
        self._host = host
        self._docker: Docker | None = None

    async def aclose(self) -> None:
        if self._docker is not None:
            docker, self._docker = self._docker, None
            await docker.close()

    async def info(self) -> EngineInfo:
        with explained("ask the engine about itself"):
            said: Object = dict(await self._client().system.info())
        options = " ".join(said.get("SecurityOptions") or ())
        return EngineInfo(
            cpus=int(said.get("NCPU") or 0),
            memory=int(said.get("MemTotal") or 0),
            architecture=str(said.get("Architecture") or ""),
            storage_driver=str(said.get("Driver") or ""),
            rootless="name=rootless" in options,
            remapped="name=userns" in options,
            selinux="name=selinux" in options,
            time=times.parse(said["SystemTime"]),
        )

    async def containers(self, marks: Mapping[str, str] | None = None, **filters: Sequence[str]) -> list[Container]:
        """Containers of this provider in any state, with all `marks` as labels, restricted by `filters` in the engine's
        words (id, name)."""
        marked = [f"{key}={value}" for key, value in (marks or {}).items()]
        wanted = orjson.dumps({"label": [labels.NAMESPACE, *marked], **filters}).decode()
        with explained("list containers"):
            found = await self._client().containers.list(all=True, filters=wanted)
        return [_container(one) for one in found]

    async def container_named(self, name: str) -> tuple[str, Mapping[str, str]] | None:
        """ID and labels of whatever container has exactly that name, this provider's or not."""
        try:
            with explained(f"inspect container {name}"):
                found: Object = await self._client().containers.container(name).show()
        except NotThere:
            return None
        return found["Id"], (found.get("Config") or {}).get("Labels") or {}

    async def create(self, name: str, arguments: Object) -> str:
        """Its ID; also of one that was made for the same owner before, and the answer was lost. Raises NameTaken for another's."""
        try:
            with explained(f"create container {name}"):
                made = await self._client().containers.create(arguments, name=name)
            return str(made.id)
        except NameTaken:
            found = await self.container_named(name)
            if found is None or found[1].get(labels.OWNER_UID) != arguments["Labels"][labels.OWNER_UID]:
                text = f"a container {name} exists that is another's; remove it, or give this object another name"
                raise NameTaken(text) from None
            return found[0]

    async def start(self, id_: str, name: str) -> None:
        with explained(f"start container {name}"):
            await self._client().containers.container(id_).start()

    async def remove(self, id_: str, name: str) -> None:
        """By force, with its anonymous volumes. One that is gone, or is being removed, is waited for."""
        try:
            with explained(f"remove container {name}"):
                await self._client().containers.container(id_).delete(force=True, v=True)
        except BackendError as error:
            if error.reason != "NotFound" and "is already in progress" not in error.message:
                raise

    async def kill(self, id_: str, name: str, signal: str) -> None:
        with explained(f"send {signal} to container {name}"):
            await self._client().containers.container(id_).kill(signal=signal)

    async def put(self, id_: str, name: str, directory: str, archive: bytes) -> None:
        """Unpack a tar archive below `directory` of a container, which need not run. Does not reach into a tmpfs."""
        with explained(f"write into container {name}"):
            await self._client().containers.container(id_).put_archive(directory, archive)  # type: ignore[no-untyped-call]

    async def read(self, id_: str, name: str, path: str) -> bytes | None:
        """A file of a container; None if it has no such file."""
        try:
            with explained(f"read {path} of container {name}"):
                archive = await self._client().containers.container(id_).get_archive(path)
        except NotThere:
            return None
        file = archive.extractfile(archive.next() or path)
        return file.read() if file is not None else None

    async def processes(self, id_: str, name: str) -> Mapping[int, int]:
        """The container's processes: pid to parent's pid, as its host numbers them."""
        with explained(f"list the processes of container {name}"):
            said: Object = await self._client().containers.container(id_).top(ps_args="-eo pid,ppid")
        return {int(pid): int(parent) for pid, parent, *_ in said.get("Processes") or ()}

    async def last_words(self, id_: str, name: str, lines: int = 10) -> str:
        """The end of its log."""
        with explained(f"read the log of container {name}"):
            found = await self._client().containers.container(id_).log(stdout=True, stderr=True, tail=lines)
        return "".join(found).strip()

    @asynccontextmanager
    async def executing(
        self, id_: str, name: str, command: Sequence[str], stdin: AsyncIterator[bytes] | None = None
    ) -> AsyncIterator["Execution"]:
        """Run a command, privileged, as root; its output is read while it runs. Leaving does not end the command."""
        container = self._client().containers.container(id_)
        with explained(f"execute {command[0]} in container {name}"):
            made = await container.exec(list(command), stdin=stdin is not None, privileged=True, user="root")
            async with made.start(detach=False) as stream:
                feeding = asyncio.ensure_future(_feed(stream, stdin)) if stdin is not None else None
                try:
                    yield Execution(stream, made)
                finally:
                    if feeding is not None:
                        feeding.cancel()
                        await asyncio.wait([feeding])

    async def execute(
        self, id_: str, name: str, command: Sequence[str], stdin: AsyncIterator[bytes] | None = None
    ) -> Finished:
        """Run a command to its end."""
        async with self.executing(id_, name, command, stdin) as running:
            output = b"".join([part async for part in running.output()])
            return Finished(await running.code(), output.decode(errors="replace"))

    async def network(self, name: str) -> Object | None:
        """As the engine describes it."""
        with explained(f"look for network {name}"):
            found = await self._client().networks.list(
                filters={"name": [name]}
            )  # which finds names that contain it too
        return next((one for one in found if one["Name"] == name), None)

    async def create_network(self, arguments: Object) -> None:
        """Somebody else may have made it meanwhile, which is as good."""
        try:
            with explained(f"create network {arguments['Name']}"):
                await self._client().networks.create(arguments)
        except BackendError as error:
            if "already exists" not in error.message:
                raise

    async def remove_network(self, name: str) -> None:
        """Raises BackendError while it is used."""
        with explained(f"remove network {name}"):
            found = await self._client().networks.get(name)
            await found.delete()

    async def has_image(self, reference: str) -> bool:
        try:
            with explained(f"look for image {reference}"):
                await self._client().images.inspect(reference)
        except BackendError as error:
            if error.reason in ("NotFound", "ImageNotFound"):
                return False
            raise
        return True

    async def pull(self, reference: str, progress: Callable[[str], None]) -> None:
        """Fetch an image from its registry; `progress` is told what the engine says."""
        with explained(f"pull image {reference}"):
            said: Object
            async for said in self._client().images.pull(reference, stream=True):
                progress(" ".join(filter(None, (said.get("status"), said.get("progress")))))

    async def save(self, reference: str, path: Path) -> None:
        """Write an image as a tar archive."""
        with explained(f"save image {reference}"):
            async with self._client().images.export_image(reference) as content:
                with path.open("wb") as file:
                    async for part in content.iter_chunked(1 << 20):
                        file.write(part)

    async def events(self, since: datetime) -> AsyncGenerator[Object, None]:
        """What happens to containers of this provider, from `since` (by the engine's clock); ends when the engine does."""
        docker = self._client()
        news = docker.events.subscribe(create_task=False)  # type: ignore[no-untyped-call]
        wanted = orjson.dumps(
            {
                "type": ["container"],
                "label": [labels.NAMESPACE],
                "event": ["start", "die", "destroy", "pause", "unpause", "rename"],
            }
        ).decode()
        stamp = f"{since.timestamp():.6f}"
        reading = asyncio.ensure_future(docker.events.run(filters=wanted, since=stamp))
        try:
            while (event := await news.get()) is not None:
                yield event
            with explained("watch the engine"):
                await reading
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    def _client(self) -> "Docker":
        if self._docker is None:
            self._docker = _connect(self._host)
        return self._docker


class Execution:
    """A command that runs in a container."""

    def __init__(self, stream: Any, made: Any) -> None:
        self._stream = stream
        self._made = made

    async def output(self) -> AsyncIterator[bytes]:
        """Its output and errors as they come, until it closes them."""
        while (message := await self._stream.read_out()) is not None:
            yield message.data

    async def lines(self) -> AsyncIterator[str]:
        """Its output by lines, without their ends."""
        rest = b""
        async for part in self.output():
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace").rstrip("\r")
        if rest:
            yield rest.decode(errors="replace")

    async def code(self) -> int:
        """Its exit code; after its output has ended."""
        with explained("ask for an exit code"):
            said: Object = await self._made.inspect()
        code = said.get("ExitCode")
        return -1 if code is None else int(code)


def _connect(host: str | None) -> "Docker":
    import aiohttp
    from aiodocker import Docker, DockerError

    found = location.find(host)
    try:
        timeout = aiohttp.ClientTimeout(sock_connect=_CONNECT, total=_CALL)
        docker = Docker(url=found.url, ssl_context=found.tls, context=found.context, timeout=timeout)
    except (ValueError, AssertionError, OSError, DockerError) as error:
        message = f"no Docker engine is configured: {error}; set DOCKER_HOST, e.g. to {location.USUAL_SOCKET}"
        raise BackendUnavailable(message) from error
    connector = docker.session.connector
    if isinstance(connector, aiohttp.BaseConnector):
        connector._limit = _CONNECTIONS  # aiodocker makes the connector itself and has no parameter for it
    return docker


async def _feed(stream: Any, parts: AsyncIterator[bytes]) -> None:
    async for part in parts:
        await stream.write_in(part)


def _container(found: "DockerContainer") -> Container:
    networks: Object = (found["NetworkSettings"] or {}).get("Networks") or {}
    nothing: Object = {}
    name, network = next(iter(networks.items()), ("", nothing))
    return Container(
        id=str(found["Id"]),
        name=str(found["Names"][0]).lstrip("/"),
        labels=dict(found["Labels"] or {}),
        state=str(found["State"]),
        ipv4=str(network.get("IPAddress") or ""),
        ipv6=str(network.get("GlobalIPv6Address") or ""),
        network=name,
    )

"""The work on one machine: its container is made, boots, is given images, and executes its bootstrap data.

One attempt runs in the background at a time; it ends when everything is done, or with the first refusal, which is kept for
whoever asks next; asking again starts the next attempt where the last one stopped. What was executed in the container is
known by the container itself (its /var outlives this process): a bootstrap never runs twice.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from capi.aio.clock import Clock
from capi.api.core.conditions import Dev
from capi.backends.docker import arguments, labels, steps
from capi.backends.docker.arguments import Site
from capi.backends.docker.bootstrap import NodeFacts, Progress, State, follow, launch, parse, read_line, script
from capi.backends.docker.creations import Creations
from capi.backends.docker.engine import Container, Engine
from capi.backends.docker.images import node_image
from capi.backends.docker.steps import Phase
from capi.backends.docker.stock import ImageStock, parts_of
from capi.backends.docker.world import World
from capi.backends.port import BackendUnavailable, InstanceSpec, IPFamily
from capi.kube.conditions import Condition
from capi.kube.errors import BackendError
from capi.kube.types import Object

logger = logging.getLogger(__name__)

BOOT_TIMEOUT = 30
"""Seconds that a container may take until its init system and its container runtime answer."""
NEWS = 10.0
"""Seconds between two messages that say no more than how far a bootstrap is."""
STATE_DIRECTORY = "/var/lib/capi/bootstrap"
_BOOT = """
n=0; why='systemd did not start'
while [ $n -lt "$1" ]; do
  if ! command -v systemctl >/dev/null 2>&1 || [ "$(systemctl is-active multi-user.target 2>/dev/null)" = active ]; then
    if ! command -v crictl >/dev/null 2>&1 || crictl ps >/dev/null 2>&1; then exit 0; fi
    why='the container runtime does not answer: crictl ps failed'
  else
    why="systemd has not reached multi-user.target; it is $(systemctl is-system-running 2>/dev/null)"
  fi
  n=$((n + 1)); sleep 0.1
done
echo "$why"; exit 1
"""
_LOAD = 'head -c "$1" | ctr --namespace=k8s.io images import -'


class Surroundings(Protocol):
    """What a job needs of its backend."""

    @property
    def engine(self) -> Engine: ...

    @property
    def stock(self) -> ImageStock: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def creations(self) -> Creations: ...

    @property
    def world(self) -> World: ...

    async def site_for(self, family: IPFamily) -> Site:
        """Where containers of a cluster are made; makes the network if there is none."""
        ...


@dataclass(slots=True)
class Job:
    """The state of the work. `attempt` is run as a task, one at a time."""

    spec: InstanceSpec
    around: Surroundings
    notify: Callable[[], None]
    """Called when there is something new to see."""
    container: Container | None = None
    phase: Phase = Phase.CREATING
    message: str = ""
    failed: str = ""
    """Why the bootstrap has failed, for good."""
    error: BackendError | None = None
    """What ended the last attempt, until somebody has been told."""
    warnings: tuple[str, ...] = ()
    task: asyncio.Task[None] | None = field(default=None, repr=False)
    """The last attempt."""
    active: bool = False
    """An attempt goes on, or waits for its turn."""
    _image: str = field(default="", repr=False)
    _told: float = field(default=float("-inf"), repr=False)

    @property
    def name(self) -> str:
        return labels.container_name(self.spec.cluster, self.spec.host or self.spec.name)

    @property
    def ended(self) -> bool:
        """Nothing is left to do, well or badly."""
        return bool(self.failed) or self.phase == Phase.DONE

    def conditions(self) -> tuple[Condition, ...]:
        if self.failed:
            return steps.conditions(self.phase, self.failed, reason=Dev.FAILED)
        return steps.conditions(self.phase, self.message or self._fetching() or _what(self.phase, self.name))

    def _fetching(self) -> str:
        """What is said of the image that the container waits for."""
        said = self.around.stock.progress.get(self._image, "") if self.phase is Phase.CREATING else ""
        return f"Fetching image {self._image}: {said}" if said else ""

    async def attempt(self) -> None:
        """Go on until the end or the first refusal. A bug ends only this attempt."""
        try:
            container = await self._made()
            await self._boot(container)
            await self._preload(container)
            await self._bootstrap(container)
        except BackendError as error:
            self.error = error
            if error.reason == "NotRunning" and self.container is not None:
                await self._looked_at(self.container.id)
        except Exception as bug:
            logger.exception("the work on a machine failed", extra={"container": self.name})
            self.error = BackendError(f"internal error: {bug!r}; see the log")
        finally:
            self.active = False
            self.notify()

    async def _looked_at(self, id_: str) -> None:
        with suppress(BackendError):
            self.container = await self.around.world.refresh(id_)

    async def _made(self) -> Container:
        """The running container. One that does not run was never reported: it is made anew."""
        found = self.container
        if found is not None and found.running:
            self._reach(Phase.BOOTING)
            return found
        if found is not None:
            await self.around.engine.remove(found.id, found.name)
        self.container = await self._create()
        self._reach(Phase.BOOTING)
        return self.container

    async def _create(self) -> Container:
        spec = self.spec
        wanted = node_image(spec.version, spec.container.image)
        self._image = wanted.reference
        image = await self.around.stock.node(wanted)
        site = await self.around.site_for(spec.ip_family)
        body = arguments.node(spec, self.name, image, site, private_cgroups=wanted.private_cgroups)
        async with self.around.creations.one():
            id_ = await _to_its_end(self._started(body, image), self._abandoned)
        return await self.around.world.started(id_, self.name)

    async def _started(self, body: Object, image: str) -> str:
        """ID of the new container. One that does not start is not left behind."""
        engine = self.around.engine
        try:
            id_ = await engine.create(self.name, body)
        except BackendError as error:
            if error.reason == "ImageNotFound":
                self.around.stock.missed(image)
            raise
        try:
            await engine.start(id_, self.name)
        except BackendError:
            await engine.remove(id_, self.name)
            raise
        return id_

    async def _abandoned(self, id_: str) -> None:
        """It was made for nobody."""
        await self.around.engine.remove(id_, self.name)

    async def _boot(self, container: Container) -> None:
        if self.phase > Phase.BOOTING:
            return
        await self.around.creations.over()
        command = ("sh", "-c", _BOOT, "sh", str(BOOT_TIMEOUT * 10))
        ended = await self.around.engine.execute(container.id, container.name, command)
        if ended.code != 0:
            text = f"container {container.name} did not boot in {BOOT_TIMEOUT} s: {ended.output.strip()}"
            raise BackendError(text, reason="NotReady")
        self._reach(Phase.PRELOADING)

    async def _preload(self, container: Container) -> None:
        if self.phase > Phase.PRELOADING:
            return
        images = self.spec.container.preload
        for number, image in enumerate(images, 1):
            self._say(f"loading image {image} ({number} of {len(images)})")
            archive = await self.around.stock.archive(image)
            command = ("sh", "-c", _LOAD, "sh", str(archive.stat().st_size))
            ended = await self.around.engine.execute(container.id, container.name, command, parts_of(archive))
            if ended.code != 0:
                text = f"loading image {image} into container {container.name}: {ended.output.strip()[-300:]}"
                raise BackendError(text, reason="NotReady")
        self._reach(Phase.BOOTSTRAPPING)

    async def _bootstrap(self, container: Container) -> None:
        """Have the bootstrap data executed, or go on watching it being executed."""
        if self.ended:
            return
        data = self.spec.bootstrap
        if data is None:
            await self._watch(container, follow(STATE_DIRECTORY))
            return
        facts = NodeFacts(
            name=self.name,
            provider_id=self.spec.id,
            version=self.spec.version,
            cgroup_root=_cgroup_root(self.spec),
        )
        wanted = parse(data.value, data.format, facts)
        self.warnings = wanted.warnings
        program = script(wanted, STATE_DIRECTORY, int(self.spec.container.bootstrap_timeout.total_seconds()))
        await self._watch(container, launch(STATE_DIRECTORY, len(program)), program)

    async def _watch(self, container: Container, command: tuple[str, ...], program: bytes = b"") -> None:
        stdin = _once(program) if program else None
        log: list[str] = []
        async with self.around.engine.executing(container.id, container.name, command, stdin) as running:
            async for line in running.lines():
                said = read_line(line)
                if said.state is State.LOG:
                    log.append(said.text)
                elif said.state is State.STEP:
                    self._say(f"{said.text} ({said.step} of {said.total})")
                else:
                    self._judge(said)
        if self.failed:
            self.failed = "\n".join((self.failed, *log))
        elif self.phase != Phase.DONE:
            raise BackendUnavailable(f"the connection to container {container.name} broke off while it bootstrapped")

    def _judge(self, said: Progress) -> None:
        state, where = said.state, f"step {said.step} ({said.text})"
        if state is State.DONE or (state is State.NONE and self.spec.bootstrap is None):
            self._reach(Phase.DONE)
        elif state is State.FAILED:
            self.failed = f"Failed with exit code {said.code} in {where}; it is not tried again. Its last words:"
        elif state is State.TIMEOUT:
            limit = self.spec.container.bootstrap_timeout.total_seconds()
            self.failed = f"Not finished after {limit:g} s, in {where}; it is not tried again. Its last words:"
        elif state is State.LOST:
            self.failed = "The container was restarted in the middle; delete the Machine to have it replaced"

    def _reach(self, phase: Phase) -> None:
        if phase > self.phase:
            self.phase, self.message = phase, ""
            self._told = float("-inf")
            if phase in (Phase.BOOTSTRAPPING, Phase.DONE):
                self.notify()

    def _say(self, text: str) -> None:
        """Progress: often enough to follow, seldom enough to cost little."""
        now = self.around.clock.monotonic()
        if self._told == float("-inf"):
            self._told = now
        elif now - self._told >= NEWS:
            self.message, self._told = text, now
            self.notify()


async def _to_its_end(making: Coroutine[Any, Any, str], undo: Callable[[str], Awaitable[None]]) -> str:
    """What is being made is known only when the engine has answered: cancelled, wait for that, and undo it."""
    task = asyncio.ensure_future(making)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            await undo(task.result())
        raise


def _cgroup_root(spec: InstanceSpec) -> bool:
    return node_image(spec.version, spec.container.image).private_cgroups


async def _once(program: bytes) -> AsyncIterator[bytes]:
    yield program


def _what(phase: Phase, name: str) -> str:
    doing: Mapping[Phase, str] = {
        Phase.CREATING: f"Creating container {name}",
        Phase.BOOTING: "Waiting for systemd and the container runtime",
        Phase.PRELOADING: "Loading images",
        Phase.BOOTSTRAPPING: "Executing the bootstrap data",
    }
    return doing.get(phase, "")

"""Machines that are containers of a Docker engine.

The engine is asked when the first container is wanted. A container is made once for its machine: one that was reported and is
gone has vanished (InstanceGone), one that has stopped stays so. Long work goes on in the background (`job.py`), and what
happens to containers is known from the engine's events (`world.py`).

Upstream: docker/reconcilers/backends/docker/dockermachine_backend.go.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType

from capi.aio.clock import Clock
from capi.aio.feed import Feed, Feeds
from capi.backends.docker import arguments, labels, steps
from capi.backends.docker.arguments import Site
from capi.backends.docker.creations import Creations
from capi.backends.docker.engine import Container, Engine, EngineInfo
from capi.backends.docker.job import Job
from capi.backends.docker.steps import Phase
from capi.backends.docker.stock import ImageStock
from capi.backends.docker.world import World
from capi.backends.port import (
    Address,
    Instance,
    InstanceEvent,
    InstanceGone,
    InstanceSpec,
    IPFamily,
    MachineShape,
    Stage,
)
from capi.kube.conditions import Condition
from capi.kube.errors import BackendError
from capi.runtime.plan import ClusterKey

PARALLEL = 16
"""Containers that are made at one time."""
QUIET = timedelta(seconds=2)
"""What making a container usually takes."""
BUSY = 64
"""Machines that are worked on at one time, from their container to the end of their bootstrap."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


class DockerBackend:
    """A Backend (capi.backends.port) on one engine. Use as an asynchronous context manager."""

    bootstraps = True

    def __init__(self, clock: Clock, *, host: str | None = None, environment: Mapping[str, str] | None = None) -> None:
        """`host`: the engine's address, None: as the environment says. `environment`: of this process, for proxies."""
        self.clock = clock
        self.engine = Engine(host)
        self.stock = ImageStock(self.engine, self._archives, lambda work: self._tasks.create_task(work))
        self.world = World(self.engine, clock, self._changed)
        self.environment = os.environ if environment is None else environment
        self._jobs: dict[tuple[ClusterKey, str], Job] = {}
        self._feeds: Feeds[InstanceEvent] = Feeds()
        self.balancer_news: Feeds[ClusterKey] = Feeds()
        self._tasks = asyncio.TaskGroup()
        self._following: asyncio.Task[None] | None = None
        self._network_lock = asyncio.Lock()
        self._slots = asyncio.Semaphore(BUSY)
        self.creations = Creations(PARALLEL)
        self._kept: Path | None = None

    async def __aenter__(self) -> "DockerBackend":
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in filter(None, [self._following, *(job.task for job in self._jobs.values())]):
            task.cancel()
        try:
            await self._tasks.__aexit__(kind, error, trace)
        finally:
            await self.engine.aclose()
            if self._kept is not None:
                shutil.rmtree(self._kept, ignore_errors=True)

    @property
    def network(self) -> str:
        """Name of the network that containers are in."""
        return self.environment.get("DOCKER_NETWORK") or "kind"

    @property
    def shape(self) -> MachineShape | None:
        """A container sees the whole engine. None until the engine has been asked."""
        info = self.world.info
        return _shape(info) if info is not None else None

    async def measure(self) -> MachineShape:
        """The same, asking the engine if need be. Raises BackendUnavailable."""
        return _shape(await self.ready())

    def identify(self, cluster: ClusterKey, host: str) -> str:
        """See Backend."""
        return labels.provider_id(labels.container_name(cluster, host))

    def node_name(self, id_: str) -> str:
        """See Backend. A kubelet is told its provider ID unless the bootstrap data starts it in its own way."""
        return labels.container_of(id_)

    async def ensure_running(self, spec: InstanceSpec) -> Instance:
        """See Backend. Raises InstanceGone, NameTaken, BackendUnavailable and what the last attempt ended with."""
        await self.ready()
        container = self._own(spec)
        key = (spec.cluster, spec.name)
        job = self._jobs.get(key)
        if job is not None and job.active:
            return self._under_way(job)
        if container is None and spec.made:
            await self._forget(key)
            if await self.world.look_for(spec.cluster, spec.name) and (container := self._own(spec)) is not None:
                return self._go_on(spec, container, None)
            raise InstanceGone(f"Container {_name(spec)} was removed")
        if container is not None and not container.running and spec.made:
            await self._forget(key)
            text = f"Container {container.name} is not running any more: {container.state}"
            given = steps.stopped(text, bootstrapped=spec.bootstrapped)
            return _instance(spec, container, Phase.CREATING, given, stage=Stage.STOPPED)
        if spec.bootstrapped and container is not None and container.running:
            return _instance(spec, container, Phase.DONE, steps.conditions(Phase.DONE, ""))
        return self._go_on(spec, container, job)

    async def ensure_absent(self, id_: str, name: str, cluster: ClusterKey, *, uid: str = "") -> None:
        """See Backend. Only containers of that `uid`, if one is given."""
        await self.ready()
        job = self._jobs.get((cluster, name))
        if job is not None and uid in ("", job.spec.uid):
            await self._forget((cluster, name))
        for container in await self.world.look_for(cluster, name):
            if uid and container.labels.get(labels.OWNER_UID) != uid:
                continue
            await self.engine.remove(container.id, container.name)
            self.world.removed(container.id)
        await self.tidy()

    async def list(self, cluster: ClusterKey, pool: str, uid: str = "") -> Sequence[Instance]:
        """See Backend."""
        await self.ready()
        found = [c for c in self.world.pool(cluster, pool) if not uid or c.labels.get(labels.POOL_UID) == uid]
        return [
            Instance(
                id=labels.provider_id(c.name),
                name=c.labels[labels.MACHINE],
                cluster=cluster,
                pool=pool,
                stage=Stage.RUNNING if c.running else Stage.STOPPED,
                addresses=addresses(c, IPFamily.DUAL),
            )
            for c in found
        ]

    def events(self) -> Feed[InstanceEvent]:
        """See Backend."""
        return self._feeds.open()

    async def ready(self) -> EngineInfo:
        """The engine answers, and its containers are known. Raises BackendUnavailable."""
        if self._following is None:
            self._following = self._tasks.create_task(self.world.run(), name="docker engine")
        return await self.world.ready()

    async def site_for(self, family: IPFamily) -> Site:
        """Where containers are made: the network $DOCKER_NETWORK or `kind`, which is made if there is none."""
        info, name = await self.ready(), self.network
        async with self._network_lock:
            described = await self.engine.network(name)
            if described is None:
                await self.engine.create_network(arguments.network(name, ipv6=family is not IPFamily.V4))
                described = await self.engine.network(name) or {}
        if family is not IPFamily.V4 and not arguments.has_ipv6(described):
            text = f"network {name} has no IPv6, which the cluster's CIDR blocks ask for; make it anew with --ipv6"
            raise BackendError(text, reason="NoIPv6")
        return Site(network=name, info=info, subnets=arguments.subnets(described), environment=self.environment)

    async def tidy(self) -> None:
        """Remove the network if it was made here and nothing is left in it. One that is in use stays."""
        if not self.world.empty or any(job.active for job in self._jobs.values()):
            return
        async with self._network_lock:
            described = await self.engine.network(self.network)
            if described is not None and (described.get("Labels") or {}).get(labels.MADE_BY) == "capi":
                try:
                    await self.engine.remove_network(self.network)
                except BackendError:
                    return  # somebody else has put a container into it

    def _own(self, spec: InstanceSpec) -> Container | None:
        """The machine's container. Another's, of a machine of the same name, counts only if this one was moved here."""
        found = self.world.machine(spec.cluster, spec.name)
        mine = [c for c in found if c.labels.get(labels.OWNER_UID) == spec.uid]
        moved = [c for c in found if spec.made and c.name == labels.container_of(spec.id)]
        return next(iter((*mine, *moved)), None)

    def _go_on(self, spec: InstanceSpec, container: Container | None, job: Job | None) -> Instance:
        """Start the next attempt, unless the last one has something to say first."""
        if job is not None and (job.spec.uid != spec.uid or (container is None and job.phase > Phase.CREATING)):
            job = None
        if job is None:
            job = Job(spec, self, lambda: self._tell(spec))
            if spec.made:
                job.phase = Phase.BOOTSTRAPPING  # it booted, and was given its images, before this process began
        job.spec, job.container = spec, container
        self._jobs[spec.cluster, spec.name] = job
        if job.error is not None:
            return _in_trouble(job)
        if not job.ended:
            job.active = True
            job.task = self._tasks.create_task(self._attempt(job), name=f"machine {job.name}")
        return self._under_way(job)

    def _under_way(self, job: Job) -> Instance:
        """As the job has it. A container that is made as fast as usual is not worth a word in between."""
        found = _instance(job.spec, job.container, job.phase, job.conditions(), job.warnings)
        quiet_until = job.spec.created + QUIET
        booting = found.stage is Stage.STARTING and job.active and self.clock.now() < quiet_until
        return replace(found, next_change=quiet_until) if booting else found

    async def _attempt(self, job: Job) -> None:
        async with self._slots:
            await job.attempt()

    def _tell(self, spec: InstanceSpec) -> None:
        self._feeds.publish(InstanceEvent(spec.cluster, spec.name, spec.pool))

    async def _forget(self, key: tuple[ClusterKey, str]) -> None:
        """End the work on a machine."""
        job = self._jobs.pop(key, None)
        if job is not None and job.task is not None:
            job.task.cancel()
            await asyncio.wait([job.task])

    def _changed(self, container: Container) -> None:
        """Tell whoever looks after the container."""
        cluster = labels.cluster_of(container.labels)
        machine = container.labels.get(labels.MACHINE)
        if machine is None:
            self.balancer_news.publish(cluster)
            return
        job = self._jobs.get((cluster, machine))
        if job is None or not job.active:
            self._feeds.publish(InstanceEvent(cluster, machine, container.labels.get(labels.POOL, "")))

    def _archives(self) -> Path:
        if self._kept is None:
            self._kept = Path(tempfile.mkdtemp(prefix="capi-images-"))
        return self._kept


def addresses(container: Container, family: IPFamily) -> tuple[Address, ...]:
    """Host name, then each address as internal and external; none that is not there.

    Upstream renders an address that is absent as the text "invalid IP".
    """
    wanted: Collection[str] = (container.ipv4, container.ipv6)
    if family is IPFamily.V4:
        wanted = (container.ipv4,)
    elif family is IPFamily.V6:
        wanted = (container.ipv6,)
    found = [Address("Hostname", container.name)]
    for ip in filter(None, wanted):
        found += [Address("InternalIP", ip), Address("ExternalIP", ip)]
    return tuple(found)


def _in_trouble(job: Job) -> Instance:
    """What ended the last attempt, told once: asking again begins the next. Raises it if there is no container."""
    error, job.error = job.error, None
    assert error is not None
    if job.phase is Phase.CREATING:
        raise error
    given = steps.conditions(job.phase, error.message, reason=error.reason)
    return replace(_instance(job.spec, job.container, job.phase, given, job.warnings), trouble=error)


def _instance(
    spec: InstanceSpec,
    container: Container | None,
    phase: Phase,
    conditions: tuple[Condition, ...],
    warnings: tuple[str, ...] = (),
    *,
    stage: Stage | None = None,
) -> Instance:
    return Instance(
        id=spec.id,
        name=spec.name,
        cluster=spec.cluster,
        pool=spec.pool,
        stage=steps.stage(phase) if stage is None else stage,
        steps=conditions,
        warnings=warnings,
        addresses=addresses(container, spec.ip_family) if container is not None and container.running else (),
    )


def _name(spec: InstanceSpec) -> str:
    return labels.container_of(spec.id) or spec.name


def _shape(info: EngineInfo) -> MachineShape:
    return MachineShape(
        {"cpu": str(info.cpus), "memory": str(info.memory)},
        architecture=_ARCHITECTURES.get(info.architecture, info.architecture),
        operating_system="linux",
    )

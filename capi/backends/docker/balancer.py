"""The load balancer of a cluster whose control plane machines are containers: one HAProxy container.

`ensure_running` brings it to what is wanted from wherever it is: absent, stopped, or with another configuration. A
configuration is checked by HAProxy before it is used, sent a reload only if it differs from the one in use, and the reload is
seen to have happened: HAProxy's master starts a new worker, or keeps the old one and logs why.

Upstream: docker/internal/docker/loadbalancer.go. Differs: a stopped one is started, a removed one comes back configured, a
refused reload is an error.
"""

import asyncio
import io
import tarfile
from collections.abc import Mapping, Sequence

from capi.aio.feed import Feed
from capi.backends.docker import arguments, labels
from capi.backends.docker.backend import DockerBackend
from capi.backends.docker.engine import Container
from capi.backends.docker.errors import NameTaken
from capi.backends.docker.haproxy import Frontend, render
from capi.backends.port import Address, IPFamily, LoadBalancerSpec
from capi.kube.errors import BackendError
from capi.runtime.plan import ClusterKey

RELOAD_TIMEOUT = 5.0
"""Seconds that HAProxy may take to start a worker with a new configuration."""
_LOOK = 0.1
_DIRECTORY, _FILE = arguments.HAPROXY_CONFIG.rsplit("/", 1)
_NEXT = "next.cfg"
_APPLIED = "applied.cfg"
"""What it runs with: written when a reload was seen to happen, so that a restart of this process needs none."""


class DockerLoadBalancers:
    """LoadBalancers (capi.backends.port) on the engine of a DockerBackend."""

    def __init__(self, backend: DockerBackend) -> None:
        self._backend = backend
        self._in_use: dict[str, str] = {}
        """Container ID to the configuration that its HAProxy is known to run with."""
        self._locks: dict[ClusterKey, asyncio.Lock] = {}

    async def ensure_running(self, spec: LoadBalancerSpec) -> Address:
        """See LoadBalancers. Raises BackendError: reasons InvalidLoadBalancerTemplate, ReloadRefused, and the engine's."""
        async with self._locks.setdefault(spec.cluster, asyncio.Lock()):
            await self._backend.ready()
            config = render(_frontend(spec), spec.template)
            container = next(iter(self._belonging(spec.cluster, spec.uid, moved=bool(spec.host))), None)
            if container is None:
                container = await self._create(spec, config)
            elif not container.running:
                container = await self._start(container, config)
            elif await self._known(container) != config:
                await self._reloaded_or_looked_at(container, config)
            address = _address(container, spec.ip_family)
            if spec.host not in ("", address.address):
                await self._expected(spec.host, address.address, container)
            return address

    async def ensure_absent(self, cluster: ClusterKey, uid: str, *, made: bool = False) -> None:
        """See LoadBalancers."""
        async with self._locks.setdefault(cluster, asyncio.Lock()):
            await self._backend.ready()
            for container in self._belonging(cluster, uid, moved=made):
                await self._backend.engine.remove(container.id, container.name)
                self._backend.world.removed(container.id)
                self._in_use.pop(container.id, None)
            await self._backend.tidy()

    def changes(self) -> Feed[ClusterKey]:
        """See LoadBalancers."""
        return self._backend.balancer_news.open()

    def _belonging(self, cluster: ClusterKey, uid: str, *, moved: bool) -> Sequence[Container]:
        """The cluster's load balancers. One of another owner counts only if there is no other, and the cluster was moved here
        with its address: two management servers on one engine may have a cluster of the same name."""
        found = self._backend.world.balancers(cluster)
        mine = [c for c in found if c.labels.get(labels.OWNER_UID) == uid]
        return mine or (found if moved else ())

    async def _expected(self, host: str, address: str, container: Container) -> None:
        """A host that is no address of the containers' network leads here in some way of the user's. One that is was this
        container's before it was started again: the engine gave it another."""
        if arguments.contains(await self._backend.engine.network(container.network) or {}, host):
            name = container.name
            text = (
                f"container {name} has address {address} now, but spec.controlPlaneEndpoint.host, which kubeconfigs and"
                f" certificates name, is {host}: free that address (docker network inspect {container.network} shows who has it)"
                f" and run docker restart {name}, or create the cluster anew"
            )
            raise BackendError(text, reason="AddressChanged")

    async def _create(self, spec: LoadBalancerSpec, config: str) -> Container:
        """Made with its configuration, so that it never runs without. A name that is taken is another cluster's."""
        engine = self._backend.engine
        await self._backend.stock.fetch(spec.image)
        site = await self._backend.site_for(spec.ip_family)
        name, other = labels.balancer_names(spec.cluster)
        try:
            id_ = await engine.create(name, arguments.balancer(spec, name, site))
        except NameTaken:
            name = other
            id_ = await engine.create(name, arguments.balancer(spec, name, site))
        try:
            await engine.put(id_, name, _DIRECTORY, _archive({_FILE: config, _APPLIED: config}))
            await engine.start(id_, name)
        except BackendError:
            await engine.remove(id_, name)
            raise
        return await self._running(id_, name, config)

    async def _start(self, container: Container, config: str) -> Container:
        engine = self._backend.engine
        if container.state == "paused":
            raise BackendError(
                f"container {container.name} is paused: docker unpause {container.name}", reason="Paused"
            )
        await engine.put(container.id, container.name, _DIRECTORY, _archive({_FILE: config, _APPLIED: config}))
        await engine.start(container.id, container.name)
        return await self._running(container.id, container.name, config)

    async def _running(self, id_: str, name: str, config: str) -> Container:
        container = await self._backend.world.started(id_, name)
        self._in_use[id_] = config
        return container

    async def _known(self, container: Container) -> str | None:
        """What it runs with."""
        if container.id not in self._in_use:
            found = await self._backend.engine.read(container.id, container.name, f"{_DIRECTORY}/{_APPLIED}")
            if found is None:
                return None
            self._in_use[container.id] = found.decode(errors="replace")
        return self._in_use[container.id]

    async def _reloaded_or_looked_at(self, container: Container, config: str) -> None:
        try:
            await self._reload(container, config)
        except BackendError as error:
            if error.reason == "NotRunning":
                await self._backend.world.refresh(container.id)  # so that the next attempt starts it
            raise

    async def _reload(self, container: Container, config: str) -> None:
        engine, id_, name = self._backend.engine, container.id, container.name
        self._in_use.pop(id_, None)
        await engine.put(id_, name, _DIRECTORY, _archive({_NEXT: config}))
        checked = await engine.execute(id_, name, ("haproxy", "-c", "-f", f"{_DIRECTORY}/{_NEXT}"))
        if checked.code != 0:
            text = f"HAProxy in container {name} refuses the configuration: {checked.output.strip()[-500:]}"
            raise BackendError(text, reason="InvalidLoadBalancerTemplate")
        await engine.put(id_, name, _DIRECTORY, _archive({_FILE: config}))
        before = await engine.processes(id_, name)
        await engine.kill(id_, name, "SIGHUP")
        if not await self._reloaded(container, before):
            words = await engine.last_words(id_, name, 5)
            text = (
                f"HAProxy in container {name} did not take the new configuration and goes on with the old one: {words}"
            )
            raise BackendError(text, reason="ReloadRefused")
        await engine.put(id_, name, _DIRECTORY, _archive({_APPLIED: config}))
        self._in_use[id_] = config

    async def _reloaded(self, container: Container, before: Mapping[int, int]) -> bool:
        """Whether the master has a worker that it had not before, and still has it a moment later."""
        clock = self._backend.clock
        deadline, seen = clock.monotonic() + RELOAD_TIMEOUT, frozenset[int]()
        while clock.monotonic() < deadline:
            await clock.sleep(_LOOK)
            now = await self._backend.engine.processes(container.id, container.name)
            fresh = frozenset(pid for pid, parent in now.items() if parent in now and pid not in before)
            if fresh & seen:
                return True
            seen = fresh
        return False


def _frontend(spec: LoadBalancerSpec) -> Frontend:
    return Frontend(
        port=spec.port,
        ipv6=spec.ip_family is IPFamily.V6,
        servers=spec.servers,
    )


def _address(container: Container, family: IPFamily) -> Address:
    found = container.ipv6 if family is IPFamily.V6 else container.ipv4
    if not found:
        text = f"container {container.name} has no {family} address in network {container.network}"
        raise BackendError(text, reason="NoAddress")
    return Address("InternalIP", found)


def _archive(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            data = content.encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()

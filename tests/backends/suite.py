"""What every backend promises (capi.backends.port.Backend), as tests: a backend is done when it passes them.

A subclass gives a `site`: how its backend is made, asked and hurt.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from capi.backends.port import Backend, BootstrapData, Container, Instance, InstanceGone, InstanceSpec, Stage
from capi.kube.errors import BackendError
from capi.runtime.plan import ClusterKey

PATIENCE = 30.0
"""Seconds in which an instance is there, or in which what happened to it is told."""


@dataclass(frozen=True, slots=True)
class Site:
    """A backend's surroundings."""

    cluster: ClusterKey
    """In a namespace of the test's own."""
    open: Callable[[], AbstractAsyncContextManager[Backend]]
    """The backend, as a new process would make it: what it made before is still there."""
    vanish: Callable[[Instance], Awaitable[None]]
    """The instance is removed behind the backend's back."""
    there: Callable[[], Awaitable[int]]
    """How many instances there are in the namespace and those that begin with its name, asked without the backend."""
    image: str = ""


class BackendSuite:
    """Subclassed with a fixture `site`."""

    @pytest.fixture
    async def backend(self, site: Site) -> AsyncIterator[Backend]:
        async with site.open() as backend:
            yield backend
            for namespace in (site.cluster.namespace, f"{site.cluster.namespace}-b"):
                cluster = ClusterKey(namespace, site.cluster.name)
                for instance in await backend.list(cluster, "pool"):
                    await backend.ensure_absent(instance.id, instance.name, cluster)
        assert await site.there() == 0, "instances are left"

    async def test_an_instance_is_made_once_however_often_it_is_asked_for(self, site: Site, backend: Backend) -> None:
        spec = a_spec(site, backend, "a")
        await joined(backend, spec)
        for _ in range(3):
            assert (await backend.ensure_running(made(spec))).stage is Stage.JOINED
        assert await site.there() == 1

    async def test_one_that_vanished_is_told_and_never_made_again(self, site: Site, backend: Backend) -> None:
        spec = a_spec(site, backend, "a")
        instance = await joined(backend, spec)
        news = backend.events()
        await site.vanish(instance)
        async with asyncio.timeout(PATIENCE):
            while (await anext(news)).name != "a":
                pass
        with pytest.raises(InstanceGone):
            await backend.ensure_running(made(spec))
        with pytest.raises(InstanceGone):
            await backend.ensure_running(made(spec))
        assert await site.there() == 0
        await backend.ensure_absent(spec.id, spec.name, spec.cluster)

    async def test_absent_twice_is_absent(self, site: Site, backend: Backend) -> None:
        spec = a_spec(site, backend, "a")
        await backend.ensure_absent(spec.id, spec.name, spec.cluster)
        await joined(backend, spec)
        for _ in range(2):
            await backend.ensure_absent(spec.id, spec.name, spec.cluster)
        assert await site.there() == 0

    async def test_only_what_was_made_for_the_very_object_goes(self, site: Site, backend: Backend) -> None:
        spec = a_spec(site, backend, "a")
        await joined(backend, spec)
        await backend.ensure_absent(spec.id, spec.name, spec.cluster, uid="of another object of that name")
        assert await site.there() == 1
        await backend.ensure_absent(spec.id, spec.name, spec.cluster, uid=spec.uid)
        assert await site.there() == 0

    async def test_a_pool_lists_its_own_instances_in_order(self, site: Site, backend: Backend) -> None:
        for spec in (a_spec(site, backend, "b"), a_spec(site, backend, "a"), a_spec(site, backend, "c", pool="other")):
            await joined(backend, spec)
        assert [i.name for i in await backend.list(site.cluster, "pool")] == ["a", "b"]
        assert [i.name for i in await backend.list(site.cluster, "pool", "uid of pool")] == ["a", "b"]
        assert not await backend.list(site.cluster, "pool", "uid of a pool of the same name before")
        await backend.ensure_absent(backend.identify(site.cluster, "c"), "c", site.cluster)

    async def test_clusters_of_one_name_in_two_namespaces_do_not_see_each_other(
        self, site: Site, backend: Backend
    ) -> None:
        other = ClusterKey(f"{site.cluster.namespace}-b", site.cluster.name)
        mine, theirs = a_spec(site, backend, "a"), replace(a_spec(site, backend, "b"), cluster=other)
        theirs = replace(theirs, id=backend.identify(other, "b"))
        await joined(backend, mine)
        await joined(backend, theirs)
        assert [i.name for i in await backend.list(site.cluster, "pool")] == ["a"]
        assert [i.name for i in await backend.list(other, "pool")] == ["b"]
        await backend.ensure_absent(theirs.id, "b", other)
        assert await site.there() == 1

    async def test_a_new_process_finds_what_there_is(self, site: Site) -> None:
        async with site.open() as first:
            spec = a_spec(site, first, "a")
            await joined(first, spec)
        async with site.open() as second:
            assert (await joined(second, made(spec))).id == spec.id
            assert await site.there() == 1
            await second.ensure_absent(spec.id, spec.name, spec.cluster)
        assert await site.there() == 0

    async def test_who_is_interrupted_leaves_nothing_that_cannot_be_removed(self, site: Site, backend: Backend) -> None:
        for delay in (0.0, 0.05, 0.2):
            spec = a_spec(site, backend, f"i{int(delay * 100)}")
            making = asyncio.ensure_future(joined(backend, spec))
            await asyncio.wait([making], timeout=delay)
            making.cancel()
            await asyncio.wait([making])
            await backend.ensure_absent(spec.id, spec.name, spec.cluster)
        assert await site.there() == 0

    def test_identities_follow_from_names(self, site: Site) -> None:
        async def ask() -> tuple[str, ...]:
            async with site.open() as backend:
                other = ClusterKey(site.cluster.namespace, "other")
                ids = [backend.identify(cluster, host) for cluster in (site.cluster, other) for host in ("a", "b")]
                assert len(set(ids)) == 4
                assert ids == [
                    backend.identify(cluster, host) for cluster in (site.cluster, other) for host in ("a", "b")
                ]
                return tuple(ids)

        assert asyncio.run(ask()) == asyncio.run(ask())


def a_spec(site: Site, backend: Backend, name: str, *, pool: str = "pool") -> InstanceSpec:
    data = b"#cloud-config\nruncmd: ['true']\n"
    return InstanceSpec(
        id=backend.identify(site.cluster, name),
        name=name,
        uid=f"uid of {name}",
        cluster=site.cluster,
        pool=pool,
        pool_uid="uid of pool",
        version="v1.34.0",
        created=datetime.now(UTC).replace(microsecond=0),
        container=Container(image=site.image),
        bootstrap=BootstrapData(data),
    )


def made(spec: InstanceSpec) -> InstanceSpec:
    """As its controller asks when it has once reported the instance as complete."""
    return replace(spec, made=True, bootstrapped=True, bootstrap=None, running_since=spec.created)


async def joined(backend: Backend, spec: InstanceSpec) -> Instance:
    """Ask until it has joined, as a controller does: when there is news, and at the time that was named."""
    async with asyncio.timeout(PATIENCE):
        while True:
            instance = await backend.ensure_running(spec)
            if instance.trouble is not None:
                raise BackendError(instance.trouble.message)
            if instance.stage is Stage.JOINED:
                return instance
            await asyncio.sleep(0.05)

"""The suite of all backends (tests/backends/suite.py), for containers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest
from aiodocker import Docker

from capi.aio.clock import SystemClock
from capi.backends.docker.backend import DockerBackend
from capi.backends.port import Backend, BackendUnavailable, Instance
from capi.runtime.plan import ClusterKey
from tests.backends.suite import BackendSuite, Site, a_spec, joined
from tests.docker.engine import Engine
from tests.docker.proxy import DockerProxy
from tests.docker.rig import IMAGE


class TestDocker(BackendSuite):
    """Containers of a real engine."""

    @pytest.fixture
    def site(self, engine: Engine, namespace: str) -> Site:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Backend]:
            async with DockerBackend(SystemClock()) as backend:
                yield backend

        async def vanish(instance: Instance) -> None:
            async with Docker() as docker:
                await docker.containers.container(f"c1-{instance.name}").delete(force=True, v=True)

        async def there() -> int:
            async with Docker() as docker:
                wanted = orjson.dumps({"label": ["dev.cluster.x-k8s.io/namespace"]}).decode()
                found = await docker.containers.list(all=True, filters=wanted)
                spaces = (namespace, f"{namespace}-b")
                return sum(one["Labels"]["dev.cluster.x-k8s.io/namespace"] in spaces for one in found)

        return Site(ClusterKey(namespace, "c1"), opened, vanish, there, IMAGE)

    async def test_an_engine_that_does_not_answer_is_said_to_and_waited_for(
        self, site: Site, proxy: DockerProxy
    ) -> None:
        async with DockerBackend(SystemClock(), host=proxy.host) as backend:
            spec = a_spec(site, backend, "a")
            async with proxy.down():
                with pytest.raises(BackendUnavailable, match="start the engine"):
                    await backend.ensure_running(spec)
            while True:
                try:
                    await joined(backend, spec)
                    break
                except BackendUnavailable:
                    await SystemClock().sleep(0.1)
            await backend.ensure_absent(spec.id, spec.name, spec.cluster)

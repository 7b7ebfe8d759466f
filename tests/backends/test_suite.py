"""The suite for backends without an engine; that of containers is tests/docker/test_backend.py."""

import importlib.util
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from os import kill
from pathlib import Path
from types import ModuleType

import pytest

from capi.aio.clock import SystemClock
from capi.backends.inmemory.backend import InMemoryBackend
from capi.backends.inmemory.stores import FileStores
from capi.backends.inmemory.workload import WorkloadClusters
from capi.backends.port import Backend, Instance
from capi.client.pki import KeyPair, new_ca
from capi.runtime.plan import ClusterKey
from tests.backends.suite import BackendSuite, Site

PORT = 6443
"""Of APIs that are reached without sockets."""


@asynccontextmanager
async def clusters(directory: Path, namespace: str, authority: KeyPair) -> AsyncIterator[WorkloadClusters]:
    """Hosted APIs of the test's two clusters, with what they held before."""
    async with WorkloadClusters(SystemClock(), stores=FileStores(directory), sockets=False) as workloads:
        for each in (namespace, f"{namespace}-b"):
            await workloads.ensure_running(ClusterKey(each, "c1"), PORT, authority, "v1.34.0")
        yield workloads


@pytest.fixture
def authority() -> KeyPair:
    return new_ca("kubernetes", SystemClock().now())


class TestInMemory(BackendSuite):
    """Simulated machines."""

    @pytest.fixture
    def site(self, tmp_path: Path, authority: KeyPair) -> Site:
        current: list[InMemoryBackend] = []

        (tmp_path / "clusters").mkdir()

        @asynccontextmanager
        async def opened() -> AsyncIterator[Backend]:
            async with clusters(tmp_path / "clusters", "ns", authority) as workloads:
                current[:] = [InMemoryBackend(workloads, SystemClock())]
                yield current[0]

        async def vanish(instance: Instance) -> None:
            await current[0].lose(instance.id)

        async def there() -> int:
            return len(current[0]._machines)

        return Site(ClusterKey("ns", "c1"), opened, vanish, there)


class TestProcesses(BackendSuite):
    """The example in examples/provider."""

    @pytest.fixture
    def site(self, tmp_path: Path, authority: KeyPair) -> Site:
        example = load_example()
        (tmp_path / "clusters").mkdir()

        @asynccontextmanager
        async def opened() -> AsyncIterator[Backend]:
            async with clusters(tmp_path / "clusters", "ns", authority) as workloads:
                yield example.Processes(tmp_path / "processes", workloads)

        def records() -> list[dict[str, object]]:
            return [json.loads(file.read_text()) for file in (tmp_path / "processes").glob("*.json")]

        async def vanish(instance: Instance) -> None:
            [record] = [each for each in records() if each["id"] == instance.id]
            kill(int(str(record["pid"])), signal.SIGKILL)

        async def there() -> int:
            return sum(example._alive(record) for record in records())

        return Site(ClusterKey("ns", "c1"), opened, vanish, there)


def load_example() -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "provider" / "main.py"
    spec = importlib.util.spec_from_file_location("example_provider", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

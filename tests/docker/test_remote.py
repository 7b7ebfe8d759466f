"""An engine elsewhere: over TCP with TLS, by the variables and contexts of the docker command."""

import asyncio
import hashlib
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from capi.aio.clock import SystemClock
from capi.backends.docker.backend import DockerBackend
from capi.backends.port import BackendUnavailable
from capi.client import pki
from capi.runtime.plan import ClusterKey
from tests.backends.suite import Site, a_spec, joined
from tests.docker.engine import Engine
from tests.docker.rig import IMAGE

pytestmark = pytest.mark.usefixtures("engine")


class Certificates:
    """Of an engine and of one client, as files in a directory."""

    def __init__(self, directory: Path) -> None:
        now = SystemClock().now()
        authority = pki.new_ca("engine", now)
        serving = pki.issue_serving(authority, ("127.0.0.1",), now)
        self.client, self.authority = pki.issue_client(authority, "me", (), now), authority
        self.directory = directory
        self.write(directory)
        server = directory / "server"
        pki.write_pair(serving, _made(server) / "cert.pem", server / "key.pem")
        self.server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(directory / "ca.pem"))
        self.server.verify_mode = ssl.CERT_REQUIRED
        self.server.load_cert_chain(server / "cert.pem", server / "key.pem")

    def write(self, directory: Path) -> None:
        """What a client needs."""
        (_made(directory) / "ca.pem").write_bytes(self.authority.certificate)
        pki.write_pair(self.client, directory / "cert.pem", directory / "key.pem")


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@asynccontextmanager
async def over_tcp(engine: Engine, tls: ssl.SSLContext | None) -> AsyncIterator[str]:
    """HOST:PORT where the engine is reached."""

    async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(engine.socket)
        await asyncio.gather(copied(reader, back), copied(there, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of where the engine is."""
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(_made(tmp_path / "home")))


async def makes_and_removes(namespace: str) -> None:
    """A container is made, bootstrapped by its own program, and removed, over whatever leads to the engine."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[DockerBackend]:
        async with DockerBackend(SystemClock()) as backend:
            yield backend

    async def nothing(*_: object) -> int:
        return 0

    site = Site(ClusterKey(namespace, "c1"), opened, nothing, nothing, IMAGE)
    async with opened() as backend:
        spec = a_spec(site, backend, "a")
        assert (await joined(backend, spec)).addresses
        await backend.ensure_absent(spec.id, spec.name, spec.cluster)


def a_context(name: str, host: str, certificates: Certificates | None) -> None:
    """As `docker context create` and `docker context use` write it."""
    home = Path.home() / ".docker"
    digest = hashlib.sha256(name.encode()).hexdigest()
    meta = {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": False}}}
    (_made(home / "contexts" / "meta" / digest) / "meta.json").write_text(json.dumps(meta))
    (home / "config.json").write_text(json.dumps({"currentContext": name}))
    if certificates is not None:
        certificates.write(home / "contexts" / "tls" / digest / "docker")


@pytest.mark.parametrize("how", ["1", "yes"])
async def test_by_docker_host_and_tls(
    how: str, engine: Engine, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = Certificates(tmp_path / "tls")
    async with over_tcp(engine, certificates.server) as where:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://{where}")
        monkeypatch.setenv("DOCKER_TLS_VERIFY", how)
        monkeypatch.setenv("DOCKER_CERT_PATH", str(certificates.directory))
        await makes_and_removes(namespace)


async def test_by_docker_host_without_tls(engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with over_tcp(engine, None) as where:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://{where}")
        await makes_and_removes(namespace)


async def test_by_the_context_in_use(engine: Engine, namespace: str, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "tls")
    async with over_tcp(engine, certificates.server) as where:
        a_context("remote", f"tcp://{where}", certificates)
        await makes_and_removes(namespace)


async def test_docker_host_wins_over_a_context(engine: Engine, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a_context("elsewhere", "tcp://127.0.0.1:1", None)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{engine.socket}")
    await makes_and_removes(namespace)


async def refusal() -> str:
    async with DockerBackend(SystemClock()) as backend:
        with pytest.raises(BackendUnavailable) as caught:
            await backend.ready()
        return caught.value.message


async def test_what_is_wrong_is_said(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates, others = Certificates(tmp_path / "tls"), Certificates(tmp_path / "others")
    async with over_tcp(engine, certificates.server) as where:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://{where}")
        monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
        monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path / "nowhere"))
        assert f"{tmp_path / 'nowhere'} cannot be used" in await refusal()
        monkeypatch.setenv("DOCKER_CERT_PATH", str(others.directory))
        said = await refusal()
        assert where.partition(":")[2] in said and "certificate" in said and "DOCKER_CERT_PATH" in said
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONTEXT", "no-such")
    assert "no-such" in await refusal()

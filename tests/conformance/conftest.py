"""Every case runs against the embedded server and, where there is one, against a real kube-apiserver (marker `real`)."""

import asyncio
import base64
import contextlib
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from capi.aio.clock import SystemClock
from capi.client import pki
from capi.server.http.app import ApiServer
from capi.server.http.listener import serve
from capi.server.http.tls import server_context
from capi.server.registry.registry import ApiRegistry
from capi.server.store.memory import MemoryStore
from tests import real_apiserver
from tests.conformance.site import Api, Site
from tests.e2e.process import Kubectl, capi, running_up, running_webhook


class Embedded:
    """The embedded server with TLS in a thread of its own, so that the cases may block."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        self.ca = pki.new_ca("conformance", now)
        self.admin = pki.issue_client(self.ca, "admin", ["system:masters"], now)
        self._serving = pki.issue_serving(self.ca, ["127.0.0.1"], now)
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._run(),))
        self.port = 0

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        registry = ApiRegistry(MemoryStore(), clock=SystemClock())
        await registry.start()
        background = asyncio.ensure_future(registry.run())
        app = ApiServer(registry, clock=SystemClock())
        listener = await serve(app, tls=server_context(self._serving, self.ca.certificate))
        self.port = listener.port
        self._ready.set()
        await self._stop.wait()
        await listener.close(1)
        background.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await background
        await registry.close()

    @contextlib.contextmanager
    def running(self) -> Iterator["Embedded"]:
        self._thread.start()
        assert self._ready.wait(10)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)


def client(url: str, certificate: bytes, key: bytes, folder: Path) -> Api:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    pki.write_pair(pki.KeyPair(certificate, key), folder / "c.crt", folder / "c.key")
    context.load_cert_chain(folder / "c.crt", folder / "c.key")
    return Api(url, context)


@contextlib.contextmanager
def embedded(folder: Path) -> Iterator[Site]:
    with Embedded().running() as server:
        yield Site(
            client(f"https://127.0.0.1:{server.port}", server.admin.certificate, server.admin.key, folder),
            controllers=True,
        )


def real(kubeconfig: Path, folder: Path) -> Site:
    config = yaml.safe_load(kubeconfig.read_text())
    user = config["users"][0]["user"]
    certificate, key = (base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key"))
    return Site(client(config["clusters"][0]["cluster"]["server"], certificate, key, folder), controllers=False)


@pytest.fixture(scope="session", params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("credentials")
    with contextlib.ExitStack() as stack:
        if request.param == "embedded":
            ground = stack.enter_context(embedded(folder))
        else:
            ground = real(request.getfixturevalue("real_kubeconfig"), folder)
        ground.set_up()
        yield ground
        ground.tear_down()


@pytest.fixture
def api(site: Site) -> Api:
    return site.api


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def capi_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A server with the kinds of Cluster API: ours, or a real one of this module's own, which asks `capi webhook`. (With its
    webhooks gone others could not write to it any more.)"""
    folder = tmp_path_factory.mktemp("capi")
    with contextlib.ExitStack() as stack:
        if request.param == "embedded":
            stack.enter_context(running_up(folder / "data", "--no-controllers"))
            kubeconfig = folder / "data" / "kubeconfig"
        else:
            kubeconfig = stack.enter_context(_asking(folder, request.getfixturevalue("kubectl")))
        yield real(kubeconfig, folder).api


@contextlib.contextmanager
def _asking(folder: Path, kubectl: str) -> Iterator[Path]:
    """A kube-apiserver with the CRDs, which asks `capi webhook`."""
    assets = real_apiserver.assets()
    if assets is None:
        pytest.skip("no real kube-apiserver: set KUBEBUILDER_ASSETS or run `make envtest`")
    with real_apiserver.running(assets, folder / "real") as kubeconfig:
        k = Kubectl(kubectl, kubeconfig)
        k.run("apply", "--server-side", "-f", "-", stdin=capi("manifests", "--only", "crds").stdout)
        k.run("wait", "--for=condition=Established", "crd", "-l", "cluster.x-k8s.io/provider", "--timeout=30s")
        with running_webhook(kubeconfig, folder / "webhook.log"):
            yield kubeconfig

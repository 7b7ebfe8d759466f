"""The webhook server's certificate: made once, shared by all replicas, renewed in time."""

import asyncio
import base64
import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from capi.api.builtin import Secret
from capi.app import webhook_certificates as certificates
from capi.app.embedded import CRD
from capi.app.settings import WebhookSettings
from capi.app.webhook import WebhookServer
from capi.client import pki
from capi.client.client import Client
from capi.kube.types import Object
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime
NOW = datetime(2026, 1, 1, tzinfo=UTC)
POOLS = "machinepools.cluster.x-k8s.io"
HOSTS = ["capi-webhook.default.svc"]


async def ensure(client: Client, now: datetime = NOW, hosts: list[str] = HOSTS) -> certificates.Certificates:
    return await certificates.ensure(client, "default", hosts, now)


async def test_certificates_are_made_once_and_shared() -> None:
    async with world() as w:
        first, second = await ensure(w.client), await ensure(w.client)
        assert first == second
        secret = await w.client.get(Secret, certificates.NAME, "default")
        assert secret.type == "kubernetes.io/tls"
        assert secret.data["tls.crt"] == first.serving.certificate
        assert base64.b64decode(first.bundle) == first.ca.certificate
        assert pki.usable(first.serving, NOW, ca=first.ca, hosts=HOSTS)


async def test_certificates_are_renewed_in_time() -> None:
    async with world() as w:
        first = await ensure(w.client)
        later = NOW + timedelta(days=350)
        renewed = await ensure(w.client, later)
        assert renewed.ca == first.ca, "those who trust it need not be told"
        assert renewed.serving != first.serving
        assert pki.usable(renewed.serving, later, ca=first.ca, hosts=HOSTS)
        much_later = NOW + timedelta(days=3640)
        assert (await ensure(w.client, much_later)).ca != first.ca


async def test_another_name_needs_another_certificate() -> None:
    async with world() as w:
        first = await ensure(w.client)
        found = await ensure(w.client, hosts=[*HOSTS, "10.0.0.7"])
        assert found.serving != first.serving
        assert pki.usable(found.serving, NOW, ca=found.ca, hosts=["10.0.0.7"])


@pytest.mark.parametrize("data", [{}, {"tls.crt": "bm8=", "tls.key": "bm8=", "ca.crt": "bm8=", "ca.key": "bm8="}])
async def test_a_secret_that_holds_something_else_is_written_anew(data: dict[str, str]) -> None:
    async with world() as w:
        body = {"metadata": {"name": certificates.NAME, "namespace": "default"}, "data": data}
        await w.client.create(Secret.resource, body)
        made = await ensure(w.client)
        assert await ensure(w.client) == made


@pytest.mark.parametrize("file", ["tls.crt", "tls.key", "ca.crt", "ca.key"])
@pytest.mark.parametrize("content", [b"", b"no", b"cut", b"other"])
async def test_a_spoilt_file_is_written_anew(file: str, content: bytes) -> None:
    async with world() as w:
        await ensure(w.client)
        secret = await w.client.get(Secret, certificates.NAME, "default")
        other = pki.new_ca("other", NOW)
        spoilt = {b"cut": secret.data[file][:-40], b"other": other.key if file.endswith("key") else other.certificate}
        data = {file: base64.b64encode(spoilt.get(content, content)).decode()}
        await w.client.patch(Secret.resource, certificates.NAME, "default", {"data": data})
        made = await ensure(w.client)
        assert pki.usable(made.ca, NOW) and pki.usable(made.serving, NOW, ca=made.ca, hosts=HOSTS)
        assert await ensure(w.client) == made


async def test_replicas_with_other_names_do_not_take_them_from_each_other() -> None:
    async with world() as w:
        await ensure(w.client, hosts=["10.0.0.1"])
        both = await ensure(w.client, hosts=["10.0.0.2"])
        assert await ensure(w.client, hosts=["10.0.0.1"]) == both


async def test_a_secret_that_goes_is_missed_at_once() -> None:
    """API servers trust what the next replica makes; this one has to serve it."""
    async with world() as w:
        server = WebhookServer(w.client, w.clock, WebhookSettings(namespace="default"))
        running = asyncio.ensure_future(server.run())
        await w.advance(seconds=10)
        first = await _trusted(w)
        await w.client.delete(Secret.resource, certificates.NAME, "default")
        await w.advance(seconds=10)
        secret = await w.client.get(Secret, certificates.NAME, "default")
        assert await _trusted(w) == base64.b64encode(secret.data["ca.crt"]).decode() != first
        await w.client.patch(CRD, POOLS, "", {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
        await w.advance(seconds=10)
        assert await _trusted(w) == base64.b64encode(secret.data["ca.crt"]).decode()
        writes = await w.writes()
        await w.advance(hours=3)
        assert await w.writes() == writes
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def _trusted(w: World) -> str:
    definition: Object = await w.client.get(CRD, POOLS)
    found: str = definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]
    return found

"""The webhook server's certificate: made once, shared by all replicas, renewed in time."""

import base64
from datetime import UTC, datetime, timedelta

import pytest

from capi.api.builtin import Secret
from capi.app import webhook_certificates as certificates
from capi.client import pki
from capi.client.client import Client
from tests.world.rig import world

pytestmark = pytest.mark.looptime
NOW = datetime(2026, 1, 1, tzinfo=UTC)
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

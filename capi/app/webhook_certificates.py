"""The certificate of the webhook server: made here, kept in a Secret that all replicas share, renewed in time.

Secret (type kubernetes.io/tls): tls.crt and tls.key are the server's, ca.crt and ca.key its authority's, which API servers are
told to trust. Whoever is first makes it; whoever finds it used up makes it anew; the others read it.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from capi.api.builtin import Secret
from capi.client import pki
from capi.client.client import Client
from capi.client.pki import KeyPair
from capi.kube.errors import AlreadyExists, Conflict, NotFound
from capi.kube.types import Object

NAME = "capi-webhook-cert"


@dataclass(frozen=True, slots=True)
class Certificates:
    """The authority and the serving certificate."""

    ca: KeyPair
    serving: KeyPair

    @property
    def bundle(self) -> str:
        """The authority as a `caBundle`."""
        return base64.b64encode(self.ca.certificate).decode("ascii")


async def ensure(client: Client, namespace: str, hosts: Sequence[str], now: datetime) -> Certificates:
    """What the Secret holds if it is good for `hosts`, else new ones, stored first. Raises ApiError, TransportError."""
    for _ in range(3):
        try:
            secret: Secret | None = await client.get(Secret, NAME, namespace)
        except NotFound:
            secret = None
        found = _read(secret) if secret is not None else None
        if found is not None and _good(found, hosts, now):
            return found
        try:
            return await _store(client, namespace, secret, _made(found, hosts, now))
        except (AlreadyExists, Conflict):
            continue  # another replica was faster: its certificate is as good
    raise Conflict(f"Secret {namespace}/{NAME} keeps changing; look who writes it")


def _good(found: Certificates, hosts: Sequence[str], now: datetime) -> bool:
    return pki.usable(found.ca, now) and pki.usable(found.serving, now, ca=found.ca, hosts=hosts)


def _made(found: Certificates | None, hosts: Sequence[str], now: datetime) -> Certificates:
    """The authority stays as long as it is good, API servers that trust it need not be told again; and so do names: another
    replica may be reached by them."""
    if found is None or not pki.usable(found.ca, now):
        found = None
    ca = found.ca if found is not None else pki.new_ca("capi-webhook", now)
    names = list(dict.fromkeys([*hosts, *(pki.hosts_of(found.serving) if found is not None else ())]))
    return Certificates(ca, pki.issue_serving(ca, names, now, common_name="capi-webhook"))


def _read(secret: Secret) -> Certificates | None:
    """None for a Secret without the four files, or with unreadable ones: it is written anew."""
    data = secret.data
    try:
        ca, serving = KeyPair(data["ca.crt"], data["ca.key"]), KeyPair(data["tls.crt"], data["tls.key"])
        pki.not_after(ca)
        pki.not_after(serving)
    except (KeyError, ValueError):
        return None
    return Certificates(ca, serving)


async def _store(client: Client, namespace: str, old: Secret | None, made: Certificates) -> Certificates:
    files = {
        "ca.crt": made.ca.certificate,
        "ca.key": made.ca.key,
        "tls.crt": made.serving.certificate,
        "tls.key": made.serving.key,
    }
    body: Object = {
        "metadata": {"name": NAME, "namespace": namespace},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(content).decode("ascii") for name, content in files.items()},
    }
    if old is None:
        await client.create(Secret.resource, body)
    else:  # its type cannot be changed, nor does it matter
        del body["type"]
        body["metadata"]["resourceVersion"] = old.metadata.resource_version
        await client.patch(Secret.resource, NAME, namespace, body)
    return made

"""TLS of the listener: TLS 1.2 or newer, optional client certificates, and who a certificate is.

Python's ssl wants files for key material, so the private key touches a private temporary file for an instant.
Source: kubernetes.io/docs/reference/access-authn-authz/authentication (X509 client certificates).
"""

import asyncio
import os
import ssl
import tempfile
from pathlib import Path
from typing import Any

from capi.client.pki import KeyPair
from capi.kube.messages import UserInfo

AUTHENTICATED = "system:authenticated"


def server_context(serving: KeyPair, client_ca: bytes | None) -> ssl.SSLContext:
    """A server context presenting `serving`; with `client_ca` (PEM) it asks for, but does not insist on, a client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    present(context, serving)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=client_ca.decode("ascii"))
    return context


def present(context: ssl.SSLContext, serving: KeyPair) -> None:
    """Have a context present another certificate from the next connection on."""
    handle, name = tempfile.mkstemp(prefix="capi-serving-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(serving.key + b"\n" + serving.certificate)
        context.load_cert_chain(name)
    finally:
        Path(name).unlink()


def peer_user(transport: asyncio.BaseTransport) -> UserInfo | None:
    """The identity in the peer's verified certificate: CN is the name, each O a group. None without one."""
    secured = transport.get_extra_info("ssl_object")
    certificate: dict[str, Any] | None = secured.getpeercert() if secured is not None else None
    return user_of(certificate) if certificate else None


def user_of(certificate: dict[str, Any]) -> UserInfo | None:
    """`certificate` as ssl's getpeercert returns it. A certificate without CN names nobody."""
    subject = [pair for rdn in certificate.get("subject", ()) for pair in rdn]
    name = next((value for key, value in subject if key == "commonName"), "")
    groups = tuple(value for key, value in subject if key == "organizationName")
    return UserInfo(name, (*groups, AUTHENTICATED)) if name else None

"""TLS contexts for clients. Keys go to OpenSSL through a private temporary file that is gone before the function returns."""

import os
import ssl
import tempfile

from capi.client.config import ClusterConfig
from capi.client.credentials import Credential
from capi.client.kubeconfig import KubeconfigError


def client_context(config: ClusterConfig, credential: Credential) -> ssl.SSLContext | None:
    """What to speak to `config.server` with; None for plain HTTP. Raises KubeconfigError for unusable certificates."""
    if not config.server.startswith("https://"):
        return None
    try:
        context = ssl.create_default_context(cadata=config.ca.decode("ascii") if config.ca else None)
    except (ssl.SSLError, ValueError) as error:
        raise KubeconfigError(f"{config.source}: certificate-authority: not a PEM certificate: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credential.certificate is not None and credential.key is not None:
        try:
            _load(context, credential.certificate + b"\n" + credential.key)
        except ssl.SSLError as error:
            raise KubeconfigError(f"{config.source}: client-certificate: not a usable key pair: {error}") from error
    return context


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix="capi-")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
        context.load_cert_chain(name, password="")  # an encrypted key is an error, never a prompt
    finally:
        os.unlink(name)  # noqa: PTH108 - the counterpart of mkstemp

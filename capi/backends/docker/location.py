"""Where the Docker engine is, as the docker command finds it.

An address that is given, else DOCKER_HOST (by TLS if DOCKER_TLS_VERIFY is set, with the files of DOCKER_CERT_PATH), else the context
of DOCKER_CONTEXT or the one in use, else the usual socket. aiodocker alone lets a context win over DOCKER_HOST.

Source: docker/cli, cli/command (resolveContextName) and cli/flags.
"""

import os
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capi.backends.port import BackendUnavailable

USUAL_SOCKET: Final = "unix:///var/run/docker.sock"
_SOCKETS: Final = ("/run/docker.sock", "/var/run/docker.sock")
_OVER_TCP: Final = re.compile(r"^(tcp|http|https)://")


@dataclass(frozen=True, slots=True)
class Location:
    """How to connect: to `url`, or as `context` says."""

    url: str | None = None
    tls: ssl.SSLContext | None = None
    context: str | None = None


def find(host: str | None) -> Location:
    """Raises BackendUnavailable for TLS files that cannot be used, naming their directory."""
    host = host or os.environ.get("DOCKER_HOST") or None
    if host is not None:
        if os.environ.get("DOCKER_TLS_VERIFY") and _OVER_TCP.match(host):
            return Location(_OVER_TCP.sub("https://", host), _tls())
        return Location(host)
    if os.environ.get("DOCKER_CONTEXT") or (Path.home() / ".docker" / "config.json").exists():
        return Location(context=os.environ.get("DOCKER_CONTEXT") or None)
    if any(Path(path).is_socket() for path in _SOCKETS):
        return Location()
    return Location(USUAL_SOCKET)


def _tls() -> ssl.SSLContext:
    directory = Path(os.environ.get("DOCKER_CERT_PATH") or Path.home() / ".docker")
    try:
        context = ssl.create_default_context(cafile=str(directory / "ca.pem"))
        context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    except OSError as error:
        text = (
            f"DOCKER_TLS_VERIFY is set, but ca.pem, cert.pem and key.pem in {directory} cannot be used: {error};"
            " set DOCKER_CERT_PATH to the directory that has them"
        )
        raise BackendUnavailable(text) from error
    return context

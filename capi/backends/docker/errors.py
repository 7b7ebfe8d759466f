"""What an engine refuses, in words that say what to do, with a reason for a condition.

The engine answers in prose, so its prose is looked at; what is not recognised is passed on as it is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capi.backends.port import BackendUnavailable
from capi.kube.errors import BackendError

if TYPE_CHECKING:  # see engine.py
    from aiodocker import DockerError

_NO_CONNECTION = 900
"""What aiodocker says instead of an HTTP status."""


class NotThere(BackendError):
    """The engine has no such container, image or network."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, reason="NotFound")


class NameTaken(BackendError):
    """Another container has that name."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, reason="NameTaken")


@dataclass(frozen=True, slots=True)
class _Known:
    """A refusal that is recognised by a part of its text."""

    part: str
    reason: str
    advice: str


_KNOWN = (
    _Known("no space left on device", "DiskFull", "free space for the engine, e.g. with docker system prune"),
    _Known("port is already allocated", "PortTaken", "stop whoever uses the port, or choose another"),
    _Known("address already in use", "PortTaken", "stop whoever uses the port, or choose another"),
    _Known(
        "bind source path does not exist", "InvalidMount", "make the path on the engine's host, or mend extraMounts"
    ),
    _Known("invalid mount", "InvalidMount", "mend extraMounts"),
    _Known("invalid volume specification", "InvalidMount", "mend extraMounts"),
    _Known("invalid reference format", "InvalidImage", "name an image like registry/name:tag"),
    _Known("pull access denied", "ImageNotFound", "mend the image's name, or docker login"),
    _Known("no such image", "ImageNotFound", "mend the image's name, or load it into the engine"),
    _Known("manifest unknown", "ImageNotFound", "mend the image's tag"),
    _Known("manifest for", "ImageNotFound", "mend the image's tag"),
    _Known("is not running", "NotRunning", "it is looked at again"),
    _Known("unable to apply caps", "NotPrivileged", "the engine may not run privileged containers"),
)


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turns what goes wrong while `doing` ("create container x") into BackendErrors; `doing` begins the message."""
    import aiohttp
    from aiodocker import DockerError

    try:
        yield
    except DockerError as error:
        raise _of(error, doing) from error
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise BackendUnavailable(
            f"{doing}: the Docker engine broke off ({type(error).__name__}); it is asked again"
        ) from error


def _of(error: "DockerError", doing: str) -> BackendError:
    text = " ".join(str(error.message).split())
    if error.status == _NO_CONNECTION:
        return BackendUnavailable(f"{doing}: {_no_connection(text)}")
    if "HTTP request to an HTTPS server" in text:
        return BackendUnavailable(f"{doing}: {text} Set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH")
    for known in _KNOWN:
        if known.part in text.lower():
            return BackendError(f"{doing}: {text}: {known.advice}", reason=known.reason)
    if error.status == 404:
        return NotThere(f"{doing}: {text}")
    if error.status == 409 and "is already in use by container" in text:
        return NameTaken(f"{doing}: {text}; remove that container, or give this object another name")
    return BackendError(f"{doing}: {text}", reason="EngineError")


def _no_connection(text: str) -> str:
    """`text` is aiodocker's "Cannot connect to Docker Engine via <address> [<why>]"."""
    if "Permission denied" in text:
        return (
            f"{text}: this user may not use the Docker engine's socket; add the user to the group docker and log in"
            " again, or run as one who may"
        )
    if "SSL" in text or "certificate" in text.lower():
        return (
            f"{text}: the certificates of this user and of the engine do not fit; set DOCKER_CERT_PATH to the directory with"
            " ca.pem, cert.pem and key.pem for this engine"
        )
    return f"{text}: start the engine (systemctl start docker), or set DOCKER_HOST to the one that is meant"

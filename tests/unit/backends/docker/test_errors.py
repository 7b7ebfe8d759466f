"""What an engine refuses, in words that say what to do."""

import aiohttp
import pytest
from aiodocker import DockerError

from capi.backends.docker.errors import NameTaken, NotThere, explained
from capi.backends.port import BackendUnavailable
from capi.kube.errors import BackendError


def refused(error: Exception, doing: str = "create container c1-w") -> BackendError:
    with pytest.raises(BackendError) as caught, explained(doing):
        raise error
    assert caught.value.message.startswith(f"{doing}: ")
    return caught.value


@pytest.mark.parametrize(
    ("text", "reason", "advice"),
    [
        ("write /var/lib/docker/x: no space left on device", "DiskFull", "docker system prune"),
        ("Bind for 127.0.0.1:6443 failed: port is already allocated", "PortTaken", "stop whoever uses the port"),
        ("listen tcp 0.0.0.0:6443: bind: address already in use", "PortTaken", "stop whoever uses the port"),
        ("invalid mount config: bind source path does not exist: /nope", "InvalidMount", "make the path"),
        ("invalid reference format", "InvalidImage", "registry/name:tag"),
        ("pull access denied for nope/nope, repository does not exist", "ImageNotFound", "docker login"),
        ("No such image: nope:1", "ImageNotFound", "load it into the engine"),
        ("manifest unknown: manifest unknown", "ImageNotFound", "mend the image's tag"),
        ("container 0123 is not running", "NotRunning", "looked at again"),
        ("unable to apply caps: operation not permitted", "NotPrivileged", "privileged"),
    ],
)
def test_a_refusal_that_is_known_says_what_to_do(text: str, reason: str, advice: str) -> None:
    error = refused(DockerError(500, text))
    assert error.reason == reason
    assert text.lower() in error.message.lower()
    assert advice in error.message


def test_other_refusals_are_passed_on() -> None:
    assert refused(DockerError(500, "device busy")).reason == "EngineError"
    assert isinstance(refused(DockerError(404, "No such container: x")), NotThere)
    taken = 'Conflict. The container name "/c1-w" is already in use by container "0123"'
    error = refused(DockerError(409, taken))
    assert isinstance(error, NameTaken)
    assert "remove that container" in error.message


@pytest.mark.parametrize(
    ("why", "advice"),
    [
        ("Permission denied", "add the user to the group docker"),
        ("No such file or directory", "start the engine"),
        ("Connect call failed", "set DOCKER_HOST"),
        ("SSLCertVerificationError: certificate verify failed", "set DOCKER_CERT_PATH"),
    ],
)
def test_an_engine_that_cannot_be_reached(why: str, advice: str) -> None:
    error = refused(DockerError(900, f"Cannot connect to Docker Engine via unix:///var/run/docker.sock [{why}]"))
    assert isinstance(error, BackendUnavailable)
    assert advice in error.message


def test_an_engine_that_wants_tls() -> None:
    error = refused(DockerError(400, "Client sent an HTTP request to an HTTPS server."))
    assert isinstance(error, BackendUnavailable)
    assert "DOCKER_TLS_VERIFY=1" in error.message


@pytest.mark.parametrize("error", [TimeoutError(), aiohttp.ClientPayloadError(), ConnectionResetError()])
def test_a_connection_that_breaks_off_is_an_engine_that_is_away(error: Exception) -> None:
    assert isinstance(refused(error), BackendUnavailable)

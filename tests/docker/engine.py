"""The engine as tests see it: beside the provider, through a client of its own. Synchronous and small."""

import http.client
import io
import json
import os
import socket
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

DEFAULT_HOST = "unix:///var/run/docker.sock"
VERSION = "v1.41"  # of the API; Docker 20.10
NODE_IMAGE = "capi-test/node:v1.34.0"
LOAD_BALANCER_IMAGE = "kindest/haproxy:v20230606-42a2262b"
KUBERNETES_IMAGE = "kindest/node:v1.34.4"
TIMEOUT = 180.0  # seconds; `kubeadm init` is one request


class EngineError(Exception):
    """The engine refused."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("docker", timeout=TIMEOUT)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(str(self.path))


class Engine:
    """One engine at a unix socket."""

    def __init__(self, path: Path) -> None:
        self.socket = path

    @property
    def host(self) -> str:
        """DOCKER_HOST."""
        return f"unix://{self.socket}"

    def call(self, method: str, path: str, body: Any = None, /, **query: Any) -> Any:
        """One request; the decoded answer, or None without one. Raises EngineError."""
        text = self.raw(method, path, None if body is None else json.dumps(body).encode(), "application/json", **query)
        return json.loads(text) if text.strip() else None

    def raw(self, method: str, path: str, body: bytes | None, kind: str, /, **query: Any) -> bytes:
        """One request; the bytes of the answer. Values of the query that are no strings are sent as JSON."""
        pairs = {key: value if isinstance(value, str) else json.dumps(value) for key, value in query.items()}
        target = f"/{VERSION}{path}" + (f"?{urlencode(pairs)}" if pairs else "")
        connection = _Connection(self.socket)
        try:
            connection.request(method, target, body, {"Content-Type": kind} if body is not None else {})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise EngineError(answer.status, json.loads(text or b"{}").get("message", ""))
        return text

    # Containers

    def containers(self, *labels: str) -> list[dict[str, Any]]:
        """All, stopped ones too, that have these labels (`key` or `key=value`)."""
        found: list[dict[str, Any]] = self.call("GET", "/containers/json", all=True, filters={"label": list(labels)})
        return found

    def inspect(self, container: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"/containers/{container}/json")
        return found

    def run(self, name: str, image: str = NODE_IMAGE, labels: Mapping[str, str] | None = None, **settings: Any) -> str:
        """Create and start a container; its ID. `settings` are fields of the engine's ContainerCreate."""
        body = {"Image": image, "Labels": dict(labels or {}), **settings}
        made: str = self.call("POST", "/containers/create", body, name=name)["Id"]
        self.call("POST", f"/containers/{made}/start")
        return made

    def start(self, container: str) -> None:
        self.call("POST", f"/containers/{container}/start")

    def stop(self, container: str) -> None:
        """Returns when it has stopped."""
        self.call("POST", f"/containers/{container}/stop", t="5")

    def kill(self, container: str, signal: str = "KILL") -> None:
        self.call("POST", f"/containers/{container}/kill", signal=signal)

    def remove(self, container: str) -> None:
        """Like `docker rm -f -v`; nothing happens if it is gone."""
        self._delete(f"/containers/{container}", force=True, v=True)

    def exec(self, container: str, *argv: str) -> tuple[int, str]:
        """Exit code and what it said, both outputs."""
        body = {"Cmd": list(argv), "AttachStdout": True, "AttachStderr": True}
        made = self.call("POST", f"/containers/{container}/exec", body)["Id"]
        said = self.raw("POST", f"/exec/{made}/start", b'{"Detach":false,"Tty":false}', "application/json")
        return self.call("GET", f"/exec/{made}/json")["ExitCode"], _demultiplexed(said)

    def read(self, container: str, path: str) -> str:
        """Content of a file in a container, which may have stopped."""
        with tarfile.open(
            fileobj=io.BytesIO(self.raw("GET", f"/containers/{container}/archive", None, "", path=path))
        ) as tar:
            member = tar.extractfile(tar.next() or tarfile.TarInfo())
            assert member is not None, f"{path} is no file"
            return member.read().decode()

    def write(self, container: str, path: str, content: str) -> None:
        """A file in a container, which may have stopped; its folders are made."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size = len(content.encode())
            tar.addfile(entry, io.BytesIO(content.encode()))
        self.raw("PUT", f"/containers/{container}/archive", buffer.getvalue(), "application/x-tar", path="/")

    def logs(self, container: str) -> str:
        return _demultiplexed(self.raw("GET", f"/containers/{container}/logs", None, "", stdout="1", stderr="1"))

    # Volumes, networks, images

    def volumes(self, **filters: list[str]) -> list[dict[str, Any]]:
        return list(self.call("GET", "/volumes", filters=filters)["Volumes"] or [])

    def remove_volume(self, name: str) -> None:
        self._delete(f"/volumes/{name}", force=True)

    def networks(self, *labels: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("GET", "/networks", filters={"label": list(labels)})
        return found

    def remove_network(self, name: str) -> None:
        self._delete(f"/networks/{name}")

    def has_image(self, name: str) -> bool:
        try:
            self.call("GET", f"/images/{quote(name)}/json")
        except EngineError as error:
            if error.status != 404:
                raise
            return False
        return True

    def _delete(self, path: str, /, **query: Any) -> None:
        try:
            self.call("DELETE", path, **query)
        except EngineError as error:
            if error.status != 404:
                raise


def connect() -> Engine:
    """The engine of DOCKER_HOST or the machine's own. Raises RuntimeError with the reason and the way out."""
    host = os.environ.get("DOCKER_HOST") or DEFAULT_HOST
    if not host.startswith("unix://"):
        raise RuntimeError(f"DOCKER_HOST={host}: these tests talk to unix sockets only")
    namespace = os.environ.get("CAPI_TEST_NETNS")
    if namespace and not Path("/proc/self/ns/net").samefile(f"/run/netns/{namespace}"):
        raise RuntimeError(
            f"containers can be reached in the network namespace {namespace} only: use `tools/engine/run`"
        )
    engine = Engine(Path(host.removeprefix("unix://")))
    try:
        engine.call("GET", "/version")
    except (OSError, EngineError) as error:
        raise RuntimeError(f"no Docker engine answers at {host} ({error}): run `make e2e-docker`") from None
    for image in (NODE_IMAGE, LOAD_BALANCER_IMAGE):
        if not engine.has_image(image):
            raise RuntimeError(f"the engine at {host} has no image {image}: run `make engine`")
    return engine


def _demultiplexed(stream: bytes) -> str:
    """The text of frames, each with one byte for the stream, three for nothing and four for its length in front."""
    parts, offset = [], 0
    while offset + 8 <= len(stream):
        end = offset + 8 + int.from_bytes(stream[offset + 4 : offset + 8], "big")
        parts.append(stream[offset + 8 : end])
        offset = end
    return b"".join(parts).decode(errors="replace")

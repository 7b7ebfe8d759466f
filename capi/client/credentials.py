"""What proves who we are: header values that may have to be renewed, and client certificates that plugins hand out."""

import asyncio
import base64
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from capi.client.config import ClusterConfig, ExecPlugin
from capi.client.kubeconfig import KubeconfigError
from capi.kube import times
from capi.kube.errors import BadRequest
from capi.kube.types import Object

TOKEN_FILE_LIFE = timedelta(minutes=1)
"""How long a token read from a file is used before it is read again (kubelet rotates them)."""
PLUGIN_TIMEOUT = 60.0
"""Seconds an exec plugin may take."""
_EARLY = timedelta(seconds=10)
"""A credential is renewed that long before it expires."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What to present: a bearer token, or a client certificate, or both."""

    token: str = field(default="", repr=False)
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    expires: datetime | None = None

    def good(self, now: datetime) -> bool:
        return self.expires is None or now < self.expires - _EARLY


class Credentials:
    """The credential of one cluster configuration, renewed when it expires or was refused."""

    def __init__(self, config: ClusterConfig, now: Callable[[], datetime]) -> None:
        self._config = config
        self._now = now
        self._current: Credential | None = None
        self._lock = asyncio.Lock()

    @property
    def renewable(self) -> bool:
        """True if a refused credential may be replaced by a newer one."""
        return self._config.token_file is not None or self._config.plugin is not None

    async def current(self) -> Credential:
        """A credential that has not expired. Raises KubeconfigError when there is none to be had."""
        current = self._current
        if current is not None and current.good(self._now()):
            return current
        async with self._lock:
            if self._current is None or not self._current.good(self._now()):
                self._current = await self._fetch()
            return self._current

    def refused(self, credential: Credential) -> None:
        """The server answered 401 to it."""
        if self._current is credential and self.renewable:
            self._current = None

    async def _fetch(self) -> Credential:
        config = self._config
        if config.plugin is not None:
            return await run_plugin(config.plugin, config)
        if config.token_file is not None:
            try:
                token = config.token_file.read_text().strip()
            except OSError as error:
                raise KubeconfigError(f"{config.source}: tokenFile: {config.token_file}: {error.strerror}") from error
            return Credential(token, config.certificate, config.key, self._now() + TOKEN_FILE_LIFE + _EARLY)
        return Credential(config.token, config.certificate, config.key)


def headers(config: ClusterConfig, credential: Credential) -> list[tuple[str, str]]:
    """The request headers that authenticate, and impersonate."""
    found = []
    if credential.token:
        found.append(("Authorization", f"Bearer {credential.token}"))
    elif config.username:
        basic = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
        found.append(("Authorization", f"Basic {basic}"))
    if config.impersonate:
        found.append(("Impersonate-User", config.impersonate))
        found += [("Impersonate-Group", group) for group in config.impersonate_groups]
    if any("\r" in value or "\n" in value for _, value in found):
        raise KubeconfigError(f"{config.source}: a credential contains a line break")
    return found


async def run_plugin(plugin: ExecPlugin, config: ClusterConfig) -> Credential:
    """Run an exec plugin once. Raises KubeconfigError with what it printed on standard error."""
    spec: Object = {"interactive": False}
    if plugin.provide_cluster_info:
        ca = {"certificate-authority-data": base64.b64encode(config.ca).decode()} if config.ca else {}
        spec["cluster"] = {"server": config.server, "tls-server-name": config.tls_server_name, **ca}
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    env = {**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command, *plugin.args, env=env, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
    except OSError as error:
        hint = f". {plugin.install_hint}" if plugin.install_hint else ""
        raise KubeconfigError(f"{plugin.where}.command: {plugin.command}: {error.strerror}{hint}") from error
    try:
        async with asyncio.timeout(PLUGIN_TIMEOUT):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise KubeconfigError(f"{plugin.where}: {plugin.command} took longer than {PLUGIN_TIMEOUT:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = err.decode("utf-8", "replace").strip()[-500:]
        raise KubeconfigError(f"{plugin.where}: {plugin.command} failed with {process.returncode}: {said}")
    return _credential(plugin, out)


def _credential(plugin: ExecPlugin, out: bytes) -> Credential:
    try:
        answer: Any = json.loads(out)
        if answer["kind"] != "ExecCredential" or answer["apiVersion"] != plugin.api_version:
            raise ValueError(f"expected an ExecCredential of {plugin.api_version}")
        status = answer["status"]
        expires = status.get("expirationTimestamp")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if not status.get("token") and not (certificate and key):
            raise ValueError("status has neither a token nor a client certificate with its key")
        return Credential(
            str(status.get("token") or ""),
            certificate.encode() if certificate else None,
            key.encode() if key else None,
            times.parse(expires) if expires else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError, BadRequest) as error:
        raise KubeconfigError(f"{plugin.where}: {plugin.command} printed no usable credential: {error}") from error

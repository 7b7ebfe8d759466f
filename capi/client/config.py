"""How to reach one API server, as values. Files are read when the kubeconfig is loaded, but tokens when they are used."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials (client.authentication.k8s.io ExecCredential)."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    provide_cluster_info: bool = False
    where: str = ""
    """File and field that configured it, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """One context of a kubeconfig, resolved."""

    server: str
    """Base URL, without a trailing slash."""
    ca: bytes | None = None
    """PEM; None = the system's authorities."""
    tls_server_name: str = ""
    insecure: bool = False
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    """Read again every minute and after a 401; wins over `token`."""
    username: str = ""
    password: str = field(default="", repr=False)
    plugin: ExecPlugin | None = None
    impersonate: str = ""
    impersonate_groups: tuple[str, ...] = ()
    namespace: str = ""
    """The context's default namespace."""
    context: str = ""
    source: str = ""
    """File it comes from, for messages."""

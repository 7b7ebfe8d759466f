"""Which API server a command talks to, and the client for it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from capi.app.settings import default_data_dir
from capi.client import http, kubeconfig
from capi.client.client import Client
from capi.client.config import ClusterConfig
from capi.kube.errors import CapiError, TransportError


class NoKubeconfigOfUp(CapiError):
    """`capi up` has not run with that data directory."""


class NotRunning(TransportError):
    """Nothing answers where `capi up` would."""


@dataclass(frozen=True, slots=True)
class Where:
    """What the command line says about the API server."""

    kubeconfig: Path | None = None
    context: str | None = None
    data_dir: Path | None = None
    namespace: str = ""

    def of_capi_up(self) -> Path | None:
        """The kubeconfig of a `capi up`, if that is what is meant: asked for, or there and nothing else is said."""
        if self.data_dir is not None:
            return self.data_dir / "kubeconfig"
        if self.kubeconfig is not None or os.environ.get("KUBECONFIG"):
            return None
        usual = default_data_dir() / "kubeconfig"
        return usual if usual.exists() else None


@dataclass(frozen=True, slots=True)
class Connected:
    """A client and the namespace that is meant."""

    client: Client
    namespace: str


@asynccontextmanager
async def connected(where: Where) -> AsyncIterator[Connected]:
    """A client for one command. Raises KubeconfigError, NoKubeconfigOfUp, TransportError."""
    file = where.of_capi_up() if where.kubeconfig is None else None
    if file is not None and not file.exists():
        raise NoKubeconfigOfUp(f"{file} is not there: `capi up` has not run with that data directory")
    config: ClusterConfig = kubeconfig.load(file or where.kubeconfig, context=where.context)
    transport = http.connect(config)
    try:
        yield Connected(Client(transport, user_agent="capi"), where.namespace or config.namespace or "default")
    except TransportError as error:
        if file is None:
            raise
        raise NotRunning(
            f"{error.message}\n  {file} is of a `capi up` that does not run now: start it, or give --kubeconfig FILE"
        ) from error
    finally:
        await transport.close()

"""Which API server a command talks to, and the client for it."""

import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from capi.app.settings import default_data_dir
from capi.client import http, kubeconfig
from capi.client.client import Client
from capi.client.config import ClusterConfig
from capi.kube.errors import CapiError, TransportError


class NeverRan(CapiError):
    """`capi up` has not run with that data directory."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(f"{kubeconfig} is not there: `capi up` has not run with that data directory")
        self.way_out = _up(kubeconfig)


class NotRunning(TransportError):
    """Nothing answers where `capi up` would."""

    def __init__(self, kubeconfig: Path, why: str) -> None:
        super().__init__(f"{why}\n  {kubeconfig} is of a `capi up` that does not run now")
        self.way_out = f"{_up(kubeconfig)}, or --kubeconfig FILE for another API server"


def _up(kubeconfig: Path) -> str:
    folder = kubeconfig.parent
    return "capi up" if folder == default_data_dir() else f"capi up --data-dir {shlex.quote(str(folder))}"


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
    """A client for one command. Raises KubeconfigError, NeverRan, TransportError."""
    file = where.of_capi_up() if where.kubeconfig is None else None
    if file is not None and not file.exists():
        raise NeverRan(file)
    config: ClusterConfig = kubeconfig.load(file or where.kubeconfig, context=where.context)
    transport = http.connect(config)
    try:
        yield Connected(Client(transport, user_agent="capi"), where.namespace or config.namespace or "default")
    except TransportError as error:
        if file is None:
            raise
        raise NotRunning(file, error.message) from error
    finally:
        await transport.close()

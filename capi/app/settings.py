"""All that can be configured, as frozen values. The command line and the environment are parsed into these; nothing else
reads them. Times are timedeltas."""

import os
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

STDIN = Path("-")
"""As a file to apply: read standard input."""


def default_data_dir() -> Path:
    """$CAPI_DATA_DIR, else $XDG_DATA_HOME/capi, else ~/.local/share/capi."""
    if explicit := os.environ.get("CAPI_DATA_DIR"):
        return Path(explicit)
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "capi"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpSettings:
    """`capi up`: the embedded API server, the controllers and the in-memory infrastructure in this process."""

    files: tuple[Path, ...] = ()
    """Manifests to apply once the server is ready; `STDIN` reads standard input. All are checked before any is applied."""
    wait: bool = False
    """Show progress until every Cluster and MachinePool of `files` (of the server, if there are none) is as desired."""
    once: bool = False
    """End as soon as `wait` is satisfied (exit 0) or `timeout` is over (exit 1). Implies `wait`."""
    ephemeral: bool = False
    """Keep everything in memory; the data directory holds only the kubeconfig and certificates, which go at the end."""
    data_dir: Path | None = None
    """None = a temporary one if `ephemeral`, else `default_data_dir()`."""
    host: str = "127.0.0.1"
    """Address to serve on. Loopback by default: the admin kubeconfig is the only protection needed then."""
    port: int | None = None
    """None = the port of the last start if it is free, else one the kernel picks; 0 = one the kernel picks."""
    timeout: timedelta = timedelta(minutes=5)
    """How long `wait` may take."""
    controllers: bool = True
    """False: serve the API only, for a `capi manager` in another process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Admission and conversion webhooks, in `capi manager` or alone in `capi webhook`."""

    host: str = "0.0.0.0"
    port: int = 9443
    """0 = one the kernel picks."""
    url: str = ""
    """`https://host[:port]` under which API servers reach it, when that is not the Service capi-webhook."""
    namespace: str = "capi-system"
    """Of the Service, and of the Secret with the certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings:
    """`capi manager`: the same controllers against any Kubernetes API server."""

    kubeconfig: Path | None = None
    """None = $KUBECONFIG, ~/.kube/config or, in a pod, its service account."""
    context: str | None = None
    namespace: str | None = None
    """Look after this namespace only; None = all."""
    watch_filter: str = ""
    """Look only after objects whose label cluster.x-k8s.io/watch-filter has this value; "" = all."""
    sync_labels: tuple[re.Pattern[str], ...] = ()
    """Labels of Machines that go to their Nodes besides those of the known domains: keys that one of these matches."""
    sync_annotations: tuple[re.Pattern[str], ...] = ()
    leader_elect: bool = True
    lease_namespace: str = "capi-system"
    lease_name: str = "capi-manager"
    health_host: str = "127.0.0.1"
    health_port: int | None = None
    """Serve /healthz, /readyz and /metrics there (plain HTTP); None = off, 0 = a port the kernel picks."""
    webhooks: WebhookSettings | None = None
    """Serve admission and conversion webhooks too."""
    data_dir: Path | None = None
    """Where in-memory workload clusters keep their state; None = in memory, their Nodes register anew after a restart."""
    workload_host: str = "127.0.0.1"
    """Address that in-memory workload API servers listen on and advertise."""
    controllers: tuple[str, ...] = ()
    """Run only these (cluster, machine, machinepool, machinehealthcheck, devcluster, devmachine, devmachinepool, devcontrolplane); empty = all."""

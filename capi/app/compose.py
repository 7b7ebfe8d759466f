"""Composition: the one place that names every controller and backend; that of the embedded API server is capi.app.embedded.

controllers     manager over a transport, reconcilers with their ports
infrastructure  simulated machines and the API servers of their clusters

Importing it takes long, so `capi up` does that only when its API serves already.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from capi.aio.clock import Clock
from capi.backends.docker.backend import DockerBackend
from capi.backends.docker.balancer import DockerLoadBalancers
from capi.backends.inmemory.backend import InMemoryBackend
from capi.backends.inmemory.stores import FileStores, Stores
from capi.backends.inmemory.workload import InProcessFirst, WorkloadClusters
from capi.backends.port import Backend
from capi.client import http
from capi.client import kubeconfig as kubeconfigs
from capi.client.transport import Transport
from capi.controllers.controlplane.reconciler import DevControlPlaneReconciler
from capi.controllers.core.cluster.reconciler import ClusterReconciler
from capi.controllers.core.machine.reconciler import MachineReconciler
from capi.controllers.core.machinehealthcheck.reconciler import MachineHealthCheckReconciler
from capi.controllers.core.machinehealthcheck.release import VerdictReleaseReconciler
from capi.controllers.core.machinepool.reconciler import MachinePoolReconciler
from capi.controllers.core.nodes import NOTHING_MORE, NodeSync
from capi.controllers.infra import backends
from capi.controllers.infra.cluster.reconciler import DevClusterReconciler, DockerClusterReconciler
from capi.controllers.infra.machine.reconciler import DevMachineReconciler, DockerMachineReconciler
from capi.controllers.infra.machinepool.reconciler import DevMachinePoolReconciler, DockerMachinePoolReconciler
from capi.controllers.infra.template.reconciler import DevMachineTemplateReconciler, DockerMachineTemplateReconciler
from capi.kube.errors import CapiError
from capi.runtime.clusters import Connector
from capi.runtime.election import Election
from capi.runtime.manager import Manager
from capi.runtime.plan import ClusterKey
from capi.runtime.reconciler import Reconciler


class UnknownController(CapiError):
    """There is no controller of that name."""


@dataclass(frozen=True, slots=True)
class Infrastructure:
    """The infrastructure of one process."""

    workloads: WorkloadClusters
    backend: InMemoryBackend
    docker: DockerBackend | None = None
    """None: nothing is made of containers."""
    others: backends.Backends = field(default_factory=dict)
    """Of whoever uses this program as a library (capi.provider), by name."""

    @property
    def backends(self) -> backends.Backends:
        found: dict[str, Backend] = {**self.others, backends.IN_MEMORY: self.backend}
        return found if self.docker is None else {**found, backends.DOCKER: self.docker}

    @property
    def connector(self) -> Connector:
        return InProcessFirst(self.workloads, HttpConnector())


@asynccontextmanager
async def infrastructure(  # noqa: PLR0913 - options
    clock: Clock,
    *,
    host: str,
    directory: Path | None = None,
    stores: Stores | None = None,
    sockets: bool = True,
    docker: bool = False,
    provide: Callable[[WorkloadClusters], backends.Backends] | None = None,
    heartbeats: bool = True,
) -> AsyncIterator[Infrastructure]:
    """Workload clusters keep their objects in `directory` (made if missing), else in `stores`, else in memory.

    With `docker`, containers can be made; the engine is looked for when the first is wanted. Without `heartbeats` simulated
    kubelets do not renew their Leases, and an idle workload cluster writes nothing.
    """
    stores = stores if directory is None else _files(directory)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(DockerBackend(clock)) if docker else None
        workloads = await stack.enter_async_context(
            WorkloadClusters(clock, stores=stores, host=host, sockets=sockets, heartbeats=heartbeats)
        )
        yield Infrastructure(
            workloads, InMemoryBackend(workloads, clock), engine, provide(workloads) if provide is not None else {}
        )


def _files(directory: Path) -> FileStores:
    directory.mkdir(mode=0o700, exist_ok=True)
    return FileStores(directory)


class HttpConnector:
    """Reaches workload clusters over the network by their kubeconfig."""

    async def connect(self, cluster: ClusterKey, kubeconfig: bytes) -> Transport:
        return http.connect(kubeconfigs.parse(kubeconfig, source=f"Secret {cluster}-kubeconfig"))


def reconcilers(infra: Infrastructure, sync: NodeSync = NOTHING_MORE) -> dict[str, Reconciler[Any]]:
    """All controllers by the name the command line knows them by."""
    balancers = DockerLoadBalancers(infra.docker) if infra.docker is not None else None
    return {
        "cluster": ClusterReconciler(),
        "machine": MachineReconciler(sync),
        "machinepool": MachinePoolReconciler(),
        "machinehealthcheck": MachineHealthCheckReconciler(),
        "machinehealthcheck-release": VerdictReleaseReconciler(),
        "devcluster": DevClusterReconciler(infra.workloads, balancers),
        "devmachine": DevMachineReconciler(infra.backends),
        "devmachinepool": DevMachinePoolReconciler(infra.backends),
        "devmachinetemplate": DevMachineTemplateReconciler(infra.backends),
        "dockercluster": DockerClusterReconciler(infra.workloads, balancers),
        "dockermachine": DockerMachineReconciler(infra.backends),
        "dockermachinepool": DockerMachinePoolReconciler(infra.backends),
        "dockermachinetemplate": DockerMachineTemplateReconciler(infra.backends),
        "devcontrolplane": DevControlPlaneReconciler(infra.workloads),
    }


def manager(  # noqa: PLR0913 - ports and options
    transport: Transport,
    clock: Clock,
    infra: Infrastructure,
    *,
    only: Sequence[str] = (),
    election: Election | None = None,
    namespace: str | None = None,
    watch_filter: str = "",
    sync: NodeSync = NOTHING_MORE,
    tune_gc: bool = False,
) -> Manager:
    """A manager with all controllers, or those named in `only`. Raises UnknownController."""
    available = reconcilers(infra, sync)
    for name in only:
        if name not in available:
            raise UnknownController(f"there is no controller {name!r}; there are {', '.join(sorted(available))}")
    built = Manager(
        transport,
        clock=clock,
        connector=infra.connector,
        election=election,
        namespace=namespace,
        watch_filter=watch_filter,
        tune_gc=tune_gc,
    )
    for name, reconciler in available.items():
        if not only or name in only:
            built.add(reconciler)
    return built

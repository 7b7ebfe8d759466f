"""What one pass over an InfraMachine looks at. Pure."""

from dataclasses import dataclass

from capi.api.builtin import Node
from capi.api.core import labels
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.backends.port import BootstrapData, Limit
from capi.controllers.infra.family import InfraMachine
from capi.controllers.infra.lookups import is_control_plane
from capi.runtime.plan import ClusterKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """All that one pass looks at; everything it does is a function of this, of what the backend says, and the clock."""

    infra: InfraMachine
    machine: Machine | None = None
    """Its owner; a pool's InfraMachine exists before it."""
    machine_pool: MachinePool | None = None
    """Of a pool's InfraMachine."""
    cluster: Cluster | None = None
    pool: str = ""
    """Name of the InfraMachinePool that owns it."""
    pool_uid: str = ""
    id: str = ""
    """Provider ID: as written, else as the backend makes it."""
    simulated: bool = False
    """Of the in-memory backend."""
    as_vm: bool = False
    """Its conditions are those of a machine (VMProvisioned), not those of a container."""
    bootstrap: BootstrapData | None = None
    """Read only when there may be something to execute."""
    limits: tuple[Limit, ...] = ()
    """Simulated shortages of its pool and its cluster."""
    node: Node | None = None
    """That the instance became, if the workload cluster is connected."""

    @property
    def of_pool(self) -> bool:
        return bool(self.pool or self.infra.metadata.labels.get(labels.POOL_NAME))

    @property
    def control_plane(self) -> bool:
        return is_control_plane(self.infra, self.machine)

    @property
    def cluster_key(self) -> ClusterKey:
        name = (
            self.cluster.name if self.cluster is not None else self.infra.metadata.labels.get(labels.CLUSTER_NAME, "")
        )
        return ClusterKey(self.infra.namespace, name)

    @property
    def host(self) -> str:
        """What the instance is called after: a Machine on its own gives it its name."""
        return self.infra.name if self.of_pool or self.machine is None else self.machine.name

    @property
    def data_secret(self) -> str | None:
        """The pool's for a pool's machine: its Machine has none of its own. None: not known yet; "": there is none."""
        if self.of_pool and self.machine_pool is not None:
            return self.machine_pool.spec.template.spec.bootstrap.data_secret_name
        return self.machine.spec.bootstrap.data_secret_name if self.machine is not None else None

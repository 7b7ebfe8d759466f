"""What one pass over an InfraMachinePool looks at. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from capi.api.core import annotations, labels
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.backends.port import MachineShape
from capi.controllers.infra.family import Family, InfraMachine, InfraMachinePool
from capi.runtime.plan import ClusterKey


@dataclass(frozen=True, slots=True)
class Scope:
    """All that one pass looks at; everything it does is a function of this and the clock."""

    pool: InfraMachinePool
    family: Family
    machine_pool: MachinePool | None
    cluster: Cluster | None
    infra: Sequence[InfraMachine] = ()
    """The pool's InfraMachines, ordered by name."""
    machines: Mapping[str, Machine] = field(default_factory=dict)
    """By the name of their InfraMachine."""
    dangling: Sequence[Machine] = ()
    """Machines of the pool whose InfraMachine is known to be gone."""
    identify: Callable[[ClusterKey, str], str] = lambda cluster, host: ""
    """The backend's provider IDs. Pure."""
    unsupported: str = ""
    """Why there is no backend for what the pool asks for; "" if there is one."""
    shape: MachineShape | None = None
    """What the backend says of every instance."""

    @property
    def cluster_name(self) -> str:
        if self.machine_pool is not None:
            return self.machine_pool.spec.cluster_name
        return self.pool.metadata.labels.get(labels.CLUSTER_NAME, "")


def externally_managed(pool: MachinePool) -> bool:
    """Someone else decides the number of instances; any value of the annotation but "false" counts."""
    return pool.metadata.annotations.get(annotations.REPLICAS_MANAGED_BY, "false") != "false"


def was_provisioned(pool: InfraMachinePool) -> bool:
    """The pool was once complete."""
    initialization = pool.status.initialization
    return bool(initialization is not None and initialization.provisioned)


def wanted_replicas(pool: MachinePool) -> int:
    """What the user asks for; unset counts as 1."""
    return 1 if pool.spec.replicas is None else pool.spec.replicas

"""All that one pass over a Cluster looks at."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from capi.api.core import labels
from capi.api.core.v1beta2 import Cluster, ClusterInitialization, Machine, MachinePool
from capi.controllers.core.cluster.access import NOTHING, Access
from capi.controllers.core.objects import ABSENT, Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A function of this and the clock is everything a pass decides."""

    cluster: Cluster
    infra: Found = ABSENT
    control_plane: Found = ABSENT
    pools: Sequence[MachinePool] = ()
    unpooled: Sequence[Machine] = ()
    """Machines outside pools, those of the control plane included."""
    pooled: Sequence[Machine] = ()
    """Machines of pools; looked at only for Clusters being deleted."""
    connected: bool = False
    lost_since: datetime | None = None
    """When the cluster last answered, or (if it never did) was first found unconnected; None while there is a connection."""
    trouble: str = ""
    """Why there is no connection."""
    access: Access = NOTHING

    @property
    def start(self) -> ClusterInitialization:
        """The steps reached so far."""
        return self.cluster.status.initialization or ClusterInitialization()

    @property
    def control_plane_machines(self) -> list[Machine]:
        return [machine for machine in self.unpooled if labels.CONTROL_PLANE in machine.metadata.labels]

    @property
    def workers(self) -> list[Machine]:
        """Worker Machines outside pools."""
        return [machine for machine in self.unpooled if labels.CONTROL_PLANE not in machine.metadata.labels]

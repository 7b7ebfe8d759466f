"""Machine in v1beta1.

Upstream: api/core/v1beta1/machine_types.go.
"""

from datetime import datetime
from typing import Annotated, ClassVar

from capi.api.core.v1beta1.shared import IMMUTABLE_CLUSTER, VERSION_NAME, MachineSpec, NewConditions, Status
from capi.api.core.v1beta2.machine import PHASES, MachineDeletionStatus, NodeSystemInfo
from capi.api.core.v1beta2.machinepool import ObjectReference
from capi.api.core.v1beta2.shared import GROUP, MachineAddresses
from capi.api.schema import AGE, Column, Crd, Rule
from capi.kube.objects import Resource
from capi.kube.types import ResourceType


class MachineStatus(Status):
    """What was observed of a Machine."""

    node_ref: Annotated[ObjectReference | None, Rule(atomic=True)] = None
    node_info: NodeSystemInfo | None = None
    last_updated: datetime | None = None
    addresses: MachineAddresses = ()
    phase: Annotated[str, Rule(enum=tuple(phase for phase in PHASES if phase != "Updating"))] = ""
    certificates_expiry_date: datetime | None = None
    bootstrap_ready: bool | None = None
    infrastructure_ready: bool | None = None
    deletion: MachineDeletionStatus | None = None
    v1beta2: NewConditions | None = None


class Machine(Resource, kw_only=True):
    """A Machine is one instance of a cluster and, once it has joined, its Node."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "Machine", "machines")
    crd: ClassVar[Crd] = Crd(
        singular="machine",
        columns=(
            Column("Cluster", ".spec.clusterName"),
            Column("NodeName", ".status.nodeRef.name"),
            Column("ProviderID", ".spec.providerID"),
            Column("Phase", ".status.phase"),
            AGE,
            Column("Version", ".spec.version"),
        ),
    )
    spec: Annotated[MachineSpec, Rule(cel=(IMMUTABLE_CLUSTER,))]
    status: MachineStatus = MachineStatus()

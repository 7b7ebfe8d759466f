"""All that one pass over a Machine looks at."""

from dataclasses import dataclass, field

from capi import contract
from capi.api.builtin import Node
from capi.api.core import labels
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.controllers.core.machine.drain.view import DrainView, VolumeView
from capi.controllers.core.nodes import NOTHING_MORE, NodeSync, Owner
from capi.controllers.core.objects import ABSENT, Found
from capi.kube.objects import Unstructured


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A function of this and the clock is everything a pass decides."""

    machine: Machine
    cluster: Cluster | None
    """None: it does not exist (any more)."""
    pool: MachinePool | None = None
    pool_infra: Unstructured | None = None
    """The infrastructure of its pool."""
    infra: Found = ABSENT
    bootstrap: Found = ABSENT
    control_plane: Found = ABSENT
    """Looked up only for Machines being deleted."""
    control_plane_machines: int = 0
    """Control plane Machines of the cluster that are not being deleted; counted only for Machines being deleted."""
    connected: bool = False
    """The workload cluster's Nodes can be read."""
    nodes: tuple[Node, ...] = field(default=())
    """The Nodes with this Machine's provider ID."""
    sync: NodeSync = NOTHING_MORE
    drain: DrainView | None = None
    """Read when the Node is drained, or its volumes are waited for."""
    volumes: VolumeView | None = None
    """Read when its volumes are waited for."""

    @property
    def node(self) -> Node | None:
        """The Node, if it is the only one with this provider ID."""
        return self.nodes[0] if len(self.nodes) == 1 else None

    @property
    def in_pool(self) -> bool:
        """A MachinePool makes this Machine, and writes its spec and its metadata."""
        return is_pooled(self.machine)

    @property
    def provider_id(self) -> str:
        """The Machine's, or else what its infrastructure reports."""
        return provider_id(self.machine, self.infra.obj)

    @property
    def provisioned(self) -> bool:
        """The infrastructure is, or was before, provisioned."""
        return was_provisioned(self.machine) or self.provisioned_now

    @property
    def provisioned_now(self) -> bool:
        infra = self.infra.usable
        return infra is not None and contract.provisioned(infra) and bool(contract.provider_id(infra))

    @property
    def owner(self) -> Owner:
        """The Machine's controller as its Node's annotations name it."""
        ref = self.machine.metadata.controller
        if ref is not None:
            return Owner(ref.kind, ref.name)
        return Owner("MachinePool", self.pool.name) if self.pool is not None else Owner()


def provider_id(machine: Machine, infra: Unstructured | None) -> str:
    """The Machine's provider ID, or else what its infrastructure reports; empty while there is none."""
    return machine.spec.provider_id or (contract.provider_id(infra) if infra is not None else "")


def is_pooled(machine: Machine) -> bool:
    """By label, for the owner reference may be missing for a while."""
    return labels.POOL_NAME in machine.metadata.labels or any(
        ref.kind == MachinePool.resource.kind and ref.group == MachinePool.resource.group
        for ref in machine.metadata.owner_references
    )


def was_provisioned(machine: Machine) -> bool:
    start = machine.status.initialization
    return start is not None and bool(start.infrastructure_provisioned)


def had_bootstrap_data(machine: Machine) -> bool:
    start = machine.status.initialization
    return start is not None and bool(start.bootstrap_data_secret_created)

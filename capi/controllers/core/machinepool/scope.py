"""All that one pass over a MachinePool looks at, and what is remembered of objects that have not changed since."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from capi import contract
from capi.api.builtin import Node
from capi.api.core import labels
from capi.api.core.conditions import (
    AVAILABLE,
    HEALTH_CHECK_SUCCEEDED,
    INFRASTRUCTURE_READY,
    MACHINES_READY,
    OWNER_REMEDIATED,
    READY,
    UP_TO_DATE,
    Reason,
)
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool, MachineTemplateSpec, ObjectReference
from capi.controllers import owners
from capi.controllers.core.objects import ABSENT, Found
from capi.kube import conditions, names
from capi.kube.conditions import Condition
from capi.kube.objects import Resource, Unstructured

T = TypeVar("T", bound=Resource | Unstructured)
F = TypeVar("F")
NO_BOOTSTRAP = "spec.template.spec.bootstrap has neither configRef nor dataSecretName; set one of them"


class MachineFacts(NamedTuple):
    """What a pool counts of one of its Machines."""

    name: str
    ready: Condition | None
    available: bool
    up_to_date: Condition | None
    version: str
    node: str
    created: datetime | None
    deleting: bool
    remediating: bool
    controller: str
    """Uid of the controller; empty without one."""
    infra_lost: datetime | None = None
    """Since when its infrastructure object has been missing."""


class Settled(NamedTuple):
    """The very objects for which a Machine was found to be as wanted."""

    infra: Unstructured
    machine: Machine | None
    node: Node | None
    provider_id: str

    def is_still(self, infra: Unstructured, machine: Machine | None, node: Node | None) -> bool:
        return self.infra is infra and self.machine is machine and self.node is node


class InfraFacts(NamedTuple):
    """What a pool uses of one InfraMachine."""

    provider_id: str
    failure_domain: str


class NodeFacts(NamedTuple):
    """What a pool counts of one Node."""

    ready: bool
    ready_since: datetime | None
    version: str
    reference: ObjectReference


class Remembered(Generic[T, F]):
    """A pure function's results by name, valid as long as the very same object comes again. About 0.2 µs when it does."""

    def __init__(self, function: Callable[[T], F]) -> None:
        self._function = function
        self._known: dict[str, tuple[T, F]] = {}

    def __call__(self, obj: T) -> F:
        known = self._known.get(obj.metadata.name)
        if known is not None and known[0] is obj:
            return known[1]
        made = self._function(obj)
        self._known[obj.metadata.name] = obj, made
        return made

    def keep(self, live: int) -> None:
        """Forget everything when far more is remembered than lives."""
        if len(self._known) > 2 * live + 64:
            self._known.clear()


class Memory:
    """Speeds a pool's passes up; without it they decide the same."""

    def __init__(self) -> None:
        self.machines: Remembered[Machine, MachineFacts] = Remembered(machine_facts)
        self.infra: Remembered[Unstructured, InfraFacts] = Remembered(infra_facts)
        self.nodes: Remembered[Node, NodeFacts] = Remembered(node_facts)
        self.settled: dict[str, Settled] = {}
        """By name of the InfraMachine."""
        self.surfaced: dict[str, str] = {}
        """Uids of InfraMachines that were given a Machine, by name."""
        self.own: tuple[Sequence[Machine], MachinePool | None, list[MachineFacts]] = (), None, []
        """The facts of `Scope.own_facts`, with what they were made of."""
        self._template: MachineTemplateSpec | None = None

    def begin(self, template: MachineTemplateSpec, live: int) -> None:
        """Start a pass: a changed template unsettles everything."""
        if self._template != template or len(self.settled) > 2 * live + 64:
            self._template = template
            self.settled.clear()
        if len(self.surfaced) > 2 * live + 64:
            self.surfaced.clear()
        for remembered in (self.machines, self.infra, self.nodes):
            remembered.keep(live)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Everything a pass decides is a function of this and the clock."""

    pool: MachinePool
    cluster: Cluster | None
    infra: Found = ABSENT
    bootstrap: Found = ABSENT
    infra_machines: Sequence[Unstructured] = ()
    machines: Sequence[Machine] = ()
    """Machines with the pool's label or its controller reference."""
    strangers: Mapping[str, Machine] = field(default_factory=dict)
    """Machines that are not in `machines` but have the name of an InfraMachine."""
    nodes: Mapping[str, Node] | None = None
    """The pool's Nodes by provider ID; None while the workload cluster is not connected."""
    retired: Sequence[Node] = ()
    """Nodes that `status.nodeRefs` names although their provider ID is in no list any more; or all of them at the end."""
    memory: Memory = field(default_factory=Memory)

    @property
    def machine_kind(self) -> str:
        """Kind of the InfraMachines; empty when the infrastructure has no objects for single instances."""
        return contract.infrastructure_machine_kind(self.infra.obj) if self.infra.obj is not None else ""

    @property
    def lacks_bootstrap(self) -> bool:
        """Nobody said what bootstraps the instances; an empty name says that nothing has to."""
        bootstrap = self.pool.spec.template.spec.bootstrap
        return bootstrap.config_ref is None and bootstrap.data_secret_name is None

    @property
    def provisioned(self) -> bool:
        """The infrastructure was there once; what it says later is for the conditions to tell."""
        infra, start = self.infra.usable, self.pool.status.initialization
        said = start is not None and bool(start.infrastructure_provisioned)
        return said or (infra is not None and contract.provisioned(infra))

    @property
    def surfaces_machines(self) -> bool:
        """The infrastructure shows its instances as objects; while it cannot be read, what was known counts."""
        if self.machine_kind or any(is_own(machine, self.pool) for machine in self.machines):
            return True
        return self.infra.obj is None and conditions.get(self.pool.status.conditions, MACHINES_READY) is not None

    @property
    def own_facts(self) -> list[MachineFacts]:
        """Facts of `own_machines`; made once in a pass."""
        known, uid, pool = self.memory.own, self.pool.metadata.uid, self.pool
        if known[0] is not self.machines or known[1] is not pool:
            remembered = self.memory.machines
            pairs = [(remembered(machine), machine) for machine in self.machines]
            facts = [facts for facts, machine in pairs if facts.controller == uid or is_own(machine, pool)]
            known = self.memory.own = self.machines, pool, facts
        return known[2]

    @property
    def own_machines(self) -> list[Machine]:
        """Machines that this pool controls, or may."""
        return [machine for machine in self.machines if is_own(machine, self.pool)]

    @property
    def lost_machines(self) -> list[Machine]:
        """Machines that lost label and owner, and still refer to an InfraMachine of the pool."""
        kind, pool = self.machine_kind, self.pool
        return [
            machine
            for machine in self.strangers.values()
            if machine.spec.infrastructure_ref.kind == kind
            and machine.metadata.controller is None
            and is_own(machine, pool)
        ]


def is_own(machine: Machine, pool: MachinePool) -> bool:
    """Controlled by this pool, or by nobody and of the same cluster; an outlived reference to a pool of this name counts
    as this pool's."""
    if machine.metadata.controller is None:
        return machine.spec.cluster_name == pool.spec.cluster_name
    return owners.foreign_controller(machine, pool) is None


def selector(pool: MachinePool) -> dict[str, str]:
    """Labels of the pool's InfraMachines and Machines."""
    return {labels.CLUSTER_NAME: pool.spec.cluster_name, labels.POOL_NAME: names.label_value(pool.name)}


def provider_ids(pool: MachinePool, infra: Found) -> tuple[str, ...]:
    """The pool's instances: as the infrastructure lists them once it has been provisioned, or as known before.

    An empty list beside replicas that are not zero means "not yet"; the same instances in another order are no change;
    none if the infrastructure is somebody else's.
    """
    obj, known, start = infra.usable, pool.spec.provider_id_list, pool.status.initialization
    if infra.foreign:
        return ()
    if obj is None or not (contract.provisioned(obj) or (start is not None and start.infrastructure_provisioned)):
        return known
    listed = contract.provider_id_list(obj)
    if not listed and contract.replicas(obj) != 0 and pool.spec.replicas != 0:
        return known
    if listed != known and len(listed) == len(known) and set(listed) == set(known):
        return known
    return listed


def machine_facts(machine: Machine) -> MachineFacts:
    by_type = {c.type: c for c in machine.status.conditions}
    info, ref = machine.status.node_info, machine.status.node_ref
    controller = machine.metadata.controller
    return MachineFacts(
        name=machine.name,
        ready=by_type.get(READY),
        available=_is(by_type, AVAILABLE, "True"),
        up_to_date=by_type.get(UP_TO_DATE),
        version=(info.kubelet_version if info is not None else "") or machine.spec.version,
        node=ref.name if ref is not None else "",
        created=machine.metadata.creation_timestamp,
        deleting=machine.deleting,
        remediating=_is(by_type, HEALTH_CHECK_SUCCEEDED, "False") and _is(by_type, OWNER_REMEDIATED, "False"),
        controller=controller.uid if controller is not None else "",
        infra_lost=_lost_since(by_type.get(INFRASTRUCTURE_READY)),
    )


def _lost_since(infra: Condition | None) -> datetime | None:
    gone = infra is not None and infra.reason in (Reason.OBJECT_DELETED, Reason.OBJECT_DOES_NOT_EXIST)
    return infra.last_transition_time if infra is not None and gone else None


def infra_facts(obj: Unstructured) -> InfraFacts:
    return InfraFacts(contract.provider_id(obj), contract.failure_domain(obj))


def node_facts(node: Node) -> NodeFacts:
    found = next((c for c in node.status.conditions if c.type == "Ready"), None)
    info = node.status.node_info
    return NodeFacts(
        ready=found is not None and found.status == "True",
        ready_since=found.last_transition_time if found is not None else None,
        version=info.kubelet_version if info is not None else "",
        reference=ObjectReference(api_version="v1", kind="Node", name=node.name, uid=node.metadata.uid),
    )


def _is(by_type: Mapping[str, Condition], type_: str, status: str) -> bool:
    found = by_type.get(type_)
    return found is not None and found.status == status

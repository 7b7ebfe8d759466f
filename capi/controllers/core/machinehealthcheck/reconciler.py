"""The MachineHealthCheck controller.

Wakes on: the check, the Machines it selects (or has just stopped to select), their Nodes, its Cluster and the connection
to it, remediation templates and requests, and its clocks.
Upstream: internal/controllers/machinehealthcheck/machinehealthcheck_controller.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from capi import contract
from capi.api.builtin import Node
from capi.api.core import annotations, labels
from capi.api.core.conditions import CONTROL_PLANE_INITIALIZED, INFRASTRUCTURE_READY
from capi.api.core.v1beta2 import Cluster, ContractRef, LabelSelector, Machine, MachineHealthCheck
from capi.controllers import pause
from capi.controllers.core import indexes, nodes
from capi.controllers.core.machinehealthcheck.plan import MANAGER, plan
from capi.controllers.core.machinehealthcheck.scope import Scope, Target
from capi.controllers.core.objects import Found
from capi.kube import conditions, selectors
from capi.kube.errors import BadRequest, ContractError, TransportError
from capi.kube.objects import Unstructured, to_wire
from capi.kube.types import GroupKind, Key, ResourceType
from capi.runtime.plan import ClusterKey, Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Connections, External, Watch, Workload

TEMPLATE_SUFFIX = "Template"
_EXCEPTIONS = (annotations.PAUSED, annotations.SKIP_REMEDIATION)


class MachineHealthCheckReconciler:
    """Marks Machines healthy or not, and asks for the remediation of those that are not."""

    kind: type[MachineHealthCheck] = MachineHealthCheck
    manager: ClassVar[str] = MANAGER
    finalizer: ClassVar[str | None] = None
    spacing: ClassVar[timedelta] = timedelta(seconds=1)
    """Least time between two passes of one check: a pass looks at all of its Machines."""

    def __init__(self) -> None:
        self._provisioned: dict[Key, dict[str, datetime]] = {}
        """By check and uid of the Machine: when it was first seen provisioned without a Node; a restart counts anew."""
        self.watches: Sequence[AnyWatch] = (
            Watch(MachineHealthCheck, keys=_of_rival, changed=rival_matters, indexes=indexes.HEALTH_CHECK),
            Watch(Cluster, keys=_of_cluster, changed=cluster_matters),
            Watch(Machine, keys=_of_machine, changed=machine_matters, indexes=indexes.MACHINE),
            External(keys=_of_external),
            Workload(Node, keys=_of_node, changed=node_matters, indexes=indexes.NODE),
            Connections(keys=_of_connection),
        )

    def paused(self, obj: MachineHealthCheck, reader: Reader) -> Sequence[str]:
        return pause.causes(obj, reader.get(Cluster, obj.spec.cluster_name, obj.namespace))

    async def reconcile(self, obj: MachineHealthCheck, reader: Reader, now: datetime) -> Plan:
        known = self._provisioned.get(obj.key, {})
        seen = await observe(obj, reader, known, now)
        self._provisioned[obj.key] = {
            each.machine.metadata.uid: each.provisioned_since
            for each in seen.targets
            if each.provisioned_since is not None and each.machine.status.node_ref is None
        }
        return plan(seen, now)

    async def gone(self, key: Key) -> None:
        self._provisioned.pop(key, None)


async def observe(check: MachineHealthCheck, reader: Reader, known: Mapping[str, datetime], now: datetime) -> Scope:
    """Read the caches. O(Machines of the cluster), or of the pool if the selector names one."""
    cluster = ClusterKey(check.namespace, check.spec.cluster_name)
    connection = reader.workload(cluster)
    template, request_kind = await _template(check, reader)
    rivals = _rivals(check, reader)
    targets = []
    for machine in selected(check, reader):
        ref = machine.status.node_ref
        node = connection.get(Node, ref.name) if connection is not None and ref is not None else None
        request = await _request(machine, request_kind, reader)
        since = _provisioned_since(machine, known, now)
        others = [other for other in rivals if selects(other, machine)]
        targets.append(Target(machine=machine, node=node, request=request, provisioned_since=since, others=others))
    return Scope(
        check=check,
        cluster=reader.get(Cluster, cluster.name, cluster.namespace),
        connected=connection is not None,
        targets=targets,
        template=template,
        request_kind=request_kind,
    )


def _rivals(check: MachineHealthCheck, reader: Reader) -> list[MachineHealthCheck]:
    """The other checks of the Cluster that are at work, by name."""
    value = indexes.cluster_value(check.namespace, check.spec.cluster_name)
    found = reader.index(MachineHealthCheck, "cluster", value)
    at_work = (o for o in found if o.key != check.key and not o.deleting and not pause.causes(o, None))
    return sorted(at_work, key=lambda other: other.name)


def selected(check: MachineHealthCheck, reader: Reader) -> list[Machine]:
    """The Machines that the check is about: of its Cluster, selected, not paused, not excepted from remediation."""
    wanted = {**check.spec.selector.match_labels, labels.CLUSTER_NAME: check.spec.cluster_name}
    found = reader.list(Machine, check.namespace, wanted)
    return [machine for machine in found if selects(check, machine)]


def selects(check: MachineHealthCheck, machine: Machine) -> bool:
    """Whether `machine` is one of the check's."""
    if machine.namespace != check.namespace or machine.spec.cluster_name != check.spec.cluster_name:
        return False
    if any(name in machine.metadata.annotations for name in _EXCEPTIONS):
        return False
    return matches(check.spec.selector, machine.metadata.labels)


def matches(selector: LabelSelector, present: dict[str, str]) -> bool:
    """An empty selector, and one that nobody can read, select nothing."""
    if not selector.match_labels and not selector.match_expressions:
        return False
    try:
        return selectors.labels_from_wire(to_wire(selector)).matches(present)
    except BadRequest:
        return False


def _provisioned_since(machine: Machine, known: Mapping[str, datetime], now: datetime) -> datetime | None:
    """By its condition, or as remembered: of providers that are Ready only when the Node has joined, nothing says when
    the instance was there."""
    ready = conditions.get(machine.status.conditions, INFRASTRUCTURE_READY)
    if ready is not None and ready.status == "True":
        return ready.last_transition_time
    start = machine.status.initialization
    provisioned = start is not None and bool(start.infrastructure_provisioned)
    return known.get(machine.metadata.uid, now) if provisioned else None


async def _template(check: MachineHealthCheck, reader: Reader) -> tuple[Found, ResourceType | None]:
    """The template of remediation requests, and the kind of the requests."""
    remediation = check.spec.remediation
    ref = remediation.template_ref if remediation is not None else None
    if ref is None:
        return Found(), None
    group = ref.api_version.partition("/")[0]
    as_ref = ContractRef(api_group=group, kind=ref.kind, name=ref.name)
    trouble = contract.wrong_remediation(GroupKind(group, ref.kind))
    if trouble is not None:
        return Found(as_ref, error=trouble), None
    try:
        template = await reader.external(GroupKind(group, ref.kind), ref.name, check.namespace)
        request = await reader.external_type(GroupKind(group, ref.kind.removesuffix(TEMPLATE_SUFFIX)))
    except (ContractError, TransportError) as error:
        return Found(as_ref, error=error), None
    return Found(as_ref, template), request


async def _request(machine: Machine, kind: ResourceType | None, reader: Reader) -> Unstructured | None:
    """The remediation request for a Machine: named like it, and owned by it."""
    if kind is None:
        return None
    found = await reader.external(kind.group_kind, machine.name, machine.namespace)
    owned = found is not None and any(ref.uid == machine.metadata.uid for ref in found.metadata.owner_references)
    return found if owned else None


def _of_rival(check: MachineHealthCheck, reader: Reader) -> Iterable[Key]:
    """The other checks of the Cluster: what one says of a Machine depends on what others find."""
    of_cluster = _of_connection(ClusterKey(check.namespace, check.spec.cluster_name), reader)
    return (key for key in of_cluster if key != check.key)


def rival_matters(old: MachineHealthCheck, new: MachineHealthCheck) -> bool:
    """Whether a change of a check concerns the other ones."""
    paused = [annotations.PAUSED in check.metadata.annotations for check in (old, new)]
    return old.spec != new.spec or paused[0] != paused[1] or old.deleting != new.deleting


def _of_cluster(cluster: Cluster, reader: Reader) -> Iterable[Key]:
    return _of_connection(ClusterKey(cluster.namespace, cluster.name), reader)


def _of_connection(cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
    return [check.key for check in reader.index(MachineHealthCheck, "cluster", indexes.cluster_value(*cluster))]


def _of_machine(machine: Machine, reader: Reader) -> Iterable[Key]:
    """The checks that select a Machine, and those that would if it were not excepted: they have to notice that."""
    value = indexes.cluster_value(machine.namespace, machine.spec.cluster_name)
    return [
        check.key
        for check in reader.index(MachineHealthCheck, "cluster", value)
        if matches(check.spec.selector, machine.metadata.labels)
    ]


def _of_node(node: Node, cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
    """The checks of the one Machine that has this Node; two claimants are none."""
    machines = reader.index(Machine, "nodeRef", indexes.cluster_value(cluster.namespace, cluster.name, node.name))
    return _of_machine(machines[0], reader) if len(machines) == 1 else ()


def _of_external(obj: Unstructured, reader: Reader) -> Iterable[Key]:
    """The checks with this template, or that may have asked for this request."""
    found = []
    for check in reader.list(MachineHealthCheck, obj.namespace):
        remediation = check.spec.remediation
        ref = remediation.template_ref if remediation is not None else None
        if ref is None or ref.api_version.partition("/")[0] != obj.resource.group:
            continue
        is_template = ref.kind == obj.resource.kind and ref.name == obj.name
        if is_template or ref.kind.removesuffix(TEMPLATE_SUFFIX) == obj.resource.kind:
            found.append(check.key)
    return found


def cluster_matters(old: Cluster, new: Cluster) -> bool:
    """Whether a change of a Cluster concerns its checks: what the evaluation of a Machine reads of it."""
    return _cluster_facts(old) != _cluster_facts(new)


def _cluster_facts(cluster: Cluster) -> tuple[Any, ...]:
    return (
        cluster.metadata.uid,
        bool(cluster.spec.paused),
        annotations.PAUSED in cluster.metadata.annotations,
        [
            (c.type, c.status, c.last_transition_time)
            for c in cluster.status.conditions
            if c.type in (INFRASTRUCTURE_READY, CONTROL_PLANE_INITIALIZED)
        ],
    )


def machine_matters(old: Machine, new: Machine) -> bool:
    """Whether a change of a Machine concerns its checks."""
    return _machine_facts(old) != _machine_facts(new)


def _machine_facts(machine: Machine) -> tuple[Any, ...]:
    return (
        machine.metadata.uid,
        machine.deleting,
        machine.metadata.labels,
        machine.metadata.annotations,
        machine.status.node_ref,
        machine.status.initialization,
        [(c.type, c.status, c.last_transition_time) for c in machine.status.conditions],
    )


def node_matters(old: Node, new: Node) -> bool:
    """Whether a change of a Node concerns its Machine's checks; a heartbeat does not."""
    return old.metadata.uid != new.metadata.uid or nodes.condition_facts(old) != nodes.condition_facts(new)

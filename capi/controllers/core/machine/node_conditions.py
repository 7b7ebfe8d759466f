"""NodeReady and NodeHealthy of a Machine. Pure.

Upstream: internal/controllers/machine/machine_controller_status.go (setNodeHealthyAndReadyConditions).
Differs: how long the connection has been down is read from the Cluster's RemoteConnectionProbe condition, so that it
survives restarts and costs no polling.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from capi.api.builtin import Node
from capi.api.core.conditions import NODE_HEALTHY, NODE_READY, REMOTE_CONNECTION_PROBE, MachineReason
from capi.api.core.v1beta2 import Cluster
from capi.controllers.core.machine.scope import Scope
from capi.controllers.core.summary import false, unknown
from capi.kube import conditions
from capi.kube.conditions import Condition

CONDITIONS_GRACE = timedelta(minutes=5)
"""How long a Node's last known conditions are believed after the connection was lost."""
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


class NodeConditions(NamedTuple):
    """The two conditions, and when a lost connection makes them unknown."""

    ready: Condition
    healthy: Condition
    recheck_at: datetime | None = None


def _both(make: Callable[[str, str, str], Condition], reason: str, message: str) -> NodeConditions:
    return NodeConditions(make(NODE_READY, reason, message), make(NODE_HEALTHY, reason, message))


def node_conditions(seen: Scope, now: datetime) -> NodeConditions:
    """What is known of the Node, or why nothing is."""
    cluster, machine = seen.cluster, seen.machine
    if cluster is not None and not machine.deleting:
        waiting = _waiting_for_cluster(cluster)
        if waiting:
            return _both(unknown, MachineReason.INSPECTION_FAILED, waiting)
    if not seen.connected:
        return _disconnected(seen, now)
    if len(seen.nodes) > 1:
        names = ", ".join(sorted(node.name for node in seen.nodes)[:3])
        message = f"Nodes {names} have the same spec.providerID {seen.provider_id}"
        return _both(unknown, MachineReason.INTERNAL_ERROR, message)
    if seen.node is not None:
        return NodeConditions(_ready(seen.node), _healthy(seen.node))
    return _absent(seen)


def _waiting_for_cluster(cluster: Cluster) -> str:
    start = cluster.status.initialization
    if start is None or not start.infrastructure_provisioned:
        return "Waiting for Cluster status.initialization.infrastructureProvisioned to be true"
    if not start.control_plane_initialized:
        return "Waiting for Cluster status.initialization.controlPlaneInitialized to be true"
    return ""


def _disconnected(seen: Scope, now: datetime) -> NodeConditions:
    """The last known state for a while, then nothing is known."""
    present = seen.machine.status.conditions
    ready, healthy = conditions.get(present, NODE_READY), conditions.get(present, NODE_HEALTHY)
    if ready is None or healthy is None:
        return _both(unknown, MachineReason.CONNECTION_DOWN, "Remote connection not established yet")
    probe = conditions.get(seen.cluster.status.conditions, REMOTE_CONNECTION_PROBE) if seen.cluster else None
    if probe is None or probe.status == "True" or probe.last_transition_time is None:
        return NodeConditions(ready, healthy)
    if now - probe.last_transition_time < CONDITIONS_GRACE:
        return NodeConditions(ready, healthy, probe.last_transition_time + CONDITIONS_GRACE)
    return _both(unknown, MachineReason.CONNECTION_DOWN, probe.message or "Remote connection down")


def _absent(seen: Scope) -> NodeConditions:
    machine = seen.machine
    known = machine.status.node_ref.name if machine.status.node_ref else ""
    if known:
        rest = "" if machine.deleting else " while the Machine still exists"
        return _both(false, MachineReason.NODE_DELETED, f"Node {known} has been deleted{rest}")
    if machine.deleting:
        return _both(unknown, MachineReason.NODE_DOES_NOT_EXIST, "Node does not exist")
    if seen.provider_id:
        message = f"Waiting for a Node with spec.providerID {seen.provider_id} to exist"
    else:
        message = f"Waiting for {machine.spec.infrastructure_ref.kind} to report spec.providerID"
    return _both(unknown, MachineReason.INSPECTION_FAILED, message)


def _ready(node: Node) -> Condition:
    found = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if found is None:
        return unknown(NODE_READY, MachineReason.NODE_READY_UNKNOWN, "* Node.Ready: Condition not yet reported")
    reasons = {"True": MachineReason.NODE_READY, "False": MachineReason.NODE_NOT_READY}
    return Condition(
        type=NODE_READY,
        status=found.status if found.status in reasons else "Unknown",
        reason=reasons.get(found.status, MachineReason.NODE_READY_UNKNOWN),
        message="" if found.status == "True" else f"* Node.Ready: {found.message or found.reason}",
        last_transition_time=found.last_transition_time,
    )


def _healthy(node: Node) -> Condition:
    """Ready must be True and no resource may be under pressure."""
    bad, unclear = [], []
    by_type = {c.type: c for c in node.status.conditions}
    for name, good in (("Ready", "True"), *((name, "False") for name in _PRESSURES)):
        found = by_type.get(name)
        if found is None:
            unclear.append(f"* Node.{name}: Condition not yet reported")
        elif found.status not in ("True", "False"):
            unclear.append(f"* Node.{name}: {found.message or 'Condition is Unknown'}")
        elif found.status != good:
            bad.append(f"* Node.{name}: {found.message or f'Condition is {found.status}'}")
    if bad:
        return false(NODE_HEALTHY, MachineReason.NODE_NOT_HEALTHY, _lines(bad + unclear))
    if unclear:
        return unknown(NODE_HEALTHY, MachineReason.NODE_HEALTHY_UNKNOWN, _lines(unclear))
    return Condition(type=NODE_HEALTHY, status="True", reason=MachineReason.NODE_HEALTHY)


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)

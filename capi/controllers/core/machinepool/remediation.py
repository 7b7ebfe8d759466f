"""Replacing Machines of a pool that failed a health check. Pure.

A Machine whose HealthCheckSucceeded and OwnerRemediated are both False is deleted: its Node is drained, and the provider puts
another instance in its place. Whether there are too many of them is for the health check to say, before it marks them.
Source: the MachinePool Machines proposal (unhealthy Machines are remediated by deletion of the Machine).
Differs from upstream, where nobody acts on the mark.
"""

from capi.api.core import annotations
from capi.controllers import owners
from capi.controllers.core.machinepool.scope import Scope
from capi.runtime.plan import Delete, Event, Write, target

_EXCEPTIONS = (annotations.PAUSED, annotations.SKIP_REMEDIATION)


def remediation_writes(seen: Scope) -> tuple[list[Write], list[Event]]:
    """Deletions of marked Machines. Only of pools whose infrastructure can replace single instances."""
    marked = {facts.name for facts in seen.own_facts if facts.remediating and not facts.deleting}
    if not marked or not seen.machine_kind:
        return [], []
    writes: list[Write] = []
    events: list[Event] = []
    for machine in seen.machines:
        if machine.name not in marked or not owners.controlled_by(machine, seen.pool):
            continue
        if any(name in machine.metadata.annotations for name in _EXCEPTIONS):
            continue
        writes.append(Delete(target(machine)))
        events.append(Event("RemediatingMachine", f"Machine {machine.name} failed its health check and is replaced"))
    return writes, events

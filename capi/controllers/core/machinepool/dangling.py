"""Machines of a pool whose InfraMachine has gone. Pure.

Core does not delete them: the contract asks the provider to scale down by deleting Machines, and to delete those that
dangle. A provider that does not is told of by an event of the pool; the Machines say it in their InfrastructureReady, the
pool in MachinesReady.
Differs: upstream retries such a Machine for ever and says nothing.
"""

from datetime import datetime, timedelta

from capi.controllers.core.machinepool.scope import Scope
from capi.runtime.plan import Event

GRACE = timedelta(minutes=1)
"""Time for the provider to delete the Machine before anybody is told."""
_NAMED = 3


def dangling(seen: Scope, now: datetime) -> tuple[list[Event], timedelta | None]:
    """What there is to tell now, and when to look again. O(Machines)."""
    lost = [
        (facts.name, facts.infra_lost + GRACE) for facts in seen.own_facts if facts.infra_lost and not facts.deleting
    ]
    if not lost or seen.infra.usable is None or not seen.machine_kind:
        return [], None
    overdue = sorted(name for name, due in lost if due <= now)
    waits = [due - now for _, due in lost if due > now]
    return [_event(seen.machine_kind, overdue)] if overdue else [], min(waits) if waits else None


def _event(kind: str, names: list[str]) -> Event:
    shown = ", ".join(names[:_NAMED]) + (f", ... ({len(names) - _NAMED} more)" if len(names) > _NAMED else "")
    return Event(
        "DanglingMachines", f"The {kind} has gone of {shown}; the provider is to delete these Machines", "Warning"
    )

"""How many instances a pool gains, and which it loses: one pure function of what there is.

Invariants, whatever the input: no more instances are taken than there are above the wanted number; those already on
their way out count first; the answer does not depend on the order of the members; a second look at the same state
gives the same answer. A rolling update replaces one instance at a time: the new one must be ready before an old one goes,
and it is not made while one that left is still shutting down (live instances never exceed desired + surge).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

SURGE = 1
"""Instances above the wanted number that a rolling update may use."""


class DeletePolicy(StrEnum):
    """Who goes first among equals."""

    OLDEST = "Oldest"
    NEWEST = "Newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One instance of the pool, with what its Machine says about it."""

    name: str
    created: datetime | None = None
    deleting: bool = False
    """The instance or its Machine is being deleted."""
    lost: bool = False
    """The infrastructure no longer has it; it will not come back."""
    marked: bool = False
    """Its Machine carries the delete-machine annotation."""
    ready: bool = False
    outdated: bool = False
    """Made from an earlier template."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now; names are sorted by urgency."""

    create: int = 0
    remove: tuple[str, ...] = ()
    """Surplus instances."""
    clear: tuple[str, ...] = ()
    """Lost instances, whose remains must go; they are not part of any count."""


def decide(
    members: Sequence[Member], desired: int, policy: DeletePolicy = DeletePolicy.OLDEST, surge: int = SURGE
) -> Decision:
    """`desired` ≥ 0. Replaces lost and leaving members at once, surplus ones go, outdated ones are rolled."""
    lost = tuple(sorted(m.name for m in members if m.lost and not m.deleting))
    active = [m for m in members if not m.lost and not m.deleting]
    surplus = len(active) - desired
    if surplus > _in_flight(active, surge):
        victims = sorted(active, key=lambda m: _rank(m, policy))[:surplus]
        return Decision(remove=tuple(m.name for m in victims), clear=lost)
    missing = max(0, desired - len(active))
    live = sum(not m.lost for m in members)
    rolling = any(m.outdated for m in active)
    if not missing and rolling and len(active) <= desired and live < desired + surge:
        missing = 1
    return Decision(create=missing, clear=lost)


def _in_flight(active: Sequence[Member], surge: int) -> int:
    """Surplus that a rolling update needs at the moment: new instances that are not ready to take over.

    A larger surplus means that the wanted number was lowered.
    """
    if not any(m.outdated for m in active):
        return 0
    return min(surge, sum(not m.outdated and not m.ready for m in active))


def _rank(member: Member, policy: DeletePolicy) -> tuple[bool, bool, bool, float, str]:
    """Ascending order of removal: marked, not ready, outdated, then by age, then by name."""
    age = member.created.timestamp() if member.created else 0.0
    return (
        not member.marked,
        member.ready,
        not member.outdated,
        -age if policy == DeletePolicy.NEWEST else age,
        member.name,
    )

"""How many instances a pool gains, and which it loses: one pure function of what there is.

Invariants, whatever the input: no more instances are taken than there are above the wanted number (a rolling update may
take `max_unavailable` more); those already on their way out count first; the answer does not depend on the order of the
members; a second look at the same state, or at the state with its own deletions in it, asks for nothing more. A rolling
update takes no ready instance that would leave fewer than desired - max_unavailable ready, and makes none that would make
more than desired + max_surge, those still shutting down included.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from capi.controllers.infra.machinepool.strategy import DeletePolicy, Strategy


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
    """Surplus and outdated instances."""
    clear: tuple[str, ...] = ()
    """Lost instances, whose remains must go; they are not part of any count."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """What a decision keeps to."""

    desired: int
    strategy: Strategy
    rank: Callable[[Member], tuple[bool, bool, bool, float, str]] = field(repr=False)


def decide(members: Sequence[Member], desired: int, strategy: Strategy | None = None) -> Decision:
    """`desired` ≥ 0. Replaces lost and leaving members, takes surplus ones, rolls outdated ones."""
    strategy = strategy or Strategy()
    lost = tuple(sorted(m.name for m in members if m.lost and not m.deleting))
    there = [m for m in members if not m.lost]
    active = [m for m in there if not m.deleting]
    victims = _victims(active, _Limits(desired, strategy, lambda m: _rank(m, strategy.delete_policy)))
    if victims:
        return Decision(remove=tuple(m.name for m in victims), clear=lost)
    return Decision(create=_missing(there, active, desired, strategy), clear=lost)


def _victims(active: Sequence[Member], limits: _Limits) -> list[Member]:
    """Everyone who must go now: repeated until nobody else must, so that a second pass finds nothing to add."""
    victims: list[Member] = []
    left = sorted(active, key=limits.rank)
    while more := (_rolled(left, limits) if _rolls(left, limits.strategy) else _surplus(left, limits.desired)):
        victims += more
        left = [m for m in left if m not in more]
    return victims


def _surplus(ranked: Sequence[Member], desired: int) -> Sequence[Member]:
    return ranked[: max(0, len(ranked) - desired)]


def _rolled(ranked: Sequence[Member], limits: _Limits) -> Sequence[Member]:
    """One step of a rolling update: first what is over its upper bound (the wanted number was lowered), then old ones.

    As in Deployments, an instance of the new template that is not ready yet is no reason to take an old one.
    """
    desired, strategy = limits.desired, limits.strategy
    fresh = [m for m in ranked if not m.outdated]
    over = max(len(ranked) - desired - strategy.max_surge, len(fresh) - desired)
    if over > 0:
        return ranked[:over]
    least = max(0, desired - strategy.max_unavailable)
    room = len(ranked) - least - sum(not m.ready for m in fresh)
    spare = sum(m.ready for m in ranked) - least
    surplus = len(ranked) - desired
    for member in ranked:
        marked = member.marked and surplus > 0
        if room > 0 and (member.outdated or marked) and (not member.ready or spare > 0):
            return [member]
    return ()


def _missing(there: Sequence[Member], active: Sequence[Member], desired: int, strategy: Strategy) -> int:
    """How many to make. Whoever leaves is replaced at once, unless a rolling update may make do with fewer meanwhile."""
    missing = max(0, desired - len(active))
    if not _rolls(there, strategy):
        return missing
    fresh = sum(not m.outdated for m in active)
    rolled = max(0, min(desired - fresh, desired + strategy.max_surge - len(there)))
    return rolled if strategy.max_unavailable else max(missing, rolled)


def _rolls(members: Sequence[Member], strategy: Strategy) -> bool:
    return not strategy.on_delete and any(m.outdated for m in members)


def _rank(member: Member, policy: DeletePolicy) -> tuple[bool, bool, bool, float, str]:
    """Ascending order of removal: marked, not ready, outdated, then by policy, then by name."""
    return (not member.marked, member.ready, not member.outdated, _turn(member, policy), member.name)


def _turn(member: Member, policy: DeletePolicy) -> float:
    """Random is drawn once per name: every pass, and every process, draws the same."""
    if policy is DeletePolicy.RANDOM:
        return float(int.from_bytes(hashlib.sha256(member.name.encode()).digest()[:6]))
    age = member.created.timestamp() if member.created else 0.0
    return -age if policy is DeletePolicy.NEWEST else age

"""Conditions made from other conditions: mirrors, summaries, aggregates. Pure.

Upstream: util/conditions/{mirror,summary,aggregate}.go.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from capi.api.core.conditions import Reason
from capi.kube import conditions
from capi.kube.conditions import Condition

NAMED = 3
"""Objects and distinct messages that an aggregate spells out; the rest is counted."""
_STATUSES = ("True", "False", "Unknown")


def mirror(source: Condition | None, type_: str, fallback: Condition, ready_reason: str = Reason.READY) -> Condition:
    """`source` under another type, its time included; `fallback` if it was not reported."""
    if source is None:
        return fallback
    if source.status not in _STATUSES:
        return Condition(
            type=type_,
            status="Unknown",
            reason=Reason.INVALID_CONDITION_REPORTED,
            message=f"Condition {source.type} has status {source.status}",
        )
    reason = source.reason or Reason.NO_REASON_REPORTED
    if source.status == "True" and reason == Reason.NO_REASON_REPORTED:
        reason = ready_reason
    return Condition(
        type=type_,
        status=source.status,
        reason=reason,
        message=source.message,
        last_transition_time=source.last_transition_time,
    )


@dataclass(frozen=True, slots=True)
class Part:
    """One condition that a summary looks at."""

    type: str
    negative: bool = False
    """True is bad, False is good."""
    optional: bool = False
    """Says nothing while it is absent."""
    message: str | None = None
    """Shown in place of the condition's own message."""
    info: bool = False
    """Bad news is mentioned but does not count."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """Reasons of a summary by its status."""

    true: str
    false: str
    unknown: str


def summarize(type_: str, reasons: Reasons, parts: Iterable[Part], present: Iterable[Condition]) -> Condition:
    """False if any part is bad, else Unknown if any is unknown, else True; the message has a bullet for each of those."""
    by_type = {c.type: c for c in present}
    bad = unknown = False
    bullets: list[str] = []
    for part in parts:
        found = by_type.get(part.type)
        if found is None:
            if part.optional:
                continue
            found = Condition(
                type=part.type,
                status="Unknown",
                reason=Reason.NOT_YET_REPORTED,
                message=f"Condition {part.type} not yet reported",
            )
        good = "False" if part.negative else "True"
        if found.status == good:
            if found.message and not part.negative:
                bullets.append(_bullet(part, found))
            continue
        bullets.append(_bullet(part, found))
        if not part.info:
            bad = bad or found.status in ("True", "False")
            unknown = unknown or found.status == "Unknown"
    if bad or unknown:
        status, reason = ("False", reasons.false) if bad else ("Unknown", reasons.unknown)
    else:
        status, reason = "True", reasons.true
        bullets = []
    return Condition(type=type_, status=status, reason=reason, message="\n".join(bullets))


def _bullet(part: Part, found: Condition) -> str:
    message = part.message if part.message is not None else found.message
    first, *rest = (message or found.reason).splitlines()
    if rest or first.startswith("* "):
        return "\n".join([f"* {part.type}:", *(f"  {line}" for line in (first, *rest))])
    return f"* {part.type}: {first}"


def aggregate(type_: str, reasons: Reasons, kind: str, named: Sequence[tuple[str, Condition]]) -> Condition:
    """The same condition over many objects of one kind, as pairs of name and condition. O(objects).

    False if one is False, else Unknown if one is Unknown, else True. The message says what is wrong with whom.
    """
    issues: dict[str, list[str]] = defaultdict(list)
    unknowns: dict[str, list[str]] = defaultdict(list)
    for name, found in named:
        if found.status == "False":
            issues[found.message or found.reason].append(name)
        elif found.status != "True":
            unknowns[found.message or found.reason].append(name)
    if not issues and not unknowns:
        return Condition(type=type_, status="True", reason=reasons.true)
    status, reason = ("False", reasons.false) if issues else ("Unknown", reasons.unknown)
    return Condition(type=type_, status=status, reason=reason, message=_spelled(kind, issues, unknowns))


def _spelled(kind: str, *groups: dict[str, list[str]]) -> str:
    entries = [
        (message, names)
        for group in groups
        for message, names in sorted(group.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    lines = [_entry(kind, message, names) for message, names in entries[:NAMED]]
    left = sum(len(names) for _, names in entries[NAMED:])
    if left:
        lines.append(f"And {left} {_plural(kind, left)} with other issues")
    return "\n".join(lines)


def _entry(kind: str, message: str, names: Sequence[str]) -> str:
    shown = ", ".join(sorted(names)[:NAMED])
    more = f", ... ({len(names) - NAMED} more)" if len(names) > NAMED else ""
    first, *rest = message.splitlines()
    head = f"* {_plural(kind, len(names))} {shown}{more}:"
    if rest or first.startswith("* "):
        return "\n".join([head, *(f"  {line}" for line in (first, *rest))])
    return f"{head} {first}"


def _plural(kind: str, count: int) -> str:
    return kind if count == 1 else kind + "s"


def true(type_: str, reason: str, message: str = "") -> Condition:
    return Condition(type=type_, status="True", reason=reason, message=message)


def false(type_: str, reason: str, message: str = "") -> Condition:
    return Condition(type=type_, status="False", reason=reason, message=message)


def unknown(type_: str, reason: str, message: str = "") -> Condition:
    return Condition(type=type_, status="Unknown", reason=reason, message=message)


def ready_of(present: Iterable[Condition]) -> Condition | None:
    """The Ready condition that a provider object reports."""
    return conditions.get(present, "Ready")

"""Fault injection by annotations: what users may write on DevMachine, DevMachinePool and Cluster, and what it means. Pure.

A new DevMachine of a pool gets a copy of its pool's annotations of `INHERITED` and keeps it; shortages and outages are read
where they stand. A value that means nothing is refused with the name of the annotation, the value and what it may be.
Ours; docs/chaos.md is the user's view.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from capi.backends.port import Delay, Limit, Simulation
from capi.controllers.infra.names import (
    CAPACITY_ANNOTATION,
    DELETION_ANNOTATION,
    FAILURE_ANNOTATION,
    INSTANCE_LOST,
    NEVER_JOIN,
    NODE_NOT_READY,
    NODE_UNREACHABLE,
    OUTAGE_ANNOTATION,
    PROVISIONING_ANNOTATION,
    SIMULATED,
)
from capi.kube import duration, times
from capi.kube.errors import TerminalError

Annotations = Mapping[str, str]

INHERITED = (FAILURE_ANNOTATION, PROVISIONING_ANNOTATION, DELETION_ANNOTATION)
OF_MACHINES = INHERITED
OF_POOLS = (*INHERITED, CAPACITY_ANNOTATION)
OF_CLUSTERS = (CAPACITY_ANNOTATION, OUTAGE_ANNOTATION)
POOL_FAILURES = (NEVER_JOIN, NODE_NOT_READY, NODE_UNREACHABLE)
"""What a pool may ask of its new machines; each of them lost would be replaced for ever."""
MACHINE_FAILURES = (INSTANCE_LOST, *POOL_FAILURES)
LONGEST = timedelta(days=365)
MOST = 1_000_000

_READY: Mapping[str, Literal["False", "Unknown"]] = {NODE_NOT_READY: "False", NODE_UNREACHABLE: "Unknown"}


class InvalidKnob(TerminalError):
    """An annotation for fault injection has a value that means nothing; a change of it wakes the key."""

    def __init__(self, annotation: str, value: str, wanted: str, owner: str = "") -> None:
        where = f" of {owner}" if owner else ""
        super().__init__(f"annotation {annotation}{where}: {value!r} is not {wanted}")
        self._said = (annotation, value, wanted)
        self.wrong = f"{value!r} is not {wanted}"

    def of(self, owner: str) -> "InvalidKnob":
        """The same, naming whose annotation it is."""
        return InvalidKnob(*self._said, owner)


@dataclass(frozen=True, slots=True)
class Slowness:
    """How much longer a step takes."""

    factor: float = 1.0
    extra: timedelta = timedelta()

    def of(self, delay: Delay) -> Delay:
        return replace(delay, base=delay.base * self.factor + self.extra)


@dataclass(frozen=True, slots=True)
class Outage:
    """A cluster's API does not answer."""

    until: datetime | None = None
    """None: until the annotation goes."""


def check(annotations: Annotations, known: Sequence[str], now: datetime) -> None:
    """Every annotation of ours is one of `known` and has a meaning. Raises InvalidKnob."""
    for key, value in sorted(annotations.items()):
        if key.startswith(SIMULATED) and key not in known:
            raise InvalidKnob(key, value, f"understood here; there are {', '.join(known)}")
    failure(annotations, POOL_FAILURES if CAPACITY_ANNOTATION in known else MACHINE_FAILURES)
    slowness(annotations)
    lingering(annotations)
    capacity(annotations)
    outage(annotations, now)


def misread(annotations: Annotations, known: Sequence[str], now: datetime) -> str:
    """What `check` says; "" if nothing is wrong."""
    try:
        check(annotations, known, now)
    except InvalidKnob as error:
        return error.message
    return ""


def of_cluster(annotations: Annotations) -> dict[str, str]:
    """What concerns a Cluster as a whole."""
    return {key: value for key, value in annotations.items() if key.startswith(SIMULATED)}


def inherited(pool: Annotations) -> dict[str, str]:
    """What a new DevMachine takes over from its pool."""
    return {key: pool[key] for key in INHERITED if key in pool}


def simulation(annotations: Annotations, vm: Delay, node: Delay, *, joined: bool) -> Simulation:
    """How a machine behaves. A Node that has joined is not taken back, whatever would have held it up. Raises InvalidKnob."""
    fails, slow = failure(annotations), slowness(annotations)
    slower = replace(slow, extra=timedelta())
    return Simulation(
        vm=vm if joined else slow.of(vm),
        node=node if joined else slower.of(node),
        lost=fails == INSTANCE_LOST,
        never_joins=fails == NEVER_JOIN and not joined,
        ready=_READY.get(fails, "True"),
    )


def failure(annotations: Annotations, known: Sequence[str] = MACHINE_FAILURES) -> str:
    """One of `known`, "" for none. Raises InvalidKnob."""
    found = annotations.get(FAILURE_ANNOTATION, "")
    if found and found not in known:
        raise InvalidKnob(FAILURE_ANNOTATION, found, f"one of {', '.join(known)}")
    return found


def slowness(annotations: Annotations) -> Slowness:
    """Of provisioning: a factor for machine and Node, or a duration on top for the machine. Raises InvalidKnob."""
    found = annotations.get(PROVISIONING_ANNOTATION, "")
    if not found:
        return Slowness()
    if found.endswith("x"):
        factor = _factor(found[:-1])
        if factor is not None:
            return Slowness(factor=factor)
    elif (extra := _span(found)) is not None:
        return Slowness(extra=extra)
    raise InvalidKnob(PROVISIONING_ANNOTATION, found, "a factor such as 3x or a duration such as 30s")


def lingering(annotations: Annotations) -> timedelta:
    """How long a machine stays when it is deleted. Raises InvalidKnob."""
    found = annotations.get(DELETION_ANNOTATION, "")
    span = _span(found) if found else timedelta()
    if span is None:
        raise InvalidKnob(DELETION_ANNOTATION, found, "a duration such as 30s")
    return span


def capacity(annotations: Annotations) -> int | None:
    """How many machines can run at a time; None: as many as are wanted. Raises InvalidKnob."""
    found = annotations.get(CAPACITY_ANNOTATION, "")
    if not found:
        return None
    if not (found.isascii() and found.isdecimal()) or len(found) > len(str(MOST)) or int(found) > MOST:
        raise InvalidKnob(CAPACITY_ANNOTATION, found, f"a number from 0 to {MOST}")
    return int(found)


def limit(annotations: Annotations, running: int, pool: str = "") -> tuple[Limit, ...]:
    """The shortage that a pool's annotations, or those of a Cluster (`pool` ""), ask for. Raises InvalidKnob."""
    most = capacity(annotations)
    return () if most is None else (Limit(most, pool, running),)


def outage(annotations: Annotations, now: datetime) -> Outage | None:
    """Whether a cluster's API is down now. Raises InvalidKnob."""
    found = annotations.get(OUTAGE_ANNOTATION, "")
    if found in ("", "false"):
        return None
    if found == "true":
        return Outage()
    try:
        until = times.parse(found)
    except (ValueError, OverflowError) as error:
        wanted = "true or a time such as 2030-01-31T12:00:00Z"
        raise InvalidKnob(OUTAGE_ANNOTATION, found, wanted) from error
    return Outage(until) if now < until else None


def _span(text: str) -> timedelta | None:
    try:
        found = duration.parse(text)
    except ValueError:
        return None
    return found if timedelta() <= found <= LONGEST else None


def _factor(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found <= 1000 else None

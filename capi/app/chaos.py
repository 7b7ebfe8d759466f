"""`capi chaos`: fault injection as annotations on a running server (capi.controllers.infra.knobs says what they mean).

Names are those users know: a Machine, a MachinePool, a Cluster; what is written is the simulated object behind it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, TypeVar

from capi.api.core import labels
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from capi.client.client import Client
from capi.controllers.infra import knobs
from capi.controllers.infra.lookups import owner_name
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
from capi.kube import times
from capi.kube.errors import BadRequest, NotFound
from capi.kube.objects import Resource

Kind: TypeAlias = Literal["machine", "pool", "cluster"]
R = TypeVar("R", bound=Resource)
Notes: TypeAlias = Mapping[str, str | None]
"""Annotations to set, or (None) to remove."""

FAILURES = {
    "never-join": NEVER_JOIN,
    "not-ready": NODE_NOT_READY,
    "unreachable": NODE_UNREACHABLE,
    "lose": INSTANCE_LOST,
}
VALUES = {"slow": PROVISIONING_ANNOTATION, "slow-deletion": DELETION_ANNOTATION, "capacity": CAPACITY_ANNOTATION}
API_DOWN = "api-down"
_KNOWN = {"machine": knobs.OF_MACHINES, "pool": knobs.OF_POOLS, "cluster": knobs.OF_CLUSTERS}


class NotSimulated(BadRequest):
    """Faults can be injected into in-memory infrastructure only."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One object that was written."""

    kind: str
    namespace: str
    name: str
    notes: Notes

    def __str__(self) -> str:
        said = [
            f"{key.removeprefix(SIMULATED)} cleared" if value is None else f"{key.removeprefix(SIMULATED)}={value}"
            for key, value in self.notes.items()
        ]
        return f"{self.kind} {self.namespace}/{self.name}: {', '.join(said) or 'nothing to clear'}"


def notes_of(kind: Kind, fault: str, value: str | None, lasting: timedelta | None, now: datetime) -> Notes:
    """The annotations of a fault as the command line names it. Raises BadRequest for a value that means nothing."""
    if fault in FAILURES:
        found = {FAILURE_ANNOTATION: FAILURES[fault]}
    elif fault == API_DOWN:
        until = None if lasting is None else now + lasting + timedelta(microseconds=999_999)  # never too short
        found = {OUTAGE_ANNOTATION: times.format(until) if until else "true"}
    else:
        found = {VALUES[fault]: value or ""}
    try:
        knobs.check(found, _KNOWN[kind], now)
    except knobs.InvalidKnob as error:
        raise BadRequest(f"{fault} of a {kind}: {error.wrong}") from error
    return found


async def inject(
    client: Client, namespace: str, kind: Kind, name: str, notes: Notes, *, members: bool
) -> Sequence[Changed]:
    """Annotate the object; of a pool with `members` its present machines too. Raises NotFound, NotSimulated."""
    found = await _find(client, namespace, kind, name)
    changed = [await _write(client, found, notes)]
    if members and isinstance(found, DevMachinePool):
        copied = {key: value for key, value in notes.items() if key in knobs.INHERITED}
        changed += [await _write(client, member, copied) for member in await _members(client, found) if copied]
    return changed


async def clear(client: Client, namespace: str, kind: Kind, name: str, *, everything: bool) -> Sequence[Changed]:
    """Remove all faults of the object; of a pool those of its machines too, of a Cluster with `everything` those of all it has."""
    found = await _find(client, namespace, kind, name)
    others: list[Resource] = []
    if isinstance(found, DevMachinePool):
        others += await _members(client, found)
    elif isinstance(found, Cluster) and everything:
        selector = f"{labels.CLUSTER_NAME}={name}"
        others += await client.list(DevMachinePool, namespace, labels=selector)
        others += await client.list(DevMachine, namespace, labels=selector)
    faulty = [found, *(other for other in others if _faults(other))]
    return [await _write(client, obj, _faults(obj)) for obj in faulty]


async def _find(client: Client, namespace: str, kind: Kind, name: str) -> Resource:
    """The simulated object that a name means."""
    if kind == "cluster":
        cluster = await _get(client, Cluster, name, namespace)
        ref = cluster.spec.infrastructure_ref
        infra = await _get(client, DevCluster, ref.name, namespace) if ref and ref.kind == "DevCluster" else None
        if infra is None or infra.spec.backend.in_memory is None:
            raise NotSimulated(f'Cluster "{name}" is not simulated: its infrastructure is no in-memory DevCluster')
        return cluster
    if kind == "pool":
        return await _pool(client, namespace, name)
    return await _machine(client, namespace, name)


async def _pool(client: Client, namespace: str, name: str) -> DevMachinePool:
    ref = (await _get(client, MachinePool, name, namespace)).spec.template.spec.infrastructure_ref
    infra = await _get(client, DevMachinePool, ref.name, namespace) if ref.kind == "DevMachinePool" else None
    if infra is None or infra.spec.backend is None or infra.spec.backend.in_memory is None:
        raise NotSimulated(f'MachinePool "{name}" is not simulated: its infrastructure is no in-memory DevMachinePool')
    return infra


async def _machine(client: Client, namespace: str, name: str) -> DevMachine:
    ref = (await _get(client, Machine, name, namespace)).spec.infrastructure_ref
    infra = await _get(client, DevMachine, ref.name, namespace) if ref.kind == "DevMachine" else None
    if infra is None or infra.spec.backend.in_memory is None:
        raise NotSimulated(f'Machine "{name}" is not simulated: its infrastructure is no in-memory DevMachine')
    return infra


async def _members(client: Client, pool: DevMachinePool) -> list[DevMachine]:
    there = await client.list(DevMachine, pool.namespace)
    return [infra for infra in there if owner_name(infra, DevMachinePool) == pool.name]


async def _get(client: Client, kind: type[R], name: str, namespace: str) -> R:
    try:
        return await client.get(kind, name, namespace)
    except NotFound:
        raise NotFound(
            f'{kind.resource.kind} "{name}" not found in namespace "{namespace}"; -n names another one'
        ) from None


def _faults(obj: Resource) -> Notes:
    return {key: None for key in sorted(obj.metadata.annotations) if key.startswith(SIMULATED)}


async def _write(client: Client, obj: Resource, notes: Notes) -> Changed:
    if notes:
        await client.patch(obj.resource, obj.name, obj.namespace, {"metadata": {"annotations": notes}})
    return Changed(obj.resource.kind, obj.namespace, obj.name, notes)

"""The Machines of a pool: one for every InfraMachine, complete in its first write. Pure.

A Machine never gets its InfraMachine back, so an InfraMachine that is being deleted gets no Machine; and core deletes no
Machine of a living pool: the provider decides which instances go, by deleting their Machines.
Upstream: internal/controllers/machinepool/machinepool_controller_phases.go (reconcileMachines, computeDesiredMachine).
Differs: finalizer, providerID, deletion timeouts, minReadySeconds and readinessGates are there from the start; a Machine
keeps its version while its Node is away, and is expected to have the template's before its Node came.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from capi.api.core import finalizers
from capi.api.core.v1beta2 import (
    ContractRef,
    Machine,
    MachineBootstrap,
    MachineDeletion,
    MachinePool,
    MachineSpec,
    TemplateMeta,
)
from capi.controllers import owners
from capi.controllers.core.machinepool.scope import InfraFacts, Scope, Settled, selector
from capi.kube.errors import ContractError
from capi.kube.objects import ObjectMeta, Unstructured
from capi.runtime.plan import Event, Write, apply

MANAGER = "capi-machinepool"
NODE_DELETION_TIMEOUT = 10
"""Seconds; what admission gives a Machine that says nothing."""
_NO_META = TemplateMeta()
_NAMED = 3


@dataclass(slots=True)
class MachineWrites:
    """What has to be written so that every InfraMachine has its Machine."""

    writes: list[Write] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    problems: list[ContractError] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


def machine_writes(seen: Scope) -> MachineWrites:
    """O(InfraMachines), with little work for those whose objects have not changed since they were found settled."""
    found = MachineWrites()
    if seen.infra.usable is None:
        return found
    by_infra = pairs(seen)
    memory, nodes = seen.memory, seen.nodes or {}
    maker = _Maker(seen.pool)
    known_by_name, machine_of, node_of = memory.settled, by_infra.get, nodes.get
    for infra in seen.infra_machines:
        name = infra.metadata.name
        machine = machine_of(name)
        known = known_by_name.get(name)
        if known is not None and known.is_still(infra, machine, node_of(known.provider_id)):
            continue
        if (machine is not None and machine.deleting) or (machine is None and infra.deleting):
            continue
        try:
            facts = memory.infra(infra)
        except ContractError as error:
            found.problems.append(error)
            continue
        node = node_of(facts.provider_id) if facts.provider_id else None
        version = memory.nodes(node).version if node is not None else ""
        memory.surfaced[name] = infra.metadata.uid
        if _look(seen, maker.desired(infra, facts, machine, version), machine, found):
            known_by_name[name] = Settled(infra, machine, node, facts.provider_id)
    if found.created:
        found.events.append(_created(found.created))
    return found


def _look(seen: Scope, wanted: Machine, machine: Machine | None, found: MachineWrites) -> bool:
    """Compare one Machine with what it should be; True if it is settled. Adds to `found` what has to be written."""
    stranger = machine if machine is not None else seen.strangers.get(wanted.name)
    foreign = owners.foreign_controller(stranger, seen.pool) if stranger is not None else None
    if stranger is not None and (foreign is not None or machine is None):
        whose = f"is controlled by {foreign.kind} {foreign.name}" if foreign is not None else "is not of this pool"
        found.events.append(Event("MachineNotOwned", f"Machine {stranger.name} {whose}; it is left alone", "Warning"))
        return False
    if machine is None:
        found.writes.append(apply(wanted))
        found.created.append(wanted.name)
        return False
    outlived = owners.replace_outlived(machine, seen.pool)
    if outlived is not None:
        found.writes.append(outlived)
        return False
    if settled(machine, wanted):
        return True
    found.writes.append(_apply_to_existing(wanted))
    return False


def _apply_to_existing(wanted: Machine) -> Write:
    """Apply to a Machine that is there; never create it again."""
    return dataclasses.replace(apply(wanted), must_exist=True)


def pairs(seen: Scope) -> Mapping[str, Machine]:
    """Machines by the name of their InfraMachine; of several the one that this pool controls.

    One that lost label and owner but still refers to the InfraMachine is taken back.
    """
    found: dict[str, Machine] = {}
    kind = seen.machine_kind
    for machine in seen.machines:
        ref = machine.spec.infrastructure_ref
        if ref.kind != kind:
            continue
        other = found.setdefault(ref.name, machine)
        if other is not machine and (
            not owners.controlled_by(other, seen.pool) and owners.controlled_by(machine, seen.pool)
        ):
            found[ref.name] = machine
    for machine in seen.lost_machines:
        found.setdefault(machine.spec.infrastructure_ref.name, machine)
    return found


def settled(machine: Machine, wanted: Machine) -> bool:
    """`machine` is as `wanted`, and has nothing left of what an earlier template gave it."""
    meta, want = machine.metadata, wanted.metadata
    return (
        machine.spec == wanted.spec
        and finalizers.MACHINE in meta.finalizers
        and want.owner_references[0] in meta.owner_references
        and _has(meta.labels, want.labels, owners.owned_fields(machine, MANAGER, "metadata", "labels"))
        and _has(meta.annotations, want.annotations, owners.owned_fields(machine, MANAGER, "metadata", "annotations"))
    )


def _has(present: Mapping[str, str], wanted: Mapping[str, str], owned: Mapping[str, Any] | None) -> bool:
    if any(present.get(name) != value for name, value in wanted.items()):
        return False
    return owned is None or all(name == "." or name[2:] in wanted for name in owned)


class _Maker:
    """Builds the Machines of one pool; what they share is made once."""

    def __init__(self, pool: MachinePool) -> None:
        template = pool.spec.template
        meta = template.metadata or _NO_META
        self._pool = pool
        self._labels = {**meta.labels, **selector(pool)}
        self._annotations = meta.annotations
        self._owner = owners.reference(pool, controller=True)
        self._deletion = _deletion(template.spec)

    def desired(self, infra: Unstructured, facts: InfraFacts, machine: Machine | None, node_version: str) -> Machine:
        """The Machine of an InfraMachine; `machine` is the one there is."""
        template = self._pool.spec.template.spec
        version = node_version or (machine.spec.version if machine is not None else "")
        if not version and facts.provider_id:
            version = template.version
        return Machine(
            metadata=ObjectMeta(
                name=machine.name if machine is not None else infra.name,
                namespace=self._pool.namespace,
                uid=machine.metadata.uid if machine is not None else "",
                labels=self._labels,
                annotations=self._annotations,
                owner_references=(self._owner,),
                finalizers=(finalizers.MACHINE,),
            ),
            spec=MachineSpec(
                cluster_name=self._pool.spec.cluster_name,
                bootstrap=MachineBootstrap(data_secret_name=""),
                infrastructure_ref=ContractRef(
                    api_group=infra.resource.group, kind=infra.resource.kind, name=infra.name
                ),
                version=version,
                provider_id=facts.provider_id or (machine.spec.provider_id if machine is not None else ""),
                failure_domain=facts.failure_domain or (machine.spec.failure_domain if machine is not None else ""),
                min_ready_seconds=template.min_ready_seconds,
                readiness_gates=template.readiness_gates,
                deletion=self._deletion,
            ),
        )


def _deletion(template: MachineSpec) -> MachineDeletion:
    given = template.deletion or MachineDeletion()
    if given.node_deletion_timeout_seconds is not None:
        return given
    return msgspec.structs.replace(given, node_deletion_timeout_seconds=NODE_DELETION_TIMEOUT)


def _created(names: list[str]) -> Event:
    if len(names) == 1:
        return Event("SuccessfulCreate", f"Created Machine {names[0]}")
    shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    return Event("SuccessfulCreate", f"Created {len(names)} Machines: {shown}")

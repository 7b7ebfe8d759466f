"""Machine.status: this controller is its only writer, and it says everything a pass knows in one write. Pure.

Upstream: internal/controllers/machine/machine_controller_{status,phases}.go.
Differs: UpToDate of pool Machines is decided here (upstream: by the pool controller, always True); an infrastructure that
vanished is no terminal failure but what the conditions say as long as it lasts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from capi import contract
from capi.api.core import annotations, labels
from capi.api.core import conditions as types
from capi.api.core.conditions import MachineReason
from capi.api.core.v1beta2 import (
    MachineAddress,
    MachineInitialization,
    MachineNodeRef,
    MachineStatus,
    NodeSystemInfo,
)
from capi.controllers.core.machine.deprecated import deprecated_status
from capi.controllers.core.machine.node_conditions import node_conditions
from capi.controllers.core.machine.scope import Scope, had_bootstrap_data
from capi.controllers.core.machine.stage import Stage
from capi.controllers.core.objects import Found
from capi.controllers.core.summary import Part, Reasons, false, mirror, ready_of, summarize, true, unknown
from capi.kube import conditions, times
from capi.kube.conditions import Condition
from capi.kube.objects import Unstructured

LONG = timedelta(minutes=15)
"""A deletion that takes longer says so."""
LONG_DRAIN = timedelta(minutes=5)
"""And a drain that takes longer says what that is likely due to."""
_READY = Reasons(MachineReason.READY, MachineReason.NOT_READY, MachineReason.READY_UNKNOWN)


@dataclass(frozen=True, slots=True)
class Observed:
    """The status, and when the clock alone will change it."""

    status: MachineStatus
    requeue_after: timedelta | None = None


def status_of(seen: Scope, stage: Stage | None, now: datetime) -> Observed:
    """The whole status. `stage` is None while the Machine is not being deleted."""
    old = seen.machine.status
    nodes = node_conditions(seen, now)
    parts = [
        bootstrap_condition(seen),
        infrastructure_condition(seen),
        nodes.ready,
        nodes.healthy,
        deleting_condition(stage),
        updating_condition(),
        *up_to_date_conditions(seen),
    ]
    ready = ready_condition(seen, parts, now, stage)
    available, left = available_condition(seen, ready, now)
    phase = phase_of(seen)
    status = msgspec.structs.replace(
        old,
        conditions=(*parts, ready, available),
        initialization=_initialization(seen),
        node_ref=_node_ref(seen),
        node_info=_node_info(seen),
        last_updated=old.last_updated if phase == old.phase else now.replace(microsecond=0),
        addresses=_addresses(seen),
        failure_domain=_failure_domain(seen),
        phase=phase,
        deletion=stage.times if stage is not None else None,
        deprecated=deprecated_status(seen, stage, now),
        certificates_expiry_date=certificates_expiry(seen),
    )
    return Observed(status, _earliest(now, nodes.recheck_at, left, _long_at(seen, now)))


def bootstrap_condition(seen: Scope) -> Condition:
    """BootstrapConfigReady."""
    type_, found = types.BOOTSTRAP_CONFIG_READY, seen.bootstrap
    if found.ref is None:
        return true(type_, MachineReason.DATA_SECRET_PROVIDED)
    if found.obj is None:
        return _not_there(type_, found, deleted=seen.machine.deleting and had_bootstrap_data(seen.machine))
    created = contract.data_secret_created(found.obj)
    fallback = _fallback(type_, found, created, "status.initialization.dataSecretCreated")
    return mirror(ready_of(contract.conditions(found.obj)), type_, fallback)


def infrastructure_condition(seen: Scope) -> Condition:
    """InfrastructureReady."""
    type_, found = types.INFRASTRUCTURE_READY, seen.infra
    if found.obj is None:
        return _not_there(type_, found, deleted=seen.provisioned)
    provisioned = contract.provisioned(found.obj)
    fallback = _fallback(type_, found, provisioned, "status.initialization.provisioned")
    return mirror(ready_of(contract.conditions(found.obj)), type_, fallback)


def _not_there(type_: str, found: Found, *, deleted: bool) -> Condition:
    if found.error is not None:
        return unknown(type_, MachineReason.INTERNAL_ERROR, found.error.message)
    if deleted:
        return false(type_, MachineReason.OBJECT_DELETED, f"{found} has been deleted")
    return false(type_, MachineReason.OBJECT_DOES_NOT_EXIST, f"{found} does not exist")


def _fallback(type_: str, found: Found, good: bool, path: str) -> Condition:
    """For providers that report no Ready condition."""
    kind = found.ref.kind if found.ref else ""
    if good:
        return true(type_, MachineReason.READY)
    return false(type_, MachineReason.NOT_READY, f"{kind} {path} is false")


def deleting_condition(stage: Stage | None) -> Condition:
    """Deleting, with the stage as its reason."""
    if stage is None:
        return false(types.DELETING, MachineReason.NOT_DELETING)
    return true(types.DELETING, stage.reason, stage.message)


def updating_condition() -> Condition:
    """Updating: in-place updates do not exist for pool Machines."""
    return false(types.UPDATING, MachineReason.NOT_UPDATING)


def up_to_date_conditions(seen: Scope) -> tuple[Condition, ...]:
    """UpToDate of a pool's Machine; of other Machines whoever owns them says it.

    False: it is being deleted; its infrastructure says that it was made from an earlier template (condition UpToDate of the
    InfraMachine, or a template-hash annotation other than that of the InfraMachinePool; both optional, ours); or its Node
    runs another version than the pool's template asks for.
    """
    pool = seen.pool
    if pool is None:
        return ()
    type_ = types.UP_TO_DATE
    if seen.machine.deleting:
        return (false(type_, MachineReason.NOT_UP_TO_DATE, "Machine is being deleted"),)
    if seen.infra.obj is not None:
        said = conditions.get(contract.conditions(seen.infra.obj), type_)
        if said is not None and said.status == "False":
            return (false(type_, MachineReason.NOT_UP_TO_DATE, said.message or said.reason),)
    made, present = _template_hash(seen.infra.obj), _template_hash(seen.pool_infra)
    if made and present and made != present:
        return (false(type_, MachineReason.NOT_UP_TO_DATE, f"* {seen.infra} was made from an earlier template"),)
    wanted, actual = pool.spec.template.spec.version, _version(seen)
    if wanted and actual and wanted != actual:
        return (false(type_, MachineReason.NOT_UP_TO_DATE, f"* Version {actual}, {wanted} required"),)
    return (true(type_, MachineReason.UP_TO_DATE),)


def _template_hash(obj: Unstructured | None) -> str:
    return obj.metadata.annotations.get(annotations.TEMPLATE_HASH, "") if obj is not None else ""


def certificates_expiry(seen: Scope) -> datetime | None:
    """When the first certificate of a control plane Machine ends: as it says itself, else as its bootstrap config does.

    None for what is no time; `plan` tells that.
    """
    text = certificates_expiry_text(seen)
    try:
        return times.parse(text) if text else None
    except ValueError:
        return None


def certificates_expiry_text(seen: Scope) -> str:
    """The annotation, of control plane Machines."""
    if labels.CONTROL_PLANE not in seen.machine.metadata.labels:
        return ""
    name, config = annotations.CERTIFICATES_EXPIRY, seen.bootstrap.obj
    own = seen.machine.metadata.annotations.get(name, "")
    return own or (config.metadata.annotations.get(name, "") if config is not None else "")


def _version(seen: Scope) -> str:
    info = _node_info(seen)
    return info.kubelet_version if info is not None and info.kubelet_version else seen.machine.spec.version


def ready_condition(seen: Scope, parts: Sequence[Condition], now: datetime, stage: Stage | None = None) -> Condition:
    """Ready: the summary of the others, of the health check's verdict, and of the readiness gates."""
    machine = seen.machine
    ours = {c.type for c in parts}
    present = (*parts, *(c for c in machine.status.conditions if c.type not in ours))
    deleting = machine.deleting
    summarized = [
        Part(types.DELETING, negative=True, message=_deleting_text(seen, stage, now)),
        Part(types.UPDATING, negative=True),
        Part(types.BOOTSTRAP_CONFIG_READY, info=deleting and seen.bootstrap.missing),
        Part(types.INFRASTRUCTURE_READY, info=deleting and seen.infra.missing),
        Part(types.NODE_HEALTHY, info=deleting and seen.node is None),
        Part(types.HEALTH_CHECK_SUCCEEDED, optional=True),
        *(Part(gate.condition_type, negative=gate.polarity == "Negative") for gate in machine.spec.readiness_gates),
    ]
    return summarize(types.READY, _READY, summarized, present)


def _deleting_text(seen: Scope, stage: Stage | None, now: datetime) -> str | None:
    """Short, for the Deleting condition has the whole; of a drain that takes long also what that is likely due to."""
    if stage is None:
        return None
    began = seen.machine.metadata.deletion_timestamp
    if began is None or now - began <= LONG:
        return f"Machine deletion in progress, stage: {stage.reason}"
    drain = stage.times.node_drain_start_time if stage.times is not None else None
    slow = drain is not None and now - drain > LONG_DRAIN and stage.delays
    why = f", delay likely due to {', '.join(stage.delays)}" if slow else ""
    return f"Machine deletion in progress since more than 15m, stage: {stage.reason}{why}"


def _long_at(seen: Scope, now: datetime) -> datetime | None:
    began = seen.machine.metadata.deletion_timestamp
    return began + LONG + timedelta(seconds=1) if began is not None and now - began <= LONG else None


def available_condition(seen: Scope, ready: Condition, now: datetime) -> tuple[Condition, datetime | None]:
    """Available, and when minReadySeconds will have passed."""
    if ready.status != "True":
        return false(types.AVAILABLE, MachineReason.NOT_READY), None
    old = conditions.get(seen.machine.status.conditions, types.READY)
    since = old.last_transition_time if old is not None and old.status == "True" else None
    until = (since or now) + timedelta(seconds=seen.machine.spec.min_ready_seconds or 0)
    if until <= now:
        return true(types.AVAILABLE, MachineReason.AVAILABLE), None
    return false(types.AVAILABLE, MachineReason.WAITING_FOR_MIN_READY_SECONDS), until


def phase_of(seen: Scope) -> str:
    """Later rules win. A Machine whose bootstrap data is given counts as Provisioning, pool Machines too."""
    machine = seen.machine
    if machine.deleting:
        return "Deleting"
    if _node_ref(seen) is not None and seen.provisioned:
        return "Running"
    if seen.provider_id:
        return "Provisioned"
    return "Provisioning" if _has_data(seen) and not seen.provisioned else "Pending"


def _has_data(seen: Scope) -> bool:
    bootstrap = seen.bootstrap.obj
    return seen.machine.spec.bootstrap.data_secret_name is not None or (
        bootstrap is not None and contract.data_secret_created(bootstrap)
    )


def _initialization(seen: Scope) -> MachineInitialization | None:
    """Neither flag turns false again."""
    created = had_bootstrap_data(seen.machine) or (
        seen.bootstrap.obj is not None
        and (
            seen.machine.spec.bootstrap.data_secret_name is not None or contract.data_secret_created(seen.bootstrap.obj)
        )
    )
    provisioned = seen.provisioned
    if not created and not provisioned:
        return seen.machine.status.initialization
    return MachineInitialization(
        infrastructure_provisioned=True if provisioned else None,
        bootstrap_data_secret_created=True if created else None,
    )


def _node_ref(seen: Scope) -> MachineNodeRef | None:
    return MachineNodeRef(name=seen.node.name) if seen.node is not None else seen.machine.status.node_ref


def _node_info(seen: Scope) -> NodeSystemInfo | None:
    return seen.node.status.node_info if seen.node is not None else seen.machine.status.node_info


def _addresses(seen: Scope) -> tuple[MachineAddress, ...]:
    infra = seen.infra.obj
    return contract.addresses(infra) if infra is not None and seen.provisioned_now else seen.machine.status.addresses


def _failure_domain(seen: Scope) -> str:
    infra = seen.infra.obj
    reported = contract.failure_domain(infra) if infra is not None and seen.provisioned_now else ""
    return reported or seen.machine.status.failure_domain


def _earliest(now: datetime, *times: datetime | None) -> timedelta | None:
    due = [time for time in times if time is not None]
    return min(due) - now if due else None

"""An InfraMachinePool: how it is. Pure.

Upstream: DevMachinePool conditions Ready and ReplicasReady. Differs: they turn False again when instances are missing or
not ready; `ready` and `initialization.provisioned` say that the pool was complete once and stay, as the contract has it.
"""

from collections.abc import Sequence

from capi.api.core.conditions import READY, Dev, Reason
from capi.api.infra.v1beta2 import (
    DevMachinePoolInitialization,
    DevMachinePoolInstance,
    DevMachinePoolNodeInfo,
    DevMachinePoolStatus,
)
from capi.backends.port import MachineShape
from capi.controllers.infra.family import InfraMachine
from capi.controllers.infra.gates import Gate
from capi.controllers.infra.machine.status import is_provisioned, machine_condition
from capi.controllers.infra.machinepool.scope import Scope, was_provisioned
from capi.controllers.infra.names import (
    INSTANCE_GONE,
    INVALID_SIMULATION,
    NOT_SUPPORTED,
    VERSION_ANNOTATION,
)
from capi.kube import conditions
from capi.kube.conditions import Condition

_PATIENCE = frozenset(
    (
        Reason.WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY,
        Reason.WAITING_FOR_CONTROL_PLANE_INITIALIZED,
        Reason.WAITING_FOR_BOOTSTRAP_DATA,
        Dev.WAITING_FOR_STARTUP_TIMEOUT,
        Dev.NOT_PROVISIONED,
        INSTANCE_GONE,
    )
)
"""Reasons of an instance that only say that it takes its time, or is replaced; any other is worth to be its pool's."""
INSTANCES_SHOWN = 100
"""A pool with more instances leaves status.instances empty: it would be rewritten whole at every change of one of them."""


def of(seen: Scope, desired: int, waiting: Gate | None) -> DevMachinePoolStatus:
    """The whole status of a pool."""
    staying = [infra for infra in seen.infra if not infra.deleting]
    complete = waiting is None and desired <= sum(is_provisioned(infra) for infra in staying)
    return _status(seen, _replicas_ready(staying, desired, waiting), was_provisioned(seen.pool) or complete)


def misread(seen: Scope, message: str) -> DevMachinePoolStatus:
    """An annotation for fault injection cannot be understood: no instances are made."""
    return _status(seen, _not_ready(INVALID_SIMULATION, message), was_provisioned(seen.pool))


def deleting(seen: Scope) -> DevMachinePoolStatus:
    """While its instances go."""
    message = f"Waiting for {_count(len(seen.infra))} to be deleted"
    return _status(seen, _not_ready(Reason.DELETING, message), was_provisioned(seen.pool))


def unsupported(message: str) -> DevMachinePoolStatus:
    """Of a pool whose backend this version does not have."""
    return DevMachinePoolStatus(conditions=_with_summary(_not_ready(NOT_SUPPORTED, message)))


def is_ready(infra: InfraMachine) -> bool:
    return conditions.is_true(infra.status.conditions, READY)


def _status(seen: Scope, replicas_ready: Condition, provisioned: bool) -> DevMachinePoolStatus:
    shown = seen.infra if len(seen.infra) <= INSTANCES_SHOWN else ()
    return DevMachinePoolStatus(
        conditions=_with_summary(replicas_ready),
        initialization=DevMachinePoolInitialization(provisioned=True) if provisioned else None,
        ready=provisioned or None,
        replicas=len(seen.infra),
        infrastructure_machine_kind=seen.family.machine.resource.kind,
        instances=tuple(_instance(infra) for infra in shown),
        capacity=dict(seen.shape.capacity) if seen.shape is not None else {},
        node_info=_node_info(seen.shape) if seen.shape is not None else None,
    )


def _node_info(shape: MachineShape) -> DevMachinePoolNodeInfo:
    return DevMachinePoolNodeInfo(architecture=shape.architecture, operating_system=shape.operating_system)


def _replicas_ready(staying: Sequence[InfraMachine], desired: int, waiting: Gate | None) -> Condition:
    ready = sum(is_ready(infra) for infra in staying)
    if waiting is not None and ready < desired:
        return _not_ready(waiting.reason, waiting.message)
    if ready >= desired and len(staying) <= max(ready, desired):
        return Condition(type=Dev.REPLICAS_READY, status="True", reason=Reason.READY)
    reason, why = _trouble(staying)
    return _not_ready(reason, f"{ready} of {_count(desired)} ready{why}")


def _trouble(staying: Sequence[InfraMachine]) -> tuple[str, str]:
    """Why instances do not come, if that is more than that they take their time: of the first that says so."""
    for infra in staying:
        found = machine_condition(infra)
        if found is not None and found.status != "True" and found.reason not in _PATIENCE:
            return found.reason, f": {found.message}"
    return Reason.NOT_READY, ""


def _instance(infra: InfraMachine) -> DevMachinePoolInstance:
    return DevMachinePoolInstance(
        addresses=infra.status.addresses,
        instance_name=infra.name,
        provider_id=infra.spec.provider_id,
        version=infra.metadata.annotations.get(VERSION_ANNOTATION, ""),
        ready=is_ready(infra),
    )


def _with_summary(replicas_ready: Condition) -> tuple[Condition, ...]:
    ready = replicas_ready.status == "True"
    summary = Condition(
        type=READY,
        status=replicas_ready.status,
        reason=Reason.READY if ready else Reason.NOT_READY,
        message="" if ready else f"* {replicas_ready.type}: {replicas_ready.message}",
    )
    return (summary, replicas_ready)


def _not_ready(reason: str, message: str) -> Condition:
    return Condition(type=Dev.REPLICAS_READY, status="False", reason=reason, message=message)


def _count(number: int) -> str:
    return "1 instance" if number == 1 else f"{number} instances"

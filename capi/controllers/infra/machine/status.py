"""An InfraMachine: how it is. Pure.

Upstream: VMProvisioned and NodeProvisioned of the in-memory backend; ContainerProvisioned, CGroupsReady,
PreLoadedImagesReady and BootstrapCompleted of the docker backend; Ready sums them up. Ours: the reason InstanceGone, which is
final.
"""

from collections.abc import Sequence

from capi.api.core.conditions import READY, Dev, Reason
from capi.api.core.v1beta2 import MachineAddress
from capi.api.infra.v1beta2 import DevMachineInitialization, DevMachineStatus
from capi.backends.port import Instance, Stage
from capi.controllers.infra.family import InfraMachine
from capi.controllers.infra.names import BACKEND_UNAVAILABLE, INSTANCE_GONE, NOT_SUPPORTED
from capi.kube import conditions
from capi.kube.conditions import Condition

_SIMULATED = (
    Dev.VM_PROVISIONED,
    ((Dev.NODE_PROVISIONED, Dev.WAITING_FOR_VM_PROVISIONED, "Waiting for the machine to run"),),
)
_CONTAINER = (
    Dev.CONTAINER_PROVISIONED,
    tuple(
        (type_, Dev.WAITING_FOR_CONTAINER, "Waiting for the container")
        for type_ in (Dev.CGROUPS_READY, Dev.PRELOADED_IMAGES_READY, Dev.BOOTSTRAP_COMPLETED)
    ),
)
"""The condition of the machine itself, and those that wait for it."""


def machine_condition(infra: InfraMachine) -> Condition | None:
    """What was said of the machine itself, by whatever backend."""
    found = infra.status.conditions
    return conditions.get(found, Dev.CONTAINER_PROVISIONED) or conditions.get(found, Dev.VM_PROVISIONED)


def is_lost(infra: InfraMachine) -> bool:
    """The infrastructure said that the instance will not come back."""
    found = machine_condition(infra)
    return found is not None and found.reason == INSTANCE_GONE


def is_provisioned(infra: InfraMachine) -> bool:
    initialization = infra.status.initialization
    return bool(initialization is not None and initialization.provisioned)


def not_started(infra: InfraMachine, reason: str, message: str, *, as_vm: bool) -> DevMachineStatus:
    """It waits for something, or cannot be made."""
    type_, followers = _SIMULATED if as_vm else _CONTAINER
    return _status(infra, (_false(type_, reason, message), *(_false(*follower) for follower in followers)))


def unsupported(infra: InfraMachine, message: str) -> DevMachineStatus:
    """Of a kind of machine that this process cannot make."""
    return not_started(infra, NOT_SUPPORTED, message, as_vm=infra.spec.backend.docker is None)


def deleting(infra: InfraMachine, message: str, *, as_vm: bool) -> DevMachineStatus:
    """It is being removed."""
    type_, followers = _SIMULATED if as_vm else _CONTAINER
    others = [c for c in infra.status.conditions if c.type in {follower for follower, *_ in followers}]
    return _status(infra, (_false(type_, Reason.DELETING, message), *others))


def refused(infra: InfraMachine, reason: str, message: str, *, as_vm: bool) -> DevMachineStatus:
    """The backend failed. Of a machine that ran and is not gone, that says only that nothing is known of it now."""
    known = machine_condition(infra)
    if reason == INSTANCE_GONE or known is None or known.status == "False":
        return not_started(infra, reason, message, as_vm=as_vm)
    if as_vm:
        return _status(infra, (known, _false(Dev.NODE_PROVISIONED, reason, message)))
    others = [c for c in infra.status.conditions if c.type in {type_ for type_, *_ in _CONTAINER[1]}]
    status = "Unknown" if reason == BACKEND_UNAVAILABLE else "False"
    return _status(infra, (Condition(type=known.type, status=status, reason=reason, message=message), *others))


def started(infra: InfraMachine, instance: Instance, failure_domain: str) -> DevMachineStatus:
    """It is as far as the backend says."""
    status = _status(infra, instance.steps or _simulated_steps(instance))
    if instance.stage in (Stage.STARTING, Stage.STOPPED):
        return status
    return DevMachineStatus(
        conditions=status.conditions,
        initialization=DevMachineInitialization(provisioned=True),
        addresses=tuple(MachineAddress(type=a.type, address=a.address) for a in instance.addresses),
        failure_domain=failure_domain,
    )


def _simulated_steps(instance: Instance) -> Sequence[Condition]:
    if instance.stage is Stage.STARTING:
        waiting = _false(Dev.VM_PROVISIONED, Dev.WAITING_FOR_STARTUP_TIMEOUT, "The machine is booting")
        return (waiting, *(_false(*follower) for follower in _SIMULATED[1]))
    if instance.stage is Stage.STOPPED:
        stopped = _false(Dev.VM_PROVISIONED, Dev.NOT_PROVISIONED, "The machine is not running any more")
        return (stopped, *(_false(*follower) for follower in _SIMULATED[1]))
    if instance.stage is Stage.JOINED:
        node = Condition(type=Dev.NODE_PROVISIONED, status="True", reason=Reason.PROVISIONED)
    elif instance.waiting_for_control_plane:
        message = "Waiting for the API server of the cluster"
        node = _false(Dev.NODE_PROVISIONED, Reason.WAITING_FOR_CONTROL_PLANE_INITIALIZED, message)
    else:
        node = _false(Dev.NODE_PROVISIONED, Dev.WAITING_FOR_STARTUP_TIMEOUT, "The Node is starting")
    return (Condition(type=Dev.VM_PROVISIONED, status="True", reason=Reason.PROVISIONED), node)


def _status(infra: InfraMachine, steps: Sequence[Condition]) -> DevMachineStatus:
    """What was reached stays: provisioned does not turn false again."""
    return DevMachineStatus(
        conditions=(summary(steps), *steps),
        initialization=infra.status.initialization,
        addresses=infra.status.addresses,
        failure_domain=infra.status.failure_domain,
    )


def summary(parts: Sequence[Condition]) -> Condition:
    """Ready, by the steps: the first that is not done says all; those that wait for it add nothing."""
    issues = [part for part in parts if part.status != "True"]
    if not issues:
        return Condition(type=READY, status="True", reason=Reason.READY)
    message = "\n".join(f"* {part.type}: {part.message}" for part in issues)
    unknown = all(part.status == "Unknown" for part in issues)
    if unknown:
        return Condition(type=READY, status="Unknown", reason=Reason.READY_UNKNOWN, message=message)
    return _false(READY, Reason.NOT_READY, message)


def _false(type_: str, reason: str, message: str) -> Condition:
    return Condition(type=type_, status="False", reason=reason, message=message)

"""DevMachine: how it is. Pure.

Upstream: conditions VMProvisioned, NodeProvisioned and their summary Ready of the in-memory backend. Ours: the reason
InstanceGone, which is final.
"""

from capi.api.core.conditions import READY, Dev, Reason
from capi.api.core.v1beta2 import MachineAddress
from capi.api.infra.v1beta2 import DevMachine, DevMachineInitialization, DevMachineStatus
from capi.backends.port import Instance, Stage
from capi.controllers.infra.names import INSTANCE_GONE, NOT_SUPPORTED, UNSUPPORTED_MESSAGE
from capi.kube.conditions import Condition


def not_started(infra: DevMachine, reason: str, message: str) -> DevMachineStatus:
    """It waits for something, or cannot be made."""
    return _status(infra, _false(Dev.VM_PROVISIONED, reason, message), _node_waits())


def unsupported(infra: DevMachine, message: str = UNSUPPORTED_MESSAGE) -> DevMachineStatus:
    """Of a kind of machine that this version does not have."""
    return not_started(infra, NOT_SUPPORTED, message)


def refused(infra: DevMachine, reason: str, message: str) -> DevMachineStatus:
    """The backend failed: for a machine that runs, that concerns its Node; a machine that is gone has neither."""
    vm = next((c for c in infra.status.conditions if c.type == Dev.VM_PROVISIONED and c.status == "True"), None)
    if vm is None or reason == INSTANCE_GONE:
        return _status(infra, _false(Dev.VM_PROVISIONED, reason, message), _node_waits())
    return _status(infra, vm, _false(Dev.NODE_PROVISIONED, reason, message))


def started(infra: DevMachine, instance: Instance, failure_domain: str) -> DevMachineStatus:
    """It is as far as the backend says."""
    if instance.stage == Stage.STARTING:
        waiting = _false(Dev.VM_PROVISIONED, Dev.WAITING_FOR_STARTUP_TIMEOUT, "The machine is booting")
        return _status(infra, waiting, _node_waits())
    if instance.stage == Stage.JOINED:
        node = Condition(type=Dev.NODE_PROVISIONED, status="True", reason=Reason.PROVISIONED)
    elif instance.waiting_for_control_plane:
        message = "Waiting for the API server of the cluster"
        node = _false(Dev.NODE_PROVISIONED, Reason.WAITING_FOR_CONTROL_PLANE_INITIALIZED, message)
    else:
        node = _false(Dev.NODE_PROVISIONED, Dev.WAITING_FOR_STARTUP_TIMEOUT, "The Node is starting")
    status = _status(infra, Condition(type=Dev.VM_PROVISIONED, status="True", reason=Reason.PROVISIONED), node)
    return DevMachineStatus(
        conditions=status.conditions,
        initialization=DevMachineInitialization(provisioned=True),
        addresses=tuple(MachineAddress(type=a.type, address=a.address) for a in instance.addresses),
        failure_domain=failure_domain,
    )


def _status(infra: DevMachine, vm: Condition, node: Condition) -> DevMachineStatus:
    """What was reached stays: provisioned does not turn false again."""
    return DevMachineStatus(
        conditions=(_summary(vm, node), vm, node),
        initialization=infra.status.initialization,
        addresses=infra.status.addresses,
        failure_domain=infra.status.failure_domain,
    )


def _summary(*parts: Condition) -> Condition:
    issues = [part for part in parts if part.status != "True"]
    message = "\n".join(f"* {part.type}: {part.message}" for part in issues)
    if issues:
        return _false(READY, Reason.NOT_READY, message)
    return Condition(type=READY, status="True", reason=Reason.READY)


def _node_waits() -> Condition:
    return _false(Dev.NODE_PROVISIONED, Dev.WAITING_FOR_VM_PROVISIONED, "Waiting for the machine to run")


def _false(type_: str, reason: str, message: str) -> Condition:
    return Condition(type=type_, status="False", reason=reason, message=message)

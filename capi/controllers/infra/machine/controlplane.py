"""DevMachine of a control plane: what is asked of its machine beyond a worker's, and what its status says more. Pure.

Upstream: conditions EtcdProvisioned and APIServerProvisioned of the in-memory backend, which workers never have.
"""

import dataclasses

import msgspec

from capi.api.core.conditions import READY, Dev, Reason
from capi.api.core.v1beta2 import APIEndpoint
from capi.api.infra.v1beta2 import DevMachineStatus
from capi.backends.port import ControlPlaneProgress, ControlPlaneSpec, Delay
from capi.client.pki import KeyPair
from capi.controllers.infra.family import InfraMachine
from capi.controllers.infra.machine.status import summary
from capi.kube import conditions
from capi.kube.conditions import Condition
from capi.runtime.plan import Plan


def asked(
    infra: InfraMachine, endpoint: APIEndpoint, authority: KeyPair, etcd: Delay, api_server: Delay
) -> ControlPlaneSpec:
    """What the machine is to be. `endpoint` is the cluster's, complete."""
    node = conditions.get(infra.status.conditions, Dev.NODE_PROVISIONED)
    joined = node is not None and node.status == "True"
    return ControlPlaneSpec(
        endpoint.port, authority, etcd, api_server, node.last_transition_time if node is not None and joined else None
    )


def told(plan: Plan, infra: InfraMachine, progress: ControlPlaneProgress | None = None) -> Plan:
    """A worker's plan, its status completed. Without `progress` what was reached stays."""
    if plan.status is None:
        return plan
    assert isinstance(plan.status, DevMachineStatus)
    joined = conditions.is_true(plan.status.conditions, Dev.NODE_PROVISIONED)
    parts = [
        _part(infra, Dev.ETCD_PROVISIONED, joined, None if progress is None else progress.etcd),
        _part(infra, Dev.API_SERVER_PROVISIONED, joined, None if progress is None else progress.api_server),
    ]
    workers = [c for c in plan.status.conditions if c.type not in (READY, *(part.type for part in parts))]
    all_ = (summary((*workers, *parts)), *workers, *parts)
    return dataclasses.replace(plan, status=msgspec.structs.replace(plan.status, conditions=all_))


_TITLES = {Dev.ETCD_PROVISIONED: "etcd", Dev.API_SERVER_PROVISIONED: "The API server"}


def _part(infra: InfraMachine, type_: str, joined: bool, done: bool | None) -> Condition:
    before = conditions.get(infra.status.conditions, type_)
    if done or (done is None and before is not None and before.status == "True"):
        return Condition(type=type_, status="True", reason=Reason.PROVISIONED)
    if not joined:
        reason, message = Dev.WAITING_FOR_NODE_PROVISIONED, "Waiting for the Node to join"
    else:
        reason, message = Dev.WAITING_FOR_STARTUP_TIMEOUT, f"{_TITLES[type_]} is starting"
    return Condition(type=type_, status="False", reason=reason, message=message)

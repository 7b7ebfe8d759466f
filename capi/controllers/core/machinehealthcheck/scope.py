"""All that one pass over a MachineHealthCheck looks at."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from capi.api.builtin import Node
from capi.api.core.v1beta2 import Cluster, Machine, MachineHealthCheck, RemediationTemplateRef
from capi.controllers.core.objects import ABSENT, Found
from capi.kube.objects import Unstructured
from capi.kube.types import ResourceType


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A Machine that the check selects."""

    machine: Machine
    node: Node | None = None
    """Its Node; None: it has none, or it cannot be read."""
    request: Unstructured | None = None
    """The remediation request for it, of checks that have a template."""
    provisioned_since: datetime | None = None
    """When its infrastructure was seen provisioned; None while it is not."""
    others: Sequence[MachineHealthCheck] = ()
    """Further checks that select it and are at work, by name."""

    @property
    def node_name(self) -> str:
        ref = self.machine.status.node_ref
        return ref.name if ref is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A function of this and the clock is everything a pass decides."""

    check: MachineHealthCheck
    cluster: Cluster | None
    """None: it does not exist (any more)."""
    connected: bool = False
    """The workload cluster's Nodes can be read."""
    targets: Sequence[Target] = ()
    """Selected Machines that are neither paused nor excepted from remediation, by name."""
    template: Found = ABSENT
    """The template of remediation requests; with an error also if there is no such kind of requests."""
    request_kind: ResourceType | None = None
    """Kind of the requests made from it."""

    @property
    def template_ref(self) -> RemediationTemplateRef | None:
        remediation = self.check.spec.remediation
        return remediation.template_ref if remediation is not None else None

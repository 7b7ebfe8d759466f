"""Read models of the Kubernetes kinds that controllers look at: only the fields they use.

Source: the Kubernetes API reference (core/v1, coordination.k8s.io/v1).
"""

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from capi.api.core.v1beta2.machine import NodeSystemInfo
from capi.api.core.v1beta2.machinepool import ObjectReference
from capi.api.schema import Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType


class Taint(Api, kw_only=True):
    """core/v1 Taint."""

    key: str
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Api):
    """core/v1 NodeSpec."""

    provider_id: str = ""
    unschedulable: bool | None = None
    taints: tuple[Taint, ...] = ()
    pod_cidr: str = msgspec.field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] = msgspec.field(default=(), name="podCIDRs")


class NodeCondition(Api, kw_only=True):
    """core/v1 NodeCondition."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None


class NodeAddress(Api, kw_only=True):
    """core/v1 NodeAddress."""

    type: str
    address: str


class AttachedVolume(Api):
    """core/v1 AttachedVolume."""

    name: str = ""
    device_path: str = ""


class NodeStatus(Api):
    """core/v1 NodeStatus."""

    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo | None = None
    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    allocatable: dict[str, str] = msgspec.field(default_factory=dict)
    volumes_attached: tuple[AttachedVolume, ...] = ()
    phase: str = ""


class Node(Resource):
    """core/v1 Node."""

    resource: ClassVar[ResourceType] = ResourceType("", "v1", "Node", "nodes", namespaced=False)
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ClaimVolume(Api):
    """core/v1 PersistentVolumeClaimVolumeSource."""

    claim_name: str = ""


class Volume(Api):
    """core/v1 Volume."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None


class PodSpec(Api):
    """core/v1 PodSpec."""

    node_name: str = ""
    volumes: tuple[Volume, ...] = ()
    priority: int | None = None
    termination_grace_period_seconds: int | None = None


class PodCondition(Api, kw_only=True):
    """core/v1 PodCondition."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class PodStatus(Api):
    """core/v1 PodStatus."""

    phase: str = ""
    reason: str = ""
    conditions: tuple[PodCondition, ...] = ()


class Pod(Resource):
    """core/v1 Pod."""

    resource: ClassVar[ResourceType] = ResourceType("", "v1", "Pod", "pods")
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Secret(Resource):
    """core/v1 Secret; `data` is base64 on the wire."""

    resource: ClassVar[ResourceType] = ResourceType("", "v1", "Secret", "secrets")
    type: str = ""
    data: dict[str, bytes] = msgspec.field(default_factory=dict)
    immutable: bool | None = None


class ConfigMap(Resource):
    """core/v1 ConfigMap."""

    resource: ClassVar[ResourceType] = ResourceType("", "v1", "ConfigMap", "configmaps")
    data: dict[str, str] = msgspec.field(default_factory=dict)
    binary_data: dict[str, bytes] = msgspec.field(default_factory=dict)
    immutable: bool | None = None


class NamespaceStatus(Api):
    """core/v1 NamespaceStatus."""

    phase: str = ""


class Namespace(Resource):
    """core/v1 Namespace."""

    resource: ClassVar[ResourceType] = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
    status: NamespaceStatus = NamespaceStatus()


class ServiceAccount(Resource):
    """core/v1 ServiceAccount."""

    resource: ClassVar[ResourceType] = ResourceType("", "v1", "ServiceAccount", "serviceaccounts")


class EventSource(Api):
    """core/v1 EventSource."""

    component: str = ""
    host: str = ""


class Event(Resource):
    """core/v1 Event."""

    resource: ClassVar[ResourceType] = ResourceType("", "v1", "Event", "events")
    involved_object: Annotated[ObjectReference, Rule(required=True)] = msgspec.field(default_factory=ObjectReference)
    reason: str = ""
    message: str = ""
    type: str = ""
    count: int | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    source: EventSource | None = None
    action: str = ""
    reporting_component: str = ""
    reporting_instance: str = ""


class LeaseSpec(Api):
    """coordination.k8s.io/v1 LeaseSpec."""

    holder_identity: str = ""
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class Lease(Resource):
    """coordination.k8s.io/v1 Lease."""

    resource: ClassVar[ResourceType] = ResourceType("coordination.k8s.io", "v1", "Lease", "leases")
    spec: LeaseSpec = LeaseSpec()

"""Machine: one instance and its Node.

Upstream: api/core/v1beta2/machine_types.go.
"""

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from capi.api.core.v1beta2.shared import (
    GROUP,
    VERSION_NAME,
    Conditions,
    MachineAddresses,
    MachineSpec,
    V1Beta1Condition,
)
from capi.api.schema import AGE, PAUSED, Cel, Column, Crd, Name, Rule, Text256, condition_column
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

PHASES = ("Pending", "Provisioning", "Provisioned", "Running", "Updating", "Deleting", "Deleted", "Failed", "Unknown")


class MachineInitialization(Api):
    """Steps of a Machine's start that were reached; they do not turn false again."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    infrastructure_provisioned: bool | None = None
    bootstrap_data_secret_created: bool | None = None


class MachineNodeRef(Api):
    """The Node of a Machine, in the workload cluster."""

    name: Name


class NodeSwapStatus(Api):
    """Swap of a Node."""

    capacity: Annotated[int | None, Rule(format="int64")] = None
    """Bytes."""


class NodeSystemInfo(Api):
    """What a Node says about its system; core/v1 NodeSystemInfo."""

    machine_id: Annotated[str, Rule(required=True)] = msgspec.field(default_factory=str)
    system_uuid: Annotated[str, Rule(required=True)] = msgspec.field(default_factory=str)
    boot_id: Annotated[str, Rule(required=True)] = msgspec.field(default_factory=str)
    kernel_version: Annotated[str, Rule(required=True)] = msgspec.field(default_factory=str)
    os_image: Annotated[str, Rule(required=True)] = msgspec.field(default_factory=str)
    container_runtime_version: Annotated[str, Rule(required=True)] = msgspec.field(default_factory=str)
    kubelet_version: Annotated[str, Rule(required=True)] = msgspec.field(default_factory=str)
    kube_proxy_version: Annotated[str, Rule(required=True)] = msgspec.field(default_factory=str)
    operating_system: Annotated[str, Rule(required=True)] = msgspec.field(default_factory=str)
    architecture: Annotated[str, Rule(required=True)] = msgspec.field(default_factory=str)
    swap: NodeSwapStatus | None = None


class MachineDeletionStatus(Api):
    """When the steps of the deletion began."""

    node_drain_start_time: datetime | None = None
    wait_for_node_volume_detach_start_time: datetime | None = None
    wait_for_pre_drain_hook_start_time: datetime | None = None
    wait_for_pre_terminate_hook_start_time: datetime | None = None


class MachineV1Beta1Status(Api):
    """What the Machine's status had in v1beta1 only."""

    conditions: tuple[V1Beta1Condition, ...] = ()
    failure_reason: str = ""
    failure_message: Annotated[str, Rule(min_length=1, max_length=10240)] = ""


class MachineDeprecatedStatus(Api):
    """Status that will go with the versions that defined it."""

    v1beta1: MachineV1Beta1Status | None = None


class MachineStatus(Api):
    """What was observed of a Machine."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    conditions: Conditions = ()
    initialization: MachineInitialization | None = None
    node_ref: MachineNodeRef | None = None
    node_info: NodeSystemInfo | None = None
    last_updated: datetime | None = None
    """When the phase last changed."""
    addresses: MachineAddresses = ()
    failure_domain: Text256 = ""
    phase: Annotated[str, Rule(enum=PHASES)] = ""
    certificates_expiry_date: datetime | None = None
    """When the first of a control plane Machine's certificates ends."""
    observed_generation: Annotated[int | None, Rule(format="int64", minimum=1)] = None
    deletion: MachineDeletionStatus | None = None
    deprecated: MachineDeprecatedStatus | None = None


class Machine(Resource, kw_only=True):
    """A Machine is one instance of a cluster and, once it has joined, its Node."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "Machine", "machines")
    crd: ClassVar[Crd] = Crd(
        singular="machine",
        short_names=("ma",),
        columns=(
            Column("Cluster", ".spec.clusterName"),
            Column("Node Name", ".status.nodeRef.name"),
            Column("Provider ID", ".spec.providerID", priority=10),
            Column("Failure domain", ".status.failureDomain"),
            condition_column("Ready", "Ready"),
            condition_column("Available", "Available"),
            condition_column("Up-to-date", "UpToDate"),
            Column("Internal-IP", '.status.addresses[?(@.type=="InternalIP")].address', priority=10),
            Column("External-IP", '.status.addresses[?(@.type=="ExternalIP")].address', priority=10),
            Column("OS-Image", ".status.nodeInfo.osImage", priority=10),
            PAUSED,
            Column("Phase", ".status.phase"),
            AGE,
            Column("Version", ".spec.version"),
        ),
    )
    spec: Annotated[
        MachineSpec,
        Rule(
            cel=(
                Cel(
                    rule="self.clusterName == oldSelf.clusterName",
                    message="field is immutable",
                    field_path=".clusterName",
                    reason="FieldValueForbidden",
                ),
            )
        ),
    ]
    status: MachineStatus = MachineStatus()


__all__ = [
    "Machine",
    "MachineDeletionStatus",
    "MachineDeprecatedStatus",
    "MachineInitialization",
    "MachineNodeRef",
    "MachineStatus",
    "MachineV1Beta1Status",
    "NodeSwapStatus",
    "NodeSystemInfo",
]

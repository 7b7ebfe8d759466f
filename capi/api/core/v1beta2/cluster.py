"""Cluster: the root of everything that belongs to one workload cluster.

Upstream: api/core/v1beta2/cluster_types.go.
Differs: `spec.topology` is kept as it is (managed topologies are not reconciled here and are refused at admission).
"""

from typing import Annotated, Any, ClassVar

from capi.api.core.v1beta2.shared import (
    GROUP,
    VERSION_NAME,
    APIEndpoint,
    AvailabilityGate,
    Conditions,
    ContractRef,
    FailureDomain,
    NetworkRanges,
    StatusVersion,
    V1Beta1Condition,
)
from capi.api.schema import AGE, PAUSED, Cel, Column, Crd, Rule, Text256, condition_column
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

PHASES = ("Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown")


class ClusterNetwork(Api):
    """The network inside the workload cluster."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    api_server_port: Annotated[int | None, Rule(format="int32", minimum=1, maximum=65535)] = None
    services: NetworkRanges | None = None
    pods: NetworkRanges | None = None
    service_domain: Annotated[str, Rule(min_length=1, max_length=253)] = ""


class ClusterSpec(Api):
    """What is wanted of a Cluster."""

    openapi: ClassVar[Rule] = Rule(
        min_properties=1,
        cel=(
            Cel(
                rule="has(self.controlPlaneRef) || has(self.infrastructureRef) || has(self.topology)",
                message="one of controlPlaneRef, infrastructureRef and topology must be set",
                reason="FieldValueForbidden",
            ),
            Cel(
                rule="!has(self.topology)",
                message="managed topologies are not supported yet; set controlPlaneRef and infrastructureRef instead",
                field_path=".topology",
                reason="FieldValueForbidden",
            ),
            Cel(
                rule="!has(oldSelf.infrastructureRef) || has(self.infrastructureRef)",
                message="cannot be removed",
                field_path=".infrastructureRef",
                reason="FieldValueForbidden",
            ),
            Cel(
                rule="!has(oldSelf.controlPlaneRef) || has(self.controlPlaneRef)",
                message="cannot be removed",
                field_path=".controlPlaneRef",
                reason="FieldValueForbidden",
            ),
        ),
    )
    paused: bool | None = None
    """Stops the reconciliation of the Cluster and of everything that belongs to it."""
    cluster_network: ClusterNetwork | None = None
    control_plane_endpoint: APIEndpoint | None = None
    control_plane_ref: ContractRef | None = None
    infrastructure_ref: ContractRef | None = None
    topology: dict[str, Any] | None = None
    """A managed topology; not supported yet."""
    availability_gates: Annotated[
        tuple[AvailabilityGate, ...], Rule(min_items=1, max_items=32, list_keys=("conditionType",))
    ] = ()


class ClusterInitialization(Api):
    """Steps of a Cluster's start that were reached; they do not turn false again."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    infrastructure_provisioned: bool | None = None
    control_plane_initialized: bool | None = None


class UpgradeStep(Api):
    """A version on the way to the wanted one."""

    version: Text256


class ReplicaCounters(Api):
    """How many Machines of a role there are, and how many are as they should be."""

    desired_replicas: Annotated[int | None, Rule(format="int32")] = None
    replicas: Annotated[int | None, Rule(format="int32")] = None
    up_to_date_replicas: Annotated[int | None, Rule(format="int32")] = None
    ready_replicas: Annotated[int | None, Rule(format="int32")] = None
    available_replicas: Annotated[int | None, Rule(format="int32")] = None
    versions: Annotated[tuple[StatusVersion, ...], Rule(min_items=1, max_items=32, atomic=True)] = ()
    upgrade_plan: Annotated[tuple[UpgradeStep, ...], Rule(min_items=1, max_items=32, atomic=True)] = ()


class ClusterV1Beta1Status(Api):
    """What the Cluster's status had in v1beta1 only."""

    conditions: tuple[V1Beta1Condition, ...] = ()
    failure_reason: str = ""
    failure_message: Annotated[str, Rule(min_length=1, max_length=10240)] = ""


class ClusterDeprecatedStatus(Api):
    """Status that will go with the versions that defined it."""

    v1beta1: ClusterV1Beta1Status | None = None


class ClusterStatus(Api):
    """What was observed of a Cluster."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    conditions: Conditions = ()
    initialization: ClusterInitialization | None = None
    control_plane: ReplicaCounters | None = None
    workers: ReplicaCounters | None = None
    failure_domains: Annotated[tuple[FailureDomain, ...], Rule(min_items=1, max_items=100, list_keys=("name",))] = ()
    phase: Annotated[str, Rule(enum=PHASES)] = ""
    observed_generation: Annotated[int | None, Rule(format="int64", minimum=1)] = None
    deprecated: ClusterDeprecatedStatus | None = None


def _counter(name: str, role: str, field: str, priority: int = 0) -> Column:
    return Column(name, f".status.{role}.{field}", "integer", priority)


class Cluster(Resource):
    """A Cluster is a workload cluster: its infrastructure, its control plane and its workers."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "Cluster", "clusters")
    crd: ClassVar[Crd] = Crd(
        singular="cluster",
        short_names=("cl",),
        columns=(
            Column("ClusterClass", ".spec.topology.classRef.name"),
            condition_column("Available", "Available"),
            _counter("CP Desired", "controlPlane", "desiredReplicas"),
            _counter("CP Current", "controlPlane", "replicas", 10),
            _counter("CP Ready", "controlPlane", "readyReplicas", 10),
            _counter("CP Available", "controlPlane", "availableReplicas"),
            _counter("CP Up-to-date", "controlPlane", "upToDateReplicas"),
            _counter("W Desired", "workers", "desiredReplicas"),
            _counter("W Current", "workers", "replicas", 10),
            _counter("W Ready", "workers", "readyReplicas", 10),
            _counter("W Available", "workers", "availableReplicas"),
            _counter("W Up-to-date", "workers", "upToDateReplicas"),
            PAUSED,
            Column("Phase", ".status.phase"),
            AGE,
            Column("Version", ".spec.topology.version"),
        ),
    )
    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()

"""Cluster in v1beta1.

Upstream: api/core/v1beta1/cluster_types.go.
Differs: `spec.topology` is carried as it is (managed topologies are refused).
"""

from typing import Annotated, Any, ClassVar

from capi.api.core.v1beta1.shared import VERSION_NAME, Int32, Status
from capi.api.core.v1beta2 import cluster as new
from capi.api.core.v1beta2.machinepool import ObjectReference
from capi.api.core.v1beta2.shared import GROUP, AvailabilityGate, Conditions
from capi.api.schema import AGE, Column, Crd, Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType


class APIEndpoint(Api):
    """Where an API server is reached; empty and 0 while it is not known."""

    host: Annotated[str, Rule(max_length=512)]
    port: Annotated[int, Rule(format="int32", minimum=0, maximum=65535)]


class NetworkRanges(Api):
    """Address ranges in CIDR notation; may be empty."""

    cidr_blocks: Annotated[
        tuple[Annotated[str, Rule(min_length=1, max_length=43)], ...], Rule(required=True, max_items=100)
    ] = ()


class ClusterNetwork(Api):
    """The network inside the workload cluster."""

    api_server_port: Annotated[int | None, Rule(format="int32", minimum=0, maximum=65535)] = None
    services: NetworkRanges | None = None
    pods: NetworkRanges | None = None
    service_domain: Annotated[str, Rule(min_length=1, max_length=253)] = ""


class ClusterSpec(Api):
    """What is wanted of a Cluster."""

    openapi: ClassVar[Rule] = Rule(cel=new.ClusterSpec.openapi.cel)
    paused: bool | None = None
    cluster_network: ClusterNetwork | None = None
    control_plane_endpoint: APIEndpoint | None = None
    control_plane_ref: Annotated[ObjectReference | None, Rule(atomic=True)] = None
    infrastructure_ref: Annotated[ObjectReference | None, Rule(atomic=True)] = None
    topology: dict[str, Any] | None = None
    availability_gates: Annotated[tuple[AvailabilityGate, ...], Rule(max_items=32, list_keys=("conditionType",))] = ()


class FailureDomain(Api):
    """A place where Machines fail together."""

    control_plane: bool | None = None
    attributes: dict[str, str] | None = None


class ReplicaCounters(Api):
    """How many Machines of a role there are, and how many are as they should be."""

    desired_replicas: Int32 = None
    replicas: Int32 = None
    up_to_date_replicas: Int32 = None
    ready_replicas: Int32 = None
    available_replicas: Int32 = None


class NewClusterStatus(Api):
    """Status as v1beta2 has it."""

    conditions: Conditions = ()
    control_plane: ReplicaCounters | None = None
    workers: ReplicaCounters | None = None


class ClusterStatus(Status):
    """What was observed of a Cluster."""

    failure_domains: dict[str, FailureDomain] | None = None
    phase: Annotated[str, Rule(enum=new.PHASES)] = ""
    infrastructure_ready: bool | None = None
    control_plane_ready: bool | None = None
    v1beta2: NewClusterStatus | None = None


class Cluster(Resource):
    """A Cluster is a workload cluster: its infrastructure, its control plane and its workers."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "Cluster", "clusters")
    crd: ClassVar[Crd] = Crd(
        singular="cluster",
        columns=(
            Column("ClusterClass", ".spec.topology.class"),
            Column("Phase", ".status.phase"),
            AGE,
            Column("Version", ".spec.topology.version"),
        ),
    )
    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()

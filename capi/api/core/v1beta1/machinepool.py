"""MachinePool in v1beta1.

Upstream: api/core/v1beta1/machinepool_types.go.
"""

from typing import Annotated, ClassVar

from capi.api.core.v1beta1.shared import VERSION_NAME, Int32, MachineTemplateSpec, NewCounters, Status
from capi.api.core.v1beta2.machinepool import PHASES, ObjectReference
from capi.api.core.v1beta2.shared import BOOTSTRAP_OF_TEMPLATE, CLUSTER_NAME_OF_TEMPLATE, GROUP, Versions
from capi.api.schema import AGE, ClusterName, Column, Crd, ProviderID, Rule, Text256
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType


class MachinePoolSpec(Api, kw_only=True):
    """What is wanted of a pool."""

    openapi: ClassVar[Rule] = Rule(cel=(CLUSTER_NAME_OF_TEMPLATE, BOOTSTRAP_OF_TEMPLATE))
    cluster_name: ClusterName
    replicas: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    template: MachineTemplateSpec
    min_ready_seconds: Int32 = None
    provider_id_list: Annotated[tuple[ProviderID, ...], Rule(max_items=10000)] = ()
    failure_domains: Annotated[tuple[Text256, ...], Rule(max_items=100)] = ()


class MachinePoolStatus(Status):
    """What was observed of a pool."""

    node_refs: Annotated[tuple[ObjectReference, ...], Rule(max_items=10000)] = ()
    replicas: Int32 = None
    ready_replicas: Int32 = None
    available_replicas: Int32 = None
    unavailable_replicas: Int32 = None
    versions: Versions = ()
    phase: Annotated[str, Rule(enum=PHASES)] = ""
    bootstrap_ready: bool | None = None
    infrastructure_ready: bool | None = None
    v1beta2: NewCounters | None = None


class MachinePool(Resource, kw_only=True):
    """A MachinePool is a set of instances that its infrastructure provider creates, replaces and deletes together."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "MachinePool", "machinepools")
    crd: ClassVar[Crd] = Crd(
        singular="machinepool",
        scale=True,
        columns=(
            Column("Cluster", ".spec.clusterName"),
            Column("Desired", ".spec.replicas", "integer", 10),
            Column("Replicas", ".status.replicas"),
            Column("Phase", ".status.phase"),
            AGE,
            Column("Version", ".spec.template.spec.version"),
        ),
    )
    spec: MachinePoolSpec
    status: MachinePoolStatus = MachinePoolStatus()

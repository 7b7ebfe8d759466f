"""MachinePool: a set of instances that an infrastructure provider manages together.

Upstream: api/core/v1beta2/machinepool_types.go.
"""

from typing import Annotated, ClassVar

from capi.api.core.v1beta2.shared import (
    BOOTSTRAP_OF_TEMPLATE,
    CLUSTER_NAME_OF_TEMPLATE,
    GROUP,
    VERSION_NAME,
    Conditions,
    MachineTemplateSpec,
    V1Beta1Condition,
    Versions,
)
from capi.api.schema import AGE, PAUSED, ClusterName, Column, Crd, ProviderID, Rule, Text256
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

PHASES = (
    "Pending", "Provisioning", "Provisioned", "Running", "ScalingUp", "ScalingDown", "Scaling", "Deleting", "Failed", "Unknown",
)  # fmt: skip


class ObjectReference(Api):
    """core/v1 ObjectReference."""

    openapi: ClassVar[Rule] = Rule(atomic=True)
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class MachinePoolSpec(Api, kw_only=True):
    """What is wanted of a pool."""

    openapi: ClassVar[Rule] = Rule(cel=(CLUSTER_NAME_OF_TEMPLATE, BOOTSTRAP_OF_TEMPLATE))
    cluster_name: ClusterName
    replicas: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    """How many instances are wanted; unset: 1, or what an external autoscaler decides."""
    template: MachineTemplateSpec
    """What the instances are like. Its references name concrete objects, not templates."""
    provider_id_list: Annotated[tuple[ProviderID, ...], Rule(max_items=10000, atomic=True)] = ()
    """The instances there are, as the infrastructure provider reports them."""
    failure_domains: Annotated[tuple[Text256, ...], Rule(max_items=100, atomic=True)] = ()


class MachinePoolInitialization(Api):
    """Whether the pool's infrastructure and bootstrap data are there; unlike a Machine's these can turn false again."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    infrastructure_provisioned: bool | None = None
    bootstrap_data_secret_created: bool | None = None


class MachinePoolV1Beta1Status(Api):
    """What the pool's status had in v1beta1 only; the counters count Nodes."""

    conditions: tuple[V1Beta1Condition, ...] = ()
    failure_reason: str = ""
    failure_message: Annotated[str, Rule(min_length=1, max_length=10240)] = ""
    ready_replicas: Annotated[int | None, Rule(format="int32")] = None
    available_replicas: Annotated[int | None, Rule(format="int32")] = None
    unavailable_replicas: Annotated[int | None, Rule(format="int32")] = None


class MachinePoolDeprecatedStatus(Api):
    """Status that will go with the versions that defined it."""

    v1beta1: MachinePoolV1Beta1Status | None = None


class MachinePoolStatus(Api):
    """What was observed of a pool."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    conditions: Conditions = ()
    initialization: MachinePoolInitialization | None = None
    node_refs: Annotated[tuple[ObjectReference, ...], Rule(max_items=10000, atomic=True)] = ()
    replicas: Annotated[int | None, Rule(format="int32")] = None
    ready_replicas: Annotated[int | None, Rule(format="int32")] = None
    available_replicas: Annotated[int | None, Rule(format="int32")] = None
    up_to_date_replicas: Annotated[int | None, Rule(format="int32")] = None
    versions: Versions = ()
    phase: Annotated[str, Rule(enum=PHASES)] = ""
    observed_generation: Annotated[int | None, Rule(format="int64", minimum=1)] = None
    deprecated: MachinePoolDeprecatedStatus | None = None


class MachinePool(Resource, kw_only=True):
    """A MachinePool is a set of instances that its infrastructure provider creates, replaces and deletes together."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "MachinePool", "machinepools")
    crd: ClassVar[Crd] = Crd(
        singular="machinepool",
        short_names=("mp",),
        scale=True,
        columns=(
            Column("Cluster", ".spec.clusterName"),
            Column("Desired", ".spec.replicas", "integer"),
            Column("Current", ".status.replicas", "integer"),
            Column("Ready", ".status.readyReplicas", "integer"),
            Column("Available", ".status.availableReplicas", "integer"),
            Column("Up-to-date", ".status.upToDateReplicas", "integer"),
            PAUSED,
            Column("Phase", ".status.phase"),
            AGE,
            Column("Version", ".spec.template.spec.version"),
        ),
    )
    spec: MachinePoolSpec
    status: MachinePoolStatus = MachinePoolStatus()

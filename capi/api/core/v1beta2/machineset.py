"""MachineSet and MachineDeployment.

The kinds are installed because clients (the cluster autoscaler) list them; they are not reconciled yet, and admission
refuses to create one.
Upstream: api/core/v1beta2/{machineset,machinedeployment}_types.go.
"""

from datetime import datetime
from typing import Annotated, ClassVar

from capi.api.core.v1beta2.shared import (
    BOOTSTRAP_OF_TEMPLATE,
    CLUSTER_NAME_OF_TEMPLATE,
    GROUP,
    VERSION_NAME,
    Conditions,
    LabelSelector,
    MachineTemplateSpec,
    V1Beta1Condition,
    Versions,
)
from capi.api.schema import AGE, PAUSED, ClusterName, Column, Crd, Rule, condition_column
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

_NOT_EMPTY = Rule(min_properties=1)
_TEMPLATE_RULES = Rule(cel=(CLUSTER_NAME_OF_TEMPLATE, BOOTSTRAP_OF_TEMPLATE))


class MachineNaming(Api):
    """How Machines are named."""

    openapi: ClassVar[Rule] = _NOT_EMPTY
    template: Annotated[str, Rule(min_length=1, max_length=256)] = ""


class MachineSetDeletion(Api):
    """How a set chooses the Machines to delete."""

    openapi: ClassVar[Rule] = _NOT_EMPTY
    order: Annotated[str, Rule(enum=("Random", "Newest", "Oldest"))] = ""


class MachineSetSpec(Api, kw_only=True):
    """What is wanted of a MachineSet."""

    openapi: ClassVar[Rule] = _TEMPLATE_RULES
    cluster_name: ClusterName
    replicas: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    selector: LabelSelector
    template: MachineTemplateSpec
    machine_naming: MachineNaming | None = None
    deletion: MachineSetDeletion | None = None


class MachineSetV1Beta1Status(Api):
    """What the status had in v1beta1 only."""

    conditions: tuple[V1Beta1Condition, ...] = ()
    failure_reason: str = ""
    failure_message: Annotated[str, Rule(min_length=1, max_length=10240)] = ""
    fully_labeled_replicas: Annotated[int | None, Rule(format="int32")] = None
    ready_replicas: Annotated[int | None, Rule(format="int32")] = None
    available_replicas: Annotated[int | None, Rule(format="int32")] = None


class MachineSetDeprecatedStatus(Api):
    """Status that will go with the versions that defined it."""

    v1beta1: MachineSetV1Beta1Status | None = None


class MachineSetStatus(Api):
    """What was observed of a MachineSet."""

    openapi: ClassVar[Rule] = _NOT_EMPTY
    conditions: Conditions = ()
    selector: Annotated[str, Rule(min_length=1, max_length=4096)] = ""
    replicas: Annotated[int | None, Rule(format="int32")] = None
    ready_replicas: Annotated[int | None, Rule(format="int32")] = None
    available_replicas: Annotated[int | None, Rule(format="int32")] = None
    up_to_date_replicas: Annotated[int | None, Rule(format="int32")] = None
    versions: Versions = ()
    observed_generation: Annotated[int | None, Rule(format="int64", minimum=1)] = None
    deprecated: MachineSetDeprecatedStatus | None = None


_COUNTERS = (
    Column("Desired", ".spec.replicas", "integer"),
    Column("Current", ".status.replicas", "integer"),
    Column("Ready", ".status.readyReplicas", "integer"),
    Column("Available", ".status.availableReplicas", "integer"),
    Column("Up-to-date", ".status.upToDateReplicas", "integer"),
)


class MachineSet(Resource, kw_only=True):
    """A MachineSet keeps a number of equal Machines. Not reconciled yet."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "MachineSet", "machinesets")
    crd: ClassVar[Crd] = Crd(
        singular="machineset",
        short_names=("ms",),
        scale=True,
        scale_selector=".status.selector",
        columns=(
            Column("Cluster", ".spec.clusterName"),
            *_COUNTERS,
            PAUSED,
            AGE,
            Column("Version", ".spec.template.spec.version"),
        ),
    )
    spec: MachineSetSpec
    status: MachineSetStatus = MachineSetStatus()


class MachineDeploymentRemediation(Api):
    """How unhealthy Machines are replaced."""

    openapi: ClassVar[Rule] = _NOT_EMPTY
    max_in_flight: Annotated[int | str | None, Rule(int_or_string=True)] = None


class RollingUpdate(Api):
    """How fast a rollout goes."""

    openapi: ClassVar[Rule] = _NOT_EMPTY
    max_surge: Annotated[int | str | None, Rule(int_or_string=True)] = None
    max_unavailable: Annotated[int | str | None, Rule(int_or_string=True)] = None


class RolloutStrategy(Api, kw_only=True):
    """How Machines are replaced."""

    openapi: ClassVar[Rule] = _NOT_EMPTY
    type: Annotated[str, Rule(enum=("RollingUpdate", "OnDelete"))]
    rolling_update: RollingUpdate | None = None


class MachineDeploymentRollout(Api):
    """When and how Machines are replaced."""

    openapi: ClassVar[Rule] = _NOT_EMPTY
    after: datetime | None = None
    strategy: RolloutStrategy | None = None


class MachineDeploymentSpec(Api, kw_only=True):
    """What is wanted of a MachineDeployment."""

    openapi: ClassVar[Rule] = _TEMPLATE_RULES
    cluster_name: ClusterName
    replicas: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    rollout: MachineDeploymentRollout | None = None
    selector: LabelSelector
    template: MachineTemplateSpec
    machine_naming: MachineNaming | None = None
    remediation: MachineDeploymentRemediation | None = None
    deletion: MachineSetDeletion | None = None
    paused: bool | None = None


class MachineDeploymentV1Beta1Status(Api):
    """What the status had in v1beta1 only."""

    conditions: tuple[V1Beta1Condition, ...] = ()
    updated_replicas: Annotated[int | None, Rule(format="int32")] = None
    ready_replicas: Annotated[int | None, Rule(format="int32")] = None
    available_replicas: Annotated[int | None, Rule(format="int32")] = None
    unavailable_replicas: Annotated[int | None, Rule(format="int32")] = None


class MachineDeploymentDeprecatedStatus(Api):
    """Status that will go with the versions that defined it."""

    v1beta1: MachineDeploymentV1Beta1Status | None = None


class MachineDeploymentStatus(Api):
    """What was observed of a MachineDeployment."""

    openapi: ClassVar[Rule] = _NOT_EMPTY
    conditions: Conditions = ()
    observed_generation: Annotated[int | None, Rule(format="int64", minimum=1)] = None
    selector: Annotated[str, Rule(min_length=1, max_length=4096)] = ""
    replicas: Annotated[int | None, Rule(format="int32")] = None
    ready_replicas: Annotated[int | None, Rule(format="int32")] = None
    available_replicas: Annotated[int | None, Rule(format="int32")] = None
    up_to_date_replicas: Annotated[int | None, Rule(format="int32")] = None
    versions: Versions = ()
    phase: Annotated[str, Rule(enum=("ScalingUp", "ScalingDown", "Running", "Failed", "Unknown"))] = ""
    deprecated: MachineDeploymentDeprecatedStatus | None = None


class MachineDeployment(Resource, kw_only=True):
    """A MachineDeployment rolls out changes over MachineSets. Not reconciled yet."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "MachineDeployment", "machinedeployments")
    crd: ClassVar[Crd] = Crd(
        singular="machinedeployment",
        short_names=("md",),
        scale=True,
        scale_selector=".status.selector",
        columns=(
            Column("Cluster", ".spec.clusterName"),
            condition_column("Available", "Available"),
            *_COUNTERS,
            PAUSED,
            Column("Phase", ".status.phase"),
            AGE,
            Column("Version", ".spec.template.spec.version"),
        ),
    )
    spec: MachineDeploymentSpec
    status: MachineDeploymentStatus = MachineDeploymentStatus()

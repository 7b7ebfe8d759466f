"""MachineSet and MachineDeployment in v1beta1.

Upstream: api/core/v1beta1/{machineset,machinedeployment}_types.go.
"""

from datetime import datetime
from typing import Annotated, ClassVar

from capi.api.core.v1beta1.shared import (
    VERSION_NAME,
    Int32,
    MachineNaming,
    MachineTemplateSpec,
    NewCounters,
    Observed,
    OldConditions,
    Status,
)
from capi.api.core.v1beta2.shared import GROUP, LabelSelector, Versions
from capi.api.schema import AGE, ClusterName, Column, Crd, Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

_IntOrPercent = Annotated[int | str | None, Rule(int_or_string=True)]
_POLICIES = Rule(enum=("Random", "Newest", "Oldest"))
_COLUMNS = (
    Column("Cluster", ".spec.clusterName"),
    Column("Desired", ".spec.replicas", "integer", 10),
    Column("Replicas", ".status.replicas", "integer"),
    Column("Ready", ".status.readyReplicas", "integer"),
)


class MachineSetSpec(Api, kw_only=True):
    """What is wanted of a MachineSet."""

    cluster_name: ClusterName
    replicas: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    min_ready_seconds: Int32 = None
    delete_policy: Annotated[str, _POLICIES] = ""
    selector: LabelSelector
    template: MachineTemplateSpec | None = None
    machine_naming_strategy: MachineNaming | None = None


class MachineSetStatus(Status):
    """What was observed of a MachineSet."""

    selector: Annotated[str, Rule(min_length=1, max_length=4096)] = ""
    replicas: Int32 = None
    fully_labeled_replicas: Int32 = None
    ready_replicas: Int32 = None
    available_replicas: Int32 = None
    versions: Versions = ()
    v1beta2: NewCounters | None = None


class MachineSet(Resource, kw_only=True):
    """A MachineSet keeps a number of equal Machines. Not reconciled yet."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "MachineSet", "machinesets")
    crd: ClassVar[Crd] = Crd(
        singular="machineset",
        scale=True,
        scale_selector=".status.selector",
        columns=(
            *_COLUMNS,
            Column("Available", ".status.availableReplicas", "integer"),
            AGE,
            Column("Version", ".spec.template.spec.version"),
        ),
    )
    spec: MachineSetSpec
    status: MachineSetStatus = MachineSetStatus()


class RollingUpdate(Api):
    """How fast a rollout goes, and which Machines go first."""

    max_surge: _IntOrPercent = None
    max_unavailable: _IntOrPercent = None
    delete_policy: Annotated[str, _POLICIES] = ""


class Remediation(Api):
    """How unhealthy Machines are replaced."""

    max_in_flight: _IntOrPercent = None


class Strategy(Api):
    """How Machines are replaced."""

    type: Annotated[str, Rule(enum=("RollingUpdate", "OnDelete"))] = ""
    rolling_update: RollingUpdate | None = None
    remediation: Remediation | None = None


class MachineDeploymentSpec(Api, kw_only=True):
    """What is wanted of a MachineDeployment."""

    cluster_name: ClusterName
    replicas: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    rollout_after: datetime | None = None
    selector: LabelSelector
    template: MachineTemplateSpec
    strategy: Strategy | None = None
    machine_naming_strategy: MachineNaming | None = None
    min_ready_seconds: Int32 = None
    revision_history_limit: Int32 = None
    paused: bool | None = None
    progress_deadline_seconds: Int32 = None


class MachineDeploymentStatus(Api):
    """What was observed of a MachineDeployment."""

    observed_generation: Observed = None
    selector: Annotated[str, Rule(min_length=1, max_length=4096)] = ""
    replicas: Int32 = None
    updated_replicas: Int32 = None
    ready_replicas: Int32 = None
    available_replicas: Int32 = None
    unavailable_replicas: Int32 = None
    versions: Versions = ()
    phase: Annotated[str, Rule(enum=("ScalingUp", "ScalingDown", "Running", "Failed", "Unknown"))] = ""
    conditions: OldConditions = ()
    v1beta2: NewCounters | None = None


class MachineDeployment(Resource, kw_only=True):
    """A MachineDeployment rolls out changes over MachineSets. Not reconciled yet."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "MachineDeployment", "machinedeployments")
    crd: ClassVar[Crd] = Crd(
        singular="machinedeployment",
        scale=True,
        scale_selector=".status.selector",
        columns=(
            *_COLUMNS,
            Column("Updated", ".status.updatedReplicas", "integer"),
            Column("Unavailable", ".status.unavailableReplicas", "integer"),
            Column("Phase", ".status.phase"),
            AGE,
            Column("Version", ".spec.template.spec.version"),
        ),
    )
    spec: MachineDeploymentSpec
    status: MachineDeploymentStatus = MachineDeploymentStatus()

"""MachineHealthCheck in v1beta1.

Upstream: api/core/v1beta1/machinehealthcheck_types.go.
"""

from typing import Annotated, ClassVar

from capi.api.core.v1beta1.shared import VERSION_NAME, Duration, Int32, NewConditions, Observed, OldConditions
from capi.api.core.v1beta2.machinehealthcheck import RESERVED_CONDITIONS
from capi.api.core.v1beta2.machinepool import ObjectReference
from capi.api.core.v1beta2.shared import GROUP, LabelSelector
from capi.api.schema import AGE, CONDITION_TYPE, RANGE, ClusterName, Column, ConditionStatus, Crd, Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType


class UnhealthyCondition(Api):
    """A Machine is unhealthy when its Node's condition has had this status for longer than the timeout."""

    type: Annotated[str, Rule(min_length=1)]
    status: Annotated[str, Rule(min_length=1)]
    timeout: Duration


class UnhealthyMachineCondition(Api):
    """A Machine is unhealthy when its own condition has had this status for longer than the timeout."""

    type: Annotated[str, Rule(min_length=1, max_length=316, pattern=CONDITION_TYPE, cel=(RESERVED_CONDITIONS,))]
    status: ConditionStatus
    timeout: Duration


class MachineHealthCheckSpec(Api, kw_only=True):
    """Which Machines are checked, and how."""

    cluster_name: ClusterName
    selector: LabelSelector
    unhealthy_conditions: Annotated[tuple[UnhealthyCondition, ...], Rule(max_items=100)] = ()
    unhealthy_machine_conditions: Annotated[tuple[UnhealthyMachineCondition, ...], Rule(max_items=100)] = ()
    max_unhealthy: Annotated[int | str | None, Rule(int_or_string=True)] = None
    unhealthy_range: Annotated[str, Rule(min_length=1, max_length=32, pattern=RANGE)] = ""
    node_startup_timeout: Duration = ""
    remediation_template: Annotated[ObjectReference | None, Rule(atomic=True)] = None


class MachineHealthCheckStatus(Api):
    """What the checks found."""

    expected_machines: Int32 = None
    current_healthy: Int32 = None
    remediations_allowed: Int32 = None
    observed_generation: Observed = None
    targets: Annotated[tuple[Annotated[str, Rule(min_length=1, max_length=253)], ...], Rule(max_items=10000)] = ()
    conditions: OldConditions = ()
    v1beta2: NewConditions | None = None


class MachineHealthCheck(Resource, kw_only=True):
    """A MachineHealthCheck marks Machines unhealthy so that their owner replaces them."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "MachineHealthCheck", "machinehealthchecks")
    crd: ClassVar[Crd] = Crd(
        singular="machinehealthcheck",
        columns=(
            Column("Cluster", ".spec.clusterName"),
            Column("ExpectedMachines", ".status.expectedMachines", "integer"),
            Column("MaxUnhealthy", ".spec.maxUnhealthy"),
            Column("CurrentHealthy", ".status.currentHealthy", "integer"),
            AGE,
        ),
    )
    spec: MachineHealthCheckSpec
    status: MachineHealthCheckStatus = MachineHealthCheckStatus()

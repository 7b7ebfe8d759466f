"""MachineHealthCheck: when a Machine counts as unhealthy, and what is done about it.

Upstream: api/core/v1beta2/machinehealthcheck_types.go.
"""

from typing import Annotated, ClassVar

from capi.api.core.v1beta2.shared import (
    GROUP,
    VERSION_NAME,
    Conditions,
    LabelSelector,
    RemediationTemplateRef,
    V1Beta1Condition,
)
from capi.api.schema import (
    AGE,
    CONDITION_TYPE,
    PAUSED,
    RANGE,
    Cel,
    ClusterName,
    Column,
    ConditionStatus,
    Crd,
    Rule,
    Seconds,
)
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

_RESERVED = ("Ready", "Available", "HealthCheckSucceeded", "OwnerRemediated", "ExternallyRemediated")


RESERVED_CONDITIONS = Cel(
    rule=f"!(self in [{', '.join(repr(name) for name in _RESERVED)}])",
    message=f"must not be one of {', '.join(_RESERVED)}",
)
"""What a check itself or what it leads to says is no reason to call a Machine unhealthy."""


class UnhealthyNodeCondition(Api):
    """A Machine is unhealthy when its Node's condition has had this status for longer than the timeout."""

    type: Annotated[str, Rule(min_length=1)]
    status: Annotated[str, Rule(min_length=1)]
    timeout_seconds: Seconds


class UnhealthyMachineCondition(Api):
    """A Machine is unhealthy when its own condition has had this status for longer than the timeout."""

    type: Annotated[
        str,
        Rule(
            min_length=1,
            max_length=316,
            pattern=CONDITION_TYPE,
            cel=(RESERVED_CONDITIONS,),
        ),
    ]
    status: ConditionStatus
    timeout_seconds: Seconds


class MachineHealthCheckChecks(Api):
    """What makes a Machine unhealthy."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    node_startup_timeout_seconds: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    """How long a Machine may take to get a Node; 0: for ever; unset: 600."""
    unhealthy_node_conditions: Annotated[
        tuple[UnhealthyNodeCondition, ...], Rule(min_items=1, max_items=100, atomic=True)
    ] = ()
    unhealthy_machine_conditions: Annotated[
        tuple[UnhealthyMachineCondition, ...], Rule(min_items=1, max_items=100, atomic=True)
    ] = ()


class RemediationTrigger(Api):
    """How many Machines may be unhealthy before remediation stops."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    unhealthy_less_than_or_equal_to: Annotated[int | str | None, Rule(int_or_string=True)] = None
    unhealthy_in_range: Annotated[str, Rule(min_length=1, max_length=32, pattern=RANGE)] = ""
    """Like "[3-5]"; wins over the other."""


class MachineHealthCheckRemediation(Api):
    """What is done about unhealthy Machines."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    trigger_if: RemediationTrigger | None = None
    template_ref: RemediationTemplateRef | None = None


class MachineHealthCheckSpec(Api):
    """Which Machines are checked, and how."""

    cluster_name: ClusterName
    selector: LabelSelector
    checks: MachineHealthCheckChecks | None = None
    remediation: MachineHealthCheckRemediation | None = None


class MachineHealthCheckV1Beta1Status(Api):
    """What the status had in v1beta1 only."""

    conditions: tuple[V1Beta1Condition, ...] = ()


class MachineHealthCheckDeprecatedStatus(Api):
    """Status that will go with the versions that defined it."""

    v1beta1: MachineHealthCheckV1Beta1Status | None = None


class MachineHealthCheckStatus(Api):
    """What the checks found."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    conditions: Conditions = ()
    expected_machines: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    current_healthy: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    remediations_allowed: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    targets: Annotated[
        tuple[Annotated[str, Rule(min_length=1, max_length=253)], ...], Rule(max_items=10000, atomic=True)
    ] = ()
    observed_generation: Annotated[int | None, Rule(format="int64", minimum=1)] = None
    deprecated: MachineHealthCheckDeprecatedStatus | None = None


class MachineHealthCheck(Resource, kw_only=True):
    """A MachineHealthCheck marks Machines unhealthy so that their owner replaces them."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "MachineHealthCheck", "machinehealthchecks")
    crd: ClassVar[Crd] = Crd(
        singular="machinehealthcheck",
        short_names=("mhc", "mhcs"),
        columns=(
            Column("Cluster", ".spec.clusterName"),
            Column("Replicas", ".status.expectedMachines", "integer"),
            Column("Healthy", ".status.currentHealthy", "integer"),
            PAUSED,
            AGE,
        ),
    )
    spec: MachineHealthCheckSpec
    status: MachineHealthCheckStatus = MachineHealthCheckStatus()

"""Parts that the kinds of v1beta1 share.

Upstream: api/core/v1beta1/{common,machine}_types.go.
"""

from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec

from capi.api.core.v1beta2.machinepool import ObjectReference
from capi.api.core.v1beta2.shared import (
    NO_TAINTS,
    Conditions,
    MachineTaints,
    ReadinessGate,
    V1Beta1Condition,
)
from capi.api.schema import DURATION, Cel, MemberOf, ProviderID, Rule, Text256, Version
from capi.kube.objects import Api

VERSION_NAME: Final = "v1beta1"
Duration: TypeAlias = Annotated[str, Rule(pattern=DURATION)]
"""A Go duration."""
OldConditions: TypeAlias = tuple[V1Beta1Condition, ...]
_REF: Final = Rule(atomic=True)
COMPLETE: Final = Cel(
    rule="has(self.apiVersion) && self.apiVersion.contains('/') && has(self.kind) && self.kind != '' && has(self.name) && self.name != ''",
    message="apiVersion (group/version), kind and name are required",
    reason="FieldValueRequired",
)
"""Of a reference that must be there: an empty one could be stored, and then read by nobody."""
ReadinessGates: TypeAlias = Annotated[tuple[ReadinessGate, ...], Rule(max_items=32, list_keys=("conditionType",))]


class TemplateMeta(Api):
    """Labels and annotations of objects made from a template. May be empty: older Go clients always send it."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class MachineBootstrap(Api):
    """Where a Machine's bootstrap data comes from."""

    config_ref: Annotated[ObjectReference | None, _REF] = None
    data_secret_name: Annotated[str | None, Rule(min_length=0, max_length=253)] = None


class MachineSpec(Api, kw_only=True):
    """What is wanted of one Machine."""

    cluster_name: MemberOf
    bootstrap: Annotated[MachineBootstrap, Rule(required=True)] = msgspec.field(default_factory=MachineBootstrap)
    infrastructure_ref: Annotated[ObjectReference, Rule(atomic=True, cel=(COMPLETE,))]
    version: Version = ""
    provider_id: ProviderID = ""
    failure_domain: Text256 = ""
    readiness_gates: ReadinessGates = ()
    node_drain_timeout: Duration = ""
    node_volume_detach_timeout: Duration = ""
    node_deletion_timeout: Duration = ""
    taints: MachineTaints = ()


class MachineTemplateSpec(Api, kw_only=True):
    """The Machines that are made from a template."""

    openapi: ClassVar[Rule] = Rule(cel=(NO_TAINTS,))
    metadata: TemplateMeta | None = None
    spec: MachineSpec


class NewConditions(Api):
    """Status as v1beta2 has it."""

    conditions: Conditions = ()


class NewCounters(Api):
    """Status as v1beta2 has it."""

    conditions: Conditions = ()
    ready_replicas: Annotated[int | None, Rule(format="int32")] = None
    available_replicas: Annotated[int | None, Rule(format="int32")] = None
    up_to_date_replicas: Annotated[int | None, Rule(format="int32")] = None


class MachineNaming(Api):
    """How Machines are named."""

    template: Annotated[str, Rule(min_length=1, max_length=256)] = ""


IMMUTABLE_CLUSTER: Final = Cel(
    rule="self.clusterName == oldSelf.clusterName",
    message="field is immutable",
    field_path=".clusterName",
    reason="FieldValueForbidden",
)
Int32: TypeAlias = Annotated[int | None, Rule(format="int32")]
Failure: TypeAlias = Annotated[str, Rule(min_length=1, max_length=10240)]
Observed: TypeAlias = Annotated[int | None, Rule(format="int64", minimum=1)]


class Status(Api):
    """What the statuses of most kinds have."""

    openapi: ClassVar[Rule] = Rule()
    conditions: OldConditions = ()
    failure_reason: str = ""
    failure_message: Failure = ""
    observed_generation: Observed = None

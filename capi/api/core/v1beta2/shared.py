"""Types that several kinds of cluster.x-k8s.io/v1beta2 share.

Upstream: api/core/v1beta2/{common_types,condition_types,machine_types}.go.
"""

from datetime import datetime
from typing import Annotated, ClassVar, TypeAlias

import msgspec

from capi.api.core import taints
from capi.api.schema import (
    API_VERSION,
    DNS,
    KIND,
    TAINT_KEY,
    TAINT_VALUE,
    Cel,
    ConditionType,
    MemberOf,
    Name,
    ProviderID,
    Rule,
    Text256,
    Version,
)
from capi.kube.conditions import Condition
from capi.kube.objects import Api
from capi.kube.types import GroupKind

GROUP = "cluster.x-k8s.io"
VERSION_NAME = "v1beta2"

_NOT_EMPTY = Rule(min_properties=1)


class ContractRef(Api):
    """A reference without a version: the version to use is looked up in the contract labels of the kind's CRD."""

    api_group: Annotated[str, Rule(min_length=1, max_length=253, pattern=DNS)]
    kind: Annotated[str, Rule(min_length=1, max_length=63, pattern=KIND)]
    name: Name

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.api_group, self.kind)


class TemplateMeta(Api):
    """Labels and annotations of objects made from a template; nothing else of their metadata can be set."""

    openapi: ClassVar[Rule] = _NOT_EMPTY
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


Conditions: TypeAlias = Annotated[tuple[Condition, ...], Rule(max_items=32, list_keys=("type",))]


class V1Beta1Condition(Api):
    """A condition in the old form, with a severity."""

    type: Text256
    status: str
    last_transition_time: datetime | None = None
    severity: Annotated[str, Rule(max_length=32)] = ""
    """Error, Warning or Info; only of a condition that is False."""
    reason: Annotated[str, Rule(min_length=1, max_length=256)] = ""
    message: Annotated[str, Rule(min_length=1, max_length=10240)] = ""


class StatusVersion(Api):
    """A version that some of the replicas run."""

    version: Text256
    replicas: Annotated[int | None, Rule(format="int32", minimum=1)] = None


Versions: TypeAlias = Annotated[tuple[StatusVersion, ...], Rule(min_items=1, max_items=100, list_keys=("version",))]


class ReadinessGate(Api):
    """A further condition of the Machine that must hold before it counts as Ready."""

    condition_type: ConditionType
    polarity: Annotated[str, Rule(enum=("Positive", "Negative"))] = ""
    """Positive (the default): True is good; Negative: False is good."""


class AvailabilityGate(Api):
    """A further condition of the Cluster that must hold before it counts as Available."""

    condition_type: ConditionType
    polarity: Annotated[str, Rule(enum=("Positive", "Negative"))] = ""
    """Positive (the default): True is good; Negative: False is good."""


ReadinessGates: TypeAlias = Annotated[
    tuple[ReadinessGate, ...], Rule(min_items=1, max_items=32, list_keys=("conditionType",))
]


RESERVED_TAINTS = Cel(
    rule=(
        f"!(self.key in ['{taints.UNINITIALIZED}', '{taints.OUTDATED_REVISION}', 'node-role.kubernetes.io/master'])"
        " && !self.key.startsWith('node.cloudprovider.kubernetes.io/')"
        " && (!self.key.startsWith('node.kubernetes.io/') || self.key == 'node.kubernetes.io/out-of-service')"
    ),
    message="Kubernetes or Cluster API itself sets taints with this key; use another key",
    field_path=".key",
)


class MachineTaint(Api):
    """A taint that a Machine puts on its Node."""

    openapi: ClassVar[Rule] = Rule(cel=(RESERVED_TAINTS,))
    key: Annotated[str, Rule(min_length=1, max_length=317, pattern=TAINT_KEY)]
    effect: Annotated[str, Rule(enum=("NoSchedule", "PreferNoSchedule", "NoExecute"))]
    propagation: Annotated[str, Rule(enum=("Always", "OnInitialization"))]
    """Always: kept on the Node; OnInitialization: set once."""
    value: Annotated[str, Rule(min_length=1, max_length=63, pattern=TAINT_VALUE)] = ""


MachineTaints: TypeAlias = Annotated[
    tuple[MachineTaint, ...], Rule(min_items=1, max_items=64, list_keys=("key", "effect"))
]


class MachineDeletion(Api):
    """How long the steps of a Machine's deletion may take."""

    openapi: ClassVar[Rule] = _NOT_EMPTY
    node_drain_timeout_seconds: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    """0 or unset: no limit."""
    node_volume_detach_timeout_seconds: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    """0 or unset: no limit."""
    node_deletion_timeout_seconds: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    """0: try for ever; unset: 10."""


class LabelSelectorRequirement(Api):
    """metav1.LabelSelectorRequirement."""

    key: str
    operator: str
    """In, NotIn, Exists or DoesNotExist."""
    values: Annotated[tuple[str, ...], Rule(atomic=True)] = ()


class LabelSelector(Api):
    """metav1.LabelSelector: all of its requirements must hold; empty selects everything."""

    openapi: ClassVar[Rule] = Rule(atomic=True)
    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: Annotated[tuple[LabelSelectorRequirement, ...], Rule(atomic=True)] = ()


class MachineAddress(Api):
    """An address of a Machine."""

    type: Annotated[str, Rule(enum=("Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"))]
    address: Text256


MachineAddresses: TypeAlias = Annotated[tuple[MachineAddress, ...], Rule(max_items=256, atomic=True)]


class RemediationTemplateRef(Api):
    """The template of the object that asks an external system to remediate a Machine."""

    api_version: Annotated[str, Rule(min_length=1, max_length=317, pattern=API_VERSION)]
    kind: Annotated[str, Rule(min_length=1, max_length=63, pattern=KIND)]
    name: Name


class APIEndpoint(Api):
    """Where an API server is reached."""

    openapi: ClassVar[Rule] = _NOT_EMPTY
    host: Annotated[str, Rule(min_length=1, max_length=512)] = ""
    port: Annotated[int, Rule(format="int32", minimum=1, maximum=65535)] = 0

    @property
    def valid(self) -> bool:
        """Host and port are both set."""
        return bool(self.host and self.port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class FailureDomain(Api):
    """A place where Machines fail together."""

    name: Text256
    control_plane: bool | None = None
    """Suitable for control plane Machines."""
    attributes: dict[str, str] = msgspec.field(default_factory=dict)


class NetworkRanges(Api):
    """Address ranges in CIDR notation."""

    cidr_blocks: Annotated[
        tuple[Annotated[str, Rule(min_length=1, max_length=43)], ...], Rule(min_items=1, max_items=100, atomic=True)
    ]

    def __str__(self) -> str:
        return ",".join(self.cidr_blocks)


class MachineBootstrap(Api):
    """Where a Machine's bootstrap data comes from."""

    config_ref: ContractRef | None = None
    """The provider object that makes the data."""
    data_secret_name: Annotated[str | None, Rule(min_length=0, max_length=253)] = None
    """The Secret with the data; "" differs from unset: there is none, and none is waited for."""


class MachineSpec(Api, kw_only=True):
    """What is wanted of one Machine."""

    cluster_name: MemberOf
    bootstrap: Annotated[MachineBootstrap, Rule(required=True)] = msgspec.field(default_factory=MachineBootstrap)
    infrastructure_ref: ContractRef
    version: Version = ""
    """Kubernetes version, like v1.34.0."""
    provider_id: ProviderID = ""
    failure_domain: Text256 = ""
    min_ready_seconds: Annotated[int | None, Rule(format="int32", minimum=0)] = None
    """How long the Machine must be Ready before it counts as Available; unset: 0."""
    readiness_gates: ReadinessGates = ()
    deletion: MachineDeletion | None = None
    taints: MachineTaints = ()
    """Of a Machine outside a pool: put on its Node."""


NO_TAINTS = Cel(
    rule="!has(self.spec.taints)",
    message="taints of Machines made from a template are not supported; set them in the bootstrap data",
    field_path=".spec.taints",
    reason="FieldValueForbidden",
)


class MachineTemplateSpec(Api, kw_only=True):
    """The Machines that are made from a template."""

    openapi: ClassVar[Rule] = Rule(cel=(NO_TAINTS,))
    metadata: TemplateMeta | None = None
    spec: MachineSpec


CLUSTER_NAME_OF_TEMPLATE = Cel(
    rule="self.clusterName == self.template.spec.clusterName",
    message="must be equal to spec.template.spec.clusterName",
    field_path=".clusterName",
)
BOOTSTRAP_OF_TEMPLATE = Cel(
    rule="has(self.template.spec.bootstrap.configRef) || has(self.template.spec.bootstrap.dataSecretName)",
    message="one of template.spec.bootstrap.configRef and template.spec.bootstrap.dataSecretName must be set",
    field_path=".template.spec.bootstrap",
    reason="FieldValueRequired",
)
__all__ = [
    "APIEndpoint",
    "AvailabilityGate",
    "Conditions",
    "ContractRef",
    "FailureDomain",
    "GROUP",
    "LabelSelector",
    "LabelSelectorRequirement",
    "MachineAddress",
    "MachineAddresses",
    "MachineBootstrap",
    "MachineDeletion",
    "MachineSpec",
    "MachineTaint",
    "MachineTemplateSpec",
    "NetworkRanges",
    "ReadinessGate",
    "RemediationTemplateRef",
    "StatusVersion",
    "TemplateMeta",
    "V1Beta1Condition",
    "Versions",
]

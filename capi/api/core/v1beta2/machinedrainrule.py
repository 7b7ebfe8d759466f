"""MachineDrainRule: how Pods are treated when a Machine is drained.

Upstream: api/core/v1beta2/machinedrainrules_types.go.
"""

from typing import Annotated, ClassVar

from capi.api.core.v1beta2.shared import GROUP, VERSION_NAME, LabelSelector
from capi.api.schema import AGE, Cel, Column, Crd, Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

_DISTINCT = Cel(rule="self.all(x, self.exists_one(y, x == y))", message="entries must be unique")


class MachineDrainRuleDrainConfig(Api):
    """What is done with a Pod, and when."""

    openapi: ClassVar[Rule] = Rule(
        cel=(
            Cel(
                rule="!has(self.order) || self.behavior == 'Drain'",
                message="must be unset if behavior is not Drain",
                field_path=".order",
            ),
        )
    )
    behavior: Annotated[str, Rule(enum=("Drain", "Skip", "WaitCompleted"))]
    order: Annotated[int | None, Rule(format="int32")] = None
    """Pods of a lower order are drained first; unset: 0. Only with Drain."""


class MachineDrainRuleMachineSelector(Api):
    """Machines by their labels and by those of their Cluster."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    selector: LabelSelector | None = None
    cluster_selector: LabelSelector | None = None


class MachineDrainRulePodSelector(Api):
    """Pods by their labels and by those of their Namespace."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None


class MachineDrainRuleSpec(Api):
    """Which Pods on which Machines are treated how."""

    drain: MachineDrainRuleDrainConfig
    machines: Annotated[
        tuple[MachineDrainRuleMachineSelector, ...], Rule(min_items=1, max_items=32, atomic=True, cel=(_DISTINCT,))
    ] = ()
    """Unset: all Machines of the namespace."""
    pods: Annotated[
        tuple[MachineDrainRulePodSelector, ...], Rule(min_items=1, max_items=32, atomic=True, cel=(_DISTINCT,))
    ] = ()
    """Unset: all Pods."""


class MachineDrainRule(Resource, kw_only=True):
    """A MachineDrainRule says how Pods are treated when a Machine is drained."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "MachineDrainRule", "machinedrainrules")
    crd: ClassVar[Crd] = Crd(
        singular="machinedrainrule",
        status=False,
        columns=(Column("Behavior", ".spec.drain.behavior"), Column("Order", ".spec.drain.order"), AGE),
    )
    spec: MachineDrainRuleSpec

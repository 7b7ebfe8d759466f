"""MachineDrainRule in v1beta1: as in v1beta2.

Upstream: api/core/v1beta1/machinedrainrules_types.go.
"""

from typing import ClassVar

from capi.api.core.v1beta1.shared import VERSION_NAME
from capi.api.core.v1beta2 import machinedrainrule as new
from capi.api.core.v1beta2.shared import GROUP
from capi.api.schema import Crd
from capi.kube.objects import Resource
from capi.kube.types import ResourceType


class MachineDrainRule(Resource, kw_only=True):
    """A MachineDrainRule says how Pods are treated when a Machine is drained."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "MachineDrainRule", "machinedrainrules")
    crd: ClassVar[Crd] = new.MachineDrainRule.crd
    spec: new.MachineDrainRuleSpec

"""What admission does to each kind: one table of defaults and rules, for the embedded server and for webhooks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import capi.admission.core as core
import capi.admission.infra as infra
from capi.kube.errors import Cause
from capi.kube.types import GroupKind, Object

_CORE = "cluster.x-k8s.io"
_INFRA = "infrastructure.cluster.x-k8s.io"


def _unchanged(obj: Object, old: Object | None) -> Object:
    return obj


def _no_causes(obj: Object, old: Object | None) -> list[Cause]:
    return []


@dataclass(frozen=True, slots=True)
class KindRules:
    """What admission does to one kind."""

    default: Callable[[Object, Object | None], Object] = _unchanged
    validate: Callable[[Object, Object | None], Sequence[Cause]] = _no_causes
    refused: str = ""
    """Why no new object may be created, in a sentence; "" = it may."""


KINDS: dict[GroupKind, KindRules] = {
    GroupKind(_CORE, "Cluster"): KindRules(validate=core.validate_cluster),
    GroupKind(_CORE, "Machine"): KindRules(core.default_machine, core.validate_machine),
    GroupKind(_CORE, "MachinePool"): KindRules(core.default_machine_pool, core.validate_machine_pool),
    GroupKind(_CORE, "MachineHealthCheck"): KindRules(
        core.default_machine_health_check,
        core.validate_machine_health_check,
    ),
    GroupKind(_CORE, "MachineDrainRule"): KindRules(validate=core.validate_machine_drain_rule),
    GroupKind(_CORE, "MachineSet"): KindRules(
        refused="MachineSets are not reconciled by this version of capi, so none can be created; use a MachinePool"
    ),
    GroupKind(_CORE, "MachineDeployment"): KindRules(
        refused="MachineDeployments are not reconciled by this version of capi, so none can be created; use a MachinePool"
    ),
    GroupKind(_INFRA, "DevCluster"): KindRules(infra.default_dev_cluster, infra.validate_backend),
    GroupKind(_INFRA, "DevMachine"): KindRules(validate=infra.validate_backend),
    GroupKind(_INFRA, "DevMachinePool"): KindRules(validate=infra.validate_machine_pool),
}

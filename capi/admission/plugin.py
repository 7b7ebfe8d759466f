"""The admission plug-in of the embedded server: one table of defaults and rules by kind.

The same functions will answer webhook calls on other API servers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import capi.admission.core as core
import capi.admission.infra as infra
from capi.kube.errors import Cause, Forbidden
from capi.kube.types import GroupKind, Object
from capi.server.registry.interface import ResourceInfo, WriteOptions

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
    GroupKind(_CORE, "MachineDrainRule"): KindRules(
        validate=core.validate_machine_drain_rule,
        refused="MachineDrainRules are not acted on by this version of capi, so none can be created",
    ),
    GroupKind(_CORE, "MachineSet"): KindRules(
        refused="MachineSets are not reconciled by this version of capi, so none can be created; use a MachinePool"
    ),
    GroupKind(_CORE, "MachineDeployment"): KindRules(
        refused="MachineDeployments are not reconciled by this version of capi, so none can be created; use a MachinePool"
    ),
    GroupKind(_INFRA, "DevCluster"): KindRules(infra.default_dev_cluster, infra.validate_backend),
    GroupKind(_INFRA, "DevMachine"): KindRules(validate=infra.validate_backend),
    GroupKind(_INFRA, "DevMachinePool"): KindRules(validate=infra.validate_backend),
}


class ClusterApiAdmission:
    """Implements `server.registry.admission.Admission` for the kinds of this project; others pass."""

    def default(self, info: ResourceInfo, obj: Object, old: Object | None, options: WriteOptions) -> Object:
        """The object with defaults filled in. Raises Forbidden for the creation of a kind nothing acts on."""
        rules = KINDS.get(info.type.group_kind)
        if rules is None:
            return obj
        if rules.refused and old is None:
            raise _refusal(info, obj, rules.refused)
        return rules.default(obj, old)

    def validate(
        self, info: ResourceInfo, obj: Object, old: Object | None, options: WriteOptions
    ) -> tuple[Sequence[Cause], Sequence[str]]:
        """Causes to refuse the write. Objects that are being deleted pass, so that their finalizers can go."""
        rules = KINDS.get(info.type.group_kind)
        if rules is None or (obj.get("metadata") or {}).get("deletionTimestamp"):
            return (), ()
        return rules.validate(obj, old), ()


def _refusal(info: ResourceInfo, obj: Object, why: str) -> Forbidden:
    resource, name = info.type, (obj.get("metadata") or {}).get("name") or ""
    return Forbidden(
        f'{resource.qualified_plural} "{name}" is forbidden: {why}',
        name=name,
        group=resource.group,
        kind=resource.plural,
    )

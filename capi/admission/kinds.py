"""What admission does to each kind: one table of defaults and rules, for the embedded server and for webhooks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import capi.admission.core as core
import capi.admission.infra as infra
from capi.admission.rules import at
from capi.api.core import annotations
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
    constant: Callable[[Object, Object], Sequence[Cause]] = _no_causes
    """What may not change, except when a managed topology tries out what it would write."""
    refused: str = ""
    """Why no new object may be created, in a sentence; "" = it may."""

    def causes(self, obj: Object, old: Object | None, *, dry_run: bool) -> list[Cause]:
        """Why a write is refused; `old` is None for a creation."""
        tried = dry_run and annotations.TOPOLOGY_DRY_RUN in (at(obj, "metadata", "annotations") or {})
        changed = [] if old is None or tried else self.constant(obj, old)
        return [*self.validate(obj, old), *changed]


_DEV_CLUSTER = partial(infra.default_dev_cluster, path=infra.OF_TEMPLATE)
_DEV_MACHINE = partial(infra.default_backend, path=infra.OF_TEMPLATE)


def _dev_cluster_template(obj: Object, old: Object | None) -> list[Cause]:
    """Upstream: no exception for managed topologies."""
    changed = infra.constant_template(_DEV_CLUSTER)(obj, old) if old is not None else []
    return [*infra.of_template(infra.validate_dev_cluster)(obj, old), *changed]


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
    GroupKind(_INFRA, "DevCluster"): KindRules(infra.default_dev_cluster, infra.validate_dev_cluster),
    GroupKind(_INFRA, "DevClusterTemplate"): KindRules(_DEV_CLUSTER, _dev_cluster_template),
    GroupKind(_INFRA, "DevMachine"): KindRules(infra.default_backend, infra.validate_dev_machine),
    GroupKind(_INFRA, "DevMachineTemplate"): KindRules(
        _DEV_MACHINE,
        infra.of_template(infra.validate_dev_machine),
        infra.constant_template(_DEV_MACHINE),
    ),
    GroupKind(_INFRA, "DevMachinePool"): KindRules(infra.default_backend, infra.validate_dev_machine_pool),
    GroupKind(_INFRA, "DevMachinePoolTemplate"): KindRules(
        _DEV_MACHINE,
        infra.of_template(infra.validate_dev_machine_pool),
        infra.constant_template(_DEV_MACHINE),
    ),
    GroupKind(_INFRA, "DockerCluster"): KindRules(infra.default_docker_cluster, infra.validate_docker_cluster),
    GroupKind(_INFRA, "DockerMachine"): KindRules(validate=infra.validate_docker_machine),
    GroupKind(_INFRA, "DockerMachineTemplate"): KindRules(
        validate=infra.of_template(infra.validate_docker_machine),
        constant=infra.constant_template(_unchanged),
    ),
    GroupKind(_INFRA, "DockerMachinePool"): KindRules(validate=infra.validate_docker_machine_pool),
}

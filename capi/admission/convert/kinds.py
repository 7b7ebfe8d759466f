"""Which kinds have a v1beta1, and how objects go from one version to the other. Pure but for the look-up of apiVersions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

import capi.admission.convert.cluster as cluster
import capi.admission.convert.healthcheck as healthcheck
import capi.admission.convert.infra as infra
import capi.admission.convert.machine as machine
import capi.admission.convert.preserve as preserve
import capi.admission.convert.sets as sets
from capi.admission.convert.values import ApiVersions
from capi.api.core import v1beta2
from capi.api.infra import v1beta2 as infra_v1beta2
from capi.kube.errors import BadRequest
from capi.kube.objects import Resource, from_wire
from capi.kube.types import GroupKind, Object

CORE: Final = "cluster.x-k8s.io"
INFRA: Final = "infrastructure.cluster.x-k8s.io"
HUB_VERSION: Final = "v1beta2"
OLD_VERSION: Final = "v1beta1"
_MISSHAPEN: Final = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""What conversion of an object comes to that no schema has looked at yet."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """Both ways of one kind: of spec and status, the rest is the same."""

    type: type[Resource]
    """In v1beta2."""
    down: Callable[[Object, str, ApiVersions], Object]
    up: Callable[[Object], Object]
    preserves: bool = True
    """Keeps what v1beta1 cannot say in an annotation; upstream does not for MachineSets."""


def _same_down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    return {"spec": obj.get("spec") or {}}


def _same_up(obj: Object) -> Object:
    return {"spec": obj.get("spec") or {}}


_CORE: Final[dict[str, Conversion]] = {
    "Cluster": Conversion(v1beta2.Cluster, cluster.down, cluster.up),
    "Machine": Conversion(v1beta2.Machine, machine.down, machine.up),
    "MachinePool": Conversion(v1beta2.MachinePool, sets.pool_down, sets.pool_up),
    "MachineSet": Conversion(v1beta2.MachineSet, sets.set_down, sets.set_up, preserves=False),
    "MachineDeployment": Conversion(v1beta2.MachineDeployment, sets.deployment_down, sets.deployment_up),
    "MachineHealthCheck": Conversion(v1beta2.MachineHealthCheck, healthcheck.down, healthcheck.up),
    "MachineDrainRule": Conversion(v1beta2.MachineDrainRule, _same_down, _same_up, preserves=False),
}
_INFRA: Final[dict[str, Conversion]] = {
    "DevCluster": Conversion(infra_v1beta2.DevCluster, infra.cluster_down, infra.cluster_up),
    "DevClusterTemplate": Conversion(
        infra_v1beta2.DevClusterTemplate, infra.cluster_template_down, infra.cluster_template_up
    ),
    "DevMachine": Conversion(infra_v1beta2.DevMachine, infra.machine_down, infra.machine_up),
    "DevMachineTemplate": Conversion(
        infra_v1beta2.DevMachineTemplate, infra.machine_template_down, infra.machine_template_up
    ),
    "DockerCluster": Conversion(infra_v1beta2.DockerCluster, infra.cluster_down, infra.cluster_up),
    "DockerMachine": Conversion(infra_v1beta2.DockerMachine, infra.docker_machine_down, infra.machine_up),
    "DockerMachinePool": Conversion(infra_v1beta2.DockerMachinePool, infra.pool_down, infra.pool_up),
    "DockerMachineTemplate": Conversion(
        infra_v1beta2.DockerMachineTemplate, infra.machine_template_down, infra.machine_template_up
    ),
}
KINDS: Final[dict[GroupKind, Conversion]] = {
    GroupKind(group, kind): conversion
    for group, kinds in ((CORE, _CORE), (INFRA, _INFRA))
    for kind, conversion in kinds.items()
}


def converts(kind: GroupKind) -> bool:
    return kind in KINDS


def hub_of(obj: Object) -> str:
    """The apiVersion in which an object of `obj`'s group is stored."""
    return f"{_group(obj)}/{HUB_VERSION}"


def old_of(obj: Object) -> str:
    """The apiVersion for older clients of `obj`'s group."""
    return f"{_group(obj)}/{OLD_VERSION}"


def is_old(obj: Object) -> bool:
    """Whether `obj` is of a converted kind, in v1beta1."""
    return obj.get("apiVersion") == old_of(obj) and converts(GroupKind(_group(obj), str(obj.get("kind") or "")))


def _group(obj: Object) -> str:
    return str(obj.get("apiVersion") or "").rpartition("/")[0]


def convert(obj: Object, wanted: str, versions: ApiVersions) -> Object:
    """`obj` in the API version `wanted`. Raises BadRequest for kinds and versions that are not converted here, and for
    objects that are none of their kind."""
    current, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
    if current == wanted:
        return obj
    conversion = KINDS.get(GroupKind(_group(obj), kind))
    if conversion is None or {current, wanted} != {hub_of(obj), old_of(obj)}:
        raise BadRequest(f"{kind} cannot be converted from {current} to {wanted}")
    to = _down if wanted == old_of(obj) else _up
    try:
        return {"apiVersion": wanted, **to(obj, conversion, versions)}
    except _MISSHAPEN as error:
        raise BadRequest(f"{kind} {_name(obj)} cannot be converted from {current} to {wanted}: {error}") from error


def _name(obj: Object) -> str:
    metadata = obj.get("metadata")
    found: Any = metadata if isinstance(metadata, dict) else {}
    return f"{found.get('namespace') or ''}/{found.get('name') or ''}"


def _down(hub: Object, conversion: Conversion, versions: ApiVersions) -> Object:
    namespace = str((hub.get("metadata") or {}).get("namespace") or "")
    rest = {key: value for key, value in hub.items() if key not in ("apiVersion", "spec", "status")}
    old = {**rest, **conversion.down(hub, namespace, versions)}
    return preserve.with_data(old, hub, conversion.up) if conversion.preserves else old


def _up(old: Object, conversion: Conversion, versions: ApiVersions) -> Object:
    bare, held = preserve.data_of(old)
    rest = {key: value for key, value in bare.items() if key not in ("apiVersion", "spec", "status")}
    wrote = conversion.up(bare)
    namespace = str((old.get("metadata") or {}).get("namespace") or "")
    shown = _shown(held, namespace, conversion, versions) if held is not None and conversion.preserves else None
    if held is not None and shown is not None:
        before = {key: held[key] for key in ("spec", "status") if held.get(key) is not None}
        wrote = preserve.restored(wrote, shown, before)
    return {**rest, **wrote}


def _shown(held: Object, namespace: str, conversion: Conversion, versions: ApiVersions) -> Object | None:
    """What an old client saw of it, converted back. None for what is no object of the kind: anybody can write into an
    annotation, and no schema looks at what is restored from it."""
    try:
        from_wire(conversion.type, {**held, "metadata": {}})
        return conversion.up(conversion.down(held, namespace, versions))
    except (msgspec.ValidationError, *_MISSHAPEN):
        return None

"""Objects for tests of the core controllers: healthy by default, each test changes what it is about."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from capi.api.builtin import Node
from capi.api.builtin.core import AttachedVolume, NodeCondition, NodeSpec, NodeStatus, Taint
from capi.api.core import finalizers, labels
from capi.api.core.conditions import REMOTE_CONNECTION_PROBE
from capi.api.core.v1beta2 import (
    APIEndpoint,
    Cluster,
    ClusterInitialization,
    ClusterSpec,
    ClusterStatus,
    Condition,
    ContractRef,
    Machine,
    MachineBootstrap,
    MachineInitialization,
    MachineNodeRef,
    MachinePool,
    MachinePoolSpec,
    MachineSpec,
    MachineStatus,
    MachineTemplateSpec,
    NodeSystemInfo,
)
from capi.controllers import owners
from capi.controllers.core.objects import ABSENT, Found
from capi.kube import names
from capi.kube.objects import ObjectMeta, OwnerReference, Unstructured, to_wire
from capi.kube.types import Object, ResourceType

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
INFRA = "infrastructure.cluster.x-k8s.io"
NS = "default"


def resource(kind: str, version: str = "v1beta2") -> ResourceType:
    return ResourceType(INFRA, version, kind, kind.lower() + "s")


def ref(kind: str, name: str) -> ContractRef:
    return ContractRef(api_group=INFRA, kind=kind, name=name)


def provider(
    kind: str,
    name: str,
    *,
    spec: Object | None = None,
    status: Object | None = None,
    deleting: bool = False,
    **meta: Any,
) -> Unstructured:
    """A provider object in wire form; `meta` are members of ObjectMeta."""
    metadata = ObjectMeta(
        name=name,
        namespace=NS,
        uid=f"{kind}-{name}",
        resource_version="1",
        deletion_timestamp=NOW if deleting else None,
        **meta,
    )
    raw: Object = {"metadata": to_wire(metadata), "spec": spec or {}, "status": status or {}}
    return Unstructured(resource(kind), metadata, raw)


def found(obj: Unstructured | None, kind: str = "", name: str = "") -> Found:
    """What a look-up gave; without `obj` the thing of that kind and name does not exist."""
    if obj is not None:
        return Found(ref(obj.resource.kind, obj.name), obj)
    return Found(ref(kind, name)) if kind else ABSENT


def condition(type_: str, status: str, reason: str = "", message: str = "", since: datetime = LONG_AGO) -> Condition:
    return Condition(type=type_, status=status, reason=reason or type_, message=message, last_transition_time=since)


def a_cluster(
    name: str = "c",
    *,
    ready: bool = True,
    paused: bool = False,
    deleting: bool = False,
    conditions: Any = None,
    **spec: Any,
) -> Cluster:
    start = ClusterInitialization(infrastructure_provisioned=True, control_plane_initialized=True) if ready else None
    probe = (condition(REMOTE_CONNECTION_PROBE, "True"),) if ready else ()
    return Cluster(
        metadata=ObjectMeta(
            name=name,
            namespace=NS,
            uid=f"cluster-{name}",
            generation=1,
            finalizers=(finalizers.CLUSTER,),
            deletion_timestamp=NOW if deleting else None,
        ),
        spec=ClusterSpec(
            **{
                "paused": paused or None,
                "infrastructure_ref": ref("TestCluster", name),
                "control_plane_ref": ref("TestControlPlane", name),
                "control_plane_endpoint": APIEndpoint(host="10.0.0.1", port=6443),
                **spec,
            }
        ),
        status=ClusterStatus(initialization=start, conditions=probe if conditions is None else conditions),
    )


def a_pool(
    name: str = "p",
    *,
    replicas: int | None = 2,
    template: Any = None,
    status: Any = None,
    deleting: bool = False,
    **spec: Any,
) -> MachinePool:
    """`template` changes the Machine spec, `spec` the pool's; `meta` its labels, annotations and so on."""
    meta = spec.pop("meta", {})
    template_meta = spec.pop("template_meta", None)
    machine = MachineSpec(
        **{
            "cluster_name": "c",
            "bootstrap": MachineBootstrap(data_secret_name="boot"),
            "infrastructure_ref": ref("TestMachinePool", name if len(name) < 60 else "infra"),
            "version": "v1.35.0",
            **(template or {}),
        }
    )
    return MachinePool(
        metadata=ObjectMeta(
            **{
                "name": name,
                "namespace": NS,
                "uid": f"pool-{name}",
                "generation": 1,
                "finalizers": (finalizers.MACHINE_POOL,),
                "deletion_timestamp": NOW if deleting else None,
                **meta,
            }
        ),
        spec=MachinePoolSpec(
            cluster_name="c",
            replicas=replicas,
            template=MachineTemplateSpec(metadata=template_meta, spec=machine),
            **spec,
        ),
        **({"status": status} if status is not None else {}),
    )


def infra_pool(
    ids: Any = ("x://p/0", "x://p/1"),
    *,
    provisioned: bool = True,
    replicas: int | None = None,
    kind: str = "TestMachine",
    **more: Any,
) -> Unstructured:
    """An InfraMachinePool; `kind` "" for one without objects for single instances."""
    status: Object = {"initialization": {"provisioned": provisioned}}
    count = len(ids) if replicas is None else replicas
    if count >= 0:
        status["replicas"] = count
    if kind:
        status["infrastructureMachineKind"] = kind
    status |= more.pop("status", {})
    return provider("TestMachinePool", "p", spec={"providerIDList": list(ids)}, status=status, **more)


def infra_machine(
    index: int = 0, *, pool: str = "p", provisioned: bool = True, provider_id: str | None = None, **more: Any
) -> Unstructured:
    spec = {"providerID": f"x://{pool}/{index}" if provider_id is None else provider_id}
    status = {
        "initialization": {"provisioned": provisioned},
        "addresses": [{"type": "InternalIP", "address": f"10.1.0.{index}"}],
        **more.pop("status", {}),
    }
    meta = {"labels": {labels.CLUSTER_NAME: "c", labels.POOL_NAME: names.label_value(pool)}, **more.pop("meta", {})}
    return provider("TestMachine", f"{pool}-{index}", spec=spec, status=status, **meta, **more)


def pool_ref(pool: MachinePool) -> OwnerReference:
    return owners.reference(pool, controller=True)


def a_machine(
    index: int = 0,
    *,
    pool: str = "p",
    owner: Any = "pool",
    deleting: bool | datetime = False,
    conditions: Any = (),
    **more: Any,
) -> Machine:
    """A pool's Machine; `owner` None for none, or an OwnerReference. `spec`, `status` and `meta` change the rest."""
    refs = (pool_ref(a_pool(pool)),) if owner == "pool" else (owner,) if owner else ()
    stamp = (deleting if isinstance(deleting, datetime) else NOW) if deleting else None
    return Machine(
        metadata=ObjectMeta(
            **{
                "name": f"{pool}-{index}",
                "namespace": NS,
                "uid": f"machine-{pool}-{index}",
                "resource_version": "1",
                "generation": 1,
                "creation_timestamp": LONG_AGO,
                "labels": {labels.CLUSTER_NAME: "c", labels.POOL_NAME: names.label_value(pool)},
                "finalizers": (finalizers.MACHINE,),
                "owner_references": refs,
                "deletion_timestamp": stamp,
                **more.get("meta", {}),
            }
        ),
        spec=MachineSpec(
            **{
                "cluster_name": "c",
                "bootstrap": MachineBootstrap(data_secret_name=""),
                "infrastructure_ref": ref("TestMachine", f"{pool}-{index}"),
                "provider_id": f"x://{pool}/{index}",
                "version": "v1.35.0",
                **more.get("spec", {}),
            }
        ),
        status=MachineStatus(conditions=conditions, **more.get("status", {})),
    )


def running(index: int = 0, **more: Any) -> dict[str, Any]:
    """`status` of a Machine that runs on Node p-<index>."""
    return {
        "node_ref": MachineNodeRef(name=f"p-{index}"),
        "initialization": MachineInitialization(infrastructure_provisioned=True),
        **more,
    }


def node_info(version: str = "v1.35.0") -> NodeSystemInfo:
    return NodeSystemInfo(kubelet_version=version)


def a_node(
    index: int = 0,
    *,
    pool: str = "p",
    ready: str = "True",
    version: str = "v1.35.0",
    taints: Any = (),
    since: datetime = LONG_AGO,
    cordoned: bool = False,
    volumes: Any = (),
    **meta: Any,
) -> Node:
    provider_id = meta.pop("provider_id", f"x://{pool}/{index}")
    conditions = [NodeCondition(type="Ready", status=ready, reason="Kubelet", message="", last_transition_time=since)]
    conditions += [NodeCondition(type=t, status="False") for t in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    name = meta.pop("name", f"{pool}-{index}")
    return Node(
        metadata=ObjectMeta(**{"name": name, "uid": f"node-{name}", "resource_version": "7", **meta}),
        spec=NodeSpec(provider_id=provider_id, taints=taints, unschedulable=cordoned or None),
        status=NodeStatus(
            conditions=tuple(conditions),
            node_info=node_info(version),
            volumes_attached=tuple(AttachedVolume(name=volume) for volume in volumes),
        ),
    )


UNINITIALIZED = Taint(key="node.cluster.x-k8s.io/uninitialized", effect="NoSchedule")


def with_status(obj: Any, status: Any) -> Any:
    return msgspec.structs.replace(obj, status=status)

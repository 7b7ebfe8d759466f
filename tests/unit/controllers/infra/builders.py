"""Small objects for tests of the infrastructure controllers."""

from datetime import UTC, datetime, timedelta
from typing import Any

from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from capi.kube import times
from capi.kube.objects import from_wire

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
INFRA = "infrastructure.cluster.x-k8s.io"
FINALIZER = "dockermachine.infrastructure.cluster.x-k8s.io"
POOL_LABELS = {"cluster.x-k8s.io/cluster-name": "prod", "cluster.x-k8s.io/pool-name": "workers"}


def _condition(type_: str, status: str = "True", reason: str = "Provisioned") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "lastTransitionTime": times.format(NOW)}


def a_cluster(*, provisioned: bool = True, initialized: bool = True, **spec: Any) -> Cluster:
    initialization = {"infrastructureProvisioned": provisioned, "controlPlaneInitialized": initialized}
    return from_wire(
        Cluster,
        {
            "metadata": {"name": "prod", "namespace": "ns", "uid": "c"},
            "spec": spec,
            "status": {"initialization": initialization},
        },
    )


def a_machine_pool(
    replicas: int | None = 3, *, secret: str | None = "", version: str = "v1.35.4", **more: Any
) -> MachinePool:
    bootstrap = {} if secret is None else {"dataSecretName": secret}
    template = {
        "clusterName": "prod",
        "version": version,
        "bootstrap": bootstrap,
        "infrastructureRef": {"apiGroup": INFRA, "kind": "DevMachinePool", "name": "prod-workers"},
    }
    spec = {"clusterName": "prod", "replicas": replicas, "template": {"spec": {**template, **more.pop("template", {})}}}
    metadata = {"name": "workers", "namespace": "ns", "uid": "mp", "annotations": more.pop("annotations", {})}
    return from_wire(MachinePool, {"metadata": metadata, "spec": {**spec, **more}})


def a_pool(*, deleting: bool = False, status: dict[str, Any] | None = None, **spec: Any) -> DevMachinePool:
    metadata = {
        "name": "prod-workers",
        "namespace": "ns",
        "uid": "p",
        "generation": 1,
        "ownerReferences": [
            {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "name": "workers", "uid": "mp"}
        ],
        **({"deletionTimestamp": times.format(NOW)} if deleting else {}),
    }
    spec = {"backend": {"inMemory": {}}, **spec}
    return from_wire(DevMachinePool, {"metadata": metadata, "spec": spec, "status": status or {}})


def an_infra(
    name: str,
    *,
    deleting: bool = False,
    vm: dict[str, str] | None = None,
    ready: bool = True,
    age: timedelta = timedelta(minutes=5),
    annotations: dict[str, str] | None = None,
    **metadata: Any,
) -> DevMachine:
    """A pool's DevMachine as the pool made it, running by default."""
    base = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{name}",
        "labels": POOL_LABELS,
        "annotations": annotations or {},
        "finalizers": [FINALIZER],
        "creationTimestamp": times.format(NOW - age),
        "ownerReferences": [
            {"apiVersion": f"{INFRA}/v1beta2", "kind": "DevMachinePool", "name": "prod-workers", "uid": "p"}
        ],
        **({"deletionTimestamp": times.format(NOW)} if deleting else {}),
        **metadata,
    }
    conditions = [vm or _condition("VMProvisioned"), *([_condition("Ready", reason="Ready")] if ready else [])]
    status = {"conditions": conditions, "initialization": {"provisioned": True}}
    spec = {"providerID": f"in-memory:///ns/prod/{name}", "backend": {"inMemory": {}}}
    return from_wire(DevMachine, {"metadata": base, "spec": spec, "status": status})


def lost(name: str, **more: Any) -> DevMachine:
    return an_infra(name, ready=False, vm=_condition("VMProvisioned", "False", "InstanceGone"), **more)


def a_machine(name: str, *, deleting: bool = False, ready: bool = True, marked: bool = False, **spec: Any) -> Machine:
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": f"m-{name}",
        "labels": POOL_LABELS,
        "annotations": {"cluster.x-k8s.io/delete-machine": ""} if marked else {},
        **({"deletionTimestamp": times.format(NOW)} if deleting else {}),
    }
    body = {
        "clusterName": "prod",
        "bootstrap": {"dataSecretName": ""},
        "infrastructureRef": {"apiGroup": INFRA, "kind": "DevMachine", "name": name},
        **spec,
    }
    conditions = [_condition("Ready", "True" if ready else "False", "Ready")]
    return from_wire(Machine, {"metadata": metadata, "spec": body, "status": {"conditions": conditions}})


def a_dev_cluster(
    name: str = "prod", *, port: int = 0, host: str = "", backend: dict[str, Any] | None = None, **metadata: Any
) -> DevCluster:
    endpoint = {key: value for key, value in (("host", host), ("port", port)) if value}
    spec = {
        "backend": {"inMemory": {}} if backend is None else backend,
        **({"controlPlaneEndpoint": endpoint} if endpoint else {}),
    }
    return from_wire(
        DevCluster, {"metadata": {"name": name, "namespace": "ns", "uid": f"dc-{name}", **metadata}, "spec": spec}
    )

"""What users write: a cluster and pools of simulated machines."""

from typing import Any

from capi.kube.types import Object

INFRA = "infrastructure.cluster.x-k8s.io"
CORE = "cluster.x-k8s.io"


def cluster(name: str = "quickstart", namespace: str = "default") -> list[Object]:
    meta = {"name": name, "namespace": namespace}
    return [
        {
            "apiVersion": f"{CORE}/v1beta2",
            "kind": "Cluster",
            "metadata": meta,
            "spec": {
                "infrastructureRef": {"apiGroup": INFRA, "kind": "DevCluster", "name": name},
                "controlPlaneRef": {"apiGroup": f"controlplane.{CORE}", "kind": "DevControlPlane", "name": name},
            },
        },
        {
            "apiVersion": f"{INFRA}/v1beta2",
            "kind": "DevCluster",
            "metadata": meta,
            "spec": {"backend": {"inMemory": {}}},
        },
        {
            "apiVersion": f"controlplane.{CORE}/v1beta2",
            "kind": "DevControlPlane",
            "metadata": meta,
            "spec": {"version": "v1.35.4"},
        },
    ]


def pool(
    name: str = "workers",
    *,
    cluster: str = "quickstart",
    namespace: str = "default",
    replicas: int | None = 3,
    vm: str = "1s",
    node: str = "500ms",
    annotations: dict[str, str] | None = None,
    template: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
) -> list[Object]:
    meta = {"name": name, "namespace": namespace}
    spec = {
        "clusterName": cluster,
        "version": "v1.35.4",
        "bootstrap": {"dataSecretName": ""},
        "infrastructureRef": {"apiGroup": INFRA, "kind": "DevMachinePool", "name": name},
        **(template or {}),
    }
    return [
        {
            "apiVersion": f"{CORE}/v1beta2",
            "kind": "MachinePool",
            "metadata": {**meta, **({"annotations": annotations} if annotations else {})},
            "spec": {
                "clusterName": cluster,
                **({} if replicas is None else {"replicas": replicas}),
                "template": {**({"metadata": {"labels": labels}} if labels else {}), "spec": spec},
            },
        },
        {
            "apiVersion": f"{INFRA}/v1beta2",
            "kind": "DevMachinePool",
            "metadata": meta,
            "spec": {
                "backend": {
                    "inMemory": {
                        "vm": {"provisioning": {"startupDuration": vm, "startupJitter": "0.2"}},
                        "node": {"provisioning": {"startupDuration": node, "startupJitter": "0.2"}},
                    }
                }
            },
        },
    ]


def machine(name: str, *, cluster: str = "quickstart", namespace: str = "default", **spec: Any) -> list[Object]:
    """A Machine outside any pool, and its simulated instance."""
    meta = {"name": name, "namespace": namespace}
    return [
        {
            "apiVersion": f"{CORE}/v1beta2",
            "kind": "Machine",
            "metadata": meta,
            "spec": {
                "clusterName": cluster,
                "version": "v1.35.4",
                "bootstrap": {"dataSecretName": ""},
                "infrastructureRef": {"apiGroup": INFRA, "kind": "DevMachine", "name": name},
                **spec,
            },
        },
        {
            "apiVersion": f"{INFRA}/v1beta2",
            "kind": "DevMachine",
            "metadata": meta,
            "spec": {"backend": {"inMemory": {}}},
        },
    ]

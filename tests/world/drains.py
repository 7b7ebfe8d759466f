"""Pods, budgets and volumes of a workload cluster, for stories about drains. Pods take their time to end: `end` lets them."""

import re
from collections import Counter
from typing import Any

from capi.api.builtin import Node, Pod
from capi.client.client import Client
from capi.kube.conditions import Condition, get
from capi.kube.types import Object, ResourceType
from tests.world.rig import World

BUDGETS = ResourceType("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
DAEMON_SETS = ResourceType("apps", "v1", "DaemonSet", "daemonsets")
SLOW = "example.com/takes-its-time"
VOLUMES = ResourceType("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
ATTACHMENTS = ResourceType("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False)


def a_pod(name: str, node: str, *, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """A Pod that a scheduler has put on a Node; `meta` are members of its metadata."""
    meta = {"name": name, "namespace": "default", "labels": labels or {}, "finalizers": [SLOW], **spec.pop("meta", {})}
    return {"metadata": meta, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "app:1"}], **spec}}


async def run(w: World, *pods: Object) -> None:
    """Create Pods, and let them run."""
    for pod in pods:
        await w.workload().create(Pod.resource, pod)
    await w.settle()
    assert {pod.status.phase for pod in await w.workload().list(Pod)} == {"Running"}


async def budget(workload: Client, least: int, name: str = "guard") -> None:
    """At least so many Pods with label app=guarded must be healthy; again: another number."""
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": "guarded"}}}
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
    await workload.apply(BUDGETS, body, manager="test")


async def end(workload: Client) -> list[str]:
    """Pods that are being deleted have ended what they had to. Their names."""
    ended = [pod for pod in await workload.list(Pod) if pod.deleting and pod.metadata.finalizers]
    for pod in ended:
        await workload.patch(Pod.resource, pod.name, pod.namespace, {"metadata": {"finalizers": None}})
    return sorted(pod.name for pod in ended)


async def requests(workload: Client) -> Counter[str]:
    """Requests so far by `VERB resource`, as the workload API server counted them."""
    counts: Counter[str] = Counter()
    for line in (await workload.send("GET", "/metrics")).decode().splitlines():
        if line.startswith("apiserver_request_total{"):
            said = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if said["resource"]:
                counts[f"{said['verb']} {said['resource']}"] += int(float(line.rpartition(" ")[2]))
    return counts


async def pods(workload: Client) -> dict[str, bool]:
    """Whether each Pod is being deleted."""
    return {pod.name: pod.deleting for pod in await workload.list(Pod)}


async def attach(workload: Client, node: str, volume: str = "disk", claim: str = "data") -> None:
    """A volume is attached to a Node."""
    spec: Object = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "csi.example.com", "volumeHandle": volume},
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claim},
    }
    await workload.create(VOLUMES, {"metadata": {"name": volume}, "spec": spec})
    source = {"persistentVolumeName": volume}
    body: Object = {"attacher": "csi.example.com", "nodeName": node, "source": source}
    await workload.create(ATTACHMENTS, {"metadata": {"name": f"att-{volume}"}, "spec": body})
    await workload.patch(ATTACHMENTS, f"att-{volume}", "", {"status": {"attached": True}}, subresource="status")


async def deleting(w: World, machine: str) -> Condition:
    """The Deleting condition of a Machine."""
    found = get((await w.machines())[machine].status.conditions, "Deleting")
    assert found is not None
    return found


async def node(w: World, name: str) -> Node:
    return await w.workload().get(Node, name)

"""Pods, budgets and volumes of a workload cluster, for stories about drains. Nobody runs Pods there: tests end them."""

import re
from collections import Counter
from typing import Any

from capi.api.builtin import Node, Pod
from capi.client.client import Client
from capi.kube.conditions import Condition, get
from capi.kube.errors import NotFound
from capi.kube.types import Object, ResourceType
from tests.world.rig import World

BUDGETS = ResourceType("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
DAEMON_SETS = ResourceType("apps", "v1", "DaemonSet", "daemonsets")
VOLUMES = ResourceType("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
ATTACHMENTS = ResourceType("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False)


def a_pod(name: str, node: str, *, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """A Pod that a scheduler has put on a Node; `meta` are members of its metadata."""
    meta = spec.pop("meta", {})
    body: Object = {"nodeName": node, "containers": [{"name": "c", "image": "app:1"}], **spec}
    return {"metadata": {"name": name, "namespace": "default", "labels": labels or {}, **meta}, "spec": body}


async def run(workload: Client, *pods: Object) -> None:
    """Create Pods, and let them run."""
    for pod in pods:
        await workload.create(Pod.resource, pod)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        metadata = pod["metadata"]
        await workload.patch(
            Pod.resource, metadata["name"], metadata["namespace"], {"status": ready}, subresource="status"
        )


async def budget(workload: Client, allowed: int, *, healthy: int = 1, name: str = "guard") -> None:
    """Protect the Pods with label app=guarded; again: allow more or fewer disruptions."""
    spec = {"minAvailable": healthy, "selector": {"matchLabels": {"app": "guarded"}}}
    try:
        made = await workload.get(BUDGETS, name, "default")
    except NotFound:
        made = await workload.create(BUDGETS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    status = {
        "observedGeneration": made["metadata"]["generation"],
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": healthy,
        "expectedPods": healthy,
    }
    await workload.patch(BUDGETS, name, "default", {"status": status}, subresource="status")


async def end(workload: Client) -> list[str]:
    """As a kubelet: Pods that are being deleted are gone. Their names."""
    ended = [pod for pod in await workload.list(Pod) if pod.deleting]
    for pod in ended:
        options = b'{"gracePeriodSeconds":0}'
        await workload.send("DELETE", Pod.resource.path(pod.namespace, pod.name), (), options)
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


async def deleting(w: World, machine: str) -> Condition:
    """The Deleting condition of a Machine."""
    found = get((await w.machines())[machine].status.conditions, "Deleting")
    assert found is not None
    return found


async def node(w: World, name: str) -> Node:
    return await w.workload().get(Node, name)

"""What a simulated machine looks like in its cluster: its Node and its addresses. Pure.

A Node is created complete, status included, as a kubelet registers itself.
"""

import hashlib
import uuid
from datetime import datetime
from typing import Literal

from capi.backends.inmemory import controlplane
from capi.backends.port import Address, InstanceSpec, MachineShape
from capi.kube import times
from capi.kube.types import Object, ResourceType

NODES = ResourceType("", "v1", "Node", "nodes", namespaced=False)
CAPACITY = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
"""Of every simulated machine; all of it is allocatable."""

SHAPE = MachineShape(CAPACITY, architecture="amd64", operating_system="linux")

Readiness = Literal["True", "False", "Unknown"]
SIMULATED = "SimulatedFailure"
"""Reason of conditions that fault injection has set; what somebody else has set is left alone."""

_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def addresses(spec: InstanceSpec) -> tuple[Address, ...]:
    """Host name, which resolves inside the cluster, and an address in 10.0.0.0/8 that the uid determines."""
    digest = hashlib.sha256(spec.uid.encode()).digest()
    ip = f"10.{digest[0]}.{digest[1]}.{1 + digest[2] % 254}"
    return (Address("Hostname", spec.name), Address("InternalIP", ip), Address("InternalDNS", spec.name))


def node(spec: InstanceSpec, now: datetime) -> Object:
    """The Node of a running machine."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
    }
    if spec.failure_domain:
        labels["topology.kubernetes.io/zone"] = spec.failure_domain
    taints: Object = {}
    if spec.simulation.control_plane is not None:
        labels[controlplane.ROLE] = ""
        taints = {"taints": [{"key": controlplane.ROLE, "effect": "NoSchedule"}]}
    return {
        "metadata": {"name": spec.name, "labels": labels},
        "spec": {"providerID": spec.id, **taints},
        "status": {
            "capacity": CAPACITY,
            "allocatable": CAPACITY,
            "conditions": conditions(spec.simulation.ready, now),
            "addresses": [{"type": a.type, "address": a.address} for a in addresses(spec)],
            "nodeInfo": _info(spec),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    }


def unreachable(now: datetime) -> Object:
    """Status patch of the Node of a machine that has vanished: what a node controller writes when heartbeats stop."""
    return {
        "status": {
            "conditions": [
                _condition(type_, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", now)
                for type_, *_ in _HEALTHY
            ]
        }
    }


def conditions(ready: Readiness, now: datetime) -> list[Object]:
    """All conditions of a Node whose Ready is `ready`; that of one whose kubelet is silent, are all Unknown."""
    if ready == "Unknown":
        silent = "Fault injection: the kubelet stopped posting node status"
        return [_condition(type_, "Unknown", SIMULATED, silent, now) for type_, *_ in _HEALTHY]
    found = [_condition(*condition, now) for condition in _HEALTHY]
    if ready == "False":
        found[-1] = _condition("Ready", "False", SIMULATED, "Fault injection: the Node is not ready", now)
    return found


def injected(node: Object) -> Readiness:
    """What fault injection has made of the Node; True if it has not touched it."""
    ready = next((c for c in node.get("status", {}).get("conditions", ()) if c.get("type") == "Ready"), None)
    if ready is None or ready.get("reason") != SIMULATED:
        return "True"
    return "Unknown" if ready.get("status") == "Unknown" else "False"


def is_unreachable(node: Object) -> bool:
    """Its Ready condition is Unknown."""
    conditions = node.get("status", {}).get("conditions", ())
    return any(c.get("type") == "Ready" and c.get("status") == "Unknown" for c in conditions)


def _condition(type_: str, status: str, reason: str, message: str, now: datetime) -> Object:
    stamp = times.format(now)
    return {
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": stamp, "lastTransitionTime": stamp,
    }  # fmt: skip


def _info(spec: InstanceSpec) -> Object:
    identity = uuid.uuid5(uuid.NAMESPACE_URL, f"{spec.id}/{spec.uid}")
    return {
        "machineID": identity.hex,
        "systemUUID": str(identity),
        "bootID": str(uuid.uuid5(identity, "boot")),
        "kernelVersion": "6.12.0-simulated",
        "osImage": "capi in-memory machine",
        "containerRuntimeVersion": "containerd://2.1.0",
        "kubeletVersion": spec.version,
        "kubeProxyVersion": spec.version,
        "operatingSystem": SHAPE.operating_system,
        "architecture": SHAPE.architecture,
    }

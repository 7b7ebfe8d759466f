"""Pods, rules and a Machine whose Node is drained, for tests of drains."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from capi.api.builtin import Pod
from capi.api.builtin.core import ClaimVolume, PodSpec, PodStatus, Volume
from capi.api.core.v1beta2 import MachineDrainRule
from capi.controllers.core.machine.drain.view import DrainView, VolumeView
from capi.controllers.core.machine.scope import Scope
from capi.kube.objects import ObjectMeta, OwnerReference, from_wire
from tests.unit.controllers.builders import (
    NOW,
    NS,
    a_cluster,
    a_machine,
    a_node,
    a_pool,
    found,
    infra_machine,
    provider,
    running,
)

HOSTED = provider("TestControlPlane", "c", status={"externalManagedControlPlane": True})


def a_pod(
    name: str,
    *,
    phase: str = "Running",
    ends: datetime | None = None,
    grace: int = 30,
    owner: tuple[str, str] = ("ReplicaSet", "rs"),
    claims: tuple[str, ...] = (),
    namespace: str = "apps",
    **meta: Any,
) -> Pod:
    """`ends` is its deletionTimestamp; `owner` the kind and uid of its controller."""
    kind, uid = owner
    ref = OwnerReference(api_version="apps/v1", kind=kind, name=uid, uid=uid, controller=True)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"pod-{name}",
            deletion_timestamp=ends,
            deletion_grace_period_seconds=grace if ends else None,
            owner_references=(ref,) if kind else (),
            **meta,
        ),
        spec=PodSpec(
            node_name="p-0",
            volumes=tuple(Volume(name=c, persistent_volume_claim=ClaimVolume(claim_name=c)) for c in claims),
        ),
        status=PodStatus(phase=phase),
    )


def a_rule(name: str, behavior: str = "Drain", order: int | None = None, **spec: Any) -> MachineDrainRule:
    """`machines` and `pods` in wire form."""
    drain = {"behavior": behavior} if order is None else {"behavior": behavior, "order": order}
    raw = {"metadata": {"name": name, "namespace": NS}, "spec": {"drain": drain, **spec}}
    return from_wire(MachineDrainRule, raw)


def picks(**labels: str) -> dict[str, Any]:
    """A selector of labels in wire form."""
    return {"matchLabels": labels}


def doomed(**more: Any) -> Any:
    return a_machine(**{"deleting": NOW, "status": running(), **more})


def a_scope(*pods: Pod, **changes: Any) -> Scope:
    """A running Machine that is being deleted; its Node is cordoned and has these Pods."""
    seen: dict[str, Any] = {
        "machine": doomed(),
        "cluster": a_cluster(),
        "pool": a_pool(),
        "infra": found(infra_machine()),
        "control_plane": found(HOSTED),
        "connected": True,
        "nodes": (a_node(cordoned=True),),
        "drain": DrainView(pods=pods),
        "volumes": VolumeView(),
    }
    return Scope(**{**seen, **changes})


def with_view(seen: Scope, **changes: Any) -> Scope:
    assert seen.drain is not None
    return replace(seen, drain=replace(seen.drain, **changes))


def ago(**passed: float) -> datetime:
    return NOW - timedelta(**passed)

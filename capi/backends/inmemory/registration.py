"""Nodes in the workload API: how simulated machines write them. Every function raises ApiError and TransportError."""

from contextlib import suppress
from datetime import datetime

from capi.backends.inmemory import controlplane, members, nodes
from capi.backends.port import InstanceSpec
from capi.client.client import Client
from capi.kube.errors import AlreadyExists, NotFound
from capi.kube.types import Object


async def register(client: Client, spec: InstanceSpec, now: datetime, *, known: bool) -> Object:
    """The Node, created unless this machine has one (`known`: it probably has). A namesake of another machine is replaced."""
    if not known:
        with suppress(AlreadyExists):
            return await client.create(nodes.NODES, nodes.node(spec, now), manager="kubelet")
    try:
        found = await client.get(nodes.NODES, spec.name)
        if found.get("spec", {}).get("providerID") == spec.id:
            return found
        await client.delete(nodes.NODES, spec.name, uid=found["metadata"]["uid"])
    except NotFound:
        pass
    return await client.create(nodes.NODES, nodes.node(spec, now), manager="kubelet")


async def inject(client: Client, node: Object, spec: InstanceSpec, now: datetime) -> None:
    """Make the Node's conditions those that are asked for; what others have made of them is left alone unless they are."""
    wanted = spec.simulation.ready
    if nodes.injected(node) == wanted:
        return
    body: Object = {"status": {"conditions": nodes.conditions(wanted, now)}}
    await client.patch(nodes.NODES, spec.name, "", body, type_="strategic", subresource="status", manager="kubelet")


async def remove(id_: str, name: str, now: datetime, client: Client) -> None:
    """The Node of a machine that has gone, with the Pods of a control plane machine that this process never saw."""
    with suppress(NotFound):
        found = await client.get(nodes.NODES, name)
        if found.get("spec", {}).get("providerID") == id_:
            if controlplane.ROLE in found["metadata"].get("labels", {}):
                await members.remove(client, name, now)
            await client.delete(nodes.NODES, name, uid=found["metadata"]["uid"])


async def mark_unreachable(client: Client, spec: InstanceSpec, now: datetime) -> None:
    """What a node controller makes of the Node of a machine that has vanished. Raises NotFound."""
    found = await client.get(nodes.NODES, spec.name)
    if found.get("spec", {}).get("providerID") != spec.id or nodes.is_unreachable(found):
        return
    body = nodes.unreachable(now)
    await client.patch(nodes.NODES, spec.name, "", body, type_="strategic", subresource="status", manager="kubelet")

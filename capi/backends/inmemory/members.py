"""Control plane machines at work: their Pods come and go in the workload API, behind its gate if need be.

The first machine whose API server has started opens the gate, the last one that goes shuts it; what the cluster holds stays
until the cluster itself goes.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from capi.backends.inmemory import controlplane, pods, timing
from capi.backends.port import ControlPlaneProgress, ControlPlaneSpec, InstanceSpec
from capi.client.client import Client
from capi.kube import times
from capi.kube.errors import AlreadyExists, NotFound
from capi.kube.types import Object

_NOW = b'{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}'


@dataclass(slots=True)
class Member:
    """What this process has made of one control plane machine."""

    joined: datetime
    """When its Node came, as far as this process saw it."""
    etcd: bool = False
    api_server: bool = False

    @property
    def progress(self) -> ControlPlaneProgress:
        return ControlPlaneProgress(etcd=self.etcd, api_server=self.api_server)


async def advance(
    client: Client, made: Member, spec: InstanceSpec, asked: ControlPlaneSpec, now: datetime
) -> datetime | None:
    """Make what is due, and say when to go on; None: all is there. Idempotent."""
    since = timing.precise(asked.node_since, made.joined) if asked.node_since else made.joined
    etcd = since + timing.duration(asked.etcd, spec.uid, "etcd")
    api_server = since + timing.duration(asked.api_server, spec.uid, "apiServer")
    if not made.etcd and now >= etcd:
        await _start_etcd(client, spec, now)
        made.etcd = True
    if not made.api_server and now >= api_server:
        await _start_api_server(client, spec, now)
        made.api_server = True
    waits = [when for done, when in ((made.etcd, etcd), (made.api_server, api_server)) if not done]
    return min(waits, default=None)


async def remove(client: Client, machine: str, now: datetime) -> None:
    """The Pods of a machine that goes; another etcd member leads if it did."""
    leaving = controlplane.pod_name(controlplane.ETCD, machine)
    heir = controlplane.successor(await _etcd(client), leaving)
    if heir is not None:
        body = {"metadata": {"annotations": {controlplane.LEADER_FROM: times.format_micro(now)}}}
        with suppress(NotFound):
            await client.patch(controlplane.PODS, heir["metadata"]["name"], controlplane.NAMESPACE, body)
    for component in (controlplane.ETCD, *controlplane.COMPONENTS):
        path = controlplane.PODS.path(controlplane.NAMESPACE, controlplane.pod_name(component, machine))
        with suppress(NotFound):
            await client.send("DELETE", path, (), _NOW)


async def _start_etcd(client: Client, spec: InstanceSpec, now: datetime) -> None:
    name = controlplane.pod_name(controlplane.ETCD, spec.name)
    others = [pod for pod in await _etcd(client) if pod["metadata"]["name"] != name]
    notes = controlplane.member(spec, others, now)
    await _create(client, controlplane.static_pod(controlplane.ETCD, spec, notes), now)


async def _start_api_server(client: Client, spec: InstanceSpec, now: datetime) -> None:
    static = [controlplane.static_pod(component, spec) for component in controlplane.COMPONENTS]
    await asyncio.gather(*(_create(client, pod, now) for pod in static))
    for resource, body in controlplane.kubeadm(spec.version):
        with suppress(AlreadyExists):
            await client.create(resource, body, manager="kubeadm")


async def _create(client: Client, pod: Object, now: datetime) -> None:
    """A Pod that runs and is ready from the start: nobody else may see to it yet."""
    with suppress(AlreadyExists):
        await client.create(controlplane.PODS, pod, manager="kubelet")
    name, status = pod["metadata"]["name"], pods.running(now)
    await client.patch(controlplane.PODS, name, controlplane.NAMESPACE, status, subresource="status", manager="kubelet")


async def _etcd(client: Client) -> list[Object]:
    selector = controlplane.selector(controlplane.ETCD)
    return list(await client.list(controlplane.PODS, controlplane.NAMESPACE, labels=selector))

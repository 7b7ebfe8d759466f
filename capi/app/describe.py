"""Reads what `capi describe cluster` shows, once or again at every change."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from capi.api.core import labels
from capi.api.core.contracts import CONTRACTS, plural, version_rank
from capi.api.core.v1beta2 import Cluster, Machine, MachineDeployment, MachinePool
from capi.app.tree import Node, Options, Ref, Seen, build, wanted
from capi.client.client import Client
from capi.kube.errors import ApiError, NotFound, TransportError
from capi.kube.objects import Resource
from capi.kube.types import GroupKind, Object, ResourceType
from capi.runtime.externals import CrdMetadata

__all__ = ["Node", "Options", "cluster", "follow"]

SINGLE_READS = 8
"""From so many objects of a kind on they are read with one list."""
REFRESH = 5.0
"""Seconds after which a followed tree is read again without a change: ages grow."""
QUIET = 0.5
"""Seconds between two reads of a followed tree, at least."""


async def cluster(client: Client, name: str, namespace: str, options: Options | None = None) -> Node:
    """The tree of a Cluster. Raises NotFound."""
    options = options or Options()
    try:
        root = await client.get(Cluster.resource, name, namespace)
    except NotFound:
        raise NotFound(f'Cluster "{name}" not found in namespace "{namespace}"; -n names another one') from None
    machines, pools, deployments = [
        await _members(client, kind, name, namespace) for kind in (Machine, MachinePool, MachineDeployment)
    ]
    seen = Seen(root, machines, pools, deployments)
    others = await _objects(client, wanted(seen, options), name, namespace)
    return build(Seen(root, machines, pools, deployments, others), options)


async def _members(client: Client, kind: type[Resource], cluster: str, namespace: str) -> Sequence[Object]:
    resource = kind.resource
    try:
        found = await client.list(resource, namespace, labels=f"{labels.CLUSTER_NAME}={cluster}")
    except NotFound:
        return []  # this API server does not know the kind
    return [{"apiVersion": resource.api_version, "kind": resource.kind, **obj} for obj in found]


async def _objects(client: Client, refs: Sequence[Ref], cluster: str, namespace: str) -> dict[Ref, Object]:
    """Provider objects that can be found; kinds without a contract are left out."""
    by_kind: dict[GroupKind, list[Ref]] = {}
    for ref in refs:
        by_kind.setdefault(ref.group_kind, []).append(ref)
    found: dict[Ref, Object] = {}
    for kind, named in by_kind.items():
        resource = await _resource(client, kind)
        if resource is None:
            continue
        for obj in await _read(client, resource, named, cluster, namespace):
            found[Ref(kind.group, kind.kind, obj["metadata"]["name"])] = {**obj, "kind": kind.kind}
    return found


async def _read(
    client: Client, resource: ResourceType, refs: Sequence[Ref], cluster: str, namespace: str
) -> Sequence[Object]:
    if len(refs) >= SINGLE_READS:
        return await client.list(resource, namespace, labels=f"{labels.CLUSTER_NAME}={cluster}")
    objects = []
    for ref in refs:
        with suppress(NotFound):  # not there yet, or gone
            objects.append(await client.get(resource, ref.name, namespace))
    return objects


async def _resource(client: Client, kind: GroupKind) -> ResourceType | None:
    """The version of a provider kind to read, from the contract labels of its CRD."""
    name = plural(kind.kind)
    try:
        crd = await client.get(CrdMetadata, f"{name}.{kind.group}")
    except NotFound:
        return None
    for contract in CONTRACTS:
        if versions := crd.metadata.labels.get(f"{labels.CONTRACT_PREFIX}{contract}", ""):
            return ResourceType(kind.group, max(versions.split("_"), key=version_rank), kind.kind, name)
    return None


async def follow(client: Client, name: str, namespace: str, options: Options | None = None) -> AsyncIterator[Node]:
    """The tree now, and again at every change. Raises NotFound once the Cluster is gone."""
    changed = asyncio.Event()
    watches = [
        asyncio.ensure_future(_watch(client, kind, namespace, changed)) for kind in (Cluster, MachinePool, Machine)
    ]
    try:
        while True:
            changed.clear()
            yield await cluster(client, name, namespace, options)
            await asyncio.sleep(QUIET)
            with suppress(TimeoutError):  # ages grow without a change
                async with asyncio.timeout(REFRESH):
                    await changed.wait()
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _watch(client: Client, kind: type[Resource], namespace: str, changed: asyncio.Event) -> None:
    while True:
        with suppress(ApiError, TransportError):  # the next read sees what this watch has missed
            async with client.watch(kind.resource, namespace) as events:
                async for _ in events:
                    changed.set()
        await asyncio.sleep(QUIET)

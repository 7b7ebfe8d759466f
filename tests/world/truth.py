"""What must be true of a settled world, and of one from which everything was deleted."""

from capi.api.builtin import Node, Secret
from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevCluster, DevMachine, DevMachinePool
from capi.kube import conditions
from capi.kube.objects import Resource
from capi.runtime.plan import ClusterKey
from tests.world.rig import World

KINDS: tuple[type[Resource], ...] = (
    Cluster, MachinePool, Machine, DevCluster, DevMachine, DevMachinePool, DevControlPlane,
)  # fmt: skip


async def check(w: World) -> None:
    """Raises AssertionError."""
    everything: dict[str, Resource] = {}
    for kind in KINDS:
        for obj in await w.client.list(kind):
            assert not obj.deleting, f"{kind.__name__} {obj.key} is still being deleted: {_why(obj)}"
            everything[obj.metadata.uid] = obj
    clusters = [obj for obj in everything.values() if isinstance(obj, Cluster)]
    pools = [obj for obj in everything.values() if isinstance(obj, MachinePool)]
    for cluster in clusters:
        await _cluster(w, cluster, [pool for pool in pools if pool.namespace == cluster.namespace])
    await _no_orphans(w, everything, pools)


async def _cluster(w: World, cluster: Cluster, pools: list[MachinePool]) -> None:
    assert conditions.is_true(cluster.status.conditions, "Available"), _why(cluster)
    assert cluster.status.phase == "Provisioned"
    nodes: dict[str, str] = {}
    for pool in pools:
        nodes |= await _pool(w, pool)
    client = w.infra.workloads.client(ClusterKey(*cluster.key))
    assert client is not None
    registered = {node.spec.provider_id: node.name for node in await client.list(Node)}
    assert registered == nodes, f"Nodes of {cluster.key}: {registered}, of Machines: {nodes}"


async def _pool(w: World, pool: MachinePool) -> dict[str, str]:
    """The pool's Nodes by provider ID."""
    at = f"MachinePool {pool.key}"
    wanted = 1 if pool.spec.replicas is None else pool.spec.replicas
    machines = [
        m
        for m in await w.client.list(Machine, pool.namespace)
        if m.metadata.controller and m.metadata.controller.uid == pool.metadata.uid
    ]
    assert len(machines) == wanted, f"{at}: {wanted} wanted, {[m.name for m in machines]}; {_why(pool)}"
    nodes = {}
    for machine in machines:
        assert machine.status.phase == "Running", f"{machine.key}: {machine.status.phase}: {_why(machine)}"
        for type_ in ("Ready", "Available", "UpToDate"):
            assert conditions.is_true(machine.status.conditions, type_), f"{machine.key} {type_}: {_why(machine)}"
        infra = await w.client.get(DevMachine, machine.spec.infrastructure_ref.name, machine.namespace)
        owners = {ref.uid: ref for ref in infra.metadata.owner_references}
        assert owners[machine.metadata.uid].controller, f"{infra.key} is not controlled by its Machine"
        assert infra.spec.provider_id == machine.spec.provider_id
        assert machine.status.node_ref is not None
        nodes[machine.spec.provider_id] = machine.status.node_ref.name
        for name, value in (pool.spec.template.metadata.labels if pool.spec.template.metadata else {}).items():
            assert machine.metadata.labels.get(name) == value, f"{machine.key} lacks label {name}={value}"
    _counters(pool, wanted, nodes)
    return nodes


def _counters(pool: MachinePool, wanted: int, nodes: dict[str, str]) -> None:
    status, at = pool.status, f"MachinePool {pool.key}"
    counted = (status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas)
    assert counted == (wanted,) * 4, f"{at}: counters {counted}, wanted {wanted}"
    assert status.phase == "Running", f"{at}: {status.phase}"
    listed = sorted(pool.spec.provider_id_list)
    assert listed == sorted(nodes), f"{at}: spec.providerIDList {listed}, Nodes {nodes}"
    referred = sorted(ref.name for ref in status.node_refs)
    assert referred == sorted(nodes.values()), f"{at}: status.nodeRefs {referred}, Nodes {nodes}"
    for type_ in ("Available", "InfrastructureReady", "BootstrapConfigReady", "MachinesReady", "MachinesUpToDate"):
        assert conditions.is_true(status.conditions, type_), f"{at} {type_}: {_why(pool)}"
    for type_ in ("ScalingUp", "ScalingDown", "Deleting", "Remediating", "Paused"):
        assert not conditions.is_true(status.conditions, type_), f"{at} {type_}: {_why(pool)}"
    assert status.observed_generation in (None, pool.metadata.generation), f"{at}: observedGeneration"


async def _no_orphans(w: World, everything: dict[str, Resource], pools: list[MachinePool]) -> None:
    for obj in everything.values():
        if isinstance(obj, Machine | DevMachine):
            ref = obj.metadata.controller
            assert ref is not None, f"{type(obj).__name__} {obj.key} has no controller"
            assert ref.uid in everything, f"{type(obj).__name__} {obj.key} is an orphan of {ref.kind} {ref.name}"
        for ref in obj.metadata.owner_references:
            assert ref.uid in everything, f"{type(obj).__name__} {obj.key} has an owner that is gone: {ref.kind}"
    ids = {obj.spec.provider_id for obj in everything.values() if isinstance(obj, DevMachine)}
    assert set(w.infra.backend._machines) == ids, "instances and DevMachines differ"
    hosted = set(w.infra.workloads._hosted)
    assert hosted == {ClusterKey(*c.key) for c in everything.values() if isinstance(c, Cluster)}
    for secret in await w.client.list(Secret):
        for ref in secret.metadata.owner_references:
            assert ref.uid in everything, f"Secret {secret.key} is an orphan"
        assert secret.metadata.owner_references, f"Secret {secret.key} has no owner"


async def check_nothing_left(w: World) -> None:
    """Raises AssertionError."""
    for kind in KINDS:
        left = [f"{obj.key}: {_why(obj)}" for obj in await w.client.list(kind)]
        assert left == [], f"{kind.__name__}: {left}"
    assert [secret.key for secret in await w.client.list(Secret)] == []
    assert set(w.infra.backend._machines) == set(), "instances are left"
    assert set(w.infra.workloads._hosted) == set(), "API servers are left"
    assert w.stores.kept == set(), "stores of workload clusters are left"


def _why(obj: Resource) -> str:
    status = getattr(obj, "status", None)
    said = [
        f"{c.type}={c.status} {c.reason} {c.message}"
        for c in getattr(status, "conditions", ())
        if c.status != "True" or c.type in ("Deleting", "Paused")
    ]
    return f"finalizers {list(obj.metadata.finalizers)}, conditions {said}"

"""Which objects wake which: the mappings of the core controllers' watches, over a cache made of values."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from capi.api.builtin import Node
from capi.api.core import annotations, labels
from capi.api.core.conditions import REMOTE_CONNECTION_PROBE
from capi.api.core.v1beta2 import Cluster, Machine, MachineHealthCheck, MachinePool, MachinePoolStatus
from capi.controllers import pause
from capi.controllers.core import indexes
from capi.controllers.core.cluster.reconciler import ClusterReconciler
from capi.controllers.core.machine.reconciler import MachineReconciler, node_matters
from capi.controllers.core.machinepool.reconciler import MachinePoolReconciler, machine_matters
from capi.kube.types import Key
from capi.runtime.plan import ClusterKey
from capi.runtime.watches import Connections, External, Watch, Workload
from tests.unit.controllers.builders import (
    a_cluster,
    a_machine,
    a_node,
    a_pool,
    condition,
    infra_machine,
    infra_pool,
    node_info,
    provider,
    running,
    with_status,
)

INDEXES: Mapping[Any, Any] = {
    Machine: indexes.MACHINE,
    MachinePool: indexes.POOL,
    MachineHealthCheck: indexes.HEALTH_CHECK,
    Cluster: indexes.CLUSTER,
}
HERE = ClusterKey("default", "c")


class Cache:
    """As much of a Reader as mappings use."""

    def __init__(self, *objects: Any) -> None:
        self.objects = objects

    def list(self, kind: Any, namespace: str | None = None, labels: Any = None) -> Sequence[Any]:
        return [o for o in self.objects if isinstance(o, kind) and namespace in (None, o.namespace)]

    def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        return next((o for o in self.list(kind) if o.key == Key(namespace, name)), None)

    def index(self, kind: Any, index: str, value: str) -> Sequence[Any]:
        return [o for o in self.list(kind) if value in INDEXES[kind][index](o)]


def woken(reconciler: Any, watch: Any, kind: Any, *args: Any) -> set[str]:
    """Names of the keys that an object wakes through a kind of watch."""
    [found] = [
        w for w in reconciler.watches if isinstance(w, watch) and w.keys and kind in (None, getattr(w, "kind", None))
    ]
    return {key.name for key in found.keys(*args)}


@pytest.mark.parametrize(
    ("reconciler", "cached", "obj", "names"),
    [
        pytest.param(MachineReconciler(), a_machine(0), infra_machine(0), {"p-0"}, id="InfraMachine to Machine"),
        pytest.param(MachinePoolReconciler(), a_pool(), infra_pool(), {"p"}, id="infrastructure to pool, without an owner"),
        pytest.param(MachinePoolReconciler(), a_pool(), infra_machine(0), {"p"}, id="InfraMachine to pool"),
        pytest.param(MachinePoolReconciler(), a_pool("p" * 70), infra_machine(0, pool="p" * 70), {"p" * 70}, id="by a hashed label"),
        pytest.param(MachinePoolReconciler(), a_pool(), infra_machine(0, meta={"labels": {labels.POOL_NAME: "hash_AAAA_z"}}), set(), id="an unknown hash"),
        pytest.param(MachinePoolReconciler(), a_pool(), infra_machine(0, meta={"labels": {labels.POOL_NAME: "p", labels.CLUSTER_NAME: "other"}}), set(), id="another cluster"),
        pytest.param(MachinePoolReconciler(), a_pool(), infra_machine(0, meta={"labels": {}}), set(), id="no label"),
    ],
)  # fmt: skip
def test_provider_objects(reconciler: Any, cached: Any, obj: Any, names: set[str]) -> None:
    assert woken(reconciler, External, None, obj, Cache(cached)) == names


@pytest.mark.parametrize(
    ("cached", "node", "names"),
    [
        pytest.param([a_machine(0), a_pool()], a_node(0), {"p"}, id="by its Machine"),
        pytest.param([a_pool(provider_id_list=("x://p/0",))], a_node(0), {"p"}, id="by the list"),
        pytest.param([a_pool(provider_id_list=("y://p/0",))], a_node(0), set(), id="only whole IDs"),
        pytest.param([a_pool()], a_node(0, annotations={annotations.NODE_OWNER_KIND: "MachinePool", annotations.NODE_OWNER_NAME: "p"}), {"p"}, id="by its marks"),
        pytest.param([a_machine(0), a_pool()], a_node(0, annotations={annotations.NODE_CLUSTER_NAME: "other"}), set(), id="of another cluster"),
        pytest.param([a_pool("p", provider_id_list=("x://p/0",)), a_pool("q", provider_id_list=("x://p/0",))], a_node(0), set(), id="two claimants"),
    ],
)  # fmt: skip
def test_nodes_wake_one_pool(cached: Any, node: Node, names: set[str]) -> None:
    assert woken(MachinePoolReconciler(), Workload, Node, node, HERE, Cache(*cached)) == names


def test_a_node_wakes_its_machine_by_provider_id_and_by_name_and_no_other_cluster_s() -> None:
    by_name = a_machine(1, spec={"provider_id": ""}, status=running(0))
    foreign = a_machine(2, spec={"provider_id": "x://p/0", "cluster_name": "other"})
    cache = Cache(a_machine(0), by_name, foreign)
    assert woken(MachineReconciler(), Workload, Node, a_node(0), HERE, cache) == {"p-0", "p-1"}


def test_a_control_plane_wakes_the_machines_of_its_cluster_that_wait_to_end() -> None:
    elsewhere = a_machine(2, deleting=True, spec={"cluster_name": "other"})
    cache = Cache(a_cluster(), a_machine(0), a_machine(1, deleting=True), elsewhere)
    plane = provider("TestControlPlane", "c")
    assert woken(MachineReconciler(), External, None, plane, cache) == {"p-1"}
    worker = a_machine(7)
    member = a_machine(8, meta={"labels": {labels.CONTROL_PLANE: ""}})
    assert woken(MachineReconciler(), Watch, Machine, member, cache) == {"p-1"}
    assert woken(MachineReconciler(), Watch, Machine, worker, cache) == set()
    [watch] = [w for w in MachineReconciler().watches if isinstance(w, Watch) and w.kind is Machine]
    assert watch.changed is not None
    assert watch.changed(member, a_machine(8, deleting=True, meta={"labels": {labels.CONTROL_PLANE: ""}}))
    assert not watch.changed(member, a_machine(8, status=running(8), meta={"labels": {labels.CONTROL_PLANE: ""}}))


def test_a_connection_wakes_everything_of_its_cluster_once() -> None:
    cache = Cache(a_machine(0), a_machine(1), a_machine(2, spec={"cluster_name": "other"}), a_pool(), a_cluster())
    assert woken(MachineReconciler(), Connections, None, HERE, cache) == {"p-0", "p-1"}
    assert woken(MachinePoolReconciler(), Connections, None, HERE, cache) == {"p"}
    assert woken(ClusterReconciler(), Connections, None, HERE, cache) == {"c"}


def test_a_pausing_cluster_wakes_machines_and_pools() -> None:
    for reconciler, cached in ((MachineReconciler(), a_machine(0)), (MachinePoolReconciler(), a_pool())):
        [watch] = [w for w in reconciler.watches if isinstance(w, Watch) and w.kind is Cluster]
        assert watch.changed is not None and watch.keys is not None
        assert watch.changed(a_cluster(), a_cluster(paused=True))
        assert not watch.changed(a_cluster(), with_status(a_cluster(), a_cluster().status))
        assert woken(reconciler, Watch, Cluster, a_cluster(), Cache(cached)) == {cached.name}


def test_a_lost_connection_wakes_machines_but_counters_do_not() -> None:
    [watch] = [w for w in MachineReconciler().watches if isinstance(w, Watch) and w.kind is Cluster]
    assert watch.changed is not None
    lost = a_cluster(conditions=(condition(REMOTE_CONNECTION_PROBE, "False"),))
    assert watch.changed(a_cluster(), lost)
    assert not watch.changed(
        a_cluster(), a_cluster(conditions=(*a_cluster().status.conditions, condition("Ready", "True")))
    )


@pytest.mark.parametrize(
    ("new", "matters"),
    [
        (a_node(0), False),
        (a_node(0, ready="False"), True),
        (a_node(0, version="v2"), True),
        (a_node(0, labels={"a": "b"}), True),
        (a_node(0, resource_version="99"), False),
    ],
)
def test_heartbeats_wake_nobody(new: Node, matters: bool) -> None:
    assert node_matters(a_node(0), new) == matters


@pytest.mark.parametrize(
    ("new", "matters"),
    [
        (a_machine(0), False),
        (a_machine(0, deleting=True), True),
        (a_machine(0, owner=None), True),
        (a_machine(0, conditions=(condition("Ready", "True"),)), True),
        (a_machine(0, status={"node_info": node_info()}), True),
        (a_machine(0, status={"phase": "Provisioned"}), False),
    ],
)
def test_what_a_pool_cares_about_in_its_machines(new: Machine, matters: bool) -> None:
    assert machine_matters(a_machine(0), new) == matters


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        (a_machine(0), {"p"}),
        (a_machine(0, owner=None), {"p"}),
        (a_machine(0, meta={"labels": {}}), {"p"}),
        (a_machine(0, owner=None, meta={"labels": {}}), set()),
    ],
)
def test_a_machine_wakes_its_pool_by_owner_or_label(machine: Machine, names: set[str]) -> None:
    assert woken(MachinePoolReconciler(), Watch, Machine, machine, Cache(a_pool())) == names


def test_updates_of_pool_machines_do_not_wake_the_cluster() -> None:
    [watch] = [w for w in ClusterReconciler().watches if isinstance(w, Watch) and w.kind is Machine]
    assert watch.changed is not None
    assert not watch.changed(a_machine(0), a_machine(0, deleting=True))
    loose = a_machine(0, owner=None, meta={"labels": {}})
    assert watch.changed(loose, loose)


def test_a_pool_s_counters_wake_its_cluster() -> None:
    [watch] = [w for w in ClusterReconciler().watches if isinstance(w, Watch) and w.kind is MachinePool]
    assert watch.changed is not None
    assert watch.changed(a_pool(), a_pool(status=MachinePoolStatus(replicas=1)))
    assert watch.changed(a_pool(), a_pool(replicas=5))
    assert not watch.changed(a_pool(), a_pool(provider_id_list=("x://p/0",)))


def test_causes_of_a_pause() -> None:
    marked = a_machine(0, meta={"annotations": {annotations.PAUSED: ""}})
    assert pause.causes(a_machine(0), a_cluster()) == []
    assert pause.causes(a_machine(0), None) == []
    assert pause.causes(a_machine(0), a_cluster(paused=True)) == ["Cluster spec.paused is set to true"]
    assert pause.causes(marked, a_cluster()) == ["Machine has the cluster.x-k8s.io/paused annotation"]

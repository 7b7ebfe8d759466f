"""MachinePool: what a pass takes from the caches, and what it leaves."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from capi.api.builtin import Node
from capi.api.core import annotations, labels
from capi.api.core.v1beta2 import MachinePoolStatus, ObjectReference
from capi.controllers import owners
from capi.controllers.core.machinepool.plan import plan
from capi.controllers.core.machinepool.reconciler import MachinePoolReconciler, observe
from capi.controllers.core.machinepool.scope import Memory
from capi.kube.errors import TransportError
from capi.runtime.watches import Workload
from tests.unit.controllers.builders import (
    NOW,
    UNINITIALIZED,
    a_cluster,
    a_machine,
    a_node,
    a_pool,
    infra_machine,
    infra_pool,
    node_info,
    provider,
    running,
)
from tests.unit.controllers.core.passes import applies, brief, deletes, said
from tests.unit.controllers.core.test_waking import Cache


class Nodes:
    """As much of a workload cluster's cache as a pool reads."""

    def __init__(self, *nodes: Node) -> None:
        self._nodes = nodes

    def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        return next((node for node in self._nodes if node.name == name), None)

    def index(self, kind: Any, index: str, value: str) -> Sequence[Any]:
        return [node for node in self._nodes if node.spec.provider_id == value]


class Caches(Cache):
    """A Reader of values: `late` are provider objects that only the caches still show."""

    def __init__(
        self, *objects: Any, externals: Sequence[Any] = (), late: Sequence[Any] = (), nodes: Any = None
    ) -> None:
        super().__init__(*objects)
        self._externals, self._late, self._nodes = externals, late, nodes
        self.asked: list[str] = []

    async def external(self, group_kind: Any, name: str, namespace: str) -> Any:
        every = (*self._externals, *self._late)
        return next((o for o in every if (o.resource.kind, o.name) == (group_kind.kind, name)), None)

    async def external_list(self, group_kind: Any, namespace: str, labels: Mapping[str, str]) -> Sequence[Any]:
        every = (*self._externals, *self._late)
        return [o for o in every if o.resource.kind == group_kind.kind and labels.items() <= o.metadata.labels.items()]

    async def live_external(self, resource: Any, name: str, namespace: str) -> Any:
        self.asked.append(name)
        return next((o for o in self._externals if (o.resource, o.name) == (resource, name)), None)

    def workload(self, cluster: Any) -> Any:
        return self._nodes


class Unwatchable(Caches):
    async def external(self, group_kind: Any, name: str, namespace: str) -> Any:
        raise TransportError(f"{group_kind.kind} cannot be watched: forbidden")


def a_running_machine(index: int) -> Any:
    return a_machine(index, status=running(index, node_info=node_info()))


async def test_no_machine_is_made_for_an_infra_machine_that_only_a_late_cache_shows() -> None:
    memory, pool = Memory(), a_pool(replicas=1)
    before = Caches(a_cluster(), a_machine(0), externals=[infra_pool(["x://p/0"]), infra_machine(0)])
    plan(await observe(pool, before, memory), NOW)  # type: ignore[arg-type] # as much of a Reader as is used
    late = Caches(a_cluster(), externals=[infra_pool(["x://p/0"])], late=[infra_machine(0)])
    made = plan(await observe(pool, late, memory), NOW)  # type: ignore[arg-type]
    assert late.asked == ["p-0"] and not applies(made, "Machine")


@pytest.mark.parametrize(
    ("remembered", "asked"),
    [
        pytest.param({}, [], id="it never had one: nobody is asked"),
        pytest.param({"p-0": "TestMachine-p-0"}, ["p-0"], id="it lost one, and is there"),
        pytest.param({"p-0": "another"}, [], id="another of that name had one"),
    ],
)
async def test_a_machine_is_made_for_an_infra_machine_that_is_there(remembered: Any, asked: Any) -> None:
    memory = Memory()
    memory.surfaced.update(remembered)
    reader = Caches(a_cluster(), externals=[infra_pool(["x://p/0"]), infra_machine(0)])
    made = plan(await observe(a_pool(replicas=1), reader, memory), NOW)  # type: ignore[arg-type]
    assert set(applies(made, "Machine")) == {"p-0"}
    assert reader.asked == asked


@pytest.mark.parametrize("marks", [{}, {labels.CLUSTER_NAME: "c", labels.POOL_NAME: "q"}, {labels.POOL_NAME: "p"}])
async def test_an_infra_machine_without_the_label_is_not_the_pool_s(marks: Any) -> None:
    infra = [infra_pool(), infra_machine(0), infra_machine(1, meta={"labels": marks})]
    made = plan(await observe(a_pool(), Caches(a_cluster(), externals=infra), Memory()), NOW)  # type: ignore[arg-type]
    assert set(applies(made, "Machine")) == {"p-0"}


async def test_infrastructure_of_another_pool_is_neither_used_nor_deleted() -> None:
    theirs = infra_pool(owner_references=(owners.reference(a_pool("q"), controller=True),))
    for deleting in (False, True):
        pool = a_pool(deleting=deleting)
        reader = Caches(a_cluster(), externals=[theirs, infra_machine(0)], nodes=Nodes(a_node(0)))
        made = plan(await observe(pool, reader, Memory()), NOW)  # type: ignore[arg-type]
        assert not applies(made, "TestMachinePool") and not applies(made, "Machine") and not deletes(made)
        assert made.finalized == deleting
        assert said(made, "InfrastructureReady").message.startswith("TestMachinePool p is controlled by MachinePool q")
        if not deleting:
            assert "providerIDList" not in applies(made, "MachinePool")["p"].body.get("spec", {})
            assert made.error is not None


async def test_what_was_claimed_before_another_pool_took_the_infrastructure_is_given_up() -> None:
    theirs = infra_pool(owner_references=(owners.reference(a_pool("q"), controller=True),))
    pool = referring(a_node(0), provider_id_list=("x://p/0",))
    reader = Caches(a_cluster(), externals=[theirs], nodes=Nodes(a_node(0)))
    made = plan(await observe(pool, reader, Memory()), NOW)  # type: ignore[arg-type]
    assert applies(made, "MachinePool")["p"].body["spec"]["providerIDList"] == []
    assert made.status.node_refs == ()  # type: ignore[union-attr]
    assert not deletes(made)


async def test_instances_of_a_kind_that_is_not_a_machine_s_are_not_taken_for_instances() -> None:
    marks = {labels.CLUSTER_NAME: "c", labels.POOL_NAME: "p"}
    stray = provider("TestCluster", "stray", labels=marks)
    reader = Caches(a_cluster(), externals=[infra_pool(["x://p/0"], kind="TestCluster"), stray])
    made = plan(await observe(a_pool(), reader, Memory()), NOW)  # type: ignore[arg-type]
    assert not applies(made, "Machine") and not applies(made, "TestCluster")
    assert "must be a provider's and end in Machine" in said(made, "InfrastructureReady").message
    gone = plan(await observe(a_pool(deleting=True), reader, Memory()), NOW)  # type: ignore[arg-type]
    assert deletes(gone) == ["p"], "the pool's infrastructure, and nothing else"


async def test_a_kind_that_cannot_be_watched_is_told_and_retried_and_the_counters_stay() -> None:
    before = MachinePoolStatus(replicas=2, ready_replicas=2)
    pool = a_pool(status=before)
    made = plan(await observe(pool, Unwatchable(a_cluster()), Memory()), NOW)  # type: ignore[arg-type]
    assert brief(made, "InfrastructureReady") == ("Unknown", "InternalError")
    assert isinstance(made.error, TransportError)
    assert (made.status.replicas, made.status.ready_replicas) == (2, 2)  # type: ignore[union-attr]


async def test_a_going_pool_whose_infrastructure_cannot_be_read_stays_and_says_why() -> None:
    made = plan(await observe(a_pool(deleting=True), Unwatchable(a_cluster()), Memory()), NOW)  # type: ignore[arg-type]
    assert not made.finalized and isinstance(made.error, TransportError)
    assert "forbidden" in said(made, "Deleting").message


def referring(*nodes: Node, **more: Any) -> Any:
    refs = tuple(ObjectReference(api_version="v1", kind="Node", name=n.name, uid=n.metadata.uid) for n in nodes)
    return a_pool(status=MachinePoolStatus(node_refs=refs), **more)


MARKED = {annotations.NODE_OWNER_KIND: "MachinePool", annotations.NODE_OWNER_NAME: "q"}


@pytest.mark.parametrize("deleting", [False, True])
@pytest.mark.parametrize(
    ("present", "goes"),
    [
        pytest.param(a_node(5), True, id="its instance has left"),
        pytest.param(a_node(5, annotations={**MARKED, annotations.NODE_OWNER_NAME: "p"}), True, id="marked as the pool's"),
        pytest.param(a_node(5, annotations=MARKED), False, id="marked as another pool's"),
        pytest.param(a_node(5, uid="new"), False, id="another Node of that name"),
        pytest.param(a_node(5, provider_id=""), False, id="without a provider ID"),
    ],
)  # fmt: skip
async def test_which_referred_nodes_go(present: Node, goes: bool, deleting: bool) -> None:
    infra = [] if deleting else [infra_pool(["x://p/0"], kind="")]
    reader = Caches(a_cluster(), externals=infra, nodes=Nodes(a_node(0), present))
    made = plan(await observe(referring(a_node(5), deleting=deleting), reader, Memory()), NOW)  # type: ignore[arg-type]
    assert deletes(made, "Node") == (["p-5"] if goes else [])


@pytest.mark.parametrize(
    ("new", "matters"),
    [
        pytest.param(a_node(0, resource_version="99"), False, id="a heartbeat"),
        pytest.param(a_node(0, ready="False"), True, id="no longer ready"),
        pytest.param(a_node(0, uid="new"), True, id="another Node of that name"),
        pytest.param(a_node(0, provider_id="x://p/9"), True, id="its provider ID"),
        pytest.param(a_node(0, version="v1.36.0"), True, id="another kubelet"),
        pytest.param(a_node(0, annotations=MARKED), True, id="its marks"),
        pytest.param(a_node(0, taints=(UNINITIALIZED,)), True, id="a taint"),
    ],
)
def test_what_a_pool_cares_about_in_its_nodes(new: Node, matters: bool) -> None:
    [watch] = [w for w in MachinePoolReconciler().watches if isinstance(w, Workload)]
    assert watch.changed is not None and watch.changed(a_node(0), new) == matters


async def test_two_nodes_with_one_provider_id_are_nobodys_and_stay() -> None:
    twins = a_node(0), a_node(0, name="twin")
    reader = Caches(a_cluster(), externals=[infra_pool(["x://p/0"], kind="")], nodes=Nodes(*twins))
    made = plan(await observe(referring(*twins), reader, Memory()), NOW)  # type: ignore[arg-type]
    assert not deletes(made, "Node")
    assert made.status.deprecated.v1beta1.ready_replicas == 0  # type: ignore[union-attr]


async def test_a_restart_forgets_nothing_that_matters() -> None:
    """The same caches give the same Plan with and without a memory of earlier passes."""
    pool, memory = a_pool(replicas=2), Memory()
    infra = [infra_pool(), infra_machine(0), infra_machine(1)]
    reader = Caches(a_cluster(), a_running_machine(0), externals=infra, nodes=Nodes(a_node(0), a_node(1)))
    first = plan(await observe(pool, reader, memory), NOW)  # type: ignore[arg-type]
    again = plan(await observe(pool, reader, memory), NOW)  # type: ignore[arg-type]
    fresh = plan(await observe(pool, reader, Memory()), NOW)  # type: ignore[arg-type]
    assert first == again == fresh

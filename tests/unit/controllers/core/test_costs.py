"""What a pass costs: it looks again only at what has changed, and finds Nodes without looking through all."""

from collections.abc import Sequence
from typing import Any, cast

from capi.api.builtin import Node
from capi.api.core import labels
from capi.controllers.core.machine import reconciler as machines
from capi.controllers.core.machinepool.plan import plan
from capi.controllers.core.machinepool.scope import Memory, Scope
from capi.kube.objects import Unstructured
from capi.runtime.reader import Reader
from tests.unit.controllers.builders import (
    NOW,
    a_cluster,
    a_machine,
    a_node,
    a_pool,
    found,
    infra_machine,
    infra_pool,
    running,
)
from tests.unit.controllers.core.test_machinepool_observe import Caches

SIZE = 300


class Read(dict[str, Any]):
    """JSON that counts how often anything is looked up in it."""

    looks = 0

    def get(self, key: str, default: Any = None) -> Any:
        Read.looks += 1
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        Read.looks += 1
        return super().__getitem__(key)


def counting(index: int) -> Unstructured:
    plain = infra_machine(index)
    raw = Read({key: Read(value) if isinstance(value, dict) else value for key, value in plain.raw.items()})
    return Unstructured(plain.resource, plain.metadata, raw)


def test_a_second_pass_looks_at_no_instance_that_has_not_changed() -> None:
    ids = [f"x://p/{index}" for index in range(SIZE)]
    scope = Scope(
        pool=a_pool(replicas=SIZE),
        cluster=a_cluster(),
        infra=found(infra_pool(ids)),
        infra_machines=[counting(index) for index in range(SIZE)],
        machines=[a_machine(index, status=running(index)) for index in range(SIZE)],
        nodes={f"x://p/{index}": a_node(index) for index in range(SIZE)},
        memory=Memory(),
    )
    Read.looks = 0
    plan(scope, NOW)
    first, Read.looks = Read.looks, 0
    again = plan(scope, NOW)
    assert first >= SIZE
    assert Read.looks == 0
    changed = counting(7)
    plan(
        Scope(
            **{name: getattr(scope, name) for name in Scope.__dataclass_fields__ if name != "infra_machines"},
            infra_machines=[changed if machine.name == changed.name else machine for machine in scope.infra_machines],
        ),
        NOW,
    )
    assert 0 < Read.looks < 30, "one instance, not all"
    assert again.status is not None


class Indexed:
    """A workload cluster's cache that can be asked by provider ID and by name, and for nothing else."""

    def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        return None

    def index(self, kind: Any, index: str, value: str) -> Sequence[Any]:
        assert (kind, index) == (Node, "providerID")
        return ()


async def test_a_node_that_has_not_joined_is_not_looked_for_among_all_nodes() -> None:
    reader = Caches(a_cluster(), a_pool(), externals=[infra_machine()], nodes=Indexed())
    seen = await machines.observe(a_machine(), cast(Reader, reader))
    assert seen.connected
    assert seen.nodes == ()


def test_an_instance_finds_its_pool_without_a_look_at_the_others() -> None:
    class Direct(Caches):
        def list(self, kind: Any, namespace: str | None = None, labels: Any = None) -> Sequence[Any]:
            raise AssertionError("pools are listed")

        def get(self, kind: Any, name: str, namespace: str = "") -> Any:
            return a_pool(name)

    from capi.controllers.core.indexes import pools_of_label

    instance = infra_machine(meta={"labels": {labels.CLUSTER_NAME: "c", labels.POOL_NAME: "p"}})
    assert [key.name for key in pools_of_label(instance, cast(Reader, Direct()))] == ["p"]

"""What random histories have brought to light, each as short as it could be made."""

import pytest

from capi.api.builtin import Node
from capi.api.core.v1beta2 import Machine
from capi.kube.conditions import is_true
from tests.world.rig import world

pytestmark = pytest.mark.looptime


async def test_a_node_deleted_by_hand_joins_again() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        before = {m.name: m.metadata.uid for m in await w.client.list(Machine)}
        node = min(n.name for n in await w.workload().list(Node))
        await w.workload().delete(Node, node)
        await w.advance(seconds=10)
        assert {n.name for n in await w.workload().list(Node)} == set(before)
        machines = await w.client.list(Machine)
        assert {m.name: m.metadata.uid for m in machines} == before
        assert all(is_true(m.status.conditions, "Ready") for m in machines)

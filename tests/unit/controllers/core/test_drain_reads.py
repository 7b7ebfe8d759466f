"""What a drain reads, when, and how often: nothing before it is needed, and once for many."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from capi.api.builtin import DaemonSet, Namespace, PersistentVolume, Pod, VolumeAttachment
from capi.api.core.v1beta2 import MachineDrainRule
from capi.controllers.core.machine.drain.reads import SharedLists, look
from capi.controllers.core.machine.plan import plan
from capi.controllers.core.machine.scope import Scope
from capi.kube.errors import CapiError, Forbidden, NotFound, TransportError
from capi.kube.objects import ObjectMeta, Resource
from capi.runtime.plan import ClusterKey, Evict
from tests.unit.controllers.builders import NOW, a_node, found, infra_machine
from tests.unit.controllers.core.drains import a_pod, a_rule, a_scope, doomed, picks
from tests.unit.controllers.core.passes import said
from tests.unit.controllers.core.test_volume_detach import a_volume, attachment

pytestmark = pytest.mark.looptime
KEY = ClusterKey("default", "c")


class Shelf:
    """A workload cluster of given objects that counts what is asked; what is in `failing` is refused."""

    def __init__(self, *objects: Resource) -> None:
        self.objects = objects
        self.failing: dict[type[Resource], CapiError] = {}
        self.slow = 0.0
        self.asked: Counter[str] = Counter()
        self.fields: list[str] = []

    async def live_list(
        self, kind: type[Any], namespace: str | None = None, labels: str = "", fields: str = ""
    ) -> Sequence[Any]:
        self.asked[kind.__name__] += 1
        self.fields += [fields] if fields else []
        await asyncio.sleep(self.slow)
        if kind in self.failing:
            raise self.failing[kind]
        return [found for found in self.objects if isinstance(found, kind)]


class Desk:
    """The management side: rules, and one workload cluster (None: just lost)."""

    def __init__(self, shelf: Shelf | None, *rules: MachineDrainRule) -> None:
        self.shelf = shelf
        self.rules = rules

    def list(self, kind: type[Any], namespace: str | None = None, labels: Any = None) -> Sequence[Any]:
        assert (kind, namespace) == (MachineDrainRule, "default")
        return self.rules

    def workload(self, cluster: ClusterKey) -> Shelf | None:
        assert cluster == KEY
        return self.shelf


def unseen(**changes: Any) -> Scope:
    """A Machine that goes, before anything was read of its Node."""
    return a_scope(**{"drain": None, "volumes": None, **changes})


async def looked(shelf: Shelf | None, *rules: MachineDrainRule, **changes: Any) -> Scope:
    reader: Any = Desk(shelf, *rules)
    return await look(unseen(**changes), reader, SharedLists(), NOW)


DAEMON = a_pod("d", owner=("DaemonSet", "ds"))
ANOTHER = a_pod("e", owner=("DaemonSet", "ds"))
SET = DaemonSet(metadata=ObjectMeta(name="ds", namespace="apps", uid="ds"))
TEAMS = a_rule("teams", "Skip", pods=[{"namespaceSelector": picks(team="a")}])
APPS = Namespace(metadata=ObjectMeta(name="apps", labels={"team": "a"}))


@pytest.mark.parametrize(
    ("objects", "rules", "asked"),
    [
        pytest.param((), (), {"Pod": 1, "VolumeAttachment": 1}, id="an empty Node"),
        pytest.param((), (TEAMS,), {"Pod": 1, "VolumeAttachment": 1}, id="nobody to select"),
        pytest.param((a_pod("a"), a_pod("b")), (), {"Pod": 1}, id="Pods: volumes come later"),
        pytest.param((DAEMON, ANOTHER, SET), (), {"Pod": 1, "DaemonSet": 1, "VolumeAttachment": 1}, id="daemons"),
        pytest.param((a_pod("a"),), (a_rule("all", "Skip"),), {"Pod": 1, "VolumeAttachment": 1}, id="a rule"),
        pytest.param(
            (a_pod("a"), APPS), (TEAMS,), {"Pod": 1, "Namespace": 1, "VolumeAttachment": 1}, id="a rule by namespace"
        ),
        pytest.param(
            (attachment("v"), a_volume("v", "data")),
            (),
            {"Pod": 1, "VolumeAttachment": 1, "PersistentVolume": 1},
            id="something is attached",
        ),
    ],
)  # fmt: skip
async def test_only_what_decides_is_read(objects: Any, rules: Any, asked: dict[str, int]) -> None:
    shelf = Shelf(*objects)
    await looked(shelf, *rules)
    assert shelf.asked == asked
    assert shelf.fields == ["spec.nodeName=p-0"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"nodes": (a_node(),)}, id="not cordoned yet"),
        pytest.param({"infra": found(infra_machine(deleting=True))}, id="the instance goes"),
        pytest.param({"connected": False, "nodes": ()}, id="not connected"),
        pytest.param({"nodes": ()}, id="the Node has gone"),
        pytest.param(
            {"machine": doomed(meta={"annotations": {"pre-drain.delete.hook.machine.cluster.x-k8s.io/x": ""}})},
            id="a hook holds it",
        ),
    ],
)
async def test_nothing_is_read_while_it_decides_nothing(changes: Any) -> None:
    shelf = Shelf(a_pod("a"))
    assert await looked(shelf, **changes) == unseen(**changes)
    assert shelf.asked == {}


async def test_without_a_drain_pods_are_read_only_for_their_claims() -> None:
    excluded = {"machine.cluster.x-k8s.io/exclude-node-draining": ""}
    shelf = Shelf(a_pod("a"))
    await looked(shelf, machine=doomed(meta={"annotations": excluded}))
    assert shelf.asked == {"VolumeAttachment": 1}
    shelf = Shelf(a_pod("a"), attachment("v"), a_volume("v", "data"))
    await looked(shelf, machine=doomed(meta={"annotations": excluded}))
    assert shelf.asked == {"VolumeAttachment": 1, "PersistentVolume": 1, "Pod": 1}


async def test_daemon_sets_that_cannot_be_read_save_their_pods() -> None:
    shelf = Shelf(DAEMON, a_pod("a"))
    shelf.failing[DaemonSet] = Forbidden("daemonsets are secret")
    made = plan(await looked(shelf), NOW)
    assert not any(isinstance(write, Evict) for write in made.writes)
    assert said(made, "Deleting").message == "daemonsets are secret" and made.error is not None


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(Pod, "DrainingNode"), (VolumeAttachment, "WaitingForVolumeDetach"), (PersistentVolume, "WaitingForVolumeDetach")],
)
async def test_what_cannot_be_read_holds_the_stage(kind: type[Resource], reason: str) -> None:
    shelf = Shelf(attachment("v"))
    shelf.failing[kind] = TransportError("no")
    made = plan(await looked(shelf), NOW)
    assert (said(made, "Deleting").reason, said(made, "Deleting").message) == (reason, "no") and not made.writes


async def test_a_cluster_without_storage_has_nothing_attached() -> None:
    shelf = Shelf()
    shelf.failing[VolumeAttachment] = NotFound("the server could not find the requested resource")
    made = plan(await looked(shelf), NOW)
    assert said(made, "Deleting").reason == "WaitingForInfrastructureDeletion"


async def test_a_rule_that_cannot_be_read_and_a_connection_just_lost_are_told() -> None:
    bad = a_rule("bad", pods=[{"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}])
    assert "MachineDrainRule bad" in said(plan(await looked(Shelf(a_pod("a")), bad), NOW), "Deleting").message
    assert "connection" in said(plan(await looked(None), NOW), "Deleting").message


async def test_an_answer_that_does_not_come_is_not_waited_for_for_long() -> None:
    shelf = Shelf(a_pod("a"))
    shelf.slow = 3600
    began = asyncio.get_running_loop().time()
    made = plan(await looked(shelf), NOW)
    assert said(made, "Deleting").message == "no answer from the workload cluster within 10 s"
    assert asyncio.get_running_loop().time() - began == 10


async def test_many_machines_share_what_concerns_all_nodes() -> None:
    shelf, lists = Shelf(DAEMON, SET), SharedLists()
    shelf.slow = 0.1
    reader: Any = Desk(shelf)
    await asyncio.gather(*(look(unseen(), reader, lists, NOW) for _ in range(50)))
    assert shelf.asked == {"Pod": 50, "DaemonSet": 1, "VolumeAttachment": 1}
    await look(unseen(), reader, lists, NOW + timedelta(milliseconds=900))
    assert shelf.asked["DaemonSet"] == 1
    await look(unseen(), reader, lists, NOW + timedelta(seconds=1))
    assert (shelf.asked["DaemonSet"], shelf.asked["VolumeAttachment"]) == (2, 2)


async def test_a_refusal_is_shared_as_an_answer_is() -> None:
    shelf, lists = Shelf(DAEMON), SharedLists()
    shelf.failing[DaemonSet], shelf.slow = Forbidden("no"), 5
    reader: Any = Desk(shelf)
    began = asyncio.get_running_loop().time()
    seen = await asyncio.gather(*(look(unseen(), reader, lists, NOW) for _ in range(20)))
    assert {scope.drain.error.message for scope in seen if scope.drain and scope.drain.error} == {"no"}
    assert asyncio.get_running_loop().time() - began == 10 and shelf.asked["DaemonSet"] == 1


async def test_clusters_do_not_share_and_are_forgotten() -> None:
    lists, shelf = SharedLists(), Shelf(SET)
    reader: Any = shelf
    for number in range(100):
        now = NOW + timedelta(seconds=number)
        assert await lists.all(reader, ClusterKey("default", f"c{number}"), DaemonSet, now) == [SET]
    assert len(lists._lists) == 1 and shelf.asked["DaemonSet"] == 100

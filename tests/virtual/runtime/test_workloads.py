"""Connections to workload clusters: made, announced, watched over, renewed and lost."""

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import pytest

from capi.aio.clock import LoopClock
from capi.api.builtin import Node
from capi.api.core.v1beta2 import Cluster
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.client.transport import Transport
from capi.kube.errors import CapiError, Forbidden, TransportError, Unauthorized
from capi.kube.messages import Request, Response
from capi.kube.types import Key, ResourceType
from capi.runtime.clusters import ClusterConnections
from capi.runtime.manager import Manager
from capi.runtime.plan import ClusterKey, Patch, Plan, target
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Connections, Workload
from capi.server.http.app import ApiServer
from tests.virtual.runtime.embedded import a_server, a_user
from tests.virtual.runtime.rig import Faults, at_work, settle

pytestmark = pytest.mark.looptime
SECRETS = ResourceType("", "v1", "Secret", "secrets")
C = ClusterKey("default", "c")


def same_key(cluster: ClusterKey, reader: Reader) -> Sequence[Key]:
    return [Key(cluster.namespace, cluster.name)]


class NodeCounter:
    """Marks every Node of a cluster, and remembers how many it saw (None: not connected)."""

    kind = Cluster
    manager: ClassVar[str] = "capi-count"
    finalizer: ClassVar[str | None] = None
    watches: Sequence[AnyWatch] = (
        Workload(Node, keys=lambda node, cluster, reader: same_key(cluster, reader)),
        Connections(keys=same_key),
    )

    def __init__(self) -> None:
        self.seen: dict[str, list[int | None]] = {}

    def paused(self, obj: Cluster, reader: Reader) -> Sequence[str]:
        return ()

    async def reconcile(self, obj: Cluster, reader: Reader, now: datetime) -> Plan:
        key = ClusterKey(*obj.key)
        nodes = reader.workload(key)
        found = None if nodes is None else nodes.list(Node)
        self.seen.setdefault(obj.name, []).append(None if found is None else len(found))
        unmarked = [node for node in found or () if "seen" not in node.metadata.annotations]
        mark = {"metadata": {"annotations": {"seen": "yes"}}}
        return Plan(writes=[Patch(target(node, key), mark) for node in unmarked])


@dataclass
class Probed(Faults):
    """Answers probes with errors to come, first of all; None lets one through."""

    answers: list[CapiError | None] = field(default_factory=list)
    deaf: bool = False
    """Watches are refused; they were granted before."""

    async def request(self, request: Request) -> Response:
        if request.path == "/" and self.answers and (error := self.answers.pop(0)) is not None:
            raise error
        return await super().request(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        if self.deaf:
            raise Forbidden("nodes are not for you")
        async with super().stream(request) as lines:
            yield lines


@dataclass
class Secretive(Faults):
    """A management cluster that answers no question about Secrets for a while."""

    silent: bool = False

    async def request(self, request: Request) -> Response:
        if self.silent and "/secrets/" in request.path:
            raise TransportError("no answer")
        return await super().request(request)


class Connector:
    """Leads every cluster to one server; counts, and fails or hangs on demand."""

    def __init__(self, workload: ApiServer) -> None:
        self.workload = workload
        self.dead = False
        self.kubeconfigs: list[bytes] = []
        self.moments: list[float] = []
        self.hang: set[str] = set()
        self.refuse = False
        self.deaf = False

    async def connect(self, cluster: ClusterKey, kubeconfig: bytes) -> Transport:
        self.kubeconfigs.append(kubeconfig)
        self.moments.append(asyncio.get_running_loop().time())
        if cluster.name in self.hang:
            await asyncio.sleep(10**6)
        if self.refuse:
            raise TransportError("connection refused")
        self.latest = Probed(InProcessTransport(self.workload), dead=self.dead, deaf=self.deaf)
        return self.latest

    def kill(self, dead: bool) -> None:
        self.dead = self.latest.dead = dead


class Farm:
    """Everything a test needs."""

    def __init__(self, management: ApiServer, workload: ApiServer, **options: Any) -> None:
        self.user, self.workload = a_user(management), a_user(workload)
        self.connector, self.counter = Connector(workload), NodeCounter()
        self.management = Secretive(InProcessTransport(management))
        self.manager = Manager(self.management, clock=LoopClock(), connector=self.connector, **options)
        self.manager.add(self.counter)

    async def cluster(self, name: str = "c", kubeconfig: str | None = "one") -> None:
        body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"clusterName": name}}
        await self.user.create(Cluster.resource, body)
        await asyncio.sleep(0.1)
        if kubeconfig is not None:
            await self.secret(kubeconfig, name)
        provisioned = {"status": {"initialization": {"infrastructureProvisioned": True}}}
        await self.user.patch(Cluster.resource, name, "default", provisioned, subresource="status")

    async def secret(self, kubeconfig: str, name: str = "c") -> None:
        labels = {"cluster.x-k8s.io/cluster-name": name}
        metadata = {"name": f"{name}-kubeconfig", "namespace": "default", "labels": labels}
        data = {"value": base64.b64encode(kubeconfig.encode()).decode()}
        await self.user.apply(SECRETS, {"metadata": metadata, "data": data})

    @property
    def connections(self) -> ClusterConnections:
        assert self.manager.connections is not None
        return self.manager.connections

    def last(self, name: str = "c") -> int | None:
        return self.counter.seen[name][-1]


@asynccontextmanager
async def a_farm(**options: Any) -> AsyncIterator[Farm]:
    async with a_server(Cluster.resource) as management, a_server() as workload:
        farm = Farm(management, workload, **options)
        async with at_work(farm.manager):
            yield farm


async def a_node(client: Client, name: str) -> Any:
    return await client.create(Node.resource, {"metadata": {"name": name}, "spec": {"providerID": f"x:///{name}"}})


async def test_a_cluster_is_connected_and_its_nodes_wake_their_watchers() -> None:
    async with a_farm() as farm:
        await a_node(farm.workload, "n1")
        await farm.cluster()
        await settle(farm.manager)
        assert farm.last() == 1 and farm.counter.seen["c"][0] is None
        await a_node(farm.workload, "n2")
        await settle(farm.manager)
        assert farm.last() == 2
        assert [node.metadata.annotations for node in await farm.workload.list(Node)] == [{"seen": "yes"}] * 2


async def test_a_kubeconfig_that_comes_later_is_used() -> None:
    async with a_farm() as farm:
        await farm.cluster(kubeconfig=None)
        await asyncio.sleep(100)
        assert farm.last() is None
        await farm.secret("one")
        await asyncio.sleep(1)
        assert farm.last() == 0


async def test_a_new_kubeconfig_means_a_new_connection() -> None:
    async with a_farm() as farm:
        await farm.cluster()
        await asyncio.sleep(1)
        before = farm.manager.connections and farm.manager.connections.get(C)
        await farm.secret("two")
        await asyncio.sleep(1)
        after = farm.manager.connections and farm.manager.connections.get(C)
        assert farm.connector.kubeconfigs == [b"one", b"two"]
        assert before is not after is not None
        assert farm.last() == 0


async def test_an_unreachable_cluster_is_tried_again() -> None:
    async with a_farm() as farm:
        farm.connector.refuse = True
        await farm.cluster()
        await asyncio.sleep(60)
        assert farm.last() is None and 5 < len(farm.connector.kubeconfigs) < 15
        farm.connector.refuse = False
        await asyncio.sleep(40)
        assert farm.last() == 0


async def test_a_cluster_that_hangs_delays_no_other() -> None:
    async with a_farm() as farm:
        farm.connector.hang = {"slow"}
        await farm.cluster("slow")
        await farm.cluster("c")
        await asyncio.sleep(1)
        assert farm.last() == 0 and farm.last("slow") is None


async def test_a_lost_cluster_is_announced_and_found_again() -> None:
    async with a_farm() as farm:
        await farm.cluster()
        await asyncio.sleep(1)
        assert farm.last() == 0
        farm.connector.kill(True)
        await asyncio.sleep(80)
        assert farm.last() is None
        farm.connector.kill(False)
        await asyncio.sleep(40)
        assert farm.last() == 0


async def test_a_deleted_cluster_is_disconnected() -> None:
    async with a_farm() as farm:
        await farm.cluster()
        await asyncio.sleep(1)
        await farm.user.delete(Cluster, "c", "default")
        await asyncio.sleep(1)
        assert farm.manager.connections is not None and farm.manager.connections.get(C) is None


async def test_credentials_that_are_refused_mean_a_new_connection_at_once() -> None:
    async with a_farm() as farm:
        await farm.cluster()
        await asyncio.sleep(61)
        before = len(farm.counter.seen["c"])
        farm.connector.latest.answers = [Unauthorized()]
        await asyncio.sleep(11)
        assert farm.connector.kubeconfigs == [b"one", b"one"]
        assert farm.counter.seen["c"][before:] in ([None, 0], [0]), (
            "told of the loss and of the new connection, once each"
        )


async def test_only_failures_in_a_row_end_a_connection() -> None:
    async with a_farm() as farm:
        await farm.cluster()
        await asyncio.sleep(1)
        lost: list[CapiError | None] = [TransportError("no answer")] * 4
        farm.connector.latest.answers = [*lost, None, *lost]
        await asyncio.sleep(100)
        assert farm.connector.latest.answers == [] and farm.connector.kubeconfigs == [b"one"]
        farm.connector.latest.answers = [*lost, TransportError("no answer")]
        await asyncio.sleep(55)
        assert farm.connector.kubeconfigs == [b"one", b"one"] and farm.last() == 0


async def test_a_cluster_that_answers_but_tells_no_news_is_not_believed() -> None:
    """Its user may not watch Nodes any more: what is cached of it would stay for ever."""
    async with a_farm() as farm:
        await farm.cluster()
        await asyncio.sleep(1)
        assert farm.last() == 0
        farm.connector.deaf = farm.connector.latest.deaf = True
        await asyncio.sleep(700)  # the watch ends after eight minutes at most
        assert farm.last() is None
        assert farm.connections.contact(C).trouble == "no caches within 60 s: nodes: nodes are not for you"
        farm.connector.deaf = farm.connector.latest.deaf = False
        await asyncio.sleep(120)
        assert farm.last() == 0 and farm.connections.contact(C).trouble == ""


async def test_trouble_with_the_management_cluster_does_not_end_a_connection() -> None:
    async with a_farm() as farm:
        await farm.cluster()
        await asyncio.sleep(1)
        before = farm.connections.get(C)
        farm.management.silent = True
        await farm.secret("two")
        await asyncio.sleep(25)
        assert farm.connections.get(C) is before is not None
        farm.management.silent = False
        await asyncio.sleep(11)
        assert farm.connector.kubeconfigs == [b"one", b"two"], "the new kubeconfig is not forgotten"


async def test_it_is_known_when_a_cluster_last_answered_and_why_it_is_not_connected() -> None:
    async with a_farm() as farm:
        await farm.cluster(kubeconfig=None)
        await asyncio.sleep(1)
        found = farm.connections.contact(C)
        assert (found.seen, found.trouble) == (None, "Secret c-kubeconfig with its kubeconfig does not exist")
        await farm.secret("one")
        await asyncio.sleep(100)
        connected, now = farm.connections.contact(C), farm.manager.clock.now()
        assert connected.seen is not None and (now - connected.seen).total_seconds() <= 10
        assert connected.trouble == ""
        farm.connector.kill(True)
        await asyncio.sleep(80)
        lost = farm.connections.contact(C)
        assert lost.seen is not None and (lost.seen - connected.seen).total_seconds() <= 10
        assert lost.trouble == "connection refused"


async def test_a_new_reason_wakes_only_those_who_asked_for_reasons() -> None:
    async with a_farm() as farm:
        await farm.cluster(kubeconfig=None)
        told: list[ClusterKey] = []
        farm.connections.listen(told.append, reasons=True)
        await asyncio.sleep(31)
        told.clear()
        passes = len(farm.counter.seen["c"])
        farm.connector.refuse = True
        await farm.secret("one")
        await asyncio.sleep(300)
        assert told == [C] and len(farm.counter.seen["c"]) == passes


async def test_of_what_a_hostile_cluster_answers_only_the_beginning_is_kept() -> None:
    async with a_farm() as farm:
        await farm.cluster()
        await asyncio.sleep(1)
        farm.connector.latest.answers = [Unauthorized("go\naway " * 100_000)]
        farm.connector.refuse = True
        told: list[str] = []
        farm.connections.listen(lambda cluster: told.append(farm.connections.contact(cluster).trouble), reasons=True)
        await asyncio.sleep(11)
        assert max(map(len, told)) == 500 and any(why.startswith("go away go away") for why in told)


async def test_clusters_that_were_lost_together_do_not_come_back_in_one_moment() -> None:
    """Each waits by its own back-off, with jitter."""
    async with a_farm() as farm:
        farm.connector.refuse = True
        for number in range(20):
            await farm.cluster(f"c{number}")
        await asyncio.sleep(120)
        farm.connector.refuse = False
        farm.connector.moments.clear()
        await asyncio.sleep(60)
        moments = sorted(farm.connector.moments)
        assert len(moments) == 20
        assert moments[-1] - moments[0] > 5, "seconds"

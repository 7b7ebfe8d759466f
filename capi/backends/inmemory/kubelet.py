"""The simulated kubelets of a hosted cluster, and who keeps the status of its PodDisruptionBudgets and collects orphaned Pods.

In a cluster without Pods they write nothing. The kubelet of a Node that does not answer (Ready Unknown) does nothing, nor
does that of a Node that does not exist; when it answers, it sees to its Pods. Nodes are watched only from the first Pod that has
to wait for its own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from capi.aio.clock import Clock
from capi.api.builtin import Pod
from capi.backends.inmemory import nodes, pods
from capi.client.client import Client
from capi.kube.errors import CapiError, Conflict, NotFound
from capi.kube.objects import Unstructured
from capi.kube.types import Key
from capi.runtime.informer import Informer
from capi.runtime.informers import Informers
from capi.runtime.queue import WorkQueue

QUARANTINE = 40.0
"""Seconds that the Pods of a Node that has gone are left alone. Source: Kubernetes pkg/controller/podgc."""

logger = logging.getLogger(__name__)

_NOW = b'{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0,"preconditions":{"uid":"%s"}}'


class Kubelets:
    """Those of one cluster. `run` until cancelled."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._informers = Informers(client, clock)
        self._pods = self._informers.of(Pod)
        self._budgets = self._informers.of(pods.BUDGETS)
        self._due = WorkQueue(clock)
        """Pods that a kubelet has to do with."""
        self._counted = WorkQueue(clock)
        """Budgets whose Pods, or which themselves, have changed."""
        self._orphans = WorkQueue(clock)
        """Nodes that have gone, by name."""
        self._waiting: dict[str, set[Key]] = {}
        """Pods whose kubelet did not answer, by Node."""
        self._nodes: Informer | None = None

    async def run(self) -> None:
        """Raises bugs only; what an API server refuses is tried again."""
        self._pods.subscribe(self._pod_changed)
        self._budgets.subscribe(self._budget_changed)
        try:
            async with asyncio.TaskGroup() as group:
                self._informers.start(group)
                group.create_task(self._work(self._due, self._attend))
                group.create_task(self._work(self._counted, self._count))
                group.create_task(self._work(self._orphans, self._collect))
        finally:
            self._due.shut_down()
            self._counted.shut_down()
            self._orphans.shut_down()

    def gone(self, node: str) -> None:
        """A machine was removed with its Node: what is bound to it ends in a while, unless there is another Node of that name."""
        self._orphans.add_after(Key("", node), QUARANTINE)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and pods.due(new):
            self._due.add(new.key)
        pod = new or old
        assert pod is not None
        if new is None:
            self._waits_no_more(pod.spec.node_name, pod.key)
        for budget in self._budgets.store.list(pod.namespace):
            if pods.guards(budget, pod):
                self._counted.add(budget.key)

    def _budget_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is not None:
            self._counted.add(new.key)

    async def _work(self, queue: WorkQueue, act: Callable[[Key], Awaitable[None]]) -> None:
        while (key := await queue.get()) is not None:
            try:
                await act(key)
                queue.forget(key)
            except CapiError as error:
                logger.info("Simulating a kubelet failed", extra={"object": str(key), "error": error.message})
                queue.retry(key)
            finally:
                queue.done(key)

    async def _attend(self, key: Key) -> None:
        """What the kubelet of the Pod's Node does."""
        pod: Pod | None = self._pods.store.get(key)
        what = pods.due(pod) if pod is not None else ""
        if pod is None or not what or not await self._answers(pod.spec.node_name, key):
            return
        if what == "end":
            await self._end(pod)
            return
        with suppress(NotFound, Conflict):
            body = pods.running(self._clock.now())
            await self._client.patch(
                Pod.resource, pod.name, pod.namespace, body, subresource="status", manager="kubelet"
            )

    async def _end(self, pod: Pod) -> None:
        """At once, unless it has gone or another one has its name; finalizers are waited for."""
        with suppress(NotFound, Conflict):
            options = _NOW % pod.metadata.uid.encode()
            await self._client.send("DELETE", Pod.resource.path(pod.namespace, pod.name), (), options)

    async def _collect(self, node: Key) -> None:
        """End the Pods of a Node that has gone. Without such Pods nothing is asked of the server."""
        bound = [pod for pod in self._pods.store.list() if pod.spec.node_name == node.name]
        if not bound:
            return
        try:
            await self._client.get(nodes.NODES, node.name)
        except NotFound:
            for pod in bound:
                await self._end(pod)

    async def _answers(self, name: str, pod: Key) -> bool:
        """Whether the kubelet of a Node is there; if not, `pod` comes up again when it is."""
        self._waiting.setdefault(name, set()).add(pod)  # before the look: what happens after it is not missed
        with suppress(NotFound):
            if not nodes.is_unreachable(await self._client.get(nodes.NODES, name)):
                self._waits_no_more(name, pod)
                return True
        if self._nodes is None:
            self._nodes = self._informers.of(nodes.NODES)
            self._nodes.subscribe(self._node_changed)
        return False

    def _waits_no_more(self, node: str, pod: Key) -> None:
        waiting = self._waiting.get(node, set())
        waiting.discard(pod)
        if not waiting:
            self._waiting.pop(node, None)

    def _node_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is not None and not nodes.is_unreachable(new.raw):
            for key in self._waiting.pop(new.name, ()):
                self._due.add(key)

    async def _count(self, key: Key) -> None:
        """Bring a budget's status up to date."""
        budget: Unstructured | None = self._budgets.store.get(key)
        if budget is None:
            return
        now = self._clock.now()
        status = pods.budget_status(budget, self._pods.store.list(budget.namespace), now)
        if status != budget.raw.get("status"):
            body = {**budget.raw, "status": status}
            with suppress(NotFound, Conflict):
                await self._client.update_raw(pods.BUDGETS, body, subresource="status", manager="disruption-controller")
        again = pods.recheck(status, now)
        if again is not None:
            self._counted.add_after(key, again.total_seconds())

"""A neutral infrastructure provider against whatever core controllers watch an API server: how long until N Machines run?

    make poolbench N=1000 [SERVER=embedded|real]
    .venv/bin/python bench/poolbench.py --kubeconfig FILE --n 1000 --delete [--audit LOG] [--pid core=PID]

The Bench* kinds follow the v1beta2 contract and have no controller but this file: instances are there at once, their Nodes are
Ready, an instance that is to go goes at once. The same API server plays the workload cluster (or `--workload-kubeconfig`). Measured:
time until N Machines are Running with their Nodes, and until the pool's counters agree; CPU and memory of the given
processes; requests per Machine by client (from an audit log); time until half of the Machines, deleted, are gone, and
whether their Nodes are. Works against any implementation of Cluster API's core controllers.
"""

import argparse
import asyncio
import base64
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.measure import requests, since, usage
from capi.client import http, kubeconfig
from capi.client.client import Client
from capi.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, TransportError
from capi.kube.types import Object, ResourceType

INFRA, CORE = "infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io"
VERSION = "v1.35.0"
ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
KINDS = ("BenchCluster", "BenchControlPlane", "BenchMachinePool", "BenchMachine")
CRD = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
NODES = ResourceType("", "v1", "Node", "nodes", namespaced=False)
NAMESPACES = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
SECRETS = ResourceType("", "v1", "Secret", "secrets")
CLUSTERS = ResourceType(CORE, "v1beta2", "Cluster", "clusters")
POOLS = ResourceType(CORE, "v1beta2", "MachinePool", "machinepools")
MACHINES = ResourceType(CORE, "v1beta2", "Machine", "machines")
PARALLEL = 16


def infra(kind: str) -> ResourceType:
    return ResourceType(INFRA, "v1beta2", kind, kind.lower() + "s")


def definition(kind: str) -> Object:
    resource = infra(kind)
    version = {
        "name": "v1beta2",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}},
    }
    names = {"kind": kind, "plural": resource.plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "metadata": {"name": resource.qualified_plural, "labels": {f"{CORE}/v1beta2": "v1beta2"}},
        "spec": {"group": INFRA, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def many(count: int, work: Callable[[int], Awaitable[Any]]) -> None:
    """`work` for 0 … count-1, a few at a time."""
    numbers = iter(range(count))

    async def several() -> None:
        for number in numbers:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(PARALLEL):
            group.create_task(several())


class Counts:
    """Machines as the watch tells them."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self.all: set[str] = set()
        self.running: set[str] = set()
        self.moved = asyncio.Event()

    def see(self, type_: str, machine: Object) -> None:
        name, status = machine["metadata"]["name"], machine.get("status") or {}
        if machine["spec"].get("clusterName") != self._cluster:
            return
        running = type_ != "DELETED" and status.get("phase") == "Running" and bool(status.get("nodeRef"))
        (self.all.discard if type_ == "DELETED" else self.all.add)(name)
        (self.running.add if running else self.running.discard)(name)
        self.moved.set()

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether it came true in that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    self.moved.clear()
                    await self.moved.wait()
        return holds()


class Bench:
    """One run; `result` fills up as it goes."""

    def __init__(self, client: Client, workload: Client, options: argparse.Namespace) -> None:
        self.client, self.workload, self.options = client, workload, options
        self.n: int = options.n
        self.name: str = options.name
        self.namespace: str = options.namespace
        self.labels = {f"{CORE}/cluster-name": self.name}
        self.counts = Counts(self.name)
        self.result: dict[str, Any] = {"n": self.n}
        self.counted: Callable[[], Counter[str]] | None = getattr(options, "writes", None)
        self.counted_before: Counter[str] = Counter()
        self._leaving: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self) -> None:
        await self._prepare()
        await self._cluster()
        pool_uid = await self._pool()
        await many(self.n, self._node)
        self._spawn(self._follow(MACHINES, self.counts.see))
        self._spawn(self._follow(infra("BenchMachine"), self._release))
        audit = os.path.getsize(self.options.audit) if self.options.audit else 0  # noqa: PTH202, ASYNC240 - once
        before = {name: usage(pid)[0] for name, pid in self.options.pids.items()}
        if self.counted is not None:
            self.counted_before = self.counted()
        started = time.monotonic()
        await many(self.n, lambda number: self._instance(number, pool_uid))
        await self._report()
        self.result["provider_s"] = since(started)
        await self._measured(started, before, audit)
        if self.options.delete:
            await self._halve()
        for task in self._tasks:
            task.cancel()

    async def _measured(self, started: float, before: dict[str, float], audit: int) -> None:
        if not await self.counts.until(lambda: len(self.counts.running) >= self.n, self.options.timeout):
            self.result["timeout"] = "running"
        self.result |= {"running_s": since(started), "running": len(self.counts.running)}
        self.result["counters_agree_s"] = await self._agreed(started)
        used = {name: usage(pid) for name, pid in self.options.pids.items()}
        self.result["cpu_s"] = {name: round(cpu - before[name], 1) for name, (cpu, _) in used.items()}
        self.result["rss_mib"] = {name: round(memory) for name, (_, memory) in used.items()}
        if self.options.audit:
            await asyncio.sleep(2)  # the log is written behind the requests
            self.result["requests"] = requests(Path(self.options.audit), audit, self.n)
        if self.counted is not None:
            counted = self.counted() - self.counted_before
            self.result["requests_of_core"] = {
                what: round(count / self.n, 2) for what, count in counted.items() if count >= self.n // 20
            }

    async def _agreed(self, started: float) -> float | None:
        deadline = time.monotonic() + self.options.timeout
        while time.monotonic() < deadline:
            status = (await self.client.get(POOLS, self.name, self.namespace)).get("status") or {}
            counters = [status.get(counter) for counter in ("readyReplicas", "availableReplicas")]
            if counters == [self.n, self.n] and status.get("phase") == "Running":
                return since(started)
            await asyncio.sleep(0.2)
        return None

    async def _halve(self) -> None:
        """As a provider scales down: by deleting Machines."""
        going = sorted(self.counts.all)[: self.n // 2]
        left = self.n - len(going)
        audit = os.path.getsize(self.options.audit) if self.options.audit else 0  # noqa: PTH202, ASYNC240 - once
        started = time.monotonic()
        await many(len(going), lambda number: self.client.delete(MACHINES, going[number], self.namespace))
        if not await self.counts.until(lambda: len(self.counts.all) <= left, self.options.timeout):
            self.result["timeout"] = "halve"
        self.result["half_gone_s"] = since(started)
        if self.options.audit:
            await asyncio.sleep(2)
            self.result["requests_of_halving"] = requests(Path(self.options.audit), audit, len(going))
        nodes = [node["metadata"]["name"] for node in await self.workload.list(NODES)]
        self.result["nodes_left"] = sum(name.startswith(f"{self.name}-") for name in nodes)
        self.result["nodes_wanted"] = left

    async def _prepare(self) -> None:
        for kind in KINDS:
            await self._ensure(CRD, definition(kind))
        await self._ensure(NAMESPACES, {"metadata": {"name": self.namespace}})
        deadline = time.monotonic() + 30
        while True:
            try:
                for kind in KINDS:
                    await self.client.list(infra(kind), self.namespace)
                return
            except NotFound:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)

    async def _cluster(self) -> None:
        """Cluster, infrastructure and control plane, as if they had been there for long."""
        config = self.options.workload_config
        for name, content in (("kubeconfig", config), ("boot", b"#cloud-config")):
            secret = {"metadata": self._meta(f"{self.name}-{name}"), "type": "cluster.x-k8s.io/secret"}
            await self._ensure(SECRETS, {**secret, "data": {"value": base64.b64encode(content).decode()}})
        refs = {"infrastructureRef": "BenchCluster", "controlPlaneRef": "BenchControlPlane"}
        endpoint = {"host": "127.0.0.1", "port": 6443}
        spec = {name: {"apiGroup": INFRA, "kind": kind, "name": self.name} for name, kind in refs.items()}
        cluster = {"metadata": self._meta(self.name), "spec": {**spec, "controlPlaneEndpoint": endpoint}}
        await self.client.create(CLUSTERS, cluster)
        replicas = dict.fromkeys(
            ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas", "updatedReplicas"), 1
        )
        done = {
            "ready": True,
            "initialized": True,
            "externalManagedControlPlane": True,
            "version": VERSION,
            "unavailableReplicas": 0,
        }
        plane = {**done, **replicas, "initialization": {"controlPlaneInitialized": True}}
        await self._put("BenchCluster", self.name, {"controlPlaneEndpoint": endpoint}, PROVISIONED)
        await self._put("BenchControlPlane", self.name, {"version": VERSION, "replicas": 1}, plane)
        started = time.monotonic()
        while True:
            status = (await self.client.get(CLUSTERS, self.name, self.namespace)).get("status") or {}
            if {"infrastructureProvisioned", "controlPlaneInitialized"} <= (status.get("initialization") or {}).keys():
                break
            if time.monotonic() - started > 120:
                raise SystemExit(f"the Cluster does not get ready; is a manager running? {json.dumps(status)[:2000]}")
            await asyncio.sleep(0.2)
        self.result["cluster_ready_s"] = since(started)

    async def _pool(self) -> str:
        reference = {"apiGroup": INFRA, "kind": "BenchMachinePool", "name": self.name}
        machine = {"clusterName": self.name, "version": VERSION, "bootstrap": {"dataSecretName": f"{self.name}-boot"}}
        template = {"spec": {**machine, "infrastructureRef": reference}}
        pool = {
            "metadata": self._meta(self.name),
            "spec": {"clusterName": self.name, "replicas": self.n, "template": template},
        }
        await self.client.create(POOLS, pool)
        made = await self.client.create(infra("BenchMachinePool"), {"metadata": self._meta(self.name), "spec": {}})
        return str(made["metadata"]["uid"])

    async def _node(self, number: int) -> None:
        await self.workload.create(
            NODES, {"metadata": {"name": self._of(number)}, "spec": {"providerID": self._id(number)}}
        )
        good = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
        times = dict.fromkeys(("lastHeartbeatTime", "lastTransitionTime"), "2026-01-01T00:00:00Z")
        conditions = [{"type": type_, "status": status, "reason": "Kubelet", **times} for type_, status in good.items()]
        info = dict.fromkeys(
            ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeProxyVersion",
             "operatingSystem", "architecture"), "x",
        )  # fmt: skip
        status = {"conditions": conditions, "nodeInfo": {**info, "kubeletVersion": VERSION}}
        await self.workload.patch(NODES, self._of(number), "", {"status": status}, subresource="status")

    async def _instance(self, number: int, pool_uid: str) -> None:
        owner = {"apiVersion": f"{INFRA}/v1beta2", "kind": "BenchMachinePool", "name": self.name, "uid": pool_uid}
        meta = self._meta(self._of(number)) | {"finalizers": ["bench.example/instance"], "ownerReferences": [owner]}
        meta["labels"] = {**self.labels, f"{CORE}/pool-name": self.name}
        address = {"type": "InternalIP", "address": f"10.1.{number >> 8 & 255}.{number & 255}"}
        await self.client.create(infra("BenchMachine"), {"metadata": meta, "spec": {"providerID": self._id(number)}})
        await self._status("BenchMachine", self._of(number), {**PROVISIONED, "addresses": [address]})

    async def _report(self) -> None:
        """The pool's own word: which instances there are."""
        listed = {"spec": {"providerIDList": [self._id(number) for number in range(self.n)]}}
        await self.client.patch(infra("BenchMachinePool"), self.name, self.namespace, listed)
        await self._status(
            "BenchMachinePool",
            self.name,
            {**PROVISIONED, "replicas": self.n, "infrastructureMachineKind": "BenchMachine"},
        )

    def _release(self, type_: str, machine: Object) -> None:
        """An instance that is to go has gone."""
        name = machine["metadata"]["name"]
        if type_ != "DELETED" and machine["metadata"].get("deletionTimestamp") and name not in self._leaving:
            self._leaving.add(name)
            self._spawn(self._free(name))

    async def _free(self, name: str) -> None:
        with suppress(NotFound):
            await self.client.patch(infra("BenchMachine"), name, self.namespace, {"metadata": {"finalizers": None}})

    async def _follow(self, resource: ResourceType, see: Callable[[str, Object], None]) -> None:
        """Watch for ever; a stream that ends begins again with what there is."""
        while True:
            try:
                async with self.client.watch(resource, self.namespace) as events:
                    async for event in events:
                        if event.type in ("ADDED", "MODIFIED", "DELETED"):
                            see(event.type, event.object)
            except (ApiError, TransportError) as error:
                print("watch begins anew:", error, file=sys.stderr)
                await asyncio.sleep(0.5)

    async def _ensure(self, resource: ResourceType, body: Object) -> None:
        with suppress(AlreadyExists):
            await self.client.create(resource, body)

    async def _put(self, kind: str, name: str, spec: Object, status: Object) -> None:
        await self.client.create(infra(kind), {"metadata": self._meta(name), "spec": spec})
        await self._status(kind, name, status)

    async def _status(self, kind: str, name: str, status: Object) -> None:
        with suppress(Conflict):
            await self.client.patch(infra(kind), name, self.namespace, {"status": status}, subresource="status")

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _meta(self, name: str) -> Object:
        return {"name": name, "namespace": self.namespace, "labels": self.labels}

    def _of(self, number: int) -> str:
        return f"{self.name}-{number:05d}"

    def _id(self, number: int) -> str:
        return f"bench:////{self.name}/{number}"


PROVISIONED: Object = {"ready": True, "initialization": {"provisioned": True}}


def run(options: argparse.Namespace) -> dict[str, Any]:
    """One run; its result."""
    options.workload_config = Path(options.workload_kubeconfig or options.kubeconfig).read_bytes()
    return asyncio.run(bench(options))


async def bench(options: argparse.Namespace) -> dict[str, Any]:
    transport = http.connect(kubeconfig.load(Path(options.kubeconfig)))
    workload = http.connect(kubeconfig.load(Path(options.workload_kubeconfig or options.kubeconfig)))
    story = Bench(Client(transport, user_agent="poolbench"), Client(workload, user_agent="poolbench"), options)
    try:
        await story.run()
    finally:
        await transport.close()
        await workload.close()
    return story.result


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--kubeconfig", required=True)
    found.add_argument("--workload-kubeconfig")
    found.add_argument("--audit", help="audit log of the API server, for requests per Machine")
    found.add_argument("--pid", action="append", default=[], metavar="NAME=PID", help="process to measure")
    found.add_argument("--n", type=int, default=100)
    found.add_argument("--name", default="bench")
    found.add_argument("--namespace", default="bench")
    found.add_argument("--timeout", type=float, default=600)
    found.add_argument("--delete", action="store_true", help="delete half of the Machines in the end")
    return found


def main() -> int:
    options = parser().parse_args()
    options.pids = {name: int(pid) for name, pid in (entry.split("=") for entry in options.pid)}
    result = run(options)
    print(json.dumps(result, indent=1))
    good = "timeout" not in result and result.get("nodes_left") == result.get("nodes_wanted")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

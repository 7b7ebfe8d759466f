"""Baseline of the main job: `capi up`, then one pool of N in-memory Machines, until all are Running; then half, then nothing.

    make bench N=1000        (or: .venv/bin/python bench/pool.py --n 1000 [--data-dir DIR])

Prints a table and, on the last line, one JSON object. Counts come from the server's own metrics, so they are what the
controllers really sent; times are wall-clock; memory is the resident set of the one process that is both API server and
manager. By default the store is durable (SQLite in a temporary directory); `--ephemeral` measures without it.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from capi.client import http, kubeconfig
from capi.client.client import Client
from capi.kube.types import ResourceType

POOLS = ResourceType("cluster.x-k8s.io", "v1beta2", "MachinePool", "machinepools")
MACHINES = ResourceType("cluster.x-k8s.io", "v1beta2", "Machine", "machines")
WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
NAME = "bench"
REF = {"apiGroup": "infrastructure.cluster.x-k8s.io", "name": NAME}


def manifests(n: int) -> list[dict[str, Any]]:
    infra = "infrastructure.cluster.x-k8s.io/v1beta2"
    meta = {"name": NAME, "namespace": "default"}
    instant = {"provisioning": {"startupDuration": "0s"}}
    control_plane = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "DevControlPlane", "name": NAME}
    template = {
        "clusterName": NAME,
        "version": "v1.35.4",
        "bootstrap": {"dataSecretName": ""},
        "infrastructureRef": {**REF, "kind": "DevMachinePool"},
    }
    return [
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta, "spec": {"infrastructureRef": {**REF, "kind": "DevCluster"}, "controlPlaneRef": control_plane}},
        {"apiVersion": infra, "kind": "DevCluster", "metadata": meta, "spec": {"backend": {"inMemory": {}}}},
        {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "DevControlPlane", "metadata": meta, "spec": {"version": "v1.35.4"}},
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "metadata": meta, "spec": {"clusterName": NAME, "replicas": n, "template": {"spec": template}}},
        {"apiVersion": infra, "kind": "DevMachinePool", "metadata": meta, "spec": {"backend": {"inMemory": {"vm": instant, "node": instant}}}},
    ]  # fmt: skip


class Bench:
    """One run; `result` fills up as it goes."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.n: int = options.n
        self.timeout: float = options.timeout
        self.ephemeral: bool = options.ephemeral
        self.folder = folder
        self.result: dict[str, Any] = {"n": self.n, "durable": not self.ephemeral}
        self.client: Client
        self.pid = 0

    async def run(self) -> None:
        log = (self.folder / "log").open("wb")
        args = ["up", "--port=0", f"--data-dir={self.folder / 'data'}", *(["--ephemeral"] if self.ephemeral else [])]
        started = time.monotonic()
        with subprocess.Popen([sys.executable, "-m", "capi.cli.main", *args], stdout=log, stderr=log) as process:  # noqa: ASYNC220
            self.pid = process.pid
            try:
                await self._ready()
                self.result["ready_s"] = round(time.monotonic() - started, 2)
                await self._story()
            except BaseException:
                print((self.folder / "log").read_text(errors="replace")[-5000:], file=sys.stderr)
                raise
            finally:
                process.terminate()

    async def _ready(self) -> None:
        path = self.folder / "data" / "kubeconfig"
        while True:
            if path.exists():
                with suppress(Exception):
                    self.client = Client(http.connect(kubeconfig.load(path)), user_agent="bench")
                    await self.client.send("GET", "/readyz")
                    return
            await asyncio.sleep(0.01)

    async def _story(self) -> None:
        await self._phase("running", self._create, self.n)
        self.result["writes_per_machine"] = {
            k: round(v / self.n, 2) for k, v in (await self._writes()).items() if v >= self.n / 20
        }
        self.result["rss_mib"] = self._rss()
        before = await self._writes()
        await asyncio.sleep(10)  # the measured thing is idleness itself
        self.result["idle_10s_writes"] = dict(await self._writes() - before)
        await self._phase("half", lambda: self.client.scale(POOLS, NAME, "default", self.n // 2), self.n // 2)
        await self._phase("gone", self._delete, 0)

    async def _create(self) -> None:
        for body in manifests(self.n):
            group, _, version = body["apiVersion"].rpartition("/")
            kind = body["kind"]
            await self.client.create(ResourceType(group, version, kind, kind.lower() + "s"), body)

    async def _delete(self) -> None:
        clusters = ResourceType("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters")
        await self.client.delete(clusters, NAME, "default")

    async def _phase(self, name: str, act: Any, wanted: int) -> None:
        start, cpu = time.monotonic(), self._cpu()
        await act()
        await asyncio.wait_for(self._until(wanted), self.timeout)
        self.result[f"{name}_s"] = round(time.monotonic() - start, 2)
        self.result[f"{name}_cpu_s"] = round(self._cpu() - cpu, 2)

    async def _until(self, wanted: int) -> None:
        """Poll the pool's own counters, then count Machines once: a watch of ours would cost what we measure."""
        while True:
            pools = {p["metadata"]["name"]: p for p in await self.client.list(POOLS, "default")}
            status = pools.get(NAME, {}).get("status", {})
            settled = (
                status.get("readyReplicas") == wanted == status.get("replicas") and status.get("phase") == "Running"
            )
            if settled or (wanted == 0 and NAME not in pools):
                machines = await self.client.list(MACHINES, "default")
                if len(machines) == wanted and all(m["status"].get("phase") == "Running" for m in machines):
                    return
            await asyncio.sleep(0.1)

    async def _writes(self) -> Counter[str]:
        """Writes so far by `verb resource[/subresource] code`, ours excluded; leases apart."""
        text = (await self.client.send("GET", "/metrics")).decode()
        counts: Counter[str] = Counter()
        for line in text.splitlines():
            if not line.startswith("apiserver_request_total{"):
                continue
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if (
                labels["verb"].upper() not in WRITES
                or labels["resource"] == "leases"
                or labels.get("client", "") == "bench"
            ):
                continue
            resource = labels["resource"] + (f"/{labels['subresource']}" if labels.get("subresource") else "")
            counts[f"{labels['verb']} {resource}"] += int(float(line.rpartition(" ")[2]))
        return counts

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _rss(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) // 1024  # type: ignore[index]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--timeout", type=float, default=600, help="seconds a phase may take")
    parser.add_argument("--ephemeral", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder))
        try:
            asyncio.run(bench.run())
        finally:
            for key, value in bench.result.items():
                print(f"{key:24} {value}")
            print(json.dumps(bench.result))


if __name__ == "__main__":
    main()

"""A provider whose instances are processes of this machine: `python examples/provider/main.py`, then Ctrl-C.

What it promises is in capi.backends.port.Backend: verbs that may be repeated, an instance that is made once and never again,
news of what nobody asked for. A process outlives its provider; a file tells the next one which it is.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from capi.provider import (
    AlreadyExists,
    Backend,
    ClusterKey,
    Feed,
    Feeds,
    Instance,
    InstanceEvent,
    InstanceGone,
    InstanceSpec,
    MachineShape,
    NotFound,
    ResourceType,
    Stage,
    UpSettings,
    WorkloadClusters,
    up,
)

NODES = ResourceType("", "v1", "Node", "nodes", namespaced=False)
HERE = Path(__file__).parent


class Processes:
    """A Backend; `directory` holds a file for each process."""

    bootstraps = False  # nothing is executed in an instance
    shape = MachineShape({"cpu": "1", "memory": "1Gi"}, architecture="amd64", operating_system="linux")

    def __init__(self, directory: Path, workloads: WorkloadClusters) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._workloads = directory, workloads
        self._feeds: Feeds[InstanceEvent] = Feeds()
        self._watched: set[str] = set()

    def identify(self, cluster: ClusterKey, host: str) -> str:
        return f"process:///{cluster}/{host}"

    def node_name(self, id_: str) -> str:
        return ""  # its Node knows its provider ID from the start

    async def measure(self) -> MachineShape:
        return self.shape

    async def ensure_running(self, spec: InstanceSpec) -> Instance:
        found = self._read(spec.id)
        if found is None and not spec.made:
            found = self._start(spec)
        if found is None or not _alive(found):
            raise InstanceGone(f"the process of {spec.name} has ended")  # the pool makes another one, this Machine goes
        self._watch(spec, found["pid"])
        client = self._workloads.client(spec.cluster)
        if client is None:
            return _instance(spec.id, found, Stage.RUNNING, waiting=True)
        with suppress(AlreadyExists):  # a real instance has a kubelet for that
            await client.create(NODES, _node(spec))
        return _instance(spec.id, found, Stage.JOINED)

    async def ensure_absent(self, id_: str, name: str, cluster: ClusterKey, *, uid: str = "") -> None:
        found = self._read(id_)
        if found is None or (uid and found["uid"] != uid):
            return
        if _alive(found):
            os.kill(found["pid"], signal.SIGKILL)
        client = self._workloads.client(cluster)
        if client is not None:
            with suppress(NotFound):
                await client.delete(NODES, name)
        self._file(id_).unlink(missing_ok=True)

    async def list(self, cluster: ClusterKey, pool: str, uid: str = "") -> Sequence[Instance]:
        there = [json.loads(file.read_text()) for file in self._directory.glob("*.json")]
        mine = [
            f for f in there if f["cluster"] == str(cluster) and f["pool"] == pool and (not uid or f["pool_uid"] == uid)
        ]
        stage = {True: Stage.JOINED, False: Stage.STOPPED}
        return [_instance(f["id"], f, stage[_alive(f)]) for f in sorted(mine, key=lambda f: str(f["name"]))]

    def events(self) -> Feed[InstanceEvent]:
        return self._feeds.open()

    def _start(self, spec: InstanceSpec) -> dict[str, object]:
        command = spec.parameters.get("command", "exec sleep 1000000")
        null = subprocess.DEVNULL
        process = subprocess.Popen(
            ["/bin/sh", "-c", command], start_new_session=True, stdin=null, stdout=null, stderr=null
        )
        made: dict[str, object] = {"id": spec.id, "name": spec.name, "uid": spec.uid, "cluster": str(spec.cluster)}
        made |= {"pool": spec.pool, "pool_uid": spec.pool_uid, "pid": process.pid, "born": _born(process.pid)}
        self._file(spec.id).write_text(json.dumps(made))
        return made

    def _watch(self, spec: InstanceSpec, pid: int) -> None:
        """Tell when the process ends, whoever its parent is."""
        if spec.id in self._watched:
            return
        loop, watched = asyncio.get_running_loop(), os.pidfd_open(pid)

        def ended() -> None:
            loop.remove_reader(watched)
            os.close(watched)
            self._watched.discard(spec.id)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            self._feeds.publish(InstanceEvent(spec.cluster, spec.name, spec.pool))

        self._watched.add(spec.id)
        loop.add_reader(watched, ended)

    def _file(self, id_: str) -> Path:
        return self._directory / f"{id_.replace('/', '_')}.json"

    def _read(self, id_: str) -> dict | None:
        file = self._file(id_)
        return json.loads(file.read_text()) if file.exists() else None


def _born(pid: int) -> str:
    """A pid is used again; with its start time it means one process. "" for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def _alive(found: dict) -> bool:
    return bool(found["born"]) and _born(found["pid"]) == found["born"]


def _instance(id_: str, found: dict, stage: Stage, *, waiting: bool = False) -> Instance:
    namespace, _, cluster = str(found["cluster"]).partition("/")
    where = ClusterKey(namespace, cluster)
    name, pool = str(found["name"]), str(found["pool"])
    return Instance(id=id_, name=name, cluster=where, pool=pool, stage=stage, waiting_for_control_plane=waiting)


def _node(spec: InstanceSpec) -> dict:
    says = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    conditions = [{"type": type_, "status": status, "reason": "Process"} for type_, status in says.items()]
    status = {"conditions": conditions, "nodeInfo": {"kubeletVersion": spec.version}}
    return {"metadata": {"name": spec.name}, "spec": {"providerID": spec.id}, "status": status}


def main(*arguments: str) -> int:
    directory = Path(os.environ.get("CAPI_PROCESSES", HERE / ".processes"))

    def provide(workloads: WorkloadClusters) -> dict[str, Backend]:
        return {"process": Processes(directory / "instances", workloads)}

    files = tuple(map(Path, arguments)) or (HERE / "pool.yaml",)
    return up(provide, UpSettings(files=files, wait=True, data_dir=directory / "capi"))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

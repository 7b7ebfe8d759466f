"""A provider whose instances are processes of this machine: `python examples/provider/main.py`, then Ctrl-C.

What it promises is in capi.backends.port.Backend: verbs that may be repeated, an instance that is made once and never again,
news of what nobody asked for. A process outlives its provider; a file tells the next one which it is.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from capi.provider import (
    Backend,
    ClusterKey,
    Feed,
    Feeds,
    HostedNodes,
    Instance,
    InstanceEvent,
    InstanceGone,
    InstanceSpec,
    MachineShape,
    Stage,
    UpSettings,
    WorkloadClusters,
    up,
)

HERE = Path(__file__).parent


class Processes:
    """A Backend; `directory` holds a file for each process."""

    bootstraps = False  # nothing is executed in an instance
    shape = MachineShape({"cpu": "1", "memory": "1Gi"}, architecture="amd64", operating_system="linux")

    def __init__(self, directory: Path, workloads: WorkloadClusters) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._nodes = directory, HostedNodes(workloads)
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
        joined = await self._nodes.join(spec)  # a real instance has a kubelet for that
        return _instance(spec.id, found, Stage.JOINED if joined else Stage.RUNNING, waiting=not joined)

    async def ensure_absent(self, id_: str, name: str, cluster: ClusterKey, *, uid: str = "") -> None:
        found = self._read(id_)
        if found is not None and uid in ("", found["uid"]):
            if _alive(found):
                os.killpg(found["pid"], signal.SIGKILL)
            await self._nodes.leave(id_, name, cluster)
            self._file(id_).unlink(missing_ok=True)

    async def list(self, cluster: ClusterKey, pool: str, uid: str = "") -> Sequence[Instance]:
        there = [json.loads(file.read_text()) for file in sorted(self._directory.glob("*.json"))]
        mine = [
            f for f in there if f["cluster"] == str(cluster) and f["pool"] == pool and (not uid or f["pool_uid"] == uid)
        ]
        return [_instance(f["id"], f, Stage.JOINED if _alive(f) else Stage.STOPPED) for f in mine]

    def events(self) -> Feed[InstanceEvent]:
        return self._feeds.open()

    def _start(self, spec: InstanceSpec) -> dict[str, object]:
        command = spec.parameters.get("command", "exec sleep 1000000")
        quiet = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in range(3)]
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", command], os.environ, file_actions=quiet, setsid=True)
        made: dict[str, object] = {"id": spec.id, "name": spec.name, "uid": spec.uid, "cluster": str(spec.cluster)}
        made |= {"pool": spec.pool, "pool_uid": spec.pool_uid, "pid": pid, "born": _born(pid)}
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
            self._feeds.publish(InstanceEvent(spec.cluster, spec.name, spec.pool))

        self._watched.add(spec.id)
        loop.add_reader(watched, ended)

    def _file(self, id_: str) -> Path:
        return self._directory / f"{id_.replace('/', '_')}.json"

    def _read(self, id_: str) -> dict | None:
        return json.loads(self._file(id_).read_text()) if self._file(id_).exists() else None


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
    where = ClusterKey(*str(found["cluster"]).split("/"))
    more = {"name": str(found["name"]), "pool": str(found["pool"]), "waiting_for_control_plane": waiting}
    return Instance(id=id_, cluster=where, stage=stage, **more)


def main(*arguments: str) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who ends is reaped
    directory = Path(os.environ.get("CAPI_PROCESSES", HERE / ".processes"))

    def provide(workloads: WorkloadClusters) -> dict[str, Backend]:
        return {"process": Processes(directory / "instances", workloads)}

    files = tuple(map(Path, arguments)) or (HERE / "pool.yaml",)
    return up(provide, UpSettings(files=files, wait=True, data_dir=directory / "capi"))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

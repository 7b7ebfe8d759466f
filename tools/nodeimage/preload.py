"""Images put into the containerd of a root file system that does not run yet, by a containerd of the host's."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from tools.engine import host, processes
from tools.engine.place import Place
from tools.engine.shell import run, works

UNNEEDED = (
    "io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
)  # fmt: skip
START_TIMEOUT = 20.0  # seconds


def preload(place: Place, root: Path, archives: Iterable[Path]) -> None:
    """Import archives, not unpacked: a node unpacks at first use, which costs it little and keeps the image small."""
    host.install("containerd", "ctr")
    state = place.run / "preload"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    socket, store, log = state / "containerd.sock", root / "var/lib/containerd", place.log("preload")
    (state / "config.toml").write_text(
        f'version = 2\nroot = "{store}"\nstate = "{state / "state"}"\n'
        f'disabled_plugins = {json.dumps(UNNEEDED)}\n[grpc]\n  address = "{socket}"\n'
    )
    process = processes.spawn(["containerd", "--config", state / "config.toml"], log)
    try:
        processes.wait_started(process, lambda: works("ctr", "-a", socket, "version"), START_TIMEOUT, log)
        for archive in archives:
            run("ctr", "-a", socket, "-n", "k8s.io", "images", "import", "--no-unpack", archive)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(state)
    shutil.rmtree(store / "tmpmounts", ignore_errors=True)

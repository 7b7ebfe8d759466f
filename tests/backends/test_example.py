"""examples/provider, as a user runs it: a pool of processes lives, heals, shrinks and goes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.process import ENV, Kubectl

EXAMPLE = Path(__file__).parents[2] / "examples" / "provider" / "main.py"


@pytest.fixture
def provider(tmp_path: Path, kubectl: str) -> Iterator[Kubectl]:
    """kubectl of a running example."""
    log = tmp_path / "log"
    with log.open("wb") as out:
        environment = {**ENV, "CAPI_PROCESSES": str(tmp_path)}
        process = subprocess.Popen([sys.executable, EXAMPLE], stdout=out, stderr=subprocess.STDOUT, env=environment)
    try:
        until(lambda: "kubectl get machines" in log.read_text(), "the pool")
        yield Kubectl(kubectl, tmp_path / "capi" / "kubeconfig")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, log.read_text()
        for pid in processes(tmp_path / "instances").values():  # they outlive their provider
            os.kill(pid, signal.SIGKILL)


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, f"waiting for {what}"
        time.sleep(0.05)  # other processes: there is nothing to wait on


def processes(directory: Path) -> dict[str, int]:
    """Process IDs by the names of their instances, of those that are alive."""
    found: dict[str, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid = int(stat.parent.name)
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                continue
        except OSError:
            continue
        for file in directory.glob("*.json"):
            if f'"pid": {pid},' in file.read_text():
                found[file.stem.rpartition("_")[2]] = pid
    return found


def test_a_pool_of_processes_heals_shrinks_and_goes(provider: Kubectl, tmp_path: Path) -> None:
    there = tmp_path / "instances"
    before = provider.names("machines")
    assert len(before) == 3 and set(processes(there)) == before
    victim = sorted(before)[0]
    os.kill(processes(there)[victim], signal.SIGKILL)
    until(lambda: victim not in (now := provider.names("machines")) and len(now) == 3, "a replacement")
    provider.wait("machinepool/workers", "jsonpath={.status.phase}=Running")
    provider.run("scale", "machinepool", "workers", "--replicas=1")
    until(lambda: len(processes(there)) == 1 == len(provider.names("machines")), "two to go")
    provider.run("delete", "cluster", "processes", "--wait=true")
    assert not processes(there)
    assert not list(there.glob("*.json"))

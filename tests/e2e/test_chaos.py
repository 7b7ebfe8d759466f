"""`capi chaos` beside a `capi up`: real processes, ports and files; faults survive `kill -9`."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import capi, get, running_up

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart.yaml"
CORE = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines"
PLANE = "/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/devcontrolplanes/quickstart"


def chaos(data: Path, *args: str) -> list[str]:
    """Lines of output of a command that must succeed."""
    done = capi("chaos", *args, f"--data-dir={data}")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def until(holds: Callable[[], bool], timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.2)  # another process: there is nothing to wait on


def condition(obj: Any, type_: str) -> tuple[str, str]:
    found = [c for c in obj.get("status", {}).get("conditions", ()) if c["type"] == type_]
    return (found[0]["status"], found[0]["reason"]) if found else ("", "")


def ready(data: Path) -> dict[str, bool]:
    """Machines by name."""
    items = json.loads(get(data / "kubeconfig", CORE))["items"]
    return {item["metadata"]["name"]: condition(item, "Ready")[0] == "True" for item in items}


def available(data: Path) -> tuple[str, str]:
    return condition(json.loads(get(data / "kubeconfig", PLANE)), "Available")


@pytest.mark.slow
def test_faults_survive_a_crash_and_end_when_they_are_cleared(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_up(data, str(EXAMPLE)) as up:
        until(lambda: list(ready(data).values()) == [True] * 3)
        lost, sick, _ = sorted(ready(data))
        assert chaos(data, "machine", lost, "lose") == [f"DevMachine default/{lost}: failure=InstanceLost"]
        until(lambda: lost not in ready(data) and list(ready(data).values()) == [True] * 3)
        chaos(data, "machine", sick, "not-ready")
        until(lambda: not ready(data)[sick])
        chaos(data, "cluster", "quickstart", "api-down")
        until(lambda: available(data) == ("False", "SimulatedOutage"))
        up.kill()
    with running_up(data):
        chaos(data, "pool", "workers", "capacity", "3")  # the controllers have started, or soon will have
        assert available(data) == ("False", "SimulatedOutage")
        assert lost not in ready(data) and not ready(data)[sick]
        assert len(chaos(data, "clear", "cluster", "quickstart", "--all")) == 3
        until(lambda: available(data)[0] == "True" and list(ready(data).values()) == [True] * 3)
        assert lost not in ready(data) and sick in ready(data)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with running_up(tmp_path / "data"):
        done = capi("chaos", "pool", "none", "not-ready", f"--data-dir={tmp_path / 'data'}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == 'error: MachinePool "none" not found in namespace "default"; -n names another one\n'

"""kill -9 at any moment: nothing acknowledged is lost, resourceVersions go on upward, the pool converges."""

import json
import random
import subprocess
from pathlib import Path

import pytest

from tests.e2e.process import Kubectl, running_up

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"

pytestmark = [pytest.mark.kubectl, pytest.mark.slow, pytest.mark.timeout(300)]


def uids(k: Kubectl, kinds: str) -> dict[str, str]:
    return {f"{o['kind']}/{o['metadata']['name']}": o["metadata"]["uid"] for o in k.json("get", kinds)["items"]}


def revision(k: Kubectl) -> int:
    """The server's newest resourceVersion (kubectl's own Lists carry none)."""
    raw = json.loads(k.run("get", "--raw", "/api/v1/namespaces/default/configmaps?limit=1"))
    return int(raw["metadata"]["resourceVersion"])


def running(k: Kubectl, count: int) -> None:
    k.wait("machinepool/workers", f"jsonpath={{.status.readyReplicas}}={count}", "jsonpath={.status.phase}=Running")


def test_a_settled_world_is_the_same_after_kill_dash_nine(kubectl: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    k = Kubectl(kubectl, data / "kubeconfig")
    kinds = "clusters,machinepools,machines,devmachines,devmachinepools,secrets"
    with running_up(data, str(QUICKSTART)) as up:
        k.wait("machinepool/workers", "create", "jsonpath={.status.replicas}=3")
        running(k, 3)
        before = uids(k, kinds)
        newest = revision(k)
        up.kill()
    with running_up(data):
        running(k, 3)
        assert uids(k, kinds) == before, "no object was made anew"
        assert revision(k) >= newest
        k.run("scale", "mp", "workers", "--replicas=4")
        k.wait("machinepool/workers", "jsonpath={.status.replicas}=4")
        running(k, 4)
        assert before.items() <= uids(k, kinds).items(), "the four are the three and one more"


@pytest.mark.parametrize("seed", range(3))
def test_no_acknowledged_write_is_lost_and_the_pool_converges(kubectl: str, tmp_path: Path, seed: int) -> None:
    """Scale up and write ConfigMaps; kill at a random moment in between, several times; then look."""
    rng = random.Random(seed)
    data = tmp_path / "data"
    k = Kubectl(kubectl, data / "kubeconfig")
    acknowledged: dict[str, int] = {}
    highest = 0
    for round_ in range(3):
        with running_up(data, *([str(QUICKSTART)] if round_ == 0 else [])) as up:
            newest = revision(k)
            assert newest >= highest, "resourceVersions go on upward"
            highest = newest
            k.wait("machinepool/workers", "jsonpath={.metadata.name}=workers")
            writing = subprocess.Popen(
                [
                    "sh", "-c",
                    f"for i in $(seq 1 400); do {kubectl} --kubeconfig={k.kubeconfig} create configmap r{round_}-$i -o name || exit; done",
                ],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            k.run("scale", "mp", "workers", f"--replicas={4 + round_ * 2}")
            try:
                writing.wait(rng.uniform(0.3, 2.0))
            except subprocess.TimeoutExpired:
                up.kill()
            lines, _ = writing.communicate()
            for line in lines.splitlines():
                acknowledged[line.removeprefix("configmap/")] = round_
    with running_up(data):
        listed = k.json("get", "configmaps")
        names = {o["metadata"]["name"] for o in listed["items"]}
        assert acknowledged and set(acknowledged) <= names
        assert revision(k) >= highest
        k.wait("machinepool/workers", "jsonpath={.status.replicas}=8", timeout="90s")
        running(k, 8)
        assert len(k.names("machines")) == 8
        assert len(k.names("devmachines")) == 8

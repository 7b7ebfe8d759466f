"""The main job through the real kubectl, on `capi up`, on `capi manager` over HTTP, and on a real kube-apiserver."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.process import Kubectl, capi, running_manager, running_up

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"
CORE_KINDS = "clusters,machinepools,machines,devclusters,devmachines,devmachinepools,devcontrolplanes"

pytestmark = [pytest.mark.kubectl, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(params=["up", "manager", pytest.param("real", marks=pytest.mark.real)])
def cluster(request: pytest.FixtureRequest, kubectl: str, tmp_path: Path) -> Iterator[Kubectl]:
    """A management API with the controllers at work: in one process, over HTTP, and on a real kube-apiserver."""
    if request.param == "up":
        with running_up(tmp_path / "data"):
            yield Kubectl(kubectl, tmp_path / "data" / "kubeconfig")
    elif request.param == "manager":
        with running_up(tmp_path / "data", "--no-controllers"):
            kubeconfig = tmp_path / "data" / "kubeconfig"
            with running_manager(kubeconfig, tmp_path / "manager.log"):
                yield Kubectl(kubectl, kubeconfig)
    else:
        kubeconfig = request.getfixturevalue("real_kubeconfig")
        real = Kubectl(kubectl, kubeconfig)
        crds = capi("manifests", "--only", "crds")
        real.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=crds.stdout)
        real.wait("crd --all", "condition=Established")
        with running_manager(kubeconfig, tmp_path / "manager.log"):
            yield real


def machines(k: Kubectl) -> set[str]:
    return k.names("machines")


def running(k: Kubectl, count: int) -> None:
    k.wait("machinepool/workers", f"jsonpath={{.status.readyReplicas}}={count}", "jsonpath={.status.phase}=Running")
    k.wait("machines --all", "jsonpath={.status.phase}=Running")


def test_a_pool_lives_its_whole_life_under_kubectl(cluster: Kubectl, tmp_path: Path) -> None:
    k = cluster
    k.run("apply", "-f", str(QUICKSTART))
    k.wait("machinepool/workers", "jsonpath={.status.replicas}=3")
    running(k, 3)

    wide = k.run("get", "mp,machines", "-o", "wide")
    assert "workers" in wide and wide.count("Running") == 4, wide
    assert "INTERNAL-IP" in wide, wide
    described = k.run("describe", "mp", "workers")
    assert "Phase:" in described and "Running" in described

    assert "unchanged" in k.run("apply", "-f", str(QUICKSTART))
    k.run("apply", "--server-side", "--force-conflicts", "-f", str(QUICKSTART))

    before = machines(k)
    k.run("scale", "mp", "workers", "--replicas=5")
    running(k, 5)
    assert before < machines(k), "scaling up keeps the Machines there are"

    victim = sorted(machines(k))[0]
    k.run("delete", "machine", victim)
    running(k, 5)
    k.wait("machinepool/workers", "jsonpath={.status.replicas}=5")
    assert victim not in machines(k), "a deleted Machine is replaced by another"

    marked = sorted(machines(k))[-1]
    k.run("annotate", "machine", marked, "cluster.x-k8s.io/delete-machine=")
    kept = machines(k)
    k.run("scale", "mp", "workers", "--replicas=4")
    k.run("wait", "--for=delete", f"machine/{marked}", "--timeout=60s")
    running(k, 4)
    assert machines(k) == kept - {marked}, "the marked Machine goes, and only that"

    k.run("scale", "mp", "workers", "--replicas=2")
    k.wait("machinepool/workers", "jsonpath={.status.replicas}=2")
    running(k, 2)

    nodes = workload_nodes(k, tmp_path)
    node_refs = {m["status"]["nodeRef"]["name"] for m in k.json("get", "machines")["items"]}
    assert nodes == node_refs, "the workload cluster has the Nodes of the Machines and no others"

    k.run("delete", "cluster", "quickstart", "--timeout=90s", timeout=120)
    left = k.json("get", CORE_KINDS)["items"]
    assert [f"{o['kind']}/{o['metadata']['name']}" for o in left] == []


def workload_nodes(k: Kubectl, tmp_path: Path) -> set[str]:
    kubeconfig = tmp_path / "workload.kubeconfig"
    got = capi("get", "kubeconfig", "quickstart", f"--kubeconfig={k.kubeconfig}")
    assert got.returncode == 0, got.stderr
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(got.stdout)
    return Kubectl(k.path, kubeconfig).names("nodes")


def test_get_dash_w_prints_a_line_per_change(kubectl: str, tmp_path: Path) -> None:
    with running_up(tmp_path / "data", str(QUICKSTART), "--wait"):
        k = Kubectl(kubectl, tmp_path / "data" / "kubeconfig")
        running(k, 3)
        command = [kubectl, f"--kubeconfig={k.kubeconfig}", "get", "mp", "workers", "-w", "--no-headers"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            first = watching.stdout.readline()
            assert "Running" in first
            k.run("scale", "mp", "workers", "--replicas=4")
            lines = [first]
            while not (lines[-1].split()[2:5] == ["4", "4", "4"] and "Running" in lines[-1]):
                lines.append(watching.stdout.readline())
                assert lines[-1], f"the watch ended early: {lines}"
            watching.terminate()
        assert any("ScalingUp" in line for line in lines), lines

"""What people read about a pool through the real kubectl: columns, descriptions, waits, refusals."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.process import Kubectl, capi, running_up

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]


@pytest.fixture(scope="module")
def k(kubectl: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A pool of three that runs; tests of this module only read, or take back what they change."""
    data = tmp_path_factory.mktemp("reading") / "data"
    with running_up(data, str(QUICKSTART)):
        made = Kubectl(kubectl, data / "kubeconfig")
        made.wait("machinepool/workers", "jsonpath={.status.readyReplicas}=3", "jsonpath={.status.phase}=Running")
        yield made


@pytest.fixture(scope="module")
def workload(k: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """The pool's cluster."""
    path = tmp_path_factory.mktemp("workload") / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(capi("get", "kubeconfig", "quickstart", f"--kubeconfig={k.kubeconfig}").stdout)
    return Kubectl(k.path, path)


def header(output: str) -> list[str]:
    return [word.strip() for word in output.splitlines()[0].split("  ") if word.strip()]


def test_a_pool_has_the_columns_of_cluster_api(k: Kubectl) -> None:
    narrow = ["NAME", "CLUSTER", "DESIRED", "CURRENT", "READY", "AVAILABLE", "UP-TO-DATE", "PHASE", "AGE", "VERSION"]
    assert header(k.run("get", "mp")) == narrow
    assert header(k.run("get", "mp", "-o", "wide")) == [*narrow[:7], "PAUSED", *narrow[7:]]
    row = k.run("get", "mp", "--no-headers").split()
    assert row[:8] == ["workers", "quickstart", "3", "3", "3", "3", "3", "Running"]


def test_a_machine_has_the_columns_of_cluster_api(k: Kubectl) -> None:
    narrow = "NAME,CLUSTER,NODE NAME,FAILURE DOMAIN,READY,AVAILABLE,UP-TO-DATE,PHASE,AGE,VERSION"
    assert header(k.run("get", "ma")) == narrow.split(",")
    wide = (
        "NAME,CLUSTER,NODE NAME,PROVIDER ID,FAILURE DOMAIN,READY,AVAILABLE,UP-TO-DATE,INTERNAL-IP,EXTERNAL-IP,"
        "OS-IMAGE,PAUSED,PHASE,AGE,VERSION"
    )
    assert header(k.run("get", "ma", "-o", "wide")) == wide.split(",")


def test_a_machine_is_described_with_its_own_events(k: Kubectl) -> None:
    one, other, _ = sorted(k.names("machines"))
    described = k.run("describe", "machine", one)
    events = described.partition("Events:")[2]
    assert "SuccessfulSetNodeRef" in events and other not in events
    assert "Kind:         Machine" in described


def test_a_pool_is_described_with_its_conditions_and_events(k: Kubectl) -> None:
    described = k.run("describe", "mp", "workers")
    assert "Phase:" in described and "Running" in described and "NotScalingUp" in described
    assert "SuccessfulCreate" in described.partition("Events:")[2]


@pytest.mark.parametrize(
    ("target", "condition"),
    [
        ("machines --all", "condition=Ready"),
        ("machinepool/workers", "condition=Available"),
        ("machinepool/workers", "condition=ScalingUp=False"),
        ("machinepool/workers", "jsonpath={.status.readyReplicas}=3"),
        ("machinepool/workers", "jsonpath={.status.nodeRefs}"),
        ("cluster/quickstart", "jsonpath={.status.phase}=Provisioned"),
    ],
)
def test_conditions_and_fields_can_be_waited_for(k: Kubectl, target: str, condition: str) -> None:
    k.wait(target, condition, timeout="10s")


def test_the_category_shows_every_kind_in_use(k: Kubectl) -> None:
    found = k.run("get", "cluster-api", "-A", "-o", "name")
    kinds = {line.partition(".")[0] for line in found.splitlines()}
    assert kinds == {
        "cluster", "machinepool", "machine", "devcluster", "devmachinepool", "devmachine", "devcontrolplane",
    }  # fmt: skip


def test_machines_are_selected_and_sorted(k: Kubectl) -> None:
    selected = ["-l", "cluster.x-k8s.io/cluster-name=quickstart", "--sort-by=.metadata.creationTimestamp", "-o", "name"]
    assert len(k.run("get", "ma", *selected).splitlines()) == 3
    assert k.run("get", "ma", "-l", "cluster.x-k8s.io/cluster-name=other", "-o", "name") == ""


def test_the_schema_is_explained(k: Kubectl) -> None:
    explained = k.run("explain", "mp.spec.template", "--recursive")
    assert "minReadySeconds" in explained and "infrastructureRef" in explained
    assert "DESCRIPTION:" in k.run("explain", "machinepool.spec.replicas")


def test_a_scale_that_expects_another_size_changes_nothing(k: Kubectl) -> None:
    said = k.run("scale", "mp/workers", "--replicas=4", "--current-replicas=2", check=False)
    assert "Expected replicas to be 2, was 3" in said
    assert k.json("get", "mp", "workers")["spec"]["replicas"] == 3


def test_events_of_one_pool_are_listed(k: Kubectl) -> None:
    assert "SuccessfulCreate" in k.run("events", "--for", "machinepool/workers")


def test_nodes_of_the_workload_cluster_are_shown_and_described(k: Kubectl, workload: Kubectl) -> None:
    assert workload.names("nodes") == k.names("machines")
    lines = workload.run("get", "nodes", "--no-headers").splitlines()
    assert [line.split()[1] for line in lines] == ["Ready"] * 3
    described = workload.run("describe", "node", min(k.names("machines")))
    assert "ProviderID:" in described and "cluster.x-k8s.io/machine" in described
    assert "quickstart" not in workload.run("get", "namespaces", "-o", "name")


def test_a_node_is_cordoned_and_drained(k: Kubectl, workload: Kubectl) -> None:
    name = min(k.names("machines"))
    assert "drained" in workload.run("drain", name, "--ignore-daemonsets", "--timeout=20s")
    assert "SchedulingDisabled" in workload.run("get", "node", name)
    workload.run("uncordon", name)


def test_logs_of_simulated_pods_are_refused_at_once(workload: Kubectl) -> None:
    assert "NotFound" in workload.run("logs", "nobody", check=False, timeout=10)


def test_what_one_may_do_is_told(k: Kubectl) -> None:
    assert k.run("auth", "can-i", "create", "machinepools").strip() == "yes"


def test_a_kind_that_is_not_served_is_named(k: Kubectl) -> None:
    assert "the server doesn't have a resource type" in k.run("get", "kubeadmconfigs", check=False)
    assert "not found" in k.run("get", "mp", "nobody", check=False)

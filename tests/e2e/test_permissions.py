"""What `capi manager` may do by its own ClusterRoles is enough, on a real kube-apiserver, for providers of other groups too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from capi.api.core import labels
from capi.kube import yaml
from capi.kube.types import Object, ResourceType
from tests import real_apiserver
from tests.e2e.process import Kubectl, capi, running_manager
from tests.virtual.runtime.embedded import a_crd

pytestmark = [pytest.mark.real, pytest.mark.kubectl]

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"
ACCOUNT = "system:serviceaccount:capi-system:capi-manager"
FOREIGN = ResourceType("clouds.example.com", "v1", "ExampleCluster", "exampleclusters")
"""In a group that no rule of the manager's own role names."""
ROLE: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "example-provider", "labels": {labels.AGGREGATE_TO_MANAGER: "true"}},
    "rules": [
        {
            "apiGroups": [FOREIGN.group],
            "resources": ["*"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        }
    ],
}
NOWHERE = "unix:///nowhere/docker.sock"
CONTAINERS = """
apiVersion: v1
kind: Namespace
metadata: {name: boxes}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: boxes, namespace: boxes}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerCluster, name: boxes}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerCluster
metadata: {name: boxes, namespace: boxes}
spec:
  loadBalancer: {customHAProxyConfigTemplateRef: {name: template}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: given, namespace: boxes}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerCluster, name: given}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerCluster
metadata: {name: given, namespace: boxes, annotations: {cluster.x-k8s.io/managed-by: this-test}}
spec:
  controlPlaneEndpoint: {host: 127.0.0.1, port: 1}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachinePool
metadata: {name: w, namespace: boxes}
spec:
  clusterName: given
  replicas: 1
  template:
    spec:
      clusterName: given
      version: v1.34.0
      bootstrap: {dataSecretName: data}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerMachinePool, name: w}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerMachinePool
metadata: {name: w, namespace: boxes}
spec: {}
"""
PROVISIONED = '{"status": {"initialization": {"provisioned": true}}}'
WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Kubectl]:
    """Everything of `capi manifests` but the webhooks, which nobody serves here."""
    folder = real_apiserver.assets()
    if folder is None:
        pytest.skip("no kube-apiserver; make envtest builds one")
    with real_apiserver.running(folder, tmp_path_factory.mktemp("permissions")) as kubeconfig:
        k = Kubectl(kubectl, kubeconfig)
        k.run("apply", "--server-side", "-f", "-", stdin=capi("manifests").stdout)
        for kind in WEBHOOKS:
            k.run("delete", kind, "-l", "app.kubernetes.io/name=capi")
        crds = k.run("get", "crd", "-o", "name").split()
        k.run("wait", *crds, "--for=condition=Established", "--timeout=30s")
        yield k


@pytest.fixture
def manager(server: Kubectl, tmp_path: Path) -> Iterator[None]:
    """A manager that acts as its service account, and finds no Docker engine."""
    document = yaml.load(server.kubeconfig.read_bytes())
    for entry in document["users"]:
        entry["user"] |= {"as": ACCOUNT, "as-groups": ["system:serviceaccounts", "system:authenticated"]}
    restricted = tmp_path / "restricted"
    restricted.write_text(yaml.dump(document))
    with running_manager(restricted, tmp_path / "log", DOCKER_HOST=NOWHERE) as running:
        running.wait_for("Leading", 30)
        yield
        assert "forbidden" not in running.output().lower()


def test_a_pool_comes_and_goes(server: Kubectl, manager: None) -> None:
    server.run("create", "-f", str(QUICKSTART))
    server.wait("machinepool/workers", "jsonpath={.status.phase}=Running", "jsonpath={.status.readyReplicas}=3")
    told = {event["reason"] for event in server.json("get", "events")["items"]}
    assert {"ControlPlaneInitialized", "SuccessfulSetNodeRef"} <= told, "events too"
    server.run("delete", "cluster", "quickstart", "--timeout=60s")
    assert server.names("machines") == set()


def test_a_provider_of_another_group_is_used_by_the_role_it_brings(server: Kubectl, manager: None) -> None:
    aggregated = server.json("get", "clusterrole", "capi-manager-aggregated")
    [selector] = aggregated["aggregationRule"]["clusterRoleSelectors"]
    assert selector["matchLabels"].items() <= ROLE["metadata"]["labels"].items()
    server.run("create", "-f", "-", stdin=yaml.dump(ROLE))
    filled = {**aggregated, "rules": ROLE["rules"]}  # as the aggregation controller does, which does not run here
    server.run("replace", "-f", "-", stdin=yaml.dump(filled))
    crd = {**a_crd(FOREIGN, {"cluster.x-k8s.io/v1beta2": "v1"}), "apiVersion": "apiextensions.k8s.io/v1"}
    server.run("create", "-f", "-", stdin=yaml.dump({**crd, "kind": "CustomResourceDefinition"}))
    server.run("wait", f"crd/{FOREIGN.qualified_plural}", "--for=condition=Established", "--timeout=30s")
    ref = {"apiGroup": FOREIGN.group, "kind": FOREIGN.kind, "name": "theirs"}
    meta = {"name": "theirs", "namespace": "default"}
    cluster = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta, "spec": {"infrastructureRef": ref}}  # fmt: skip
    infra = {"apiVersion": FOREIGN.api_version, "kind": FOREIGN.kind, "metadata": meta}
    server.run("create", "-f", "-", stdin=yaml.dump(cluster))
    server.run("create", "-f", "-", stdin=yaml.dump(infra))
    server.run("patch", FOREIGN.qualified_plural, "theirs", "--subresource=status", "--type=merge", "-p", PROVISIONED)
    server.wait("cluster/theirs", "jsonpath={.status.initialization.infrastructureProvisioned}=true")
    [owner] = server.json("get", FOREIGN.qualified_plural, "theirs")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Cluster", "theirs")
    server.run("delete", "cluster", "theirs", "--timeout=60s")
    assert server.names(FOREIGN.qualified_plural) == set()


def test_containers_come_as_far_as_the_engine(server: Kubectl, manager: None) -> None:
    """The Docker kinds are reconciled, and the ConfigMap and Secret they name are read; only the engine is missing."""
    server.run("create", "-f", "-", stdin=CONTAINERS)
    balanced, boxes = "--for=jsonpath={.status.conditions[?(@.type=='LoadBalancerAvailable')].reason}", "-n=boxes"
    server.run("wait", boxes, "dockercluster/boxes", f"{balanced}=InvalidLoadBalancerTemplate", "--timeout=30s")
    server.run("create", boxes, "configmap", "template", "--from-literal=value=defaults")
    server.run("wait", boxes, "dockercluster/boxes", f"{balanced}=BackendUnavailable", "--timeout=30s")
    server.run("patch", boxes, "dockercluster", "given", "--subresource=status", "--type=merge", "-p", PROVISIONED)
    server.run("wait", boxes, "dockermachinepool/w", "--for=jsonpath={.status.replicas}=1", "--timeout=30s")
    [machine] = server.names("dockermachines", boxes)
    made = "--for=jsonpath={.status.conditions[?(@.type=='ContainerProvisioned')].reason}"
    server.run("wait", boxes, f"dockermachine/{machine}", f"{made}=WaitingForBootstrapData", "--timeout=30s")
    server.run("create", boxes, "secret", "generic", "data", "--from-literal=value=#cloud-config")
    server.run("wait", boxes, f"dockermachine/{machine}", f"{made}=BackendUnavailable", "--timeout=30s")
    ready = "--for=jsonpath={.status.conditions[?(@.type=='ReplicasReady')].reason}"
    server.run("wait", boxes, "dockermachinepool/w", f"{ready}=BackendUnavailable", "--timeout=30s")

"""`capi manifests` on a real kube-apiserver: bad input is refused there too, without any webhook."""

from collections.abc import Iterator

import pytest

from tests import real_apiserver
from tests.e2e.process import Kubectl, capi

pytestmark = [pytest.mark.real, pytest.mark.kubectl]

POOL = """
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachinePool
metadata: {name: p, namespace: default}
spec:
  clusterName: c
  replicas: 3
  template:
    spec:
      clusterName: c
      version: v1.35.4
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevMachinePool, name: p}
"""
MACHINE_SET = """
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineSet
metadata: {name: s, namespace: default}
spec:
  clusterName: c
  selector: {}
  template:
    spec:
      clusterName: c
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevMachineTemplate, name: p}
"""
WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Kubectl]:
    """A server of its own: the policies would disturb other tests."""
    folder = real_apiserver.assets()
    if folder is None:
        pytest.skip("no kube-apiserver; make envtest builds one")
    with real_apiserver.running(folder, tmp_path_factory.mktemp("manifests")) as kubeconfig:
        k = Kubectl(kubectl, kubeconfig)
        k.run("apply", "--server-side", "-f", "-", stdin=capi("manifests").stdout)
        for kind in WEBHOOKS:  # nobody serves them here: what do the CRDs refuse?
            k.run("delete", kind, "-l", "app.kubernetes.io/name=capi")
        crds = k.run("get", "crd", "-o", "name").split()
        k.run("wait", *crds, "--for=condition=Established", "--timeout=30s")
        while "machineset.cluster.x-k8s.io/s created" in k.run(
            "create", "--dry-run=server", "-f", "-", stdin=MACHINE_SET, check=False
        ):
            pass  # policies work a moment after they are stored; pytest's timeout ends this
        yield k


def test_everything_is_accepted(server: Kubectl) -> None:
    assert server.names("crd") >= {"machinepools.cluster.x-k8s.io", "devmachinepools.infrastructure.cluster.x-k8s.io"}
    assert server.names("validatingadmissionpolicies") >= {"capi-no-machinesets", "capi-no-machinedeployments"}
    assert "capi-manager" in server.names("deployments", "-n", "capi-system")


@pytest.mark.parametrize(
    "manifest, words",
    [
        pytest.param(POOL.replace("replicas: 3", "replicas: -1"), ["spec.replicas", "-1"], id="negative replicas"),
        pytest.param(
            POOL.replace("clusterName: c\n  replicas", "clusterName: d\n  replicas"),
            ["spec.clusterName", "must be equal"],
            id="two Clusters",
        ),
        pytest.param(POOL.replace("v1.35.4", "1.35.4"), ["spec.template.spec.version"], id="version without v"),
        pytest.param(POOL.replace('{dataSecretName: ""}', "{}"), ["spec.template.spec.bootstrap"], id="no bootstrap"),
        pytest.param(MACHINE_SET, ["MachineSets are not reconciled"], id="MachineSet"),
    ],
)
def test_bad_input_is_refused_without_a_webhook(server: Kubectl, manifest: str, words: list[str]) -> None:
    said = server.run("create", "-f", "-", stdin=manifest, check=False)
    assert all(word in said for word in words), said


def test_the_cluster_of_a_pool_cannot_be_changed(server: Kubectl) -> None:
    server.run("create", "-f", "-", stdin=POOL)
    said = server.run("replace", "-f", "-", stdin=POOL.replace("clusterName: c", "clusterName: d"), check=False)
    assert "spec.clusterName" in said and "immutable" in said

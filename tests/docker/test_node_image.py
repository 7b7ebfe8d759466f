"""The real node image: a control plane, and a node that joins it."""

import time
from collections.abc import Iterator

import pytest

from tests.docker.conftest import NAMESPACE_LABEL
from tests.docker.engine import Engine
from tests.docker.test_engine import NODE_SETTINGS

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

TOKEN = "abcdef.0123456789abcdef"
IGNORED = "--ignore-preflight-errors=all"
KUBECTL = ("kubectl", "--kubeconfig=/etc/kubernetes/admin.conf")
CONFIGURATION = f"""\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{{token: {TOKEN}}}]
nodeRegistration:
  taints: []
  kubeletExtraArgs:
  - {{name: cgroup-root, value: /kubelet}}
  - {{name: fail-swap-on, value: "false"}}
  - {{name: eviction-hard, value: "nodefs.available<0%,nodefs.inodesFree<0%,imagefs.available<0%"}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.34.4
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack: {{maxPerCore: 0}}
"""


@pytest.fixture
def nodes(engine: Engine, kubernetes_image: str, namespace: str) -> Iterator[tuple[str, str]]:
    """Two nodes that run systemd and containerd and are in no cluster."""
    names = (f"{namespace}-a", f"{namespace}-b")
    try:
        for name in names:
            engine.run(name, kubernetes_image, {NAMESPACE_LABEL: namespace}, Hostname=name, Tty=True, **NODE_SETTINGS)
        for name in names:
            until(engine, name, "", "crictl", "ps")
        yield names
    finally:
        for name in names:
            engine.remove(name)


def test_a_cluster_of_two_nodes_comes_up_with_all_its_pods(engine: Engine, nodes: tuple[str, str]) -> None:
    first, second = nodes
    engine.write(first, "/kind/kubeadm.conf", CONFIGURATION)
    ran(engine, first, "kubeadm", "init", "--config=/kind/kubeadm.conf", IGNORED)
    ran(engine, first, *KUBECTL, "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
    address = engine.inspect(first)["NetworkSettings"]["Networks"]["kind"]["IPAddress"]
    insecure = ("--discovery-token-unsafe-skip-ca-verification", f"--token={TOKEN}", IGNORED)
    ran(engine, second, "kubeadm", "join", f"{address}:6443", *insecure)
    for name in nodes:
        until(
            engine,
            first,
            "True",
            *KUBECTL,
            "get",
            "node",
            name,
            "-o",
            'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
        )
    ran(engine, first, *KUBECTL, "-n", "kube-system", "rollout", "status", "daemonset/kube-proxy", "--timeout=120s")


def ran(engine: Engine, container: str, *command: str) -> str:
    """What a command said that has to succeed."""
    code, said = engine.exec(container, *command)
    assert code == 0, f"{' '.join(command)} exited {code}:\n{said}"
    return said


def until(engine: Engine, container: str, expected: str, *command: str) -> None:
    """Until a command in a node succeeds and says that."""
    deadline = time.monotonic() + 120
    while (code_said := engine.exec(container, *command))[0] or expected not in code_said[1]:
        assert time.monotonic() < deadline, f"{' '.join(command)}: {code_said}"
        time.sleep(0.2)  # another machine, in effect: there is nothing to wait on

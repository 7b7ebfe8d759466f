"""What a simulated control plane machine has besides its Node: static Pods, an etcd member, and what kubeadm leaves. Pure.

Upstream: docker/reconcilers/backends/inmemory/inmemorymachine_backend.go. Differs: identifiers are drawn once, from uids;
leadership of an etcd member that goes passes to the oldest one left.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from capi.backends.port import InstanceSpec
from capi.kube import times
from capi.kube.types import Object, ResourceType

PODS = ResourceType("", "v1", "Pod", "pods")
CLUSTER_ROLES = ResourceType("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
BINDINGS = ResourceType(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
CONFIG_MAPS = ResourceType("", "v1", "ConfigMap", "configmaps")
DAEMON_SETS = ResourceType("apps", "v1", "DaemonSet", "daemonsets")
DEPLOYMENTS = ResourceType("apps", "v1", "Deployment", "deployments")

NAMESPACE = "kube-system"
ROLE = "node-role.kubernetes.io/control-plane"
"""Label of the Node, and key of its taint."""
ETCD = "etcd"
API_SERVER = "kube-apiserver"
COMPONENTS = (API_SERVER, "kube-scheduler", "kube-controller-manager")
"""What starts when the API server does."""

_ETCD = "etcd.inmemory.infrastructure.cluster.x-k8s.io/"
CLUSTER_ID = f"{_ETCD}cluster-id"
MEMBER_ID = f"{_ETCD}member-id"
LEADER_FROM = f"{_ETCD}leader-from"
"""On the Pods of etcd members: the one with the newest time leads."""
_COREDNS = "v1.10.1"


def pod_name(component: str, machine: str) -> str:
    """As a kubelet names the mirror of a static Pod."""
    return f"{component}-{machine}"


def selector(component: str) -> str:
    """Label selector of a component's Pods."""
    return f"component={component},tier=control-plane"


def static_pod(component: str, spec: InstanceSpec, annotations: Mapping[str, str] | None = None) -> Object:
    """The mirror of a static Pod, without its status."""
    image = f"registry.k8s.io/{component}:{spec.version}"
    return {
        "metadata": {
            "name": pod_name(component, spec.name),
            "namespace": NAMESPACE,
            "labels": {"component": component, "tier": "control-plane"},
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "nodeName": spec.name,
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": component, "image": image}],
        },
    }


def member(spec: InstanceSpec, others: Sequence[Object], now: datetime) -> dict[str, str]:
    """Annotations of a new etcd member's Pod, given the Pods of those there are: the first one makes the cluster, and leads."""
    clusters = [found for pod in others if (found := _notes(pod).get(CLUSTER_ID))]
    own = {MEMBER_ID: str(_number("member", spec.uid))}
    if clusters:
        return {CLUSTER_ID: clusters[0], **own}
    return {CLUSTER_ID: str(_number("cluster", spec.uid)), **own, LEADER_FROM: times.format_micro(now)}


def leader(members: Iterable[Object]) -> Object | None:
    """The Pod of the member that leads."""
    led = [pod for pod in members if LEADER_FROM in _notes(pod)]
    return max(led, key=lambda pod: _notes(pod)[LEADER_FROM], default=None)


def successor(members: Sequence[Object], leaving: str) -> Object | None:
    """The Pod of the member that is to lead when the Pod `leaving` goes; None if another one leads, or none is left."""
    first = leader(members)
    left = [pod for pod in members if pod["metadata"]["name"] != leaving]
    if first is None or first["metadata"]["name"] != leaving or not left:
        return None
    return min(left, key=lambda pod: (pod["metadata"].get("creationTimestamp", ""), pod["metadata"]["name"]))


def kubeadm(version: str) -> Sequence[tuple[ResourceType, Object]]:
    """What every cluster has after kubeadm: access to Nodes, its configuration, kube-proxy and coredns. Nothing of it runs."""
    reads_nodes = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}
    group = {
        "apiGroup": CLUSTER_ROLES.group,
        "kind": "Group",
        "name": "system:bootstrappers:kubeadm:default-node-token",
    }
    role = {"apiGroup": CLUSTER_ROLES.group, "kind": "ClusterRole", "name": "kubeadm:get-nodes"}
    configuration = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"
    return (
        (CLUSTER_ROLES, {"metadata": {"name": "kubeadm:get-nodes"}, "rules": [reads_nodes]}),
        (BINDINGS, {"metadata": {"name": "kubeadm:get-nodes"}, "roleRef": role, "subjects": [group]}),
        (CONFIG_MAPS, {"metadata": _in("kubeadm-config"), "data": {"ClusterConfiguration": configuration}}),
        (DAEMON_SETS, {"metadata": _in("kube-proxy"), "spec": _runs("kube-proxy", f"kube-proxy:{version}")}),
        (CONFIG_MAPS, {"metadata": _in("coredns"), "data": {"Corefile": "# simulated: nothing reads this\n"}}),
        (DEPLOYMENTS, {"metadata": _in("coredns"), "spec": _runs("coredns", f"coredns/coredns:{_COREDNS}")}),
    )


def _in(name: str) -> Object:
    return {"name": name, "namespace": NAMESPACE}


def _runs(name: str, image: str) -> Object:
    labels = {"k8s-app": name}
    container = {"name": name, "image": f"registry.k8s.io/{image}"}
    return {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }


def _notes(pod: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    return found


def _number(what: str, uid: str) -> int:
    """32 bits, never 0: etcd's own mean "none" by that."""
    return 1 + int.from_bytes(hashlib.sha256(f"{what}/{uid}".encode()).digest()[:4], "big") % (2**32 - 1)

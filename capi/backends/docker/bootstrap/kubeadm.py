"""kubeadm's configuration, completed with what a kubelet and kube-proxy need in a container. What the user set stays.

A container sees the host's disks, swap and cgroups: evictions, the check for swap and changes of conntrack are off.
Upstream: cloudinit/writefiles.go, fixNodeRegistration and its callers.
Differs: any number of documents, by kind; kubelet arguments are defaults, not forced; the provider ID is set at once instead
of by a later patch of the Node; the configuration of a kubelet or kube-proxy in the data is respected.
"""

from typing import Final

import orjson

from capi.backends.docker.bootstrap.fields import check_size, mapping
from capi.backends.docker.bootstrap.model import InvalidBootstrapData, NodeFacts
from capi.kube import yaml
from capi.kube.errors import BadRequest
from capi.kube.types import Json, Object

CRI_SOCKET: Final = "unix:///run/containerd/containerd.sock"
_REGISTERING = ("InitConfiguration", "JoinConfiguration")
_DEFAULTS = {
    "image-gc-high-threshold": "100",
    "eviction-hard": "nodefs.available<0%,nodefs.inodesFree<0%,imagefs.available<0%",
    "fail-swap-on": "false",
}
_CGROUP_DEFAULTS = {"cgroup-root": "/kubelet", "runtime-cgroups": "/system.slice/containerd.service"}
_KUBELET_FIELDS = {
    "image-gc-high-threshold": "imageGCHighThresholdPercent",
    "eviction-hard": "evictionHard",
    "fail-swap-on": "failSwapOn",
    "cgroup-root": "cgroupRoot",
    "provider-id": "providerID",
}
"""Flags that would win over the field of a KubeletConfiguration."""


def complete(content: bytes, path: str, node: NodeFacts, *, ignores_all: bool = False) -> bytes:
    """`content` of kubeadm's configuration file at `path`, completed for `node`.

    `ignores_all` says that kubeadm will be called with `--ignore-preflight-errors=all`, which it refuses beside names of
    single checks in the configuration; they are taken out. Raises InvalidBootstrapData.
    """
    documents = _documents(content, path)
    if not any(document.get("kind") in _REGISTERING for document in documents):
        documents.append(_init_configuration(documents, path))
    kubelet = {name for document in documents if document.get("kind") == "KubeletConfiguration" for name in document}
    defaults = {
        flag: value for flag, value in _kubelet_defaults(node).items() if _KUBELET_FIELDS.get(flag) not in kubelet
    }
    completed = [
        _registering(document, defaults, path, ignores_all) if document.get("kind") in _REGISTERING else document
        for document in documents
    ]
    kinds = [document.get("kind") for document in documents]
    if "InitConfiguration" in kinds and "KubeProxyConfiguration" not in kinds:
        completed.append(_KUBE_PROXY)
    return "---\n".join(_text(document) for document in completed).encode()


_KUBE_PROXY: Object = {
    "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
    "kind": "KubeProxyConfiguration",
    "conntrack": {"maxPerCore": 0},
}
"""0: kube-proxy leaves the kernel's table of connections alone; a container may not change it."""


def _documents(content: bytes, path: str) -> list[Object]:
    try:
        documents = yaml.load_all(content)
    except BadRequest as error:
        raise InvalidBootstrapData(f"{path} cannot be read: {error}; kubeadm needs YAML documents") from error
    check_size(documents, path)
    for number, document in enumerate(documents, start=1):
        if not isinstance(document, dict):
            raise InvalidBootstrapData(
                f"{path}: document {number} is no mapping; kubeadm needs apiVersion and kind in each"
            )
    return documents


def _init_configuration(documents: list[Object], path: str) -> Object:
    """kubeadm's default, when only the cluster is configured."""
    cluster = next((document for document in documents if document.get("kind") == "ClusterConfiguration"), None)
    if cluster is None:
        kinds = ", ".join(str(document.get("kind", "no kind")) for document in documents) or "no document"
        raise InvalidBootstrapData(
            f"{path} has {kinds}; kubeadm needs an InitConfiguration or a JoinConfiguration in it"
        )
    return {"apiVersion": cluster.get("apiVersion"), "kind": "InitConfiguration"}


def _kubelet_defaults(node: NodeFacts) -> dict[str, str]:
    provider = {"provider-id": node.provider_id} if node.provider_id else {}
    return {**_DEFAULTS, **(_CGROUP_DEFAULTS if node.cgroup_root else {}), **provider}


def _registering(document: Object, defaults: dict[str, str], path: str, ignores_all: bool) -> Object:
    where = f"{path}: {document['kind']}.nodeRegistration"
    registration: Object = mapping(document.get("nodeRegistration"), where)
    completed: Object = {
        **registration,
        "criSocket": registration.get("criSocket") or CRI_SOCKET,
        "kubeletExtraArgs": _arguments(
            registration.get("kubeletExtraArgs"), defaults, document, f"{where}.kubeletExtraArgs"
        ),
    }
    if ignores_all:
        completed.pop("ignorePreflightErrors", None)
    return {**document, "nodeRegistration": completed}


def _arguments(given: Json, defaults: dict[str, str], document: Object, where: str) -> Json:
    """A map of arguments up to v1beta3, a list of names and values since; whatever is there decides."""
    if not given:
        given = {} if str(document.get("apiVersion", "")).endswith(("/v1beta1", "/v1beta2", "/v1beta3")) else []
    if isinstance(given, list):
        named = [entry.get("name") for entry in given if isinstance(entry, dict)]
        return [*given, *({"name": flag, "value": value} for flag, value in defaults.items() if flag not in named)]
    return {**defaults, **mapping(given, where)}


def _text(document: Object) -> str:
    """YAML that reads back as the same, else JSON: an unescaped U+0085 is text for its writer and a line break for a reader."""
    text = yaml.dump(document)
    return text if yaml.load(text) == document else orjson.dumps(document).decode() + "\n"

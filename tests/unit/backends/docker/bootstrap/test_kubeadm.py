"""kubeadm's configuration: defaults for a container, and what the user set."""

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.backends.docker.bootstrap import InvalidBootstrapData
from capi.backends.docker.bootstrap.kubeadm import complete
from capi.kube import yaml
from tests.unit.backends.docker.bootstrap.data import NODE, cloud_config, content

OLD_IMAGE = replace(NODE, cgroup_root=False)
EVERYWHERE = {
    "image-gc-high-threshold": "100",
    "eviction-hard": "nodefs.available<0%,nodefs.inodesFree<0%,imagefs.available<0%",
    "fail-swap-on": "false",
    "provider-id": "docker:////c1-w-abc12",
}
FIELDS = ("kind", "nodeRegistration", "kubeletExtraArgs", "name", "criSocket", "apiVersion", "failSwapOn")
CGROUPS = {"cgroup-root": "/kubelet", "runtime-cgroups": "/system.slice/containerd.service"}


def completed(text: str, *, node: Any = NODE, ignores_all: bool = False) -> dict[str, Any]:
    """Documents by kind."""
    documents = yaml.load_all(complete(text.encode(), "/run/kubeadm/kubeadm.yaml", node, ignores_all=ignores_all))
    return {str(document.get("kind")): document for document in documents}


def join(version: str = "v1beta4", registration: str = "{}") -> str:
    return f"apiVersion: kubeadm.k8s.io/{version}\nkind: JoinConfiguration\nnodeRegistration: {registration}\n"


def arguments(document: dict[str, Any]) -> dict[str, str]:
    given = document["nodeRegistration"]["kubeletExtraArgs"]
    return given if isinstance(given, dict) else {entry["name"]: entry["value"] for entry in given}


@pytest.mark.parametrize("version, shape", [("v1beta3", dict), ("v1beta4", list), ("v1beta5", list)])
@pytest.mark.parametrize("node, more", [(NODE, CGROUPS), (OLD_IMAGE, {})], ids=["kind 0.20", "kind 0.19"])
def test_a_kubelet_gets_its_defaults(version: str, shape: type, node: Any, more: dict[str, str]) -> None:
    document = completed(join(version), node=node)["JoinConfiguration"]
    assert isinstance(document["nodeRegistration"]["kubeletExtraArgs"], shape)
    assert arguments(document) == {**EVERYWHERE, **more}
    assert document["nodeRegistration"]["criSocket"] == "unix:///run/containerd/containerd.sock"


@pytest.mark.parametrize(
    "registration",
    [
        "{criSocket: unix:///mine, kubeletExtraArgs: {eviction-hard: memory.available<5%, provider-id: mine, v: '5'}}",
        "{criSocket: unix:///mine, kubeletExtraArgs: [{name: eviction-hard, value: memory.available<5%},"
        " {name: provider-id, value: mine}, {name: v, value: '5'}]}",
    ],
    ids=["map", "list"],
)
def test_what_the_user_set_stays(registration: str) -> None:
    document = completed(join(registration=registration))["JoinConfiguration"]
    assert document["nodeRegistration"]["criSocket"] == "unix:///mine"
    own = {"eviction-hard": "memory.available<5%", "provider-id": "mine", "v": "5"}
    assert arguments(document) == {**EVERYWHERE, **CGROUPS, **own}


def test_arguments_given_several_times_all_stay() -> None:
    registration = "{kubeletExtraArgs: [{name: v, value: '1'}, {name: v, value: '2'}]}"
    given = completed(join(registration=registration))["JoinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"]
    assert given[:2] == [{"name": "v", "value": "1"}, {"name": "v", "value": "2"}]


@pytest.mark.parametrize("registration", ["", "{}", "{kubeletExtraArgs: , criSocket: ''}", "{kubeletExtraArgs: {}}"])
def test_nothing_given_is_no_obstacle(registration: str) -> None:
    assert arguments(completed(join(registration=registration))["JoinConfiguration"]) == {**EVERYWHERE, **CGROUPS}


def test_an_init_gets_kube_proxys_configuration_too() -> None:
    documents = completed("---\nkind: ClusterConfiguration\napiVersion: x/v1beta4\n---\nkind: InitConfiguration\n")
    assert list(documents) == ["ClusterConfiguration", "InitConfiguration", "KubeProxyConfiguration"]
    assert documents["KubeProxyConfiguration"]["conntrack"] == {"maxPerCore": 0}
    assert arguments(documents["InitConfiguration"]) == {**EVERYWHERE, **CGROUPS}


def test_kube_proxys_own_configuration_stays() -> None:
    documents = completed("kind: InitConfiguration\n---\nkind: KubeProxyConfiguration\nmode: nftables\n")
    assert documents["KubeProxyConfiguration"] == {"kind": "KubeProxyConfiguration", "mode": "nftables"}


def test_a_join_gets_no_kube_proxy() -> None:
    assert list(completed(join())) == ["JoinConfiguration"]


def test_a_cluster_configuration_alone_gets_an_init_configuration() -> None:
    documents = completed("kind: ClusterConfiguration\napiVersion: kubeadm.k8s.io/v1beta3\n")
    assert documents["InitConfiguration"]["apiVersion"] == "kubeadm.k8s.io/v1beta3"
    assert arguments(documents["InitConfiguration"]) == {**EVERYWHERE, **CGROUPS}


def test_flags_do_not_win_over_the_users_kubelet_configuration() -> None:
    documents = completed(
        "kind: InitConfiguration\n---\nkind: KubeletConfiguration\nfailSwapOn: true\nevictionHard: {}\nproviderID: mine\n"
    )
    assert set(arguments(documents["InitConfiguration"])) == {"image-gc-high-threshold", *CGROUPS}


def test_all_checks_are_not_ignored_beside_single_ones() -> None:
    """kubeadm: don't specify individual checks if 'all' is used."""
    text = join(registration="{ignorePreflightErrors: [Mem]}")
    assert "ignorePreflightErrors" not in completed(text, ignores_all=True)["JoinConfiguration"]["nodeRegistration"]
    assert completed(text)["JoinConfiguration"]["nodeRegistration"]["ignorePreflightErrors"] == ["Mem"]


@pytest.mark.parametrize(
    "value", ["1e3", "0o7", "yes", "12:30", "0x1f", "1_000", "~", "null", "- x", "a: b", "é\u2028"]
)
def test_strings_stay_strings(value: str) -> None:
    text = yaml.dump({"kind": "JoinConfiguration"}) + f"caCertPath: {json.dumps(value)}\n"
    assert completed(text)["JoinConfiguration"]["caCertPath"] == value


@pytest.mark.parametrize(
    "path", ["/run/kubeadm/kubeadm.yaml", "/run/kubeadm/kubeadm-join-config.yaml", "/run//kubeadm/./kubeadm.yaml"]
)
def test_kubeadms_files_of_cloud_init_are_completed(path: str) -> None:
    (step,) = cloud_config(write_files=[{"path": path, "content": join(), "permissions": "0640"}]).steps
    (document,) = yaml.load_all(content(step))
    assert arguments(document) == {**EVERYWHERE, **CGROUPS}


def test_other_files_are_not() -> None:
    (step,) = cloud_config(write_files=[{"path": "/etc/kubeadm.yaml", "content": join()}]).steps
    assert content(step) == join().encode()


NODES = st.dictionaries(
    st.sampled_from(["kubeletExtraArgs", "criSocket"]),
    st.lists(st.fixed_dictionaries({"name": st.text() | st.lists(st.text())})) | st.integers(),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
) | st.fixed_dictionaries(
    {"kind": st.sampled_from(["JoinConfiguration", "InitConfiguration"])}, optional={"nodeRegistration": NODES}
)


@given(documents=st.lists(JSON, max_size=3))
def test_whatever_the_documents_are_they_are_completed_or_refused(documents: list[Any]) -> None:
    text = "\n---\n".join(json.dumps(document) for document in documents)
    with contextlib.suppress(InvalidBootstrapData):
        assert completed(text)


@pytest.mark.parametrize(
    "text, parts",
    [
        ("", ["no document", "InitConfiguration or a JoinConfiguration"]),
        ("kind: KubeProxyConfiguration", ["KubeProxyConfiguration", "InitConfiguration or a JoinConfiguration"]),
        ("- a", ["document 1 is no mapping"]),
        ("a: b: c", ["cannot be read", "line 1"]),
        ("kind: JoinConfiguration\nnodeRegistration: 5", ["JoinConfiguration.nodeRegistration is the value 5"]),
        ("kind: JoinConfiguration\nnodeRegistration: {kubeletExtraArgs: x}", ["kubeletExtraArgs is a string"]),
    ],
)
def test_what_is_wrong_is_said_with_the_file(text: str, parts: list[str]) -> None:
    with pytest.raises(InvalidBootstrapData) as caught:
        completed(text)
    for part in ["/run/kubeadm/kubeadm.yaml", *parts]:
        assert part in caught.value.message

"""What tests rely on in the engine, in the images and in the fixtures."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.docker.conftest import NAMESPACE_LABEL, left_behind, present
from tests.docker.engine import LOAD_BALANCER_IMAGE, NODE_IMAGE, Engine

NODE_SETTINGS: dict[str, Any] = {
    "HostConfig": {
        "Privileged": True,
        "SecurityOpt": ["seccomp=unconfined", "apparmor=unconfined"],
        "CgroupnsMode": "private",
        "NetworkMode": "kind",
        "Tmpfs": {"/tmp": "", "/run": ""},
    },
    "Volumes": {"/var": {}},
}
"""How the provider runs nodes."""


@pytest.fixture
def node(engine: Engine, namespace: str) -> Iterator[str]:
    """A node without Kubernetes."""
    container = engine.run(namespace, NODE_IMAGE, {NAMESPACE_LABEL: namespace}, **NODE_SETTINGS)
    yield container
    engine.remove(container)


@pytest.fixture
def load_balancer(engine: Engine, namespace: str) -> Iterator[str]:
    container = engine.run(namespace, LOAD_BALANCER_IMAGE, {NAMESPACE_LABEL: namespace})
    yield container
    engine.remove(container)


def test_a_privileged_node_boots_and_ends_at_once_when_it_is_stopped(engine: Engine, node: str) -> None:
    assert "Reached target multi-user.target" in engine.logs(node)
    engine.stop(node)
    state = engine.inspect(node)["State"]
    assert (state["Status"], state["ExitCode"]) == ("exited", 0)  # 137 if it had to be killed


def test_a_node_reaps_what_its_commands_leave_behind(engine: Engine, node: str) -> None:
    script = "(sh -c 'sleep 0.05; kill -0 1' &); sleep 0.2; cat /proc/[0-9]*/stat | grep -c ' Z ' || true"
    assert engine.exec(node, "sh", "-c", script) == (0, "0\n")


def test_each_version_of_the_node_is_another_image(engine: Engine) -> None:
    names = (NODE_IMAGE, "capi-test/node:v1.34.1", "capi-test/node:v1.35.0")
    assert len({engine.call("GET", f"/images/{name}/json")["Id"] for name in names}) == 3


@pytest.mark.parametrize(("mode", "code"), [("ok", 0), ("slow 0.01", 0), ("fail", 1), ("nonsense", 2)])
def test_kubeadm_does_as_its_mode_says(engine: Engine, node: str, mode: str, code: int) -> None:
    engine.write(node, "/capi-test/kubeadm-mode", f"{mode}\n")
    assert engine.exec(node, "kubeadm", "join", "--config", "/run/kubeadm.yaml")[0] == code
    assert engine.exec(node, "test", "-e", "/etc/kubernetes/kubelet.conf")[0] == (1 if code else 0)
    assert engine.read(node, "/var/log/capi-test/kubeadm.log").endswith(" join --config /run/kubeadm.yaml\n")


def test_a_kubeadm_that_hangs_can_be_ended(engine: Engine, node: str) -> None:
    engine.write(node, "/capi-test/kubeadm-mode", "hang")
    assert engine.exec(node, "timeout", "0.2", "kubeadm", "init")[0] == 124


def test_ctr_notes_the_size_of_what_it_imports(engine: Engine, node: str) -> None:
    for size in (5, 70_000):
        command = f"head -c {size} /dev/zero | ctr --namespace=k8s.io images import -"
        assert engine.exec(node, "sh", "-c", command)[0] == 0
    assert engine.exec(node, "crictl", "ps")[0] == 0
    assert engine.read(node, "/var/log/capi-test/imports").split() == ["5", "70000"]


def test_a_name_that_nobody_has_is_refused_at_once(engine: Engine, node: str) -> None:
    assert engine.exec(node, "timeout", "2", "getent", "hosts", "nobody.example")[0] == 2  # 124 if it took that long


def test_a_load_balancer_has_no_shell_and_takes_a_configuration(engine: Engine, load_balancer: str) -> None:
    assert engine.exec(load_balancer, "sh", "-c", "true")[0] in (126, 127)  # 127 since Docker 28
    assert engine.exec(load_balancer, "haproxy", "-c", "-f", "/usr/local/etc/haproxy/haproxy.cfg")[0] == 0
    engine.kill(load_balancer, "HUP")
    assert engine.inspect(load_balancer)["State"]["Running"]


def test_what_a_test_leaves_behind_is_named_and_removed(engine: Engine, namespace: str) -> None:
    before = present(engine)
    labels = {NAMESPACE_LABEL: f"{namespace}-second"}
    engine.run(namespace, NODE_IMAGE, labels, **NODE_SETTINGS)
    engine.call("POST", "/volumes/create", {"Name": namespace, "Labels": labels})
    engine.call("POST", "/networks/create", {"Name": namespace, "Labels": labels})
    found = left_behind(engine, before, namespace)
    assert [line.split()[0] for line in found] == ["container", "network", "volume"]
    assert all(line.endswith("(removed)") for line in found)
    assert left_behind(engine, before, namespace) == []


def test_a_volume_that_lost_its_container_counts_as_left_behind(engine: Engine, namespace: str) -> None:
    before = present(engine)
    container = engine.run(namespace, NODE_IMAGE, {NAMESPACE_LABEL: namespace}, **NODE_SETTINGS)
    engine.call("DELETE", f"/containers/{container}", force=True)  # without its volumes
    (found,) = left_behind(engine, before, namespace)
    assert "that no container uses" in found

"""What a container is made with."""

from typing import Any

import pytest

from capi.backends.docker import arguments
from capi.backends.port import Container, HostMount, IPFamily
from tests.unit.backends.docker.builders import a_balancer, a_site, a_spec

PROXIES = {"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "example.org"}


def a_node(site: Any = None, *, private: bool = True, **spec: Any) -> Any:
    return arguments.node(a_spec(**spec), "c1-w-1", "image:1", site or a_site(), private_cgroups=private)


def test_a_node_follows_the_conventions_of_kind() -> None:
    made = a_node()
    host = made["HostConfig"]
    assert (made["Hostname"], made["Image"], made["Tty"]) == ("c1-w-1", "image:1", True)
    assert host["Privileged"] is True
    assert host["SecurityOpt"] == ["seccomp=unconfined", "apparmor=unconfined"]
    assert (host["Init"], host["CgroupnsMode"], host["NetworkMode"]) == (False, "private", "kind")
    assert host["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 1}
    assert host["Tmpfs"] == {"/tmp": "", "/run": ""}
    assert host["Mounts"] == [{"Type": "volume", "Target": "/var"}]
    assert host["Binds"] == ["/lib/modules:/lib/modules:ro"]
    assert made["NetworkingConfig"] == {"EndpointsConfig": {"kind": {}}}


def test_an_image_of_old_kind_shares_the_cgroups_of_its_host() -> None:
    assert a_node(private=False)["HostConfig"]["CgroupnsMode"] == "host"


def test_labels_say_whose_it_is() -> None:
    worker = a_node(pool="w", pool_uid="p1", failure_domain="fd4")["Labels"]
    assert worker == {
        "io.x-k8s.kind.cluster": "c1",
        "io.x-k8s.kind.role": "worker",
        "io.x-k8s.cluster.failureDomain": "fd4",
        "dev.cluster.x-k8s.io/namespace": "ns",
        "dev.cluster.x-k8s.io/machine": "w-1",
        "dev.cluster.x-k8s.io/owner-uid": "u1",
        "dev.cluster.x-k8s.io/machine-pool": "w",
        "dev.cluster.x-k8s.io/pool-uid": "p1",
    }
    alone = a_node(control_plane=True)["Labels"]
    assert alone["io.x-k8s.kind.role"] == "control-plane"
    assert "dev.cluster.x-k8s.io/machine-pool" not in alone
    assert "io.x-k8s.cluster.failureDomain" not in alone


@pytest.mark.parametrize(
    ("mount", "selinux", "bind"),
    [
        (HostMount("/b", "/a"), False, "/a:/b"),
        (HostMount("/b", "/a", read_only=True), False, "/a:/b:ro"),
        (HostMount("/b", "/a"), True, "/a:/b:Z"),
        (HostMount("/b", "/a", read_only=True), True, "/a:/b:ro,Z"),
    ],
)
def test_mounts_of_the_host(mount: HostMount, selinux: bool, bind: str) -> None:
    made = a_node(a_site(selinux=selinux), container=Container(mounts=(mount,)))
    assert made["HostConfig"]["Binds"] == [bind, "/lib/modules:/lib/modules:ro"]


@pytest.mark.parametrize(("driver", "there"), [("btrfs", True), ("zfs", True), ("overlay2", False)])
def test_storage_that_needs_the_device_mapper_has_it(driver: str, there: bool) -> None:
    binds = a_node(a_site(storage_driver=driver))["HostConfig"]["Binds"]
    assert ("/dev/mapper:/dev/mapper:ro" in binds) is there


def test_engines_without_root_or_with_mapped_users() -> None:
    rootless = a_node(a_site(rootless=True))["HostConfig"]
    assert rootless["Devices"] == [
        {"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse", "CgroupPermissions": "rwm"}
    ]
    assert a_node(a_site(remapped=True))["HostConfig"]["UsernsMode"] == "host"
    usual = a_node()["HostConfig"]
    assert "Devices" not in usual
    assert "UsernsMode" not in usual


def test_the_api_of_a_control_plane_is_published_on_loopback_on_any_port() -> None:
    made = a_node(control_plane=True)
    assert made["ExposedPorts"] == {"6443/tcp": {}}
    assert made["HostConfig"]["PortBindings"] == {"6443/tcp": [{"HostIp": "127.0.0.1", "HostPort": "0"}]}
    assert "KUBECONFIG=/etc/kubernetes/admin.conf" in made["Env"]
    worker = a_node()
    assert "ExposedPorts" not in worker
    assert "PortBindings" not in worker["HostConfig"]
    assert worker["Env"] == []


def test_proxies_are_passed_on_in_both_cases_and_what_is_inside_needs_none() -> None:
    made = a_node(a_site(PROXIES, ("172.18.0.0/16", "fc00::/64")))
    inside = "example.org,172.18.0.0/16,fc00::/64,c1-w-1,.svc,.svc.cluster,.svc.cluster.local"
    assert sorted(made["Env"]) == sorted(
        [
            "HTTP_PROXY=http://proxy:3128", "http_proxy=http://proxy:3128", f"NO_PROXY={inside}", f"no_proxy={inside}",
        ]
    )  # fmt: skip


def test_variables_in_lower_case_count_and_exceptions_alone_are_nothing() -> None:
    assert "HTTPS_PROXY=p:1" in a_node(a_site({"https_proxy": "p:1"}))["Env"]
    assert a_node(a_site({"NO_PROXY": "example.org"}))["Env"] == []


@pytest.mark.parametrize(
    ("family", "off", "everywhere"),
    [(IPFamily.V4, None, "0.0.0.0"), (IPFamily.V6, "0", "::"), (IPFamily.DUAL, "0", "0.0.0.0")],
)
def test_families(family: IPFamily, off: str | None, everywhere: str) -> None:
    node = a_node(ip_family=family)["HostConfig"]["Sysctls"]
    assert node.get("net.ipv6.conf.all.disable_ipv6") == off
    assert node.get("net.ipv6.conf.all.forwarding") == (None if off is None else "1")
    balancer = arguments.balancer(a_balancer(ip_family=family, port=7777), "c1-lb", a_site())["HostConfig"]
    published = {port: binding["HostIp"] for port, [binding] in balancer["PortBindings"].items()}
    assert published == {"7777/tcp": everywhere, "8404/tcp": everywhere}


def test_a_load_balancer_runs_haproxy_with_its_configuration() -> None:
    made = arguments.balancer(a_balancer(), "c1-lb", a_site())
    assert made["Entrypoint"] == ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
    assert made["Labels"] == {
        "io.x-k8s.kind.cluster": "c1",
        "io.x-k8s.kind.role": "external-load-balancer",
        "dev.cluster.x-k8s.io/namespace": "ns",
        "dev.cluster.x-k8s.io/owner-uid": "u-lb",
    }
    assert "CgroupnsMode" not in made["HostConfig"]


NETWORK = {"EnableIPv6": True, "IPAM": {"Config": [{"Subnet": "172.18.0.0/16"}, {"Subnet": "fc00::/64"}]}}


@pytest.mark.parametrize(
    ("host", "inside"),
    [("172.18.0.7", True), ("fc00::7", True), ("10.0.0.1", False), ("lb.example.org", False), ("", False)],
)
def test_an_address_of_the_network_is_told_from_others(host: str, inside: bool) -> None:
    assert arguments.contains(NETWORK, host) is inside
    assert not arguments.contains({}, host)


def test_a_network_without_ipv6_is_told_from_one_with() -> None:
    assert arguments.has_ipv6(NETWORK)
    assert not arguments.has_ipv6({**NETWORK, "EnableIPv6": False})
    assert not arguments.has_ipv6({"EnableIPv6": True, "IPAM": {"Config": [{"Subnet": "172.18.0.0/16"}]}})

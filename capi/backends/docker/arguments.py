"""What a container is made with: kind's conventions, which its node images expect. Pure.

Upstream: test/infrastructure/container/docker.go and docker/internal/docker/manager.go.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from capi.backends.docker import labels
from capi.backends.docker.engine import EngineInfo
from capi.backends.docker.haproxy import STATS_PORT
from capi.backends.port import HostMount, InstanceSpec, IPFamily, LoadBalancerSpec
from capi.kube.types import Object

API_PORT = 6443
HAPROXY_CONFIG = "/usr/local/etc/haproxy/haproxy.cfg"
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_V6_SYSCTLS = {"net.ipv6.conf.all.disable_ipv6": "0", "net.ipv6.conf.all.forwarding": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a container is made with that its spec does not say: where it is."""

    network: str
    info: EngineInfo
    subnets: tuple[str, ...] = ()
    """Of the network; they need no proxy."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of this process; proxy variables are passed on."""


def node(spec: InstanceSpec, name: str, image: str, site: Site, *, private_cgroups: bool = True) -> Object:
    """The create request of a machine's container."""
    host: Object = {
        **_common(site),
        "CgroupnsMode": "private" if private_cgroups else "host",
        "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 1},
        "Tmpfs": {"/tmp": "", "/run": ""},
        "Binds": [*(_bind(mount, site) for mount in spec.container.mounts), *_own_binds(site)],
        "Mounts": [{"Type": "volume", "Target": "/var"}],
        "Sysctls": {"net.ipv4.ip_forward": "1"} | (_V6_SYSCTLS if spec.ip_family is not IPFamily.V4 else {}),
    }
    body = _body(name, image, labels.of_machine(spec), host, site)
    if spec.control_plane:
        body["Env"].append("KUBECONFIG=/etc/kubernetes/admin.conf")
        _publish(body, host, {API_PORT: "127.0.0.1"})
    return body


def balancer(spec: LoadBalancerSpec, name: str, site: Site) -> Object:
    """The create request of a load balancer's container."""
    host: Object = {**_common(site), "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 1}}
    if spec.ip_family is not IPFamily.V4:
        host["Sysctls"] = dict(_V6_SYSCTLS)
    body = _body(name, spec.image, labels.of_balancer(spec.cluster, spec.uid), host, site)
    body["Entrypoint"] = ["haproxy", "-W", "-db", "-f", HAPROXY_CONFIG]
    everywhere = "::" if spec.ip_family is IPFamily.V6 else "0.0.0.0"
    _publish(body, host, {spec.port: everywhere, STATS_PORT: everywhere})
    return body


def network(name: str, *, ipv6: bool) -> Object:
    """The create request of the network, which is removed with the last container."""
    wanted: Object = {
        "Name": name,
        "Driver": "bridge",
        "CheckDuplicate": True,
        "Labels": {labels.MADE_BY: "capi"},
        "Options": {"com.docker.network.bridge.enable_ip_masquerade": "true"},
    }
    if ipv6:
        wanted |= {"EnableIPv6": True, "IPAM": {"Config": [{"Subnet": "fc00:f853:ccd:e793::/64"}]}}
    return wanted


def subnets(described: Object) -> tuple[str, ...]:
    """Of a network as the engine describes it."""
    config: Sequence[Object] = (described.get("IPAM") or {}).get("Config") or ()
    return tuple(str(one["Subnet"]) for one in config if one.get("Subnet"))


def contains(described: Object, host: str) -> bool:
    """Whether `host` is an address in a network as the engine describes it."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(subnet, strict=False) for subnet in subnets(described))


def has_ipv6(described: Object) -> bool:
    return bool(described.get("EnableIPv6")) and any(
        ipaddress.ip_network(subnet, strict=False).version == 6 for subnet in subnets(described)
    )


def _common(site: Site) -> Object:
    host: Object = {
        "Privileged": True,
        "SecurityOpt": ["seccomp=unconfined", "apparmor=unconfined"],
        "Init": False,
        "NetworkMode": site.network,
    }
    if site.info.remapped:
        host["UsernsMode"] = "host"
    if site.info.rootless:
        host["Devices"] = [{"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse", "CgroupPermissions": "rwm"}]
    return host


def _body(name: str, image: str, marks: Mapping[str, str], host: Object, site: Site) -> Object:
    return {
        "Hostname": name,
        "Image": image,
        "Tty": True,
        "Labels": dict(marks),
        "Env": _proxies(name, site),
        "HostConfig": host,
        "NetworkingConfig": {"EndpointsConfig": {site.network: {}}},
    }


def _bind(mount: HostMount, site: Site) -> str:
    options = ",".join(["ro"] * mount.read_only + ["Z"] * site.info.selinux)
    return ":".join(filter(None, (mount.host_path, mount.container_path, options)))


def _own_binds(site: Site) -> Sequence[str]:
    mapper = ("/dev/mapper:/dev/mapper:ro",) if site.info.storage_driver in ("btrfs", "zfs") else ()
    return ("/lib/modules:/lib/modules:ro", *mapper)


def _publish(body: Object, host: Object, ports: Mapping[int, str]) -> None:
    """Host ports are the engine's choice."""
    body["ExposedPorts"] = {f"{port}/tcp": {} for port in ports}
    host["PortBindings"] = {f"{port}/tcp": [{"HostIp": ip, "HostPort": "0"}] for port, ip in ports.items()}


def _proxies(name: str, site: Site) -> list[str]:
    """Proxy variables of this process in both cases; what is inside the cluster needs no proxy."""
    found = {key: site.environment.get(key) or site.environment.get(key.lower()) or "" for key in _PROXY_VARIABLES}
    if not found["HTTP_PROXY"] and not found["HTTPS_PROXY"]:
        return []
    inside = (*site.subnets, name, ".svc", ".svc.cluster", ".svc.cluster.local")
    found["NO_PROXY"] = ",".join(filter(None, (found["NO_PROXY"], *inside)))
    return [f"{key}={value}" for upper, value in found.items() if value for key in (upper, upper.lower())]

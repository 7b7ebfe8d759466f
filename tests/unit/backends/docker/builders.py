"""Small things for tests of the Docker backend's pure parts."""

from datetime import UTC, datetime
from typing import Any

from capi.backends.docker.arguments import Site
from capi.backends.docker.engine import Container, EngineInfo
from capi.backends.port import InstanceSpec, LoadBalancerSpec
from capi.runtime.plan import ClusterKey

CLUSTER = ClusterKey("ns", "c1")
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_spec(name: str = "w-1", **more: Any) -> InstanceSpec:
    given: dict[str, Any] = {"id": f"docker:////c1-{name}", "uid": "u1", "version": "v1.34.0", **more}
    return InstanceSpec(name=name, cluster=given.pop("cluster", CLUSTER), created=NOW, **given)


def an_engine(**more: Any) -> EngineInfo:
    usual = {
        "cpus": 8, "memory": 16 << 30, "architecture": "x86_64", "storage_driver": "overlay2", "rootless": False,
        "remapped": False, "selinux": False, "time": NOW,
    }  # fmt: skip
    return EngineInfo(**{**usual, **more})


def a_site(environment: dict[str, str] | None = None, subnets: tuple[str, ...] = (), **engine: Any) -> Site:
    return Site(network="kind", info=an_engine(**engine), subnets=subnets, environment=environment or {})


def a_container(name: str = "c1-w-1", state: str = "running", **more: Any) -> Container:
    return Container(id=f"id-{name}", name=name, labels=more.pop("labels", {}), state=state, **more)


def a_balancer(**more: Any) -> LoadBalancerSpec:
    return LoadBalancerSpec(cluster=CLUSTER, uid="u-lb", image="kindest/haproxy:x", **more)

"""The load balancer of a cluster of containers: what it is to do, and what the InfraCluster says of it. Pure.

Upstream: docker/reconcilers/backends/docker/dockercluster_backend.go, and the load balancer steps of its machine backend. Differs:
one controller writes the configuration, from all machines at once; a container that does not run is no server.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from capi.api.core.conditions import Dev, Reason
from capi.api.core.v1beta2 import APIEndpoint, MachineAddress
from capi.api.infra.v1beta2 import DockerClusterBackend, DockerLoadBalancer
from capi.backends.port import Address, Balanced, IPFamily, LoadBalancerSpec
from capi.controllers.infra.addressing import ip_family
from capi.controllers.infra.cluster import status as cluster_status
from capi.controllers.infra.cluster.scope import Member, Scope
from capi.controllers.infra.family import InfraCluster, InfraMachine
from capi.controllers.infra.names import WEIGHT_ANNOTATION
from capi.kube import conditions
from capi.kube.errors import BackendError
from capi.runtime.plan import Apply, ClusterKey, Plan, Write, target

DEFAULT_PORT = 6443
_REPOSITORY, _TAG = "kindest", "v20230606-42a2262b"


def docker_of(seen: Scope) -> DockerClusterBackend:
    return seen.infra.spec.backend.docker or DockerClusterBackend()


def template_name(seen: Scope) -> str:
    """Of the ConfigMap with the cluster's own configuration template; "" without one."""
    ref = (docker_of(seen).load_balancer or DockerLoadBalancer()).custom_ha_proxy_config_template_ref
    return ref.name if ref is not None else ""


def balancer_spec(seen: Scope, cluster: ClusterKey) -> LoadBalancerSpec:
    """What is wanted of the load balancer. Raises TerminalError for CIDR blocks that fit no cluster."""
    given = seen.infra.spec.control_plane_endpoint or APIEndpoint()
    family = ip_family(seen.cluster)
    return LoadBalancerSpec(
        cluster=cluster,
        uid=seen.infra.metadata.uid,
        host=given.host,
        image=_image(docker_of(seen).load_balancer),
        port=given.port or DEFAULT_PORT,
        ip_family=family,
        servers=tuple(_servers(seen.members, family)),
        template=seen.template,
    )


def balanced(seen: Scope, spec: LoadBalancerSpec, address: Address) -> Plan:
    """The load balancer does what it should: the endpoint is written if nobody gave one, and each machine's weight."""
    given = seen.infra.spec.control_plane_endpoint or APIEndpoint()
    writes: list[Write] = list(_weights(seen, spec))
    if not given.valid:
        endpoint = {"host": given.host or address.address, "port": spec.port}
        writes.append(Apply(target(seen.infra), {"spec": {"controlPlaneEndpoint": endpoint}}, must_exist=True))
    return Plan(writes=writes, status=cluster_status.balanced(seen.infra))


def unbalanced(seen: Scope, error: BackendError) -> Plan:
    """It cannot be had, or does not do what it should; tried again."""
    return Plan(status=cluster_status.unbalanced(seen.infra, error.message, reason=error.reason), error=error)


def announced(infra: InfraCluster) -> Plan | None:
    """A removal takes its time, so what is going on is said first; None once it has been."""
    known = conditions.get(infra.status.conditions, Dev.LOAD_BALANCER_AVAILABLE)
    if known is None or known.reason == Reason.DELETING:
        return None
    return Plan(status=cluster_status.deleting(infra, "Removing the load balancer"), requeue_after=timedelta())


def not_removed(infra: InfraCluster, error: BackendError) -> Plan:
    """It is still there; tried again."""
    text = f"Removing the load balancer failed: {error.message}"
    return Plan(status=cluster_status.deleting(infra, text), error=error)


def _image(given: DockerLoadBalancer | None) -> str:
    given = given or DockerLoadBalancer()
    return f"{given.image_repository or _REPOSITORY}/haproxy:{given.image_tag or _TAG}"


def _servers(members: Sequence[Member], family: IPFamily) -> Iterator[Balanced]:
    """Those whose container runs. A Machine on its way out gets nothing new, unless it is the only one there is."""
    for member in members:
        infra = member.infra
        address = _address(infra.status.addresses, family)
        if address and conditions.is_true(infra.status.conditions, Dev.CONTAINER_PROVISIONED):
            leaving = member.machine is not None and member.machine.deleting and len(members) > 1
            yield Balanced(_host(infra), address, 0 if leaving else 100)


def _address(addresses: Sequence[MachineAddress], family: IPFamily) -> str:
    mark = ":" if family is IPFamily.V6 else "."
    return next((a.address for a in addresses if a.type == "InternalIP" and mark in a.address), "")


def _host(infra: InfraMachine) -> str:
    """What its container is called."""
    return next((a.address for a in infra.status.addresses if a.type == "Hostname"), infra.name)


def _weights(seen: Scope, spec: LoadBalancerSpec) -> Iterator[Write]:
    weights = {server.name: server.weight for server in spec.servers}
    for member in seen.members:
        infra = member.infra
        name = _host(infra)
        if name in weights and infra.metadata.annotations.get(WEIGHT_ANNOTATION) != str(weights[name]):
            body = {"metadata": {"annotations": {WEIGHT_ANNOTATION: str(weights[name])}}}
            yield Apply(target(infra), body, must_exist=True)

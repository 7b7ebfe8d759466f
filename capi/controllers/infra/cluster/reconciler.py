"""InfraClusters (DevCluster, DockerCluster): an address for the cluster's API, hosted here or behind a load balancer.

Upstream: docker/reconcilers/devcluster_reconciler.go. Differs: its controller alone configures the load balancer.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from capi.api.builtin import ConfigMap
from capi.api.core import finalizers, labels
from capi.api.core.conditions import READY
from capi.api.core.v1beta2 import APIEndpoint, Cluster, Machine
from capi.backends.port import ControlPlanes, LoadBalancers
from capi.controllers import pause
from capi.controllers.infra import backends, lookups, outages
from capi.controllers.infra.cluster import balancing
from capi.controllers.infra.cluster import status as cluster_status
from capi.controllers.infra.cluster.plan import managed_elsewhere, plan, taken_ports
from capi.controllers.infra.cluster.scope import Member, Scope
from capi.controllers.infra.family import DEV, DOCKER, Family, InfraCluster, InfraMachine
from capi.kube.errors import BackendError, TerminalError
from capi.kube.types import Key
from capi.runtime.plan import ClusterKey, Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Feed, Watch

TEMPLATE_REREAD = timedelta(minutes=1)
"""ConfigMaps are not watched; a changed template is taken within this time."""


def _machine_changed(old: Machine, new: Machine) -> bool:
    return old.deleting != new.deleting


def _infra_changed(old: InfraMachine, new: InfraMachine) -> bool:
    def essence(infra: InfraMachine) -> tuple[object, ...]:
        return infra.status.addresses, infra.status.conditions, infra.metadata.labels, infra.metadata.owner_references

    return essence(old) != essence(new)


class InfraClusterReconciler:
    """See the module's text. Of one family: a subclass says which."""

    family: ClassVar[Family]
    manager: ClassVar[str]
    finalizer: ClassVar[str | None] = finalizers.DEV_CLUSTER

    def __init__(self, control_planes: ControlPlanes, balancers: LoadBalancers | None = None) -> None:
        """`balancers` None: this process makes no clusters of containers."""
        self.kind: type[InfraCluster] = self.family.cluster
        self._control_planes = control_planes
        self._balancers = balancers
        self.watches: Sequence[AnyWatch] = (
            Watch(self.family.cluster),
            Watch(Cluster, keys=self._of_cluster, changed=outages.cluster_changed),
            Watch(self.family.machine, keys=self._of_member, changed=_infra_changed),
            Watch(Machine, keys=self._of_member, changed=_machine_changed),
            *((Feed(balancers.changes, self._of_balancer),) if balancers is not None else ()),
        )

    def unclaimed(self, obj: InfraCluster, reader: Reader) -> bool:
        """Something else provisions it, or no Cluster owns it yet."""
        return managed_elsewhere(obj) or lookups.owning_cluster(obj, reader) is None

    def paused(self, obj: InfraCluster, reader: Reader) -> Sequence[str]:
        return pause.causes(obj, lookups.owning_cluster(obj, reader))

    async def reconcile(self, obj: InfraCluster, reader: Reader, now: datetime) -> Plan:
        asked = backends.name_of(obj.spec.backend)
        cluster = lookups.owning_cluster(obj, reader)
        if managed_elsewhere(obj):
            return Plan(finalized=obj.deleting)
        if asked == backends.DOCKER and self._balancers is not None:
            return await self._balance(obj, cluster, self._balancers, reader)
        if asked != backends.IN_MEMORY and not obj.deleting:
            there = (backends.IN_MEMORY,) if self._balancers is None else (backends.IN_MEMORY, backends.DOCKER)
            return Plan(status=cluster_status.unsupported(obj, backends.missing(obj.spec.backend, there)))
        try:
            endpoint = self._endpoint(obj, cluster, reader)
        except BackendError as error:
            return Plan(status=cluster_status.failed(obj, error.reason, error.message), error=error)
        if obj.deleting and cluster is not None and cluster.deleting and not lookups.is_hosted(cluster):
            # its control plane machines left the API's data and port behind
            await self._control_planes.ensure_absent(ClusterKey(*cluster.key))
        wanted = plan(Scope(infra=obj, cluster=cluster, endpoint=endpoint))
        if cluster is None or obj.deleting or lookups.is_hosted(cluster):
            return wanted
        return await self._disturbed(obj, cluster, wanted, now)

    async def _disturbed(self, obj: InfraCluster, cluster: Cluster, wanted: Plan, now: datetime) -> Plan:
        """A simulated outage of an API that control plane machines serve."""
        await self._control_planes.interrupt(ClusterKey(*cluster.key), down=outages.is_down(cluster, now))
        why = outages.disturbance(cluster, now)
        if why is None:
            return wanted
        events = why.events(obj.status.conditions, READY)
        status = cluster_status.failed(obj, why.reason, why.message)
        return dataclasses.replace(wanted, status=status, events=events, requeue_after=why.lasts)

    async def _balance(
        self, obj: InfraCluster, cluster: Cluster | None, balancers: LoadBalancers, reader: Reader
    ) -> Plan:
        if obj.deleting:
            return await self._remove(obj, cluster, balancers)
        seen = Scope(infra=obj, cluster=cluster, members=self._members(obj, cluster, reader))
        try:
            if cluster is None:
                return Plan()  # core makes the Cluster its owner, which wakes this key
            seen = await self._with_template(seen, reader)
            spec = balancing.balancer_spec(seen, ClusterKey(*cluster.key))
            wanted = balancing.balanced(seen, spec, await balancers.ensure_running(spec))
        except TerminalError as error:
            return Plan(status=cluster_status.unbalanced(obj, error.message))
        except BackendError as error:
            return balancing.unbalanced(seen, error)
        return dataclasses.replace(wanted, requeue_after=TEMPLATE_REREAD if seen.template else None)

    async def _remove(self, obj: InfraCluster, cluster: Cluster | None, balancers: LoadBalancers) -> Plan:
        name = cluster.name if cluster is not None else _cluster_name(obj)
        if not name:
            return Plan(finalized=True)  # no Cluster ever owned it
        announced = balancing.announced(obj)
        if announced is not None:
            return announced
        given = obj.spec.control_plane_endpoint
        made = given is not None and bool(given.host)
        try:
            await balancers.ensure_absent(ClusterKey(obj.namespace, name), obj.metadata.uid, made=made)
        except BackendError as error:
            return balancing.not_removed(obj, error)
        return Plan(finalized=True)

    async def _with_template(self, seen: Scope, reader: Reader) -> Scope:
        name = balancing.template_name(seen)
        if not name:
            return seen
        found = await reader.live(ConfigMap, name, seen.infra.namespace)
        if found is None or "value" not in found.data:
            missing = (
                f"has no key value (it has {', '.join(sorted(found.data)) or 'none'})" if found else "does not exist"
            )
            text = f"ConfigMap {name} of customHAProxyConfigTemplateRef {missing}; put the HAProxy template into its key value"
            raise BackendError(text, reason="InvalidLoadBalancerTemplate")
        return dataclasses.replace(seen, template=found.data["value"])

    def _members(self, obj: InfraCluster, cluster: Cluster | None, reader: Reader) -> Sequence[Member]:
        name = cluster.name if cluster is not None else _cluster_name(obj)
        found = reader.list(self.family.machine, obj.namespace, {labels.CLUSTER_NAME: name}) if name else ()
        members = (Member(infra, lookups.machine_of(infra, reader)) for infra in found)
        return [member for member in members if lookups.is_control_plane(member.infra, member.machine)]

    def _endpoint(self, obj: InfraCluster, cluster: Cluster | None, reader: Reader) -> APIEndpoint | None:
        given = obj.spec.control_plane_endpoint or APIEndpoint()
        if given.valid or cluster is None or obj.deleting:
            return given if given.valid else None
        taken = taken_ports(obj, reader.list(self.kind))
        port = given.port or self._control_planes.reserve(ClusterKey(*cluster.key), taken, obj.metadata.uid)
        return APIEndpoint(host=given.host or self._control_planes.host, port=port)

    def _of_cluster(self, cluster: Cluster, _reader: Reader) -> Iterable[Key]:
        ref = cluster.spec.infrastructure_ref
        if ref is not None and ref.group_kind == self.kind.resource.group_kind:
            yield Key(cluster.namespace, ref.name)

    def _of_member(self, obj: InfraMachine | Machine, reader: Reader) -> Iterable[Key]:
        """Control plane machines only, whose Machine may be the one that says so: the others concern no load balancer."""
        owner = lookups.machine_of(obj, reader) if not isinstance(obj, Machine) else None
        if lookups.is_control_plane(obj, owner):
            cluster = lookups.cluster_of(obj, reader)
            if cluster is not None:
                yield from self._of_cluster(cluster, reader)

    def _of_balancer(self, cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
        found = reader.get(Cluster, cluster.name, cluster.namespace)
        return self._of_cluster(found, reader) if found is not None else ()


def _cluster_name(obj: InfraCluster) -> str:
    return lookups.owner_name(obj, Cluster) or obj.metadata.labels.get(labels.CLUSTER_NAME, "")


class DevClusterReconciler(InfraClusterReconciler):
    """Of DevClusters."""

    family: ClassVar[Family] = DEV
    manager: ClassVar[str] = "capi-devcluster"


class DockerClusterReconciler(InfraClusterReconciler):
    """Of DockerClusters."""

    family: ClassVar[Family] = DOCKER
    manager: ClassVar[str] = "capi-dockercluster"

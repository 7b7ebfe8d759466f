"""DevCluster: infrastructure of a simulated cluster, which is an address for its API server.

Upstream: docker/reconcilers/devcluster_reconciler.go.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from capi.api.core import finalizers
from capi.api.core.conditions import READY
from capi.api.core.v1beta2 import APIEndpoint, Cluster
from capi.api.infra.v1beta2 import DevCluster
from capi.backends.port import ControlPlanes
from capi.controllers import pause
from capi.controllers.infra import lookups, outages
from capi.controllers.infra.cluster import status as cluster_status
from capi.controllers.infra.cluster.plan import Scope, plan, taken_ports
from capi.kube.errors import BackendError
from capi.kube.types import Key
from capi.runtime.plan import ClusterKey, Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Watch


def _of_cluster(cluster: Cluster, _reader: Reader) -> Iterable[Key]:
    ref = cluster.spec.infrastructure_ref
    if ref is not None and ref.group_kind == DevCluster.resource.group_kind:
        yield Key(cluster.namespace, ref.name)


class DevClusterReconciler:
    """See the module's text."""

    kind = DevCluster
    manager: ClassVar[str] = "capi-devcluster"
    finalizer: ClassVar[str | None] = finalizers.DEV_CLUSTER
    watches: Sequence[AnyWatch] = (
        Watch(DevCluster),
        Watch(Cluster, keys=_of_cluster, changed=outages.cluster_changed),
    )

    def __init__(self, control_planes: ControlPlanes) -> None:
        self._control_planes = control_planes

    def paused(self, obj: DevCluster, reader: Reader) -> Sequence[str]:
        return pause.causes(obj, lookups.owning_cluster(obj, reader))

    async def reconcile(self, obj: DevCluster, reader: Reader, now: datetime) -> Plan:
        cluster = lookups.owning_cluster(obj, reader)
        try:
            endpoint = self._endpoint(obj, cluster, reader)
        except BackendError as error:
            return Plan(status=cluster_status.failed(obj, error.reason, error.message), error=error)
        if obj.deleting and cluster is not None:  # its control plane machines left the API's data and port behind
            await self._control_planes.ensure_absent(ClusterKey(*cluster.key))
        wanted = plan(Scope(obj, cluster, endpoint))
        if cluster is None or obj.deleting or obj.spec.backend.in_memory is None or lookups.is_hosted(cluster):
            return wanted
        return await self._disturbed(obj, cluster, wanted, now)

    async def _disturbed(self, obj: DevCluster, cluster: Cluster, wanted: Plan, now: datetime) -> Plan:
        """A simulated outage of an API that control plane machines serve."""
        await self._control_planes.interrupt(ClusterKey(*cluster.key), down=outages.is_down(cluster, now))
        why = outages.disturbance(cluster, now)
        if why is None:
            return wanted
        events = why.events(obj.status.conditions, READY)
        status = cluster_status.failed(obj, why.reason, why.message)
        return replace(wanted, status=status, events=events, requeue_after=why.lasts)

    def _endpoint(self, obj: DevCluster, cluster: Cluster | None, reader: Reader) -> APIEndpoint | None:
        given = obj.spec.control_plane_endpoint or APIEndpoint()
        if given.valid or cluster is None or obj.deleting or obj.spec.backend.in_memory is None:
            return given if given.valid else None
        taken = taken_ports(obj, reader.list(DevCluster))
        port = given.port or self._control_planes.reserve(ClusterKey(*cluster.key), taken, obj.metadata.uid)
        return APIEndpoint(host=given.host or self._control_planes.host, port=port)

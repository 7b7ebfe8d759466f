"""DevControlPlane: an API server for a simulated cluster, hosted in this process.

Everything that identifies the cluster is in the management API: the endpoint in the Cluster, the authority in Secret
`<cluster>-ca`, the administrator's access in Secret `<cluster>-kubeconfig`. A restart therefore serves the same cluster again.

Ours; follows the v1beta2 control plane contract as an externally managed control plane (no control plane Machines).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar

from capi.api.builtin import Secret
from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core import finalizers, labels, secrets
from capi.api.core.v1beta2 import Cluster
from capi.backends.port import ControlPlanes
from capi.controllers import kubeconfig, pause
from capi.controllers.controlplane import plan as planning
from capi.controllers.controlplane.plan import Scope
from capi.controllers.infra import lookups, outages
from capi.controllers.kubeconfig import BadSecret
from capi.kube.errors import BackendError
from capi.kube.types import Key
from capi.runtime.plan import ClusterKey, Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Feed, Watch


def _of_cluster(cluster: Cluster, _reader: Reader) -> Iterable[Key]:
    ref = cluster.spec.control_plane_ref
    if ref is not None and ref.group_kind == DevControlPlane.resource.group_kind:
        yield Key(cluster.namespace, ref.name)


def _of_secret(secret: Secret, reader: Reader) -> Iterable[Key]:
    name = secret.metadata.labels.get(labels.CLUSTER_NAME, "")
    cluster = reader.get(Cluster, name, secret.namespace) if name else None
    if cluster is not None and secret.name in (secrets.ca(name), secrets.kubeconfig(name)):
        yield from _of_cluster(cluster, reader)


def _of_failure(cluster: ClusterKey, reader: Reader) -> Iterable[Key]:
    found = reader.get(Cluster, cluster.name, cluster.namespace)
    return _of_cluster(found, reader) if found is not None else ()


def _cluster_name(plane: DevControlPlane) -> str:
    return lookups.owner_name(plane, Cluster) or plane.metadata.labels.get(labels.CLUSTER_NAME, "")


def _observe(plane: DevControlPlane, reader: Reader) -> Scope:
    name, namespace = _cluster_name(plane), plane.namespace
    found = [reader.get(Secret, secret, namespace) for secret in (secrets.ca(name), secrets.kubeconfig(name))]
    return Scope(plane, reader.get(Cluster, name, namespace) if name else None, *found)


class DevControlPlaneReconciler:
    """See the module's text."""

    kind = DevControlPlane
    manager: ClassVar[str] = "capi-devcontrolplane"
    finalizer: ClassVar[str | None] = finalizers.DEV_CONTROL_PLANE

    def __init__(self, control_planes: ControlPlanes) -> None:
        self._control_planes = control_planes
        self.watches: Sequence[AnyWatch] = (
            Watch(Cluster, keys=_of_cluster, changed=outages.cluster_changed),
            Watch(Secret, keys=_of_secret, labels=labels.CLUSTER_NAME),
            Feed(control_planes.failures, _of_failure),
        )

    def unclaimed(self, obj: DevControlPlane, reader: Reader) -> bool:
        """No Cluster owns it yet."""
        return not _cluster_name(obj)

    def paused(self, obj: DevControlPlane, reader: Reader) -> Sequence[str]:
        return pause.causes(obj, lookups.owning_cluster(obj, reader))

    async def uphold(self, obj: DevControlPlane, reader: Reader) -> None:
        """A pause stops changes, not the cluster: its API is served as before, also after a restart."""
        seen = _observe(obj, reader)
        endpoint = planning.endpoint(seen)
        if obj.deleting or not planning.was_initialized(obj) or seen.cluster is None or endpoint is None:
            return
        if seen.authority is not None:
            authority = kubeconfig.authority_of(seen.authority)
            version = obj.status.version or obj.spec.version
            await self._control_planes.ensure_running(ClusterKey(*seen.cluster.key), endpoint.port, authority, version)

    async def reconcile(self, obj: DevControlPlane, reader: Reader, now: datetime) -> Plan:
        seen, name = _observe(obj, reader), _cluster_name(obj)
        if obj.deleting:
            if name:
                await self._control_planes.ensure_absent(ClusterKey(obj.namespace, name))
            return planning.deletion(seen)
        waiting = planning.waiting(seen)
        if waiting is not None:
            return waiting
        if seen.authority is None:
            return planning.certificates(seen, kubeconfig.new_authority(obj, name, now))
        return await self._serve(seen, seen.authority, now)

    async def _serve(self, seen: Scope, secret: Secret, now: datetime) -> Plan:
        endpoint = planning.endpoint(seen)
        assert endpoint is not None
        assert seen.cluster is not None
        try:
            authority = kubeconfig.authority_of(secret)
            key = ClusterKey(*seen.cluster.key)
            await self._control_planes.interrupt(key, down=outages.is_down(seen.cluster, now))
            await self._control_planes.ensure_running(key, endpoint.port, authority, seen.plane.spec.version)
        except BadSecret as error:
            return planning.bad_certificates(seen, error)
        except BackendError as error:
            return planning.not_served(seen, error)
        disturbance = outages.disturbance(seen.cluster, now)
        if disturbance is not None:
            return planning.disturbed(seen, disturbance)
        access = kubeconfig.access_of(seen.kubeconfig) if seen.kubeconfig is not None else None
        fresh = None
        if kubeconfig.needed(seen.plane, seen.kubeconfig, access, authority, now):
            fresh = kubeconfig.new_kubeconfig(seen.plane, seen.cluster.name, endpoint, authority, now)
        return planning.serving(seen, fresh, kubeconfig.renewal(access, now) if access is not None else None)

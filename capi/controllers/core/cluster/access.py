"""The kubeconfig Secret of a Cluster without a control plane object: made from the authority that its user brings.

A Secret `<cluster>-kubeconfig` that somebody else made is left alone; one made here is renewed before its certificate ends, and
when the authority in `<cluster>-ca` is another one. Where there is a control plane object, all this is its provider's.
Upstream: internal/controllers/cluster/cluster_controller_phases.go (reconcileKubeconfig), util/kubeconfig.
Differs: the Secret is renewed.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from capi.api.builtin import Secret
from capi.api.core import secrets
from capi.api.core.v1beta2 import APIEndpoint, Cluster
from capi.controllers import kubeconfig
from capi.kube.errors import CapiError
from capi.runtime.plan import Apply, Write, target
from capi.runtime.reader import Reader

LOOK_AGAIN = timedelta(seconds=30)
"""A user's Secret need not have a label by which to watch it."""


@dataclass(frozen=True, slots=True)
class Access:
    """What there is to do about the kubeconfig Secret."""

    write: Write | None = None
    recheck: timedelta | None = None
    waiting: str = ""
    """Why the Secret cannot be made."""


NOTHING = Access()


async def observe_access(cluster: Cluster, reader: Reader, now: datetime) -> Access:
    """Read both Secrets, uncached, of a Cluster that needs a kubeconfig from here."""
    endpoint = cluster.spec.control_plane_endpoint
    if cluster.deleting or cluster.spec.control_plane_ref is not None or endpoint is None or not endpoint.valid:
        return NOTHING
    present = await reader.live(Secret, secrets.kubeconfig(cluster.name), cluster.namespace)
    if present is not None and not kubeconfig.is_owned(present, cluster):
        return NOTHING
    name = secrets.ca(cluster.name)
    authority = await reader.live(Secret, name, cluster.namespace)
    if authority is None:
        return Access(recheck=LOOK_AGAIN, waiting=f"Secret {name} with the certificate authority does not exist")
    try:
        return _made(cluster, endpoint, present, authority, now)
    except (CapiError, ValueError) as error:
        return Access(recheck=LOOK_AGAIN, waiting=f"Secret {name} is no use: {error}")


def _made(cluster: Cluster, endpoint: APIEndpoint, present: Secret | None, authority: Secret, now: datetime) -> Access:
    pair = kubeconfig.authority_of(authority)
    access = kubeconfig.access_of(present) if present is not None else None
    if not kubeconfig.needed(cluster, present, access, pair, now):
        return Access(recheck=kubeconfig.renewal(access, now) if access is not None else None)
    fresh = kubeconfig.new_kubeconfig(cluster, cluster.name, endpoint, pair, now)
    if present is None:
        return Access(write=fresh)
    return Access(write=Apply(target(present), fresh.body, must_exist=True))

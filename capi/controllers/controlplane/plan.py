"""DevControlPlane: what a pass wants. Pure; keys and certificates, which need chance, come from outside."""

from dataclasses import dataclass
from datetime import timedelta

from capi.api.builtin import Secret
from capi.api.controlplane.v1beta2 import DevControlPlane
from capi.api.core.conditions import AVAILABLE, Reason
from capi.api.core.v1beta2 import APIEndpoint, Cluster
from capi.controllers.controlplane import status
from capi.controllers.infra import gates
from capi.controllers.infra.outages import Disturbance
from capi.controllers.kubeconfig import is_owned
from capi.kube.errors import BackendError, CapiError
from capi.runtime.plan import Apply, Create, Delete, Event, Plan, Write, target


@dataclass(frozen=True, slots=True)
class Scope:
    """All that one pass looks at."""

    plane: DevControlPlane
    cluster: Cluster | None
    authority: Secret | None
    """`<cluster>-ca`"""
    kubeconfig: Secret | None
    """`<cluster>-kubeconfig`"""


def was_initialized(plane: DevControlPlane) -> bool:
    """Its API was served once."""
    before = plane.status.initialization
    return before is not None and bool(before.control_plane_initialized)


def endpoint(seen: Scope) -> APIEndpoint | None:
    """Where to serve: as the infrastructure reported, else as the user gave it; None while it is not complete."""
    reported = seen.cluster.spec.control_plane_endpoint if seen.cluster is not None else None
    found = reported or seen.plane.spec.control_plane_endpoint
    return found if found is not None and found.valid else None


def waiting(seen: Scope) -> Plan | None:
    """What stands in the way of serving; None if nothing does. A Cluster's change wakes the key."""
    if seen.cluster is None:
        return Plan()  # core makes the Cluster its owner
    gate = gates.infrastructure(seen.cluster)
    if gate is not None:
        return Plan(status=status.waiting(seen.plane, gate.reason, gate.message))
    if endpoint(seen) is None:
        message = "Waiting for the infrastructure to report spec.controlPlaneEndpoint"
        return Plan(status=status.waiting(seen.plane, "WaitingForControlPlaneEndpoint", message))
    return None


def disturbed(seen: Scope, why: Disturbance) -> Plan:
    """Fault injection keeps the API server from answering, or its annotations cannot be understood."""
    return Plan(
        status=status.failed(seen.plane, why.reason, why.message),
        events=why.events(seen.plane.status.conditions, AVAILABLE),
        requeue_after=why.lasts,
    )


def certificates(seen: Scope, creation: Create) -> Plan:
    """There is no authority yet; its Secret wakes the key."""
    return Plan(writes=(creation,), status=status.waiting(seen.plane, Reason.NOT_AVAILABLE, "Making the certificates"))


def bad_certificates(seen: Scope, error: CapiError) -> Plan:
    """The authority is no use; a change of its Secret wakes the key."""
    return Plan(status=status.waiting(seen.plane, "InvalidCertificates", error.message))


def not_served(seen: Scope, error: BackendError) -> Plan:
    """The API server cannot be started; retried with back-off."""
    event = Event(error.reason, error.message, "Warning")
    return Plan(status=status.failed(seen.plane, error.reason, error.message), events=(event,), error=error)


def serving(seen: Scope, fresh: Create | None, renewal: timedelta | None) -> Plan:
    """The API server runs. `fresh` is a kubeconfig to be written, over the old one if there is one."""
    writes: tuple[Write, ...] = ()
    if fresh is not None and seen.kubeconfig is not None:
        writes = (Apply(target(seen.kubeconfig), fresh.body, must_exist=True),)
    elif fresh is not None:
        writes = (fresh,)
    return Plan(writes=writes, status=status.serving(seen.plane, reachable=fresh is None), requeue_after=renewal)


def deletion(seen: Scope) -> Plan:
    """Nothing is served any more: the Secrets made for this control plane go, then the object."""
    owned = [s for s in (seen.authority, seen.kubeconfig) if s is not None and is_owned(s, seen.plane)]
    return Plan(writes=[Delete(target(secret)) for secret in owned], finalized=True)

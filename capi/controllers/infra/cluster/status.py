"""An InfraCluster: how it is. Pure.

Upstream: status.initialization.provisioned; LoadBalancerAvailable of the docker backend, which Ready repeats. Differs: the
in-memory backend reports Ready too.
"""

from capi.api.core.conditions import READY, Dev, Reason
from capi.api.core.v1beta2 import FailureDomain
from capi.api.infra.v1beta2 import DevClusterInitialization, DevClusterStatus
from capi.controllers.infra.family import InfraCluster
from capi.controllers.infra.names import NOT_SUPPORTED
from capi.kube.conditions import Condition


def of(infra: InfraCluster, *, provisioned: bool) -> DevClusterStatus:
    """The whole status; what was reached stays."""
    if provisioned:
        ready = Condition(type=READY, status="True", reason=Reason.READY)
        return DevClusterStatus(conditions=(ready,), initialization=DevClusterInitialization(provisioned=True))
    return _not_ready(infra, Reason.NOT_READY, "Reserving an endpoint for the API server")


def unsupported(infra: InfraCluster, message: str) -> DevClusterStatus:
    """Of a backend that this version does not have."""
    return _not_ready(infra, NOT_SUPPORTED, message)


def failed(infra: InfraCluster, reason: str, message: str) -> DevClusterStatus:
    """There is no endpoint to be had."""
    return _not_ready(infra, reason, message)


def balanced(infra: InfraCluster) -> DevClusterStatus:
    """The load balancer does what it should."""
    available = Condition(type=Dev.LOAD_BALANCER_AVAILABLE, status="True", reason=Reason.AVAILABLE)
    ready = Condition(type=READY, status="True", reason=Reason.READY)
    return DevClusterStatus(
        conditions=(ready, available),
        initialization=DevClusterInitialization(provisioned=True),
        failure_domains=_domains(infra),
    )


def deleting(infra: InfraCluster, message: str) -> DevClusterStatus:
    """The load balancer is being removed."""
    return unbalanced(infra, message, reason=Reason.DELETING)


def unbalanced(infra: InfraCluster, message: str, *, reason: str = Reason.NOT_AVAILABLE) -> DevClusterStatus:
    """There is no load balancer, or it does not do what it should; what was reached stays."""
    available = Condition(type=Dev.LOAD_BALANCER_AVAILABLE, status="False", reason=reason, message=message)
    text = f"* {available.type}: {message}"
    ready = Condition(type=READY, status="False", reason=Reason.NOT_READY, message=text)
    return DevClusterStatus(
        conditions=(ready, available),
        initialization=infra.status.initialization,
        failure_domains=infra.status.failure_domains,
    )


def _domains(infra: InfraCluster) -> tuple[FailureDomain, ...]:
    docker = infra.spec.backend.docker
    return docker.failure_domains if docker is not None else ()


def _not_ready(infra: InfraCluster, reason: str, message: str) -> DevClusterStatus:
    condition = Condition(type=READY, status="False", reason=reason, message=message)
    return DevClusterStatus(conditions=(condition,), initialization=infra.status.initialization)

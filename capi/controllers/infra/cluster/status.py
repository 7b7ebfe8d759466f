"""DevCluster: how it is. Pure.

Upstream: status.initialization.provisioned. Differs: the in-memory backend reports Ready too.
"""

from capi.api.core.conditions import READY, Reason
from capi.api.infra.v1beta2 import DevCluster, DevClusterInitialization, DevClusterStatus
from capi.controllers.infra.names import NOT_SUPPORTED, UNSUPPORTED_MESSAGE
from capi.kube.conditions import Condition


def of(infra: DevCluster, *, provisioned: bool) -> DevClusterStatus:
    """The whole status; what was reached stays."""
    if provisioned:
        ready = Condition(type=READY, status="True", reason=Reason.READY)
        return DevClusterStatus(conditions=(ready,), initialization=DevClusterInitialization(provisioned=True))
    return _not_ready(infra, Reason.NOT_READY, "Reserving an endpoint for the API server")


def unsupported(infra: DevCluster) -> DevClusterStatus:
    """Of a backend that this version does not have."""
    return _not_ready(infra, NOT_SUPPORTED, UNSUPPORTED_MESSAGE)


def failed(infra: DevCluster, reason: str, message: str) -> DevClusterStatus:
    """There is no endpoint to be had."""
    return _not_ready(infra, reason, message)


def _not_ready(infra: DevCluster, reason: str, message: str) -> DevClusterStatus:
    condition = Condition(type=READY, status="False", reason=reason, message=message)
    return DevClusterStatus(conditions=(condition,), initialization=infra.status.initialization)

"""DevControlPlane: how it is. Pure.

Ours. Condition types as KubeadmControlPlane has them: Available, Initialized, CertificatesAvailable.
"""

from capi.api.controlplane.v1beta2 import DevControlPlane, DevControlPlaneInitialization, DevControlPlaneStatus
from capi.api.core.conditions import AVAILABLE, Reason
from capi.kube.conditions import Condition

INITIALIZED = "Initialized"
CERTIFICATES_AVAILABLE = "CertificatesAvailable"


def waiting(plane: DevControlPlane, reason: str, message: str) -> DevControlPlaneStatus:
    """Something that the control plane needs is not there."""
    certificates = _false(CERTIFICATES_AVAILABLE, Reason.NOT_AVAILABLE, message)
    return _status(plane, certificates, _false(AVAILABLE, reason, message))


def failed(plane: DevControlPlane, reason: str, message: str) -> DevControlPlaneStatus:
    """Certificates are there, and the API server cannot be served."""
    return _status(plane, _certificates(), _false(AVAILABLE, reason, message))


def serving(plane: DevControlPlane, *, reachable: bool) -> DevControlPlaneStatus:
    """The API server runs; `reachable` once its kubeconfig is stored."""
    if not reachable:
        return failed(plane, Reason.NOT_AVAILABLE, "Writing the kubeconfig")
    return DevControlPlaneStatus(
        conditions=(
            Condition(type=AVAILABLE, status="True", reason=Reason.AVAILABLE),
            Condition(type=INITIALIZED, status="True", reason=INITIALIZED),
            _certificates(),
        ),
        initialization=DevControlPlaneInitialization(control_plane_initialized=True),
        external_managed_control_plane=True,
        ready=True,
        version=plane.spec.version,
    )


def _status(plane: DevControlPlane, certificates: Condition, available: Condition) -> DevControlPlaneStatus:
    """What was reached stays: a control plane that is down for a while remains initialized."""
    before = plane.status.initialization
    initialized = bool(before is not None and before.control_plane_initialized)
    return DevControlPlaneStatus(
        conditions=(
            available,
            Condition(type=INITIALIZED, status="True", reason=INITIALIZED)
            if initialized
            else _false(INITIALIZED, "NotInitialized", available.message),
            certificates,
        ),
        initialization=before,
        external_managed_control_plane=True,
        version=plane.status.version,
    )


def _certificates() -> Condition:
    return Condition(type=CERTIFICATES_AVAILABLE, status="True", reason=Reason.AVAILABLE)


def _false(type_: str, reason: str, message: str) -> Condition:
    return Condition(type=type_, status="False", reason=reason, message=message)

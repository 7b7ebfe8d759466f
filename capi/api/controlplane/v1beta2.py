"""controlplane.cluster.x-k8s.io/v1beta2: DevControlPlane, a control plane without machines.

Ours: it follows the v1beta2 control plane contract as a hosted control plane (`status.externalManagedControlPlane`), so
that a cluster of MachinePools needs no control plane Machines. Its API server is served by this process.
"""

from typing import Annotated, ClassVar

import msgspec

from capi.api.core.v1beta2.shared import APIEndpoint, Conditions, Versions
from capi.api.schema import (
    AGE,
    CLUSTER_LABEL_COLUMN,
    PAUSED,
    Column,
    Crd,
    Rule,
    Version,
    condition_column,
)
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

GROUP = "controlplane.cluster.x-k8s.io"
LABELS = (("cluster.x-k8s.io/provider", "control-plane-dev"), ("cluster.x-k8s.io/v1beta2", "v1beta2"))


class DevControlPlaneSpec(Api, kw_only=True):
    """What is wanted of a DevControlPlane."""

    version: Version
    """Kubernetes version, like v1.34.0."""
    control_plane_endpoint: APIEndpoint | None = None
    """Filled in by the controller when neither this nor the infrastructure's endpoint is given."""


class DevControlPlaneInitialization(Api):
    """Steps that were reached."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    control_plane_initialized: bool | None = None


class DevControlPlaneStatus(Api):
    """What was observed of a DevControlPlane."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    conditions: Conditions = ()
    initialization: DevControlPlaneInitialization | None = None
    external_managed_control_plane: bool | None = None
    """Always true: there are no control plane Machines."""
    ready: bool | None = None
    version: Annotated[str, Rule(min_length=1, max_length=256)] = ""
    """The version that is served."""
    versions: Versions = ()
    observed_generation: Annotated[int | None, Rule(format="int64", minimum=1)] = None


class DevControlPlane(Resource, kw_only=True):
    """A DevControlPlane is a hosted control plane: an API server in this process, without control plane Machines."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, "v1beta2", "DevControlPlane", "devcontrolplanes")
    crd: ClassVar[Crd] = Crd(
        singular="devcontrolplane",
        short_names=("dcp",),
        labels=LABELS,
        columns=(
            CLUSTER_LABEL_COLUMN,
            condition_column("Available", "Available"),
            PAUSED,
            Column("Initialized", ".status.initialization.controlPlaneInitialized", "boolean"),
            AGE,
            Column("Version", ".spec.version"),
        ),
    )
    spec: DevControlPlaneSpec
    status: DevControlPlaneStatus = msgspec.field(default_factory=DevControlPlaneStatus)


__all__ = [
    "GROUP",
    "DevControlPlane",
    "DevControlPlaneInitialization",
    "DevControlPlaneSpec",
    "DevControlPlaneStatus",
]

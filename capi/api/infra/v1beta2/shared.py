"""Types that several Dev kinds share.

Upstream: test/infrastructure/docker/api/v1beta2. Ours: the in-memory backend of pools.
"""

from typing import Annotated, TypeAlias

import msgspec

from capi.api.core.v1beta2.shared import V1Beta1Condition
from capi.api.schema import Duration, Rule
from capi.kube.objects import Api

GROUP = "infrastructure.cluster.x-k8s.io"
VERSION_NAME = "v1beta2"
LABELS = (
    ("cluster.x-k8s.io/provider", "infrastructure-docker"),
    ("cluster.x-k8s.io/v1beta1", "v1beta1"),
    ("cluster.x-k8s.io/v1beta2", "v1beta2"),
)
"""Labels of the CRDs; the contracts say which versions of the kind follow them. Upstream: on kinds without a v1beta1 too."""
Capacity: TypeAlias = dict[str, Annotated[int | str, Rule(int_or_string=True)]]
"""Resources of one machine, for scaling from zero."""


class V1Beta1Conditions(Api):
    """What a status had in v1beta1 only."""

    conditions: tuple[V1Beta1Condition, ...] = ()


class DeprecatedStatus(Api):
    """Status that will go with the versions that defined it."""

    v1beta1: V1Beta1Conditions | None = None


class Mount(Api):
    """A path of the host, mounted into the instance's container."""

    container_path: str = ""
    host_path: str = ""
    read_only: bool | None = None


class InMemoryProvisioning(Api, kw_only=True):
    """How long a simulated step takes: the duration plus a random share of it."""

    startup_duration: Duration
    """A Go duration, like "10s"."""
    startup_jitter: str = ""
    """A number in a string, like "0.2": the most that is added, as a share of the duration."""


class InMemoryStep(Api):
    """A simulated component that takes its time to start."""

    provisioning: InMemoryProvisioning | None = None


class InMemoryMachineBackend(Api):
    """A simulated machine."""

    vm: InMemoryStep | None = None
    node: InMemoryStep | None = None
    api_server: InMemoryStep | None = None
    """Control plane machines only."""
    etcd: InMemoryStep | None = None
    """Control plane machines only."""


class ExternalBackend(Api, kw_only=True):
    """Instances of a backend that somebody else wrote (ours; docs/providers.md)."""

    name: Annotated[str, Rule(min_length=1, max_length=63)]
    """Under which the running capi knows it."""
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    """What they mean is the backend's business."""

"""Types that several Dev kinds share.

Upstream: test/infrastructure/docker/api/v1beta2. Ours: the in-memory backend of pools.
"""

from capi.api.schema import Duration
from capi.kube.objects import Api

GROUP = "infrastructure.cluster.x-k8s.io"
VERSION_NAME = "v1beta2"
LABELS = (("cluster.x-k8s.io/provider", "infrastructure-docker"), ("cluster.x-k8s.io/v1beta2", "v1beta2"))
"""Labels of the CRDs; the second is the contract: which versions of the kind follow v1beta2. v1beta1 is not served yet."""


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

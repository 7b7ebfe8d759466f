"""DockerCluster, DockerMachine, DockerMachineTemplate, DockerMachinePool: the Dev kinds of containers in an older spelling.

What the Dev kinds have below `spec.backend.docker` is flat here. `spec.backend` of each is what the Dev kind would say, so that one
implementation reads both; statuses are the same.
Upstream: until v1.13, test/infrastructure/docker/{api,exp/api}/v1beta2/docker*_types.go.
Ours, all optional: `spec.strategy` and `spec.template.bootstrapTimeout` of DockerMachinePool, and its `status.initialization`.
"""

from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec

from capi.api.core.v1beta2.shared import APIEndpoint, TemplateMeta
from capi.api.infra.v1beta2.cluster import (
    DevCluster,
    DevClusterBackend,
    DevClusterStatus,
    DockerClusterBackend,
    DockerLoadBalancer,
    FailureDomains,
)
from capi.api.infra.v1beta2.machine import (
    DevMachine,
    DevMachineBackend,
    DevMachineStatus,
    DevMachineTemplateStatus,
    DockerMachineBackend,
)
from capi.api.infra.v1beta2.machinepool import (
    DevMachinePool,
    DevMachinePoolBackend,
    DevMachinePoolInstance,
    DevMachinePoolStatus,
    DevMachinePoolStrategy,
    DockerMachinePoolBackend,
)
from capi.api.infra.v1beta2.shared import GROUP, LABELS, VERSION_NAME, DeprecatedStatus, Mount
from capi.api.schema import AGE, CLUSTER_LABEL_COLUMN, Cel, Crd, Duration, ProviderID, Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType


class DockerClusterSpec(Api):
    """What is wanted of a DockerCluster."""

    control_plane_endpoint: APIEndpoint | None = None
    """Filled in by the controller when it is not given."""
    failure_domains: FailureDomains = ()
    load_balancer: DockerLoadBalancer | None = None

    @property
    def backend(self) -> DevClusterBackend:
        """As a DevCluster says it."""
        docker = DockerClusterBackend(failure_domains=self.failure_domains, load_balancer=self.load_balancer)
        return DevClusterBackend(docker=docker)


class DockerCluster(Resource):
    """A DockerCluster is the infrastructure of a cluster of containers; the same as a DevCluster with the docker backend."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DockerCluster", "dockerclusters")
    crd: ClassVar[Crd] = Crd(singular="dockercluster", labels=LABELS, required=(), columns=(CLUSTER_LABEL_COLUMN, AGE))
    spec: DockerClusterSpec = DockerClusterSpec()
    status: DevClusterStatus = DevClusterStatus()


CONSTANT_IMAGE: Final = Cel(
    rule="(has(self.customImage) ? self.customImage : '') == (has(oldSelf.customImage) ? oldSelf.customImage : '')",
    message="field is immutable",
    field_path=".customImage",
    reason="FieldValueForbidden",
)


class DockerMachineSpec(Api):
    """What is wanted of a DockerMachine."""

    provider_id: ProviderID = ""
    custom_image: str = ""
    pre_load_images: tuple[str, ...] = ()
    extra_mounts: tuple[Mount, ...] = ()
    bootstrapped: bool | None = None
    """Deprecated: kept for its writers, read by nobody."""
    bootstrap_timeout: Duration = ""
    """How long the bootstrap may take; unset: 5m."""

    @classmethod
    def of(cls, provider_id: str, backend: DevMachineBackend) -> "DockerMachineSpec":
        """The spec of a machine of containers; `backend.inMemory` cannot be said."""
        docker = backend.docker or DockerMachineBackend()
        return cls(
            provider_id=provider_id,
            custom_image=docker.custom_image,
            pre_load_images=docker.pre_load_images,
            extra_mounts=docker.extra_mounts,
            bootstrap_timeout=docker.bootstrap_timeout,
        )

    @property
    def backend(self) -> DevMachineBackend:
        """As a DevMachine says it."""
        docker = DockerMachineBackend(
            custom_image=self.custom_image,
            pre_load_images=self.pre_load_images,
            extra_mounts=self.extra_mounts,
            bootstrap_timeout=self.bootstrap_timeout,
        )
        return DevMachineBackend(docker=docker)


class DockerMachineStatus(DevMachineStatus):
    """What was observed of a DockerMachine."""

    load_balancer_configured: bool | None = None
    """Deprecated: kept for its writers, read by nobody."""


class DockerMachine(Resource):
    """A DockerMachine is one instance of a cluster of containers; the same as a DevMachine with the docker backend."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DockerMachine", "dockermachines")
    crd: ClassVar[Crd] = Crd(singular="dockermachine", labels=LABELS, required=(), columns=DevMachine.crd.columns)
    spec: Annotated[DockerMachineSpec, Rule(cel=(CONSTANT_IMAGE,))] = DockerMachineSpec()
    status: Annotated[DevMachineStatus, Rule(shape=DockerMachineStatus)] = DevMachineStatus()


class DockerMachineTemplateResource(Api, kw_only=True):
    """The DockerMachines made from a template."""

    metadata: TemplateMeta | None = None
    spec: DockerMachineSpec


class DockerMachineTemplateSpec(Api, kw_only=True):
    """What is wanted of a DockerMachineTemplate."""

    template: DockerMachineTemplateResource


class DockerMachineTemplate(Resource, kw_only=True):
    """A DockerMachineTemplate is what DockerMachines are made from. Its spec does not change."""

    resource: ClassVar[ResourceType] = ResourceType(
        GROUP, VERSION_NAME, "DockerMachineTemplate", "dockermachinetemplates"
    )
    crd: ClassVar[Crd] = Crd(singular="dockermachinetemplate", labels=LABELS, columns=(AGE,))
    spec: DockerMachineTemplateSpec
    status: DevMachineTemplateStatus = DevMachineTemplateStatus()


class DockerMachinePoolSpec(Api):
    """What is wanted of a DockerMachinePool."""

    template: DockerMachinePoolBackend = DockerMachinePoolBackend()
    provider_id: str = ""
    """Identity of the pool itself."""
    provider_id_list: tuple[str, ...] = ()
    """The instances there are, sorted."""
    strategy: DevMachinePoolStrategy | None = None

    @property
    def backend(self) -> DevMachinePoolBackend:
        """As a DevMachinePool says it."""
        return DevMachinePoolBackend(docker=self.template)


class DockerMachinePoolInstance(DevMachinePoolInstance):
    """One instance of the pool."""

    bootstrapped: bool | None = None
    """Deprecated: kept for its writers, read by nobody."""


class DockerMachinePoolStatus(DevMachinePoolStatus):
    """What was observed of a DockerMachinePool."""

    instances: Annotated[tuple[DevMachinePoolInstance, ...], Rule(shape=tuple[DockerMachinePoolInstance, ...])] = ()
    deprecated: DeprecatedStatus | None = None


class DockerMachinePool(Resource):
    """A DockerMachinePool is the containers behind a MachinePool; the same as a DevMachinePool with the docker backend."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DockerMachinePool", "dockermachinepools")
    crd: ClassVar[Crd] = Crd(singular="dockermachinepool", labels=LABELS, required=(), columns=(AGE,))
    spec: DockerMachinePoolSpec = msgspec.field(default_factory=DockerMachinePoolSpec)
    status: Annotated[DevMachinePoolStatus, Rule(shape=DockerMachinePoolStatus)] = msgspec.field(
        default_factory=DevMachinePoolStatus
    )


AnyCluster: TypeAlias = DevCluster | DockerCluster
AnyMachine: TypeAlias = DevMachine | DockerMachine
AnyMachinePool: TypeAlias = DevMachinePool | DockerMachinePool
"""The two spellings of each kind."""

"""DevMachine and its template: one instance of a development cluster.

Upstream: test/infrastructure/docker/api/v1beta2/{devmachine,devmachinetemplate}_types.go.
"""

from typing import Annotated, ClassVar, Final

import msgspec

from capi.api.core.v1beta2.shared import Conditions, MachineAddresses, TemplateMeta
from capi.api.infra.v1beta2.shared import (
    GROUP,
    LABELS,
    VERSION_NAME,
    Capacity,
    DeprecatedStatus,
    ExternalBackend,
    InMemoryMachineBackend,
    Mount,
)
from capi.api.schema import AGE, CLUSTER_LABEL_COLUMN, PAUSED, Cel, Column, Crd, Duration, ProviderID, Rule, Text256
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

CONSTANT_IMAGE: Final = Cel(
    rule="!has(self.backend.docker) || !has(oldSelf.backend.docker)"
    " || (has(self.backend.docker.customImage) ? self.backend.docker.customImage : '')"
    " == (has(oldSelf.backend.docker.customImage) ? oldSelf.backend.docker.customImage : '')",
    message="field is immutable",
    field_path=".backend.docker.customImage",
    reason="FieldValueForbidden",
)
"""Of machines only: templates have rules of their own."""


class DockerMachineBackend(Api):
    """A machine that is a container."""

    custom_image: str = ""
    pre_load_images: tuple[str, ...] = ()
    extra_mounts: tuple[Mount, ...] = ()
    bootstrap_timeout: Duration = ""
    """How long the bootstrap may take; unset: 5m."""


class DevMachineBackend(Api):
    """What the machine is; exactly one."""

    docker: DockerMachineBackend | None = None
    in_memory: InMemoryMachineBackend | None = None
    external: ExternalBackend | None = None
    """Ours."""


class DevMachineSpec(Api):
    """What is wanted of a DevMachine."""

    provider_id: ProviderID = ""
    backend: Annotated[DevMachineBackend, Rule(required=True)] = msgspec.field(default_factory=DevMachineBackend)

    @classmethod
    def of(cls, provider_id: str, backend: DevMachineBackend) -> "DevMachineSpec":
        """The spec of a machine; the same call makes that of a DockerMachine."""
        return cls(provider_id=provider_id, backend=backend)


class DevMachineInitialization(Api):
    """Steps that were reached."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    provisioned: bool | None = None


class DevMachineStatus(Api):
    """What was observed of a DevMachine."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    conditions: Conditions = ()
    initialization: DevMachineInitialization | None = None
    addresses: MachineAddresses = ()
    failure_domain: Text256 = ""
    deprecated: DeprecatedStatus | None = None


class DevMachine(Resource):
    """A DevMachine is one instance of a development cluster: a container, or a simulation in memory."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DevMachine", "devmachines")
    crd: ClassVar[Crd] = Crd(
        singular="devmachine",
        labels=LABELS,
        required=(),
        columns=(
            CLUSTER_LABEL_COLUMN,
            Column("Provider ID", ".spec.providerID", priority=10),
            Column("Failure domain", ".status.failureDomain"),
            Column("IP", '.status.addresses[?(@.type=="InternalIP")].address', priority=10),
            PAUSED,
            Column("Provisioned", ".status.initialization.provisioned"),
            AGE,
        ),
    )
    spec: Annotated[DevMachineSpec, Rule(cel=(CONSTANT_IMAGE,))] = DevMachineSpec()
    status: DevMachineStatus = DevMachineStatus()


class DevMachineTemplateResource(Api, kw_only=True):
    """The DevMachines made from a template."""

    metadata: TemplateMeta | None = None
    spec: DevMachineSpec


class DevMachineTemplateSpec(Api, kw_only=True):
    """What is wanted of a DevMachineTemplate."""

    template: DevMachineTemplateResource


class DevMachineTemplateStatus(Api):
    """What was observed of a DevMachineTemplate."""

    capacity: Capacity = msgspec.field(default_factory=dict)


class DevMachineTemplate(Resource, kw_only=True):
    """A DevMachineTemplate is what DevMachines are made from. Its spec does not change."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DevMachineTemplate", "devmachinetemplates")
    crd: ClassVar[Crd] = Crd(
        singular="devmachinetemplate",
        labels=LABELS,
        columns=(AGE,),
    )
    spec: DevMachineTemplateSpec
    status: DevMachineTemplateStatus = DevMachineTemplateStatus()

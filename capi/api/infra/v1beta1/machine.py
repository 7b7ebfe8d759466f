"""DevMachine, DockerMachine and their templates in v1beta1.

Upstream: test/infrastructure/docker/api/v1beta1/{dev,docker}machine{,template}_types.go.
"""

from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec

from capi.api.core.v1beta1.shared import VERSION_NAME, NewConditions, OldConditions, TemplateMeta
from capi.api.core.v1beta2.shared import MachineAddresses
from capi.api.infra.v1beta2 import docker, machine
from capi.api.infra.v1beta2.machine import DevMachineBackend
from capi.api.infra.v1beta2.shared import GROUP, Mount
from capi.api.schema import AGE, CLUSTER_LABEL_COLUMN, Column, Crd, Duration, Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

ProviderID: TypeAlias = Annotated[str, Rule(max_length=512)]
"""May be empty: older Go clients cannot leave it out."""
COLUMNS: Final = (
    CLUSTER_LABEL_COLUMN,
    Column("Machine", '.metadata.ownerReferences[?(@.kind=="Machine")].name'),
    Column("ProviderID", ".spec.providerID"),
    Column("Ready", ".status.ready"),
    AGE,
)


class DevMachineSpec(Api):
    """What is wanted of a DevMachine."""

    provider_id: ProviderID = ""
    backend: Annotated[DevMachineBackend, Rule(required=True)] = msgspec.field(default_factory=DevMachineBackend)


class DevMachineStatus(Api):
    """What was observed of a machine."""

    ready: bool | None = None
    addresses: MachineAddresses = ()
    conditions: OldConditions = ()
    v1beta2: NewConditions | None = None


class DevMachine(Resource):
    """A DevMachine is one instance of a development cluster: a container, or a simulation in memory."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DevMachine", "devmachines")
    crd: ClassVar[Crd] = Crd(singular="devmachine", required=(), columns=COLUMNS)
    spec: Annotated[DevMachineSpec, Rule(cel=(machine.CONSTANT_IMAGE,))] = DevMachineSpec()
    status: DevMachineStatus = DevMachineStatus()


class DevMachineTemplateResource(Api, kw_only=True):
    """The DevMachines made from a template."""

    metadata: TemplateMeta | None = None
    spec: DevMachineSpec


class DevMachineTemplateSpec(Api, kw_only=True):
    """What is wanted of a DevMachineTemplate."""

    template: DevMachineTemplateResource


class DevMachineTemplate(Resource, kw_only=True):
    """A DevMachineTemplate is what DevMachines are made from. Its spec does not change."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DevMachineTemplate", "devmachinetemplates")
    crd: ClassVar[Crd] = Crd(singular="devmachinetemplate", status=False, columns=(AGE,))
    spec: DevMachineTemplateSpec


class DockerMachineSpec(Api):
    """What is wanted of a DockerMachine."""

    provider_id: ProviderID = ""
    custom_image: str = ""
    pre_load_images: tuple[str, ...] = ()
    extra_mounts: tuple[Mount, ...] = ()
    bootstrapped: bool | None = None
    bootstrap_timeout: Duration = ""


class DockerMachineStatus(DevMachineStatus):
    """What was observed of a DockerMachine."""

    load_balancer_configured: bool | None = None


class DockerMachine(Resource):
    """A DockerMachine is one instance of a cluster of containers."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DockerMachine", "dockermachines")
    crd: ClassVar[Crd] = Crd(singular="dockermachine", required=(), columns=COLUMNS)
    spec: Annotated[DockerMachineSpec, Rule(cel=(docker.CONSTANT_IMAGE,))] = DockerMachineSpec()
    status: DockerMachineStatus = DockerMachineStatus()


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
    crd: ClassVar[Crd] = Crd(singular="dockermachinetemplate", status=False, columns=(AGE,))
    spec: DockerMachineTemplateSpec

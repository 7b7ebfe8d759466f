"""DevMachine and its template: one instance of a development cluster.

Upstream: test/infrastructure/docker/api/v1beta2/{devmachine,devmachinetemplate}_types.go.
"""

from typing import Annotated, ClassVar

import msgspec

from capi.api.core.v1beta2.shared import Conditions, MachineAddresses, TemplateMeta, V1Beta1Condition
from capi.api.infra.v1beta2.shared import GROUP, LABELS, VERSION_NAME, InMemoryMachineBackend, Mount
from capi.api.schema import AGE, CLUSTER_LABEL_COLUMN, PAUSED, Cel, Column, Crd, Duration, ProviderID, Rule, Text256
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType


class DockerMachineBackend(Api):
    """A machine that is a container."""

    openapi: ClassVar[Rule] = Rule(
        cel=(
            Cel(
                rule="has(self.customImage) == has(oldSelf.customImage)"
                " && (!has(self.customImage) || self.customImage == oldSelf.customImage)",
                message="field is immutable",
                field_path=".customImage",
                reason="FieldValueForbidden",
            ),
        )
    )
    custom_image: str = ""
    pre_load_images: tuple[str, ...] = ()
    extra_mounts: tuple[Mount, ...] = ()
    bootstrap_timeout: Duration = ""
    """How long the bootstrap may take; unset: 5m."""


class DevMachineBackend(Api):
    """What the machine is; exactly one."""

    docker: DockerMachineBackend | None = None
    in_memory: InMemoryMachineBackend | None = None


class DevMachineSpec(Api):
    """What is wanted of a DevMachine."""

    provider_id: ProviderID = ""
    backend: Annotated[DevMachineBackend, Rule(required=True)] = msgspec.field(default_factory=DevMachineBackend)


class DevMachineInitialization(Api):
    """Steps that were reached."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    provisioned: bool | None = None


class DevMachineV1Beta1Status(Api):
    """What the status had in v1beta1 only."""

    conditions: tuple[V1Beta1Condition, ...] = ()


class DevMachineDeprecatedStatus(Api):
    """Status that will go with the versions that defined it."""

    v1beta1: DevMachineV1Beta1Status | None = None


class DevMachineStatus(Api):
    """What was observed of a DevMachine."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    conditions: Conditions = ()
    initialization: DevMachineInitialization | None = None
    addresses: MachineAddresses = ()
    failure_domain: Text256 = ""
    deprecated: DevMachineDeprecatedStatus | None = None


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
    spec: DevMachineSpec = DevMachineSpec()
    status: DevMachineStatus = DevMachineStatus()


class DevMachineTemplateResource(Api, kw_only=True):
    """The DevMachines made from a template."""

    metadata: TemplateMeta | None = None
    spec: DevMachineSpec


class DevMachineTemplateSpec(Api, kw_only=True):
    """What is wanted of a DevMachineTemplate."""

    openapi: ClassVar[Rule] = Rule(
        cel=(
            Cel(
                rule="self.template.spec == oldSelf.template.spec",
                message="is immutable; create a new DevMachineTemplate instead",
                field_path=".template.spec",
            ),
        )
    )
    template: DevMachineTemplateResource


class DevMachineTemplateStatus(Api):
    """What was observed of a DevMachineTemplate."""

    capacity: dict[str, Annotated[int | str, Rule(int_or_string=True)]] = msgspec.field(default_factory=dict)
    """Resources of a machine made from the template, for scaling from zero."""


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

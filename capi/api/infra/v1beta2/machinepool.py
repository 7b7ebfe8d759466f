"""DevMachinePool and its template: the instances behind a MachinePool of a development cluster.

Upstream: test/infrastructure/docker/api/v1beta2/{devmachinepool,devmachinepooltemplate}_types.go.
Ours, all optional: `spec.backend.inMemory`, `spec.backend.docker.bootstrapTimeout`, `spec.strategy`, and
`status.initialization`, which the v1beta2 contract asks for.
"""

from typing import Annotated, ClassVar

import msgspec

from capi.api.core.v1beta2.shared import Conditions, MachineAddresses, TemplateMeta
from capi.api.infra.v1beta2.shared import GROUP, LABELS, VERSION_NAME, Capacity, ExternalBackend, InMemoryStep, Mount
from capi.api.schema import AGE, Crd, Duration, Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType


class DockerMachinePoolBackend(Api):
    """Machines that are containers."""

    custom_image: str = ""
    pre_load_images: tuple[str, ...] = ()
    extra_mounts: tuple[Mount, ...] = ()
    bootstrap_timeout: Duration = ""
    """How long the bootstrap of an instance may take; unset: 5m."""


class InMemoryMachinePoolBackend(Api):
    """Simulated machines."""

    vm: InMemoryStep | None = None
    node: InMemoryStep | None = None


class DevMachinePoolBackend(Api):
    """What the machines are; at most one."""

    docker: DockerMachinePoolBackend | None = None
    in_memory: InMemoryMachinePoolBackend | None = None
    external: ExternalBackend | None = None
    """Ours."""


class DevMachinePoolRollingUpdate(Api):
    """Replace instances of an earlier template step by step."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    max_surge: Annotated[int | str | None, Rule(int_or_string=True)] = None
    """Instances above the wanted number, as a number or as a percentage that is rounded up; unset: 1."""
    max_unavailable: Annotated[int | str | None, Rule(int_or_string=True)] = None
    """Ready instances that may be missing, as a number or as a percentage that is rounded down; unset: 0."""
    delete_policy: Annotated[str, Rule(enum=("Oldest", "Newest", "Random"))] = ""
    """Who goes first among equals, when the pool shrinks too; unset: Oldest."""


class DevMachinePoolStrategy(Api):
    """What becomes of instances that were made from an earlier template."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    type: Annotated[str, Rule(enum=("RollingUpdate", "OnDelete"))] = ""
    """RollingUpdate replaces them, OnDelete waits until somebody deletes them; unset: RollingUpdate."""
    rolling_update: DevMachinePoolRollingUpdate | None = None


class DevMachinePoolSpec(Api):
    """What is wanted of a DevMachinePool."""

    provider_id: str = ""
    """Identity of the pool itself."""
    provider_id_list: tuple[str, ...] = ()
    """The instances there are, sorted."""
    backend: DevMachinePoolBackend | None = None
    strategy: DevMachinePoolStrategy | None = None


class DevMachinePoolInitialization(Api):
    """Steps that were reached."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    provisioned: bool | None = None


class DevMachinePoolInstance(Api):
    """One instance of the pool."""

    addresses: MachineAddresses = ()
    instance_name: str = ""
    provider_id: str = ""
    version: str = ""
    ready: bool | None = None


class DevMachinePoolNodeInfo(Api):
    """What the Nodes of the pool run on; for scaling from zero."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    architecture: str = ""
    operating_system: str = ""


class DevMachinePoolStatus(Api):
    """What was observed of a DevMachinePool."""

    conditions: Conditions = ()
    initialization: DevMachinePoolInitialization | None = None
    ready: bool | None = None
    """The same, for readers of the older contract."""
    replicas: Annotated[int | None, Rule(format="int32")] = None
    observed_generation: Annotated[int | None, Rule(format="int64")] = None
    infrastructure_machine_kind: str = ""
    """Kind of the objects that stand for single instances: DevMachine."""
    instances: tuple[DevMachinePoolInstance, ...] = ()
    capacity: Capacity = msgspec.field(default_factory=dict)
    """Resources of each instance. Source: the autoscaler's provider for Cluster API."""
    node_info: DevMachinePoolNodeInfo | None = None


class DevMachinePool(Resource):
    """A DevMachinePool is the instances behind a MachinePool: containers, or simulations in memory."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DevMachinePool", "devmachinepools")
    crd: ClassVar[Crd] = Crd(singular="devmachinepool", labels=LABELS, required=(), columns=(AGE,))
    spec: DevMachinePoolSpec = msgspec.field(default_factory=DevMachinePoolSpec)
    status: DevMachinePoolStatus = msgspec.field(default_factory=DevMachinePoolStatus)


class DevMachinePoolTemplateResource(Api, kw_only=True):
    """The DevMachinePools made from a template."""

    metadata: TemplateMeta | None = None
    spec: DevMachinePoolSpec


class DevMachinePoolTemplateSpec(Api, kw_only=True):
    """What is wanted of a DevMachinePoolTemplate."""

    template: DevMachinePoolTemplateResource


class DevMachinePoolTemplate(Resource, kw_only=True):
    """A DevMachinePoolTemplate is what DevMachinePools are made from. Its spec does not change."""

    resource: ClassVar[ResourceType] = ResourceType(
        GROUP, VERSION_NAME, "DevMachinePoolTemplate", "devmachinepooltemplates"
    )
    crd: ClassVar[Crd] = Crd(singular="devmachinepooltemplate", labels=LABELS, status=False, columns=(AGE,))
    spec: DevMachinePoolTemplateSpec

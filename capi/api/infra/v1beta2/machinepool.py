"""DevMachinePool: the instances behind a MachinePool of a development cluster.

Upstream: test/infrastructure/docker/api/v1beta2/devmachinepool_types.go.
Ours, all optional: `spec.backend.inMemory`, and `status.initialization`, which the v1beta2 contract asks for.
"""

from typing import Annotated, ClassVar

import msgspec

from capi.api.core.v1beta2.shared import Conditions, MachineAddresses
from capi.api.infra.v1beta2.shared import GROUP, LABELS, VERSION_NAME, InMemoryStep, Mount
from capi.api.schema import AGE, Crd, Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType


class DockerMachinePoolBackend(Api):
    """Machines that are containers."""

    custom_image: str = ""
    pre_load_images: tuple[str, ...] = ()
    extra_mounts: tuple[Mount, ...] = ()


class InMemoryMachinePoolBackend(Api):
    """Simulated machines."""

    vm: InMemoryStep | None = None
    node: InMemoryStep | None = None


class DevMachinePoolBackend(Api):
    """What the machines are; at most one."""

    docker: DockerMachinePoolBackend | None = None
    in_memory: InMemoryMachinePoolBackend | None = None


class DevMachinePoolSpec(Api):
    """What is wanted of a DevMachinePool."""

    provider_id: str = ""
    """Identity of the pool itself."""
    provider_id_list: tuple[str, ...] = ()
    """The instances there are, sorted."""
    backend: DevMachinePoolBackend | None = None


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


class DevMachinePool(Resource):
    """A DevMachinePool is the instances behind a MachinePool: containers, or simulations in memory."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DevMachinePool", "devmachinepools")
    crd: ClassVar[Crd] = Crd(singular="devmachinepool", labels=LABELS, required=(), columns=(AGE,))
    spec: DevMachinePoolSpec = msgspec.field(default_factory=DevMachinePoolSpec)
    status: DevMachinePoolStatus = msgspec.field(default_factory=DevMachinePoolStatus)

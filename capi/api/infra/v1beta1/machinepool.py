"""DockerMachinePool in v1beta1. (DevMachinePool is younger.)

Upstream: until v1.13, test/infrastructure/docker/exp/api/v1beta1/dockermachinepool_types.go.
"""

from typing import Annotated, ClassVar

from capi.api.core.v1beta1.shared import VERSION_NAME, NewConditions, OldConditions
from capi.api.infra.v1beta2.docker import DockerMachinePoolInstance
from capi.api.infra.v1beta2.shared import GROUP, Mount
from capi.api.schema import AGE, Crd, Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType


class DockerMachinePoolTemplate(Api):
    """The containers of the pool."""

    custom_image: str = ""
    pre_load_images: tuple[str, ...] = ()
    extra_mounts: tuple[Mount, ...] = ()


class DockerMachinePoolSpec(Api):
    """What is wanted of a DockerMachinePool."""

    template: DockerMachinePoolTemplate | None = None
    provider_id: str = ""
    provider_id_list: tuple[str, ...] = ()


class DockerMachinePoolStatus(Api):
    """What was observed of a DockerMachinePool."""

    ready: bool | None = None
    replicas: Annotated[int | None, Rule(format="int32")] = None
    observed_generation: Annotated[int | None, Rule(format="int64")] = None
    instances: tuple[DockerMachinePoolInstance, ...] = ()
    conditions: OldConditions = ()
    infrastructure_machine_kind: str = ""
    v1beta2: NewConditions | None = None


class DockerMachinePool(Resource):
    """A DockerMachinePool is the containers behind a MachinePool."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DockerMachinePool", "dockermachinepools")
    crd: ClassVar[Crd] = Crd(singular="dockermachinepool", required=(), columns=(AGE,))
    spec: DockerMachinePoolSpec = DockerMachinePoolSpec()
    status: DockerMachinePoolStatus = DockerMachinePoolStatus()

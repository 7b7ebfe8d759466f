"""The two spellings of one infrastructure: Dev* kinds, with `spec.backend.docker`, and Docker* kinds, which are flat.

Their specs both answer `backend` and their statuses are of the same types, so one implementation serves both; what tells
them apart is which kinds refer to each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from capi.api.infra.v1beta2 import (
    DevCluster,
    DevMachine,
    DevMachineBackend,
    DevMachinePool,
    DevMachineSpec,
    DevMachineTemplate,
    DockerCluster,
    DockerMachine,
    DockerMachinePool,
    DockerMachineSpec,
    DockerMachineTemplate,
)
from capi.kube.objects import ObjectMeta

InfraCluster: TypeAlias = DevCluster | DockerCluster
InfraMachine: TypeAlias = DevMachine | DockerMachine
InfraMachinePool: TypeAlias = DevMachinePool | DockerMachinePool
InfraMachineTemplate: TypeAlias = DevMachineTemplate | DockerMachineTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Kinds that belong together."""

    name: str
    """In lower case, as controllers are called: "dev"."""
    cluster: type[InfraCluster]
    machine: type[InfraMachine]
    new_machine: Callable[[ObjectMeta, str, DevMachineBackend], InfraMachine]
    """A machine of this family by its metadata, its provider ID and what it is."""
    pool: type[InfraMachinePool]
    template: type[InfraMachineTemplate]


def _dev_machine(metadata: ObjectMeta, provider_id: str, backend: DevMachineBackend) -> InfraMachine:
    return DevMachine(metadata=metadata, spec=DevMachineSpec.of(provider_id, backend))


def _docker_machine(metadata: ObjectMeta, provider_id: str, backend: DevMachineBackend) -> InfraMachine:
    return DockerMachine(metadata=metadata, spec=DockerMachineSpec.of(provider_id, backend))


DEV: Final = Family(
    name="dev",
    cluster=DevCluster,
    machine=DevMachine,
    new_machine=_dev_machine,
    pool=DevMachinePool,
    template=DevMachineTemplate,
)
DOCKER: Final = Family(
    name="docker",
    cluster=DockerCluster,
    machine=DockerMachine,
    new_machine=_docker_machine,
    pool=DockerMachinePool,
    template=DockerMachineTemplate,
)

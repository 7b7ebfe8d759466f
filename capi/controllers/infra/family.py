"""The two spellings of one infrastructure: Dev* kinds, with `spec.backend.docker`, and Docker* kinds, which are flat.

Their specs both answer `backend` and their statuses are of the same types, so one implementation serves both; what tells
them apart is which kinds refer to each other.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from capi.api.infra.v1beta2 import (
    DevCluster,
    DevMachine,
    DevMachinePool,
    DevMachineSpec,
    DevMachineTemplate,
    DockerCluster,
    DockerMachine,
    DockerMachinePool,
    DockerMachineSpec,
    DockerMachineTemplate,
)

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
    machine_spec: type[DevMachineSpec] | type[DockerMachineSpec]
    pool: type[InfraMachinePool]
    template: type[InfraMachineTemplate]


DEV: Final = Family(
    name="dev",
    cluster=DevCluster,
    machine=DevMachine,
    machine_spec=DevMachineSpec,
    pool=DevMachinePool,
    template=DevMachineTemplate,
)
DOCKER: Final = Family(
    name="docker",
    cluster=DockerCluster,
    machine=DockerMachine,
    machine_spec=DockerMachineSpec,
    pool=DockerMachinePool,
    template=DockerMachineTemplate,
)

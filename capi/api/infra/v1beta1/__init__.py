"""infrastructure.cluster.x-k8s.io/v1beta1: the shapes of the older version, for its schemas. Controllers use v1beta2 only."""

from capi.api.infra.v1beta1.cluster import DevCluster, DevClusterTemplate, DockerCluster
from capi.api.infra.v1beta1.machine import DevMachine, DevMachineTemplate, DockerMachine, DockerMachineTemplate
from capi.api.infra.v1beta1.machinepool import DockerMachinePool

__all__ = [
    "DevCluster", "DevClusterTemplate", "DevMachine", "DevMachineTemplate",
    "DockerCluster", "DockerMachine", "DockerMachinePool", "DockerMachineTemplate",
]  # fmt: skip

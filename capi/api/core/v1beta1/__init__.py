"""cluster.x-k8s.io/v1beta1: the shapes of the older version, for its schemas. Controllers read and write v1beta2 only."""

from capi.api.core.v1beta1.cluster import Cluster
from capi.api.core.v1beta1.machine import Machine
from capi.api.core.v1beta1.machinedrainrule import MachineDrainRule
from capi.api.core.v1beta1.machinehealthcheck import MachineHealthCheck
from capi.api.core.v1beta1.machinepool import MachinePool
from capi.api.core.v1beta1.machineset import MachineDeployment, MachineSet

__all__ = [
    "Cluster", "Machine", "MachineDeployment", "MachineDrainRule", "MachineHealthCheck", "MachinePool", "MachineSet",
]  # fmt: skip

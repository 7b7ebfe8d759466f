"""Finalizers of Cluster API's kinds. Upstream: api/core/v1beta2, test/infrastructure/docker/api/v1beta2."""

from typing import Final

CLUSTER: Final = "cluster.cluster.x-k8s.io"
MACHINE: Final = "machine.cluster.x-k8s.io"
MACHINE_POOL: Final = "machinepool.cluster.x-k8s.io"
MACHINE_SET: Final = "cluster.x-k8s.io/machineset"
MACHINE_DEPLOYMENT: Final = "cluster.x-k8s.io/machinedeployment"
DEV_CLUSTER: Final = "dockercluster.infrastructure.cluster.x-k8s.io"
"""The Dev kinds keep the names of their Docker predecessors."""
DEV_MACHINE: Final = "dockermachine.infrastructure.cluster.x-k8s.io"
DEV_MACHINE_POOL: Final = "dockermachinepool.infrastructure.cluster.x-k8s.io"
DEV_CONTROL_PLANE: Final = "devcontrolplane.controlplane.cluster.x-k8s.io"
"""Ours."""

"""Taints that Cluster API puts on Nodes or takes from them. Upstream: api/core/v1beta2/machine_types.go."""

from typing import Final

UNINITIALIZED: Final = "node.cluster.x-k8s.io/uninitialized"
"""NoSchedule; put on by the bootstrap, taken off with the first sync of labels."""
OUTDATED_REVISION: Final = "node.cluster.x-k8s.io/outdated-revision"
"""PreferNoSchedule; on Nodes that a rollout will replace."""
CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
"""NoSchedule; on Nodes of control planes."""

"""What the infrastructure writes on the Node of a container: what a cloud controller manager does elsewhere. Pure.

Upstream: docker/internal/docker/machine.go (SetNodeProviderID, CloudProviderNodePatch). Differs: one patch, and none at all
for a kubelet that knew its provider ID from the start; a Node that is not there yet is waited for, not an error.
"""

from collections.abc import Iterator, Sequence

from capi.api.builtin import Node
from capi.api.builtin.core import NodeAddress, Taint
from capi.api.core.v1beta2 import MachineAddress
from capi.kube.objects import to_wire
from capi.kube.types import Object
from capi.runtime.plan import ClusterKey, Patch, target

CLOUD_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
"""The kubelet puts it on when it is told that a cloud provider will look at the Node."""


def node_patches(node: Node, cluster: ClusterKey, id_: str, addresses: Sequence[MachineAddress]) -> Iterator[Patch]:
    """Its provider ID; for one that waits for a cloud provider also its missing addresses, and the taint goes."""
    tainted = any(map(_waits_for_cloud, node.spec.taints))
    if tainted and (missing := _missing(node, addresses)):
        body: Object = {"status": {"addresses": [to_wire(one) for one in (*node.status.addresses, *missing)]}}
        yield Patch(target(node, cluster), body, subresource="status")
    spec: Object = {} if node.spec.provider_id else {"providerID": id_}
    if tainted:
        spec["taints"] = [to_wire(taint) for taint in node.spec.taints if not _waits_for_cloud(taint)] or None
    if spec:
        body = {"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": spec}
        yield Patch(target(node, cluster), body)


def _missing(node: Node, addresses: Sequence[MachineAddress]) -> Sequence[NodeAddress]:
    there = {one.address for one in node.status.addresses if one.type == "InternalIP"}
    wanted = (one for one in addresses if one.type == "InternalIP" and one.address not in there)
    return [NodeAddress(type=one.type, address=one.address) for one in wanted]


def _waits_for_cloud(taint: Taint) -> bool:
    return taint.key == CLOUD_TAINT and taint.effect == "NoSchedule"

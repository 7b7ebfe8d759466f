"""Which IP families a cluster uses, by the CIDR blocks of its Pods and Services. Pure.

Upstream: test/infrastructure/container, Cluster.GetIPFamily.
"""

import ipaddress
from collections.abc import Sequence

from capi.api.core.v1beta2 import Cluster
from capi.backends.port import IPFamily
from capi.kube.errors import TerminalError


def ip_family(cluster: Cluster | None) -> IPFamily:
    """IPv4 where nothing is said. Raises TerminalError for blocks that fit no cluster, naming the field."""
    network = cluster.spec.cluster_network if cluster is not None else None
    if network is None:
        return IPFamily.V4
    pods = _family(network.pods.cidr_blocks if network.pods else (), "spec.clusterNetwork.pods.cidrBlocks")
    services = _family(
        network.services.cidr_blocks if network.services else (), "spec.clusterNetwork.services.cidrBlocks"
    )
    if pods is None or services is None:
        return pods or services or IPFamily.V4
    if pods is IPFamily.DUAL:
        return pods
    if services is not pods and services is not IPFamily.DUAL:
        text = f"are {services} while those of pods are {pods}: give both the same family, or Pods one block of each"
        raise TerminalError(f"Cluster spec.clusterNetwork.services.cidrBlocks {text}")
    return pods


def _family(blocks: Sequence[str], field: str) -> IPFamily | None:
    try:
        versions = {ipaddress.ip_network(block, strict=False).version for block in blocks}
    except ValueError as error:
        raise TerminalError(f"Cluster {field}: {error}; write a block like 10.128.0.0/12") from error
    if len(blocks) > 2:
        raise TerminalError(f"Cluster {field} has {len(blocks)} blocks: at most one of each family is possible")
    if not versions:
        return None
    if len(versions) == 2:
        return IPFamily.DUAL
    return IPFamily.V4 if versions == {4} else IPFamily.V6

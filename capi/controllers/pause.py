"""Why an object is not reconciled at the moment, in words for its Paused condition.

Upstream: util/paused, util/annotations.
"""

from capi.api.core import annotations
from capi.api.core.v1beta2 import Cluster
from capi.kube.objects import Resource, Unstructured


def causes(obj: Resource | Unstructured, cluster: Cluster | None) -> list[str]:
    """Empty when nothing pauses `obj`; `cluster` is the Cluster it belongs to (itself, for a Cluster)."""
    found = []
    if cluster is not None and cluster.spec.paused:
        found.append("Cluster spec.paused is set to true")
    if annotations.PAUSED in obj.metadata.annotations:
        found.append(f"{obj.resource.kind} has the {annotations.PAUSED} annotation")
    return found

"""Cluster. Pure.

Upstream: api/core/v1beta1/conversion.go.
Differs: of `spec.topology` only the class is converted, the rest is carried along: managed topologies are refused.
"""

from capi.admission.convert.values import (
    ApiVersions,
    conditions_down,
    deprecated,
    domains_down,
    domains_up,
    endpoint_down,
    endpoint_up,
    kept,
    moved,
    reference_down,
    reference_up,
    true_or_none,
    without,
)
from capi.kube.types import Object

_REFERENCES = ("controlPlaneRef", "infrastructureRef")
_COUNTERS = ("desiredReplicas", "replicas", "upToDateReplicas", "readyReplicas", "availableReplicas")


def down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """spec and status in v1beta1."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    old, start = deprecated(status), status.get("initialization") or {}
    refs = {name: reference_down(spec.get(name), namespace, versions) for name in _REFERENCES}
    counters = {role: _counters(status.get(role)) for role in ("controlPlane", "workers")}
    return {
        "spec": {
            **without(spec, "paused", "controlPlaneEndpoint", "topology", *_REFERENCES),
            **kept(paused=true_or_none(spec.get("paused")), topology=_topology_down(spec.get("topology")), **refs),
            "controlPlaneEndpoint": endpoint_down(spec.get("controlPlaneEndpoint")),
        },
        "status": {
            **moved(status, {name: name for name in ("phase", "observedGeneration")}),
            **moved(old, {name: name for name in ("conditions", "failureReason", "failureMessage")}),
            **kept(
                failureDomains=domains_down(status.get("failureDomains")), v1beta2=conditions_down(status, **counters)
            ),
            "infrastructureReady": bool(start.get("infrastructureProvisioned")),
            "controlPlaneReady": bool(start.get("controlPlaneInitialized")),
        },
    }


def up(obj: Object) -> Object:
    """spec and status in v1beta2."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    old = kept(**{name: status.get(name) for name in ("conditions", "failureReason", "failureMessage")})
    refs = {name: reference_up(spec.get(name)) for name in _REFERENCES}
    new = status.get("v1beta2") or {}
    flags = kept(
        infrastructureProvisioned=true_or_none(status.get("infrastructureReady")),
        controlPlaneInitialized=true_or_none(status.get("controlPlaneReady")),
    )
    found = {
        **moved(status, {name: name for name in ("phase", "observedGeneration")}),
        **moved(new, {name: name for name in ("conditions", "controlPlane", "workers")}),
        **kept(
            initialization=flags,
            failureDomains=domains_up(status.get("failureDomains")),
            deprecated={"v1beta1": old} if old else None,
        ),
    }
    return {
        "spec": {
            **without(
                spec, "paused", "controlPlaneEndpoint", "topology", "clusterNetwork", "availabilityGates", *_REFERENCES
            ),
            **kept(
                availabilityGates=spec.get("availabilityGates"),
                paused=true_or_none(spec.get("paused")),
                clusterNetwork=_network_up(spec.get("clusterNetwork")),
                topology=_topology_up(spec.get("topology")),
                controlPlaneEndpoint=endpoint_up(spec.get("controlPlaneEndpoint")),
                **refs,
            ),
        },
        **kept(status=found),
    }


def _counters(counters: Object | None) -> Object | None:
    return None if counters is None else moved(counters, {name: name for name in _COUNTERS})


def _network_up(network: Object | None) -> Object | None:
    if network is None:
        return None
    ranges = {name: network.get(name) for name in ("services", "pods")}
    return {
        **without(network, "apiServerPort", *ranges),
        **kept(apiServerPort=network.get("apiServerPort") or None),
        **{name: blocks for name, blocks in ranges.items() if blocks and blocks.get("cidrBlocks")},
    }


def _topology_down(topology: Object | None) -> Object | None:
    if topology is None:
        return None
    ref = topology.get("classRef") or {}
    return {
        **without(topology, "classRef"),
        "class": ref.get("name") or "",
        **kept(classNamespace=ref.get("namespace")),
    }


def _topology_up(topology: Object | None) -> Object | None:
    if topology is None:
        return None
    ref = kept(name=topology.get("class"), namespace=topology.get("classNamespace"))
    return {**without(topology, "class", "classNamespace", "rolloutAfter"), **kept(classRef=ref)}

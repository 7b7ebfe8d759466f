"""Services, Endpoints, EndpointSlices.

Cluster addresses are not taken from a pool that is shared and checked: one is derived from the service's name.

Source: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation/validation.go, pkg/registry/core/service of Kubernetes.
"""

import hashlib
import ipaddress

from capi.kube import validation
from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.builtin.fields import at, elements, section, thawed
from capi.server.registry.schema import causes

_NETWORK = ipaddress.IPv4Network("10.96.0.0/12")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def default(obj: Object) -> Object:
    service = thawed(obj)
    spec = service.setdefault("spec", {})
    kind = spec["type"] = spec.get("type") or "ClusterIP"
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}})
    for port in elements(spec, "ports"):
        port["protocol"] = port.get("protocol") or "TCP"
        port["targetPort"] = port.get("targetPort") or port.get("port")
    if kind in ("NodePort", "LoadBalancer") or spec.get("externalIPs"):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if kind != "ExternalName":
        spec["internalTrafficPolicy"] = spec.get("internalTrafficPolicy") or "Cluster"
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    service["status"] = {"loadBalancer": {}, **section(service, "status")}
    return service


def create(obj: Object) -> Object:
    """Gives the service its cluster address and node ports."""
    spec = dict(section(obj, "spec"))
    if spec.get("type") == "ExternalName":
        return {**obj, "status": {"loadBalancer": {}}}
    meta = section(obj, "metadata")
    digest = int.from_bytes(hashlib.sha256(f"{meta.get('namespace')}/{meta.get('name')}".encode()).digest()[:4])
    if not spec.get("clusterIP"):
        spec["clusterIP"] = str(_NETWORK[1 + digest % (_NETWORK.num_addresses - 2)])
    spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        ports = enumerate(spec.get("ports") or ())
        spec["ports"] = [{**port, "nodePort": port.get("nodePort") or 30000 + (digest + i) % 2768} for i, port in ports]
    return {**obj, "spec": spec, "status": {"loadBalancer": {}}}


def update(new: Object, old: Object) -> Object:
    """What the server allocated stays when it is not sent; the status is not written here."""
    spec, before = dict(section(new, "spec")), section(old, "spec")
    if spec.get("type") != "ExternalName":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    return {**new, "spec": spec, "status": old.get("status") or {"loadBalancer": {}}}


def validate(obj: Object, old: Object | None) -> list[Cause]:
    spec, found = section(obj, "spec"), list[Cause]()
    kind = spec.get("type")
    if kind not in _TYPES:
        found.append(causes.not_supported("spec.type", kind, _TYPES))
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and not headless and kind != "ExternalName":
        found.append(causes.required("spec.ports"))
    several = len(spec.get("ports") or ()) > 1
    for index, port in enumerate(elements(spec, "ports")):
        path, number = f"spec.ports[{index}]", port.get("port")
        if several and not port.get("name"):
            found.append(causes.required(f"{path}.name"))
        wrong = validation.port_number(number if isinstance(number, int) else 0)
        found += [causes.invalid(f"{path}.port", number, text) for text in wrong]
        if (protocol := port.get("protocol")) not in ("SCTP", "TCP", "UDP"):
            found.append(causes.not_supported(f"{path}.protocol", protocol, ("SCTP", "TCP", "UDP")))
    if kind == "ExternalName" and not spec.get("externalName"):
        found.append(causes.required("spec.externalName"))
    before = at(old, "spec", "clusterIP")
    if before and kind != "ExternalName" and at(old, "spec", "type") != "ExternalName":
        found += causes.immutable("spec.clusterIP", spec.get("clusterIP"), before)
    return found


def endpoints_default(obj: Object) -> Object:
    copy = thawed(obj)
    for subset in elements(copy, "subsets"):
        for port in elements(subset, "ports"):
            port["protocol"] = port.get("protocol") or "TCP"
    return copy


def slice_default(obj: Object) -> Object:
    copy = thawed(obj)
    for port in elements(copy, "ports"):
        port.setdefault("name", "")
        port["protocol"] = port.get("protocol") or "TCP"
    return copy


def slice_validate(obj: Object, old: Object | None) -> list[Cause]:
    kinds, kind = ("FQDN", "IPv4", "IPv6"), obj.get("addressType")
    if not kind:
        return [causes.required("addressType")]
    found = [] if kind in kinds else [causes.not_supported("addressType", kind, kinds)]
    return found + (causes.immutable("addressType", kind, old.get("addressType")) if old is not None else [])

"""The Dev and the Docker kinds. Pure.

Upstream: test/infrastructure/docker/{api,exp/api}/v1beta1/conversion.go.
Differs: templates keep what v1beta1 cannot say too.
"""

from typing import Any

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
    true_or_none,
    without,
)
from capi.kube.types import Object

_POOL_STATUS = ("replicas", "observedGeneration", "infrastructureMachineKind", "instances")


def cluster_down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """spec and status of a DevCluster or DockerCluster in v1beta1."""
    status = obj.get("status") or {}
    domains = kept(failureDomains=domains_down(status.get("failureDomains")))
    return {"spec": _cluster_spec_down(obj.get("spec") or {}), "status": {**_status_down(status), **domains}}


def cluster_up(obj: Object) -> Object:
    """spec and status of a DevCluster or DockerCluster in v1beta2."""
    status = obj.get("status") or {}
    domains = kept(failureDomains=domains_up(status.get("failureDomains")))
    return _object(_cluster_spec_up(obj.get("spec") or {}), {**_status_up(status), **domains})


def cluster_template_down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """spec of a DevClusterTemplate in v1beta1."""
    template = (obj.get("spec") or {}).get("template") or {}
    return {"spec": {"template": {**template, "spec": _cluster_spec_down(template.get("spec") or {})}}}


def cluster_template_up(obj: Object) -> Object:
    """spec of a DevClusterTemplate in v1beta2."""
    template = (obj.get("spec") or {}).get("template") or {}
    return {"spec": {"template": _template_up(template, _cluster_spec_up(template.get("spec") or {}))}}


def machine_down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """spec and status of a DevMachine or DockerMachine in v1beta1, which has no failure domain in a status."""
    status = obj.get("status") or {}
    return {"spec": obj.get("spec") or {}, "status": {**_status_down(status), **moved(status, _same("addresses"))}}


def docker_machine_down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """The same of a DockerMachine, whose old status always says whether the load balancer knows it."""
    found, status = machine_down(obj, namespace, versions), obj.get("status") or {}
    return {
        **found,
        "status": {**found["status"], "loadBalancerConfigured": bool(status.get("loadBalancerConfigured"))},
    }


def machine_up(obj: Object) -> Object:
    """spec and status of a DevMachine or DockerMachine in v1beta2."""
    status = obj.get("status") or {}
    balanced = kept(loadBalancerConfigured=true_or_none(status.get("loadBalancerConfigured")))
    found = {**_status_up(status), **moved(status, _same("addresses")), **balanced}
    return _object(_machine_spec_up(obj.get("spec") or {}), found)


def machine_template_down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """spec of a DevMachineTemplate or DockerMachineTemplate in v1beta1, which has no status."""
    return {"spec": obj.get("spec") or {}}


def machine_template_up(obj: Object) -> Object:
    """spec of a DevMachineTemplate or DockerMachineTemplate in v1beta2."""
    template = (obj.get("spec") or {}).get("template") or {}
    return {"spec": {"template": _template_up(template, _machine_spec_up(template.get("spec") or {}))}}


def pool_down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """spec and status of a DockerMachinePool in v1beta1."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    template = without(spec.get("template") or {}, "bootstrapTimeout")
    ready = status.get("ready")
    return {
        "spec": {**without(spec, "template", "strategy"), "template": template},
        "status": {
            **_status_down(status),
            **moved(status, _same(*_POOL_STATUS)),
            **({} if ready is None else {"ready": ready}),
            "replicas": status.get("replicas") or 0,
        },
    }


def pool_up(obj: Object) -> Object:
    """spec and status of a DockerMachinePool in v1beta2, which says twice that it is ready: each contract reads its own."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    found = {**_status_up(status), **moved(status, _same("ready", *_POOL_STATUS))}
    return _object({**without(spec, "template"), **kept(template=spec.get("template"))}, found)


def _object(spec: Object, status: Object) -> Object:
    return {"spec": spec, **kept(status=status)}


def _same(*names: str) -> dict[str, str]:
    return dict(zip(names, names, strict=True))


def _status_down(status: Object) -> Object:
    """Readiness and conditions."""
    start = status.get("initialization") or {}
    found = kept(conditions=deprecated(status).get("conditions"), v1beta2=conditions_down(status))
    return {**found, "ready": bool(start.get("provisioned"))}


def _status_up(status: Object) -> Object:
    conditions = status.get("conditions")
    return kept(
        initialization=kept(provisioned=true_or_none(status.get("ready"))),
        conditions=(status.get("v1beta2") or {}).get("conditions"),
        deprecated={"v1beta1": {"conditions": conditions}} if conditions else None,
    )


def _cluster_spec_down(spec: Object) -> Object:
    """Failure domains by name, at the top or in the docker backend."""
    found = {**_docker_down(spec), "controlPlaneEndpoint": endpoint_down(spec.get("controlPlaneEndpoint"))}
    return _with_docker(found, _docker_down)


def _cluster_spec_up(spec: Object) -> Object:
    found = without(_docker_up(spec), "controlPlaneEndpoint")
    return _with_docker(
        {**found, **kept(controlPlaneEndpoint=endpoint_up(spec.get("controlPlaneEndpoint")))}, _docker_up
    )


def _with_docker(spec: Object, convert: Any) -> Object:
    docker = (spec.get("backend") or {}).get("docker")
    return spec if docker is None else {**spec, "backend": {**spec["backend"], "docker": convert(docker)}}


def _docker_down(docker: Object) -> Object:
    domains = kept(failureDomains=domains_down(docker.get("failureDomains")))
    return {**without(docker, "failureDomains"), **domains}


def _docker_up(docker: Object) -> Object:
    domains = kept(failureDomains=domains_up(docker.get("failureDomains")), loadBalancer=docker.get("loadBalancer"))
    return {**without(docker, "failureDomains", "loadBalancer"), **domains}


def _machine_spec_up(spec: Object) -> Object:
    """An old providerID may be empty, and so may be what older Go clients always send."""
    unset = [name for name in ("providerID", "bootstrapped") if not spec.get(name)]
    return without(spec, *unset)


def _template_up(template: Object, spec: Object) -> Object:
    metadata = {name: found for name, found in (template.get("metadata") or {}).items() if found}
    return {**without(template, "metadata"), **kept(metadata=metadata), "spec": spec}

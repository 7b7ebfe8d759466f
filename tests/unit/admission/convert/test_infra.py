"""v1beta1 and v1beta2 of the Dev and Docker kinds: what is where. What survives is in test_convert.py, for all kinds."""

import pytest

from capi.kube.types import Object
from tests.unit.admission.convert.ways import INFRA, bare, down, infra, up


def in_backend(kind: str, docker: Object) -> Object:
    return {"backend": {"docker": docker}} if kind.startswith("Dev") else docker


@pytest.mark.parametrize("kind", ["DevCluster", "DockerCluster"])
def test_an_infrastructure_cluster(kind: str) -> None:
    """An old object with status.ready and two failure domains is one that is provisioned, with a sorted list."""
    domains = {"b": {"controlPlane": True, "attributes": {"x": "y"}}, "a": {"controlPlane": False}}
    listed = [{"name": "a", "controlPlane": False}, {"name": "b", **domains["b"]}]
    endpoint = {"host": "h", "port": 6443}
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status: Object = {"ready": True, "failureDomains": domains, "conditions": [condition]}
    old = {**infra(kind, {"controlPlaneEndpoint": endpoint, **in_backend(kind, {"failureDomains": domains})}, status)}
    old["apiVersion"] = f"{INFRA}/v1beta1"
    found = up(old)
    assert found["spec"] == {"controlPlaneEndpoint": endpoint, **in_backend(kind, {"failureDomains": listed})}
    assert found["status"] == {
        "initialization": {"provisioned": True},
        "failureDomains": listed,
        "deprecated": {"v1beta1": {"conditions": [condition]}},
    }
    assert bare(down(found)) == {**old, "metadata": {**old["metadata"], "annotations": {}}}


def test_an_infrastructure_cluster_that_says_little() -> None:
    hub = infra("DevCluster", {"backend": {"docker": {"failureDomains": [{"name": "a"}], "loadBalancer": {}}}})
    old = down(hub)
    assert old["spec"]["controlPlaneEndpoint"] == {"host": "", "port": 0}
    assert old["spec"]["backend"]["docker"]["failureDomains"] == {"a": {"controlPlane": False}}
    assert old["status"] == {"ready": False}
    assert up(old) == hub
    assert up(bare(old))["spec"] == {"backend": {"docker": {"failureDomains": [{"name": "a", "controlPlane": False}]}}}
    assert "status" not in up(bare(old))


@pytest.mark.parametrize("kind", ["DevMachine", "DockerMachine"])
def test_an_infrastructure_machine(kind: str) -> None:
    docker = {"customImage": "i", "bootstrapTimeout": "7m", "extraMounts": [{"hostPath": "/a", "containerPath": "/b"}]}
    spec = {"providerID": "docker:////c-a", **in_backend(kind, docker)}
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}]
    new = {
        "type": "Ready",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    start = {"provisioned": False}
    status = {"conditions": [new], "initialization": start, "addresses": addresses, "failureDomain": "fd1"}
    hub = infra(kind, spec, status)
    old = down(hub)
    balanced = {} if kind == "DevMachine" else {"loadBalancerConfigured": False}
    assert old["spec"] == spec
    assert old["status"] == {"ready": False, "addresses": addresses, "v1beta2": {"conditions": [new]}, **balanced}
    assert up(old) == hub
    old["status"]["ready"] = True
    old["spec"]["providerID"] = ""
    assert up(old)["status"] == {**status, "initialization": {"provisioned": True}}
    assert "providerID" not in up(old)["spec"]


@pytest.mark.parametrize("kind", ["DevMachineTemplate", "DockerMachineTemplate"])
def test_an_infrastructure_template(kind: str) -> None:
    spec: Object = {"template": {"spec": in_backend(kind, {"customImage": "i"})}}
    hub = infra(kind, spec, {"capacity": {"cpu": "8"}})
    old = down(hub)
    assert "status" not in old
    assert up(old) == hub
    old["spec"] = {"template": {"metadata": {}, "spec": {**spec["template"]["spec"], "providerID": ""}}}
    assert up(old)["spec"] == spec


def test_an_infrastructure_pool() -> None:
    """v1beta1 knows one sign of readiness, v1beta2 one for each contract; strategies and timeouts are ours."""
    spec: Object = {
        "providerIDList": ["docker:////a"], "strategy": {"type": "OnDelete"}, "template": {"customImage": "i", "bootstrapTimeout": "7m"}
    }  # fmt: skip
    status: Object = {
        "ready": True, "replicas": 1, "initialization": {"provisioned": True}, "capacity": {"cpu": 2},
        "instances": [{"instanceName": "a", "bootstrapped": True}], "infrastructureMachineKind": "DockerMachine",
    }  # fmt: skip
    hub = infra("DockerMachinePool", spec, status)
    old = down(hub)
    assert old["spec"] == {"providerIDList": ["docker:////a"], "template": {"customImage": "i"}}
    assert "capacity" not in old["status"] and "initialization" not in old["status"]
    assert (old["status"]["ready"], old["status"]["replicas"]) == (True, 1)
    assert up(old) == hub
    old["status"]["ready"] = False
    found = up(old)["status"]
    assert (found["ready"], found.get("initialization")) == (False, None)
    assert up(bare(down(infra("DockerMachinePool", {}))))["spec"] == {}

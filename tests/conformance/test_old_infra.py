"""v1beta1 of the Dev and Docker kinds, the same on the embedded server and, by webhook, on a real one."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.site import TABLE, Api

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

GROUP = "infrastructure.cluster.x-k8s.io"
NEW = f"/apis/{GROUP}/v1beta2/namespaces/default"
OLD = f"/apis/{GROUP}/v1beta1/namespaces/default"
DATA = "cluster.x-k8s.io/conversion-data"
NOW = "2026-01-01T00:00:00Z"
KINDS = ["DevCluster", "DevMachine", "DockerCluster", "DockerMachine", "DockerMachinePool"]


@pytest.fixture
def api(capi_server: Api) -> Iterator[Api]:
    """With one object of each kind, that an old client made."""
    templates = ("DevClusterTemplate", "DevMachineTemplate", "DockerMachineTemplate")
    for kind in (*KINDS, *templates):
        spec = {"template": {"metadata": {}, "spec": {}}} if kind in templates else {}
        body = {"apiVersion": f"{GROUP}/v1beta1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
        capi_server.post(f"{OLD}/{kind.lower()}s", body, query={"fieldManager": "old"}).ok(201)
    yield capi_server
    for kind in (*KINDS, *templates):
        capi_server.delete(f"{NEW}/{kind.lower()}s/x").ok()


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_object_says_that_it_is_deprecated(api: Api, kind: str) -> None:
    answer = api.get(f"{OLD}/{kind.lower()}s/x").ok()
    [warning] = answer.warnings
    assert f"{GROUP}/v1beta1 {kind} is deprecated; use {GROUP}/v1beta2 {kind}" in warning
    assert answer.json["status"]["ready"] is False
    assert not api.get(f"{NEW}/{kind.lower()}s/x").ok().warnings


@pytest.mark.parametrize("kind", ["DevCluster", "DockerCluster"])
def test_domains_and_readiness_of_a_cluster(api: Api, kind: str) -> None:
    """What an old client wrote reads as v1beta2 has it, and back."""
    path = f"{kind.lower()}s/x"
    domains = {"b": {"controlPlane": True, "attributes": {"k": "v"}}, "a": {"controlPlane": False}}
    status = {"ready": True, "failureDomains": domains, "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": NOW}]}  # fmt: skip
    api.merge(f"{OLD}/{path}/status", {"status": status}).ok()
    docker = {"failureDomains": domains, "loadBalancer": {"imageTag": "t"}}
    spec = {"controlPlaneEndpoint": {"host": "h", "port": 7}, **({"backend": {"docker": docker}} if kind == "DevCluster" else docker)}  # fmt: skip
    api.merge(f"{OLD}/{path}", {"spec": spec}).ok()
    found = api.get(f"{NEW}/{path}").ok().json
    listed = [{"name": "a", "controlPlane": False}, {"name": "b", **domains["b"]}]
    assert found["status"]["initialization"] == {"provisioned": True}
    assert found["status"]["failureDomains"] == listed
    assert found["status"]["deprecated"] == {"v1beta1": {"conditions": status["conditions"]}}
    assert "conditions" not in found["status"]
    inner = found["spec"]["backend"]["docker"] if kind == "DevCluster" else found["spec"]
    assert inner["failureDomains"] == listed
    shown = api.get(f"{OLD}/{path}").ok().json
    assert shown["status"] == status
    assert shown["spec"] == spec


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_client_keeps_what_it_does_not_know(api: Api, kind: str) -> None:
    path = f"{kind.lower()}s/x"
    new = [{"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": NOW}]
    status = {"conditions": new, "initialization": {"provisioned": False}}
    if kind.endswith("Machine"):
        status["failureDomain"] = "fd1"
    if kind.endswith("Pool"):
        api.merge(f"{NEW}/{path}", {"spec": {"strategy": {"type": "OnDelete"}, "template": {"bootstrapTimeout": "7m"}}}).ok()  # fmt: skip
        status["nodeInfo"] = {"architecture": "arm64"}
    api.merge(f"{NEW}/{path}/status", {"status": status}).ok()
    before = api.get(f"{NEW}/{path}").ok().json
    shown = api.get(f"{OLD}/{path}").ok().json
    assert shown["status"]["v1beta2"]["conditions"] == new
    assert DATA in shown["metadata"]["annotations"]
    shown["metadata"]["labels"] = {"team": "a"}
    api.put(f"{OLD}/{path}", shown).ok()
    api.merge(f"{OLD}/{path}/status", {"status": {"conditions": []}}).ok()
    after = api.get(f"{NEW}/{path}").ok().json
    assert after["metadata"]["labels"] == {"team": "a"}
    assert DATA not in after["metadata"].get("annotations", {})
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])


def test_a_machine_that_became_ready(api: Api) -> None:
    addresses = [{"type": "InternalIP", "address": "172.18.0.3"}]
    for plural in ("devmachines", "dockermachines"):
        api.merge(f"{OLD}/{plural}/x", {"spec": {"providerID": "docker:////c-x"}}).ok()
        api.merge(f"{OLD}/{plural}/x/status", {"status": {"ready": True, "addresses": addresses}}).ok()
        found = api.get(f"{NEW}/{plural}/x").ok().json
        assert found["spec"]["providerID"] == "docker:////c-x"
        assert found["status"] == {"initialization": {"provisioned": True}, "addresses": addresses}
        shown = api.get(f"{OLD}/{plural}/x").ok().json
        shown["spec"]["providerID"] = ""
        api.put(f"{OLD}/{plural}/x", shown).ok()
        assert "providerID" not in api.get(f"{NEW}/{plural}/x").ok().json["spec"]


def test_a_pool_that_became_ready(api: Api) -> None:
    """v1beta2 has both signs: the contracts read different ones."""
    instances = [{"instanceName": "a", "ready": True, "bootstrapped": True}]
    status = {"ready": True, "replicas": 1, "infrastructureMachineKind": "DockerMachine", "instances": instances}
    api.merge(f"{OLD}/dockermachinepools/x/status", {"status": status}).ok()
    found = api.get(f"{NEW}/dockermachinepools/x").ok().json["status"]
    assert found == {**status, "initialization": {"provisioned": True}}
    assert api.get(f"{OLD}/dockermachinepools/x").ok().json["status"] == status


def test_the_capacity_of_a_template_survives_an_old_client(api: Api) -> None:
    for plural in ("devmachinetemplates", "dockermachinetemplates"):
        api.merge(f"{NEW}/{plural}/x/status", {"status": {"capacity": {"cpu": "8"}}}).ok()
        shown = api.get(f"{OLD}/{plural}/x").ok().json
        assert "status" not in shown
        shown["spec"]["template"]["metadata"] = {"labels": {"a": "b"}}
        api.put(f"{OLD}/{plural}/x", shown).ok()
        found = api.get(f"{NEW}/{plural}/x").ok().json
        assert found["status"] == {"capacity": {"cpu": "8"}}
        assert found["spec"]["template"]["metadata"] == {"labels": {"a": "b"}}


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_without_effect_changes_nothing(api: Api, kind: str) -> None:
    path = f"{kind.lower()}s/x"
    before = api.get(f"{NEW}/{path}").ok()
    shown = api.get(f"{OLD}/{path}").ok()
    assert api.put(f"{OLD}/{path}", shown.json).ok().version == shown.version
    assert api.get(f"{NEW}/{path}").ok().json == before.json


@pytest.fixture
def machine(api: Api) -> Iterator[dict[str, Any]]:
    """An owner; objects whose owner is not there are taken away."""
    core = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines"
    ref = {"apiGroup": GROUP, "kind": "DevMachine", "name": "x"}
    spec = {"clusterName": "c", "bootstrap": {"dataSecretName": ""}, "infrastructureRef": ref}
    head = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine"}
    uid = api.post(core, {**head, "metadata": {"name": "m"}, "spec": spec}).ok(201).meta["uid"]
    yield {**head, "name": "m", "uid": uid}
    for plural in ("devmachines", "dockermachines"):
        api.merge(f"{NEW}/{plural}/x", {"metadata": {"ownerReferences": None}}).ok()
    api.delete(f"{core}/m").ok()


def test_a_table_of_old_machines(api: Api, machine: dict[str, Any]) -> None:
    meta = {"labels": {"cluster.x-k8s.io/cluster-name": "c"}, "ownerReferences": [machine]}
    for plural in ("devmachines", "dockermachines"):
        api.merge(f"{OLD}/{plural}/x", {"metadata": meta, "spec": {"providerID": "p"}}).ok()
        api.merge(f"{OLD}/{plural}/x/status", {"status": {"ready": True}}).ok()
        table = api.get(f"{OLD}/{plural}", Accept=TABLE).ok().json
        columns = [c["name"] for c in table["columnDefinitions"]]
        assert columns == ["Name", "Cluster", "Machine", "ProviderID", "Ready", "Age"]
        [row] = table["rows"]
        assert row["cells"][:5] == ["x", "c", "m", "p", "true"]


@pytest.mark.parametrize(
    ("plural", "change", "field"),
    [
        ("devclusters", {"controlPlaneEndpoint": {"host": "h", "port": 70000}}, "spec.controlPlaneEndpoint.port"),
        ("devclusters", {"backend": {"docker": {"failureDomains": ["a"]}}}, "spec.backend.docker.failureDomains"),
        ("devclusters", {"backend": {"docker": {"failureDomains": {"a": 5}}}}, "spec.backend.docker.failureDomains.a"),
        ("dockerclusters", {"failureDomains": {"": {}}}, "spec.failureDomains[0].name"),
        ("devmachines", {"backend": {"docker": {"bootstrapTimeout": "soon"}}}, "spec.backend.docker.bootstrapTimeout"),
        ("devmachines", {"backend": "docker"}, "spec.backend"),
        ("dockermachines", {"providerID": 5}, "spec.providerID"),
        ("dockermachinepools", {"template": []}, "spec.template"),
    ],
)
def test_an_old_client_is_told_what_is_wrong(api: Api, plural: str, change: dict[str, Any], field: str) -> None:
    assert field in api.merge(f"{OLD}/{plural}/x", {"spec": change}).ok(422, "Invalid").fields


def test_domains_belong_to_managers_of_both_versions(api: Api) -> None:
    """A list by name in v1beta2, a map in v1beta1."""
    head = {"kind": "DockerCluster", "metadata": {"name": "x"}}
    new = {"apiVersion": f"{GROUP}/v1beta2", **head, "spec": {"failureDomains": [{"name": "a", "controlPlane": False}]}}
    old = {"apiVersion": f"{GROUP}/v1beta1", **head, "spec": {"failureDomains": {"b": {"controlPlane": True}}}}

    def listed() -> list[str]:
        found = api.get(f"{NEW}/dockerclusters/x").ok().json["spec"]
        return [domain["name"] for domain in found.get("failureDomains", [])]

    api.apply(f"{NEW}/dockerclusters/x", new, manager="new").ok()
    api.apply(f"{OLD}/dockerclusters/x", old, manager="older").ok()
    assert listed() == ["a", "b"]
    api.apply(f"{NEW}/dockerclusters/x", {**new, "spec": {}}, manager="new").ok()
    assert listed() == ["b"]
    api.apply(f"{OLD}/dockerclusters/x", {**old, "spec": {}}, manager="older").ok()
    assert listed() == []

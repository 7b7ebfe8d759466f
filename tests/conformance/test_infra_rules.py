"""Defaults and rules of the Dev and Docker kinds, in both versions, the same on the embedded server and, by webhook, on a real
one."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from capi.admission.convert import convert, converts, old_of
from capi.api.core import annotations
from capi.kube.types import GroupKind
from tests.conformance.site import Api
from tests.conformance.test_admission_rules import calls

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

GROUP = "infrastructure.cluster.x-k8s.io"
NEW = f"/apis/{GROUP}/v1beta2/namespaces/default"
OLD = f"/apis/{GROUP}/v1beta1/namespaces/default"
DRY = {"dryRun": "All"}


@pytest.fixture(scope="module")
def api(capi_server: Api) -> Api:
    return capi_server


@pytest.fixture
def names(api: Api) -> Iterator[list[str]]:
    """`PLURAL/NAME` of objects that a test made: they go at its end."""
    found: list[str] = []
    yield found
    for name in found:
        api.delete(f"{NEW}/{name}").ok()


def body(kind: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    found = {"apiVersion": f"{GROUP}/v1beta2", "kind": kind, "metadata": {"name": "x", **metadata}}
    return found if spec is None else {**found, "spec": deepcopy(spec)}


def template(spec: Any, **more: Any) -> dict[str, Any]:
    return {"template": {"spec": spec, **more}}


def docker(**members: Any) -> dict[str, Any]:
    return {"backend": {"docker": members}}


def made(api: Api, names: list[str], kind: str, spec: Any) -> Any:
    names.append(f"{kind.lower()}s/x")
    return api.post(f"{NEW}/{kind.lower()}s", body(kind, spec)).ok(201).json


@dataclass(frozen=True)
class Case:
    """An object to create, and the field that is wrong with it ("": none)."""

    id: str
    kind: str
    spec: Any
    field: str = ""
    says: str = ""


DOMAINS = [{"name": "fd2"}, {"name": "fd1"}]
MOUNT = {"hostPath": "/a", "containerPath": "/b"}
OF_DOCKER = "spec.backend.docker"
CASES = [
    Case("cluster", "DevCluster", docker(failureDomains=DOMAINS[::-1])),
    Case("cluster with nothing", "DevCluster", None),
    Case("cluster of two backends", "DevCluster", {"backend": {"docker": {}, "inMemory": {}}}, "spec.backend", "exclude"),
    Case("unsorted domains", "DevCluster", docker(failureDomains=DOMAINS), f"{OF_DOCKER}.failureDomains", "sorted by name: fd1, fd2"),
    Case("a tag that is none", "DevCluster", docker(loadBalancer={"imageTag": "a b"}), f"{OF_DOCKER}.loadBalancer.imageTag", "a tag"),
    Case("docker cluster", "DockerCluster", {"controlPlaneEndpoint": {"host": "h"}}),
    Case("docker cluster with unsorted domains", "DockerCluster", {"failureDomains": DOMAINS}, "spec.failureDomains", "sorted by name"),
    Case("machine", "DevMachine", docker(customImage="kindest/node:v1.35.0", extraMounts=[MOUNT])),
    Case("machine with nothing", "DevMachine", None),
    Case("machine of two backends", "DevMachine", {"backend": {"docker": {}, "inMemory": {}}}, "spec.backend", "exclude"),
    Case("machine with an image that is none", "DevMachine", docker(customImage="https://x/y"), f"{OF_DOCKER}.customImage", "image reference"),
    Case("machine with a relative mount", "DevMachine", docker(extraMounts=[{**MOUNT, "hostPath": "a"}]), f"{OF_DOCKER}.extraMounts[0].hostPath", "absolute"),
    Case("machine with an empty image", "DevMachine", docker(preLoadImages=[""]), f"{OF_DOCKER}.preLoadImages[0]", "image reference"),
    Case("machine that never boots", "DevMachine", docker(bootstrapTimeout="soon"), f"{OF_DOCKER}.bootstrapTimeout", "bootstrapTimeout"),
    Case("docker machine", "DockerMachine", {"customImage": "a", "extraMounts": [MOUNT]}),
    Case("docker machine with half a mount", "DockerMachine", {"extraMounts": [{"hostPath": "/a"}]}, "spec.extraMounts[0].containerPath", "absolute"),
    Case("pool with nothing", "DevMachinePool", None),
    Case("pool of two backends", "DevMachinePool", {"backend": {"docker": {}, "inMemory": {}}}, "spec.backend", "exclude"),
    Case("pool with an image that is none", "DevMachinePool", docker(customImage="A B"), f"{OF_DOCKER}.customImage", "image reference"),
    Case("docker pool", "DockerMachinePool", {"template": {"customImage": "a"}}),
    Case("docker pool with nothing", "DockerMachinePool", None),
    Case("docker pool with a relative mount", "DockerMachinePool", {"template": {"extraMounts": [{**MOUNT, "containerPath": "b"}]}}, "spec.template.extraMounts[0].containerPath", "absolute"),
    Case("template of clusters", "DevClusterTemplate", template({})),
    Case("template of machines", "DevMachineTemplate", template({}, metadata={"labels": {"a": "b"}})),
    Case("template with a bad label", "DevMachineTemplate", template({}, metadata={"labels": {"a": "b c"}}), "spec.template.metadata.labels", "valid label"),
    Case("template with a bad image", "DevMachineTemplate", template(docker(customImage="A")), "spec.template.spec.backend.docker.customImage", "image reference"),
    Case("template of docker machines", "DockerMachineTemplate", template({"customImage": "a"})),
    Case("template of docker machines with a bad image", "DockerMachineTemplate", template({"customImage": "A"}), "spec.template.spec.customImage", "image reference"),
    Case("template of pools", "DevMachinePoolTemplate", template({"strategy": {"type": "OnDelete"}})),
    Case("strategy of nothing", "DockerMachinePool", {"strategy": {"rollingUpdate": {"maxSurge": 0}}}, "spec.strategy.rollingUpdate.maxUnavailable", "must not be 0"),
]  # fmt: skip


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_what_may_be_created(api: Api, case: Case) -> None:
    answer = api.post(f"{NEW}/{case.kind.lower()}s", body(case.kind, case.spec), query=DRY)
    if not case.field:
        answer.ok(201)
        return
    causes = answer.ok(422, "Invalid").json["details"]["causes"]
    assert any(case.says in cause["message"] for cause in causes if cause.get("field") == case.field), causes


def in_old(kind: str, spec: Any) -> dict[str, Any]:
    hub = body(kind, spec)
    old = convert(hub, old_of(hub), lambda kind: f"{kind.group}/v1beta2")
    old["metadata"].get("annotations", {}).pop(annotations.CONVERSION_DATA, None)
    return old


OLDER = [case for case in CASES if converts(GroupKind(GROUP, case.kind)) and "strategy" not in (case.spec or {})]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in OLDER])
def test_what_may_be_created_in_the_old_version(api: Api, case: Case) -> None:
    """The same; failure domains have no order there."""
    answer = api.post(f"{OLD}/{case.kind.lower()}s", in_old(case.kind, case.spec), query=DRY)
    if not case.field or case.field.endswith("failureDomains"):
        answer.ok(201)
        return
    causes = answer.ok(422, "Invalid").json["details"]["causes"]
    last = case.field.rpartition(".")[2]
    assert any(case.says in cause["message"] for cause in causes if cause.get("field", "").endswith(last)), causes


@pytest.mark.parametrize("where", [NEW, OLD])
def test_what_is_filled_in(api: Api, where: str) -> None:
    def stored(kind: str, spec: Any) -> Any:
        head = {"apiVersion": f"{GROUP}/{where.split('/')[3]}", "kind": kind, "metadata": {"name": "x"}}
        sent = head if spec is None else {**head, "spec": spec}
        return api.post(f"{where}/{kind.lower()}s", sent, query=DRY).ok(201).json["spec"]

    for kind in ("DevCluster", "DevMachine"):
        for spec in (None, {}, {"backend": {}}):
            assert stored(kind, spec)["backend"] == {"docker": {}}
    for kind, spec in (("DevCluster", {}), ("DockerCluster", {})):
        assert stored(kind, spec)["controlPlaneEndpoint"]["port"] == 6443
    port = {"controlPlaneEndpoint": {"host": "h", "port": 7777}}
    assert stored("DockerCluster", port) == port
    assert stored("DevMachineTemplate", template({}))["template"]["spec"] == {"backend": {"docker": {}}}


def test_a_pool_without_a_backend_is_one_of_containers(api: Api) -> None:
    for spec in (None, {}, {"backend": {}}):
        found = api.post(f"{NEW}/devmachinepools", body("DevMachinePool", spec), query=DRY).ok(201).json
        assert found["spec"]["backend"] == {"docker": {}}


def test_a_failure_domain_says_whether_it_may_hold_control_planes(api: Api, names: list[str]) -> None:
    domains = [{"name": "a"}, {"name": "b", "controlPlane": True}]
    found = made(api, names, "DevCluster", docker(failureDomains=domains))
    assert found["spec"]["backend"]["docker"]["failureDomains"] == [{"name": "a", "controlPlane": False}, domains[1]]
    change = {"spec": docker(failureDomains=domains[::-1])}
    assert f"{OF_DOCKER}.failureDomains" in api.merge(f"{NEW}/devclusters/x", change).ok(422, "Invalid").fields


@pytest.mark.parametrize("where", [NEW, OLD])
@pytest.mark.parametrize(
    ("kind", "field"), [("DevMachine", "spec.backend.docker.customImage"), ("DockerMachine", "spec.customImage")]
)
def test_the_image_of_a_machine_stays(api: Api, names: list[str], where: str, kind: str, field: str) -> None:
    def spec(**members: Any) -> dict[str, Any]:
        return {"spec": docker(**members) if kind == "DevMachine" else members}

    made(api, names, kind, spec(customImage="a")["spec"])
    path = f"{where}/{kind.lower()}s/x"
    for image in ("b", None):
        assert field in api.merge(path, spec(customImage=image)).ok(422, "Invalid").fields
    api.merge(path, spec(extraMounts=[MOUNT])).ok()


def test_a_backend_cannot_become_another_one(api: Api, names: list[str]) -> None:
    made(api, names, "DevMachinePool", {"backend": {"inMemory": {}}})
    for backend in ({"inMemory": None, "docker": {}}, {"inMemory": None}):
        answer = api.merge(f"{NEW}/devmachinepools/x", {"spec": {"backend": backend}})
        assert "spec.backend" in answer.ok(422, "Invalid").fields


TEMPLATES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("DevClusterTemplate", docker(), docker(loadBalancer={"imageTag": "t"})),
    ("DevMachineTemplate", docker(customImage="a"), docker(customImage="b")),
    ("DevMachinePoolTemplate", docker(customImage="a"), docker(customImage="b")),
    ("DockerMachineTemplate", {"customImage": "a"}, {"customImage": "b"}),
]


@pytest.mark.parametrize(("kind", "spec", "other"), TEMPLATES)
def test_what_a_template_makes_does_not_change(
    api: Api, names: list[str], kind: str, spec: dict[str, Any], other: dict[str, Any]
) -> None:
    made(api, names, kind, template(spec))
    path = f"{NEW}/{kind.lower()}s/x"
    assert "spec.template.spec" in api.merge(path, {"spec": template(other)}).ok(422, "Invalid").fields
    api.merge(path, {"spec": template(spec, metadata={"labels": {"a": "b"}})}).ok()
    bad = {"spec": template(spec, metadata={"labels": {"a": "b c"}})}
    assert "spec.template.metadata.labels" in api.merge(path, bad).ok(422, "Invalid").fields
    if kind != "DevMachinePoolTemplate":
        change = {"spec": template(other)}
        assert "spec.template.spec" in api.merge(path.replace("v1beta2", "v1beta1"), change).ok(422, "Invalid").fields


@pytest.mark.parametrize(("kind", "spec", "other"), TEMPLATES[1:])
def test_a_managed_topology_may_try_a_change(
    api: Api, names: list[str], kind: str, spec: dict[str, Any], other: dict[str, Any]
) -> None:
    made(api, names, kind, template(spec))
    path = f"{NEW}/{kind.lower()}s/x"
    tried = body(kind, template(other), annotations={annotations.TOPOLOGY_DRY_RUN: ""})
    assert api.apply(path, tried, force="true", dryRun="All").ok().json["spec"]["template"]["spec"] == other
    assert "spec.template.spec" in api.apply(path, tried, force="true").ok(422, "Invalid").fields
    plain = body(kind, template(other))
    assert "spec.template.spec" in api.apply(path, plain, force="true", dryRun="All").ok(422, "Invalid").fields


def test_a_default_that_is_written_down_is_no_change(api: Api, names: list[str]) -> None:
    made(api, names, "DevClusterTemplate", template(docker()))
    path = f"{NEW}/devclustertemplates/x"
    api.merge(path, {"spec": template({"controlPlaneEndpoint": {"port": 6443}})}).ok()
    other = {"spec": template({"controlPlaneEndpoint": {"port": 6444}})}
    assert "spec.template.spec" in api.merge(path, other).ok(422, "Invalid").fields


@pytest.mark.parametrize("capi_server", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
def test_what_controllers_write_costs_no_call(api: Api, names: list[str]) -> None:
    """Identities, endpoints and statuses; and whole machines of pools, whose spec was checked with the pool's."""
    own: dict[str, Any] = {
        "DevCluster": {"controlPlaneEndpoint": {"host": "h", "port": 6443}},
        "DevMachine": {"providerID": "x"},
        "DevMachinePool": {"providerID": "x", "providerIDList": ["y"]},
        "DockerMachine": {"providerID": "x"},
        "DockerMachinePool": {"providerIDList": ["y"]},
    }
    for kind, spec in own.items():
        made(api, names, kind, {"backend": {"docker": {}}} if kind.startswith("Dev") else {})
        before = calls(api, kind.lower(), GROUP)
        assert before > 0, "its creation was asked about"
        path = f"{NEW}/{kind.lower()}s/x"
        api.merge(path, {"spec": spec, "metadata": {"finalizers": ["example.com/f"]}}).ok()
        api.merge(f"{path}/status", {"status": {"initialization": {"provisioned": True}}}).ok()
        api.merge(path, {"metadata": {"finalizers": None}}).ok()
        assert calls(api, kind.lower(), GROUP) == before, kind
    before = calls(api, "devmachine", GROUP)
    names.append("devmachines/y")
    pooled = body("DevMachine", docker(), labels={"cluster.x-k8s.io/pool-name": "p"})
    pooled["metadata"]["name"] = "y"
    api.post(f"{NEW}/devmachines", pooled).ok(201)
    assert calls(api, "devmachine", GROUP) == before

"""Defaults and rules of the Dev and Docker kinds, as the plug-in of the embedded server applies them."""

from typing import Any

import pytest

from capi.admission import ClusterApiAdmission
from capi.kube.types import Object, ResourceType
from capi.server.registry.interface import ResourceInfo, WriteOptions

INFRA = "infrastructure.cluster.x-k8s.io"
OPTIONS = WriteOptions(field_manager="test")
DRY_RUN = WriteOptions(field_manager="test", dry_run=True)
TOPOLOGY = {"topology.cluster.x-k8s.io/dry-run": ""}
DEV = ["DevCluster", "DevMachine", "DevMachinePool"]
TEMPLATES = ["DevClusterTemplate", "DevMachineTemplate", "DevMachinePoolTemplate"]
ROLLING = "spec.strategy.rollingUpdate"


def info(kind: str) -> ResourceInfo:
    return ResourceInfo(ResourceType(INFRA, "v1beta2", kind, f"{kind.lower()}s"), kind.lower(), f"{kind}List")


def of(kind: str, spec: Any, **metadata: object) -> Object:
    return {
        "apiVersion": f"{INFRA}/v1beta2",
        "kind": kind,
        "metadata": {"name": "a", "namespace": "n", **metadata},
        "spec": spec,
    }


def template(kind: str, spec: Any, metadata: Object | None = None, **of_itself: object) -> Object:
    inner = {"spec": spec, **({"metadata": metadata} if metadata else {})}
    return of(kind, {"template": inner}, **of_itself)


def filled(obj: Object) -> Object:
    return ClusterApiAdmission().default(info(obj["kind"]), obj, None, OPTIONS)


def refused(obj: Object, old: Object | None = None, options: WriteOptions = OPTIONS) -> dict[str, str]:
    """What is said about each field, after defaults."""
    found, _ = ClusterApiAdmission().validate(info(obj["kind"]), filled(obj), old, options)
    return {cause.field: cause.message for cause in found}


@pytest.mark.parametrize("kind", DEV)
@pytest.mark.parametrize("spec", [{}, {"backend": {}}, None])
def test_an_object_without_a_backend_is_one_of_containers(kind: str, spec: Object | None) -> None:
    obj = of(kind, spec)
    assert filled(obj)["spec"]["backend"] == {"docker": {}}
    assert refused(obj) == {}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_template_without_a_backend_is_one_of_containers(kind: str) -> None:
    assert filled(template(kind, {}))["spec"]["template"]["spec"]["backend"] == {"docker": {}}


@pytest.mark.parametrize("kind", DEV)
def test_a_backend_that_was_chosen_stays(kind: str) -> None:
    obj = of(kind, {"backend": {"inMemory": {}}})
    assert filled(obj) is obj
    assert refused(obj) == {}


@pytest.mark.parametrize("kind", DEV)
def test_two_backends_are_refused_and_both_named(kind: str) -> None:
    said = refused(of(kind, {"backend": {"docker": {}, "inMemory": {}}}))["spec.backend"]
    assert "spec.backend.docker" in said and "spec.backend.inMemory" in said


@pytest.mark.parametrize("kind", DEV)
def test_a_backend_cannot_become_another_one(kind: str) -> None:
    """What the first one made would be left over."""
    old = of(kind, {"backend": {"inMemory": {}}})
    specs: list[Object] = [{"backend": {"docker": {}}}, {"backend": {}}]
    for spec in specs:
        assert "inMemory cannot become docker" in refused(of(kind, spec), old)["spec.backend"]
    assert refused(old, old) == {}


@pytest.mark.parametrize(
    ("obj", "port"),
    [
        (of("DevCluster", {"backend": {"docker": {}}}), 6443),
        (of("DevCluster", {}), 6443),
        (of("DevCluster", {"controlPlaneEndpoint": {"host": "h"}, "backend": {"docker": {}}}), 6443),
        (of("DevCluster", {"controlPlaneEndpoint": {"port": 7777}, "backend": {"docker": {}}}), 7777),
        (of("DockerCluster", {}), 6443),
        (of("DockerCluster", {"controlPlaneEndpoint": {"host": "h", "port": 7777}}), 7777),
    ],
)
def test_a_cluster_of_containers_is_served_on_port_6443_unless_it_says_another(obj: Object, port: int) -> None:
    endpoint = filled(obj)["spec"]["controlPlaneEndpoint"]
    assert endpoint["port"] == port
    assert endpoint.get("host") == (obj["spec"].get("controlPlaneEndpoint") or {}).get("host")


def test_the_port_of_a_simulated_cluster_is_found_later() -> None:
    assert "controlPlaneEndpoint" not in filled(of("DevCluster", {"backend": {"inMemory": {}}}))["spec"]


def in_cluster(kind: str, docker: Object) -> Object:
    return of(kind, docker if kind == "DockerCluster" else {"backend": {"docker": docker}})


def docker_of(obj: Object) -> Object:
    found: Object = obj["spec"] if obj["kind"] == "DockerCluster" else obj["spec"]["backend"]["docker"]
    return found


CLUSTERS = [("DevCluster", "spec.backend.docker"), ("DockerCluster", "spec")]
MACHINES = [("DevMachine", "spec.backend.docker"), ("DevMachinePool", "spec.backend.docker"),
            ("DockerMachine", "spec"), ("DockerMachinePool", "spec.template")]  # fmt: skip


def in_machine(kind: str, docker: Object) -> Object:
    if kind == "DockerMachine":
        return of(kind, docker)
    return of(kind, {"template": docker} if kind == "DockerMachinePool" else {"backend": {"docker": docker}})


@pytest.mark.parametrize(("kind", "where"), CLUSTERS)
def test_a_failure_domain_is_for_workers_unless_it_says_otherwise(kind: str, where: str) -> None:
    domains = [{"name": "a"}, {"name": "b", "controlPlane": True, "attributes": {"x": "y"}}]
    assert docker_of(filled(in_cluster(kind, {"failureDomains": domains})))["failureDomains"] == [
        {"name": "a", "controlPlane": False},
        {"name": "b", "controlPlane": True, "attributes": {"x": "y"}},
    ]


@pytest.mark.parametrize(("kind", "where"), CLUSTERS)
def test_failure_domains_are_sorted_by_name(kind: str, where: str) -> None:
    said = refused(in_cluster(kind, {"failureDomains": [{"name": name} for name in ("c", "a", "b")]}))
    assert set(said) == {f"{where}.failureDomains"}
    assert said[f"{where}.failureDomains"].endswith("must be sorted by name: a, b, c")
    assert refused(in_cluster(kind, {"failureDomains": [{"name": "a"}, {"name": "b"}]})) == {}


@pytest.mark.parametrize(("kind", "where"), CLUSTERS)
def test_a_failure_domain_is_there_once(kind: str, where: str) -> None:
    said = refused(in_cluster(kind, {"failureDomains": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}))
    assert said == {f"{where}.failureDomains[2].name": 'Duplicate value: "a"'}


@pytest.mark.parametrize(("kind", "where"), CLUSTERS)
def test_an_old_map_of_failure_domains_cannot_hold_what_the_list_may_not(kind: str, where: str) -> None:
    old = in_cluster(kind, {"failureDomains": {"": {}, "a" * 257: {}}})
    old["apiVersion"] = f"{INFRA}/v1beta1"
    assert set(refused(old)) == {f"{where}.failureDomains[0].name", f"{where}.failureDomains[1].name"}
    old = in_cluster(kind, {"failureDomains": {f"fd{n:03}": {} for n in range(101)}})
    old["apiVersion"] = f"{INFRA}/v1beta1"
    assert set(refused(old)) == {f"{where}.failureDomains"}


@pytest.mark.parametrize(("kind", "where"), CLUSTERS)
def test_a_load_balancer_that_cannot_be_is_named(kind: str, where: str) -> None:
    bad = {"imageRepository": "Not A Host", "imageTag": "a:b", "customHAProxyConfigTemplateRef": {}}
    fields = {"imageRepository", "imageTag", "customHAProxyConfigTemplateRef.name"}
    assert set(refused(in_cluster(kind, {"loadBalancer": bad}))) == {f"{where}.loadBalancer.{name}" for name in fields}
    good: Object = {
        "imageRepository": "localhost:5000",
        "imageTag": "v1.2_3",
        "customHAProxyConfigTemplateRef": {"name": "lb"},
    }
    assert refused(in_cluster(kind, {"loadBalancer": good})) == {}


@pytest.mark.parametrize(("kind", "where"), MACHINES)
@pytest.mark.parametrize(
    ("mount", "fields"),
    [
        pytest.param({"hostPath": "/a", "containerPath": "/b"}, set(), id="fine"),
        pytest.param({"hostPath": "/", "containerPath": "/b", "readOnly": True}, set(), id="the whole host"),
        pytest.param({"hostPath": "a", "containerPath": "/b"}, {"hostPath"}, id="relative"),
        pytest.param({"hostPath": "/a", "containerPath": "b"}, {"containerPath"}, id="relative inside"),
        pytest.param({"hostPath": "/a", "containerPath": "//"}, {"containerPath"}, id="the whole container"),
        pytest.param({"hostPath": "", "containerPath": ""}, {"hostPath", "containerPath"}, id="empty"),
        pytest.param({}, {"hostPath", "containerPath"}, id="nothing"),
    ],
)
def test_mounts_have_absolute_paths(kind: str, where: str, mount: Object, fields: set[str]) -> None:
    said = refused(in_machine(kind, {"extraMounts": [{"hostPath": "/x", "containerPath": "/x"}, mount]}))
    assert set(said) == {f"{where}.extraMounts[1].{name}" for name in fields}
    assert all("like" in text for text in said.values())


@pytest.mark.parametrize(("kind", "where"), MACHINES)
def test_nothing_is_mounted_over_another_mount(kind: str, where: str) -> None:
    mounts = [{"hostPath": "/a", "containerPath": "/x"}, {"hostPath": "/b", "containerPath": "/x/"}]
    assert set(refused(in_machine(kind, {"extraMounts": mounts}))) == {f"{where}.extraMounts[1].containerPath"}


DIGEST = f"sha256:{'0a' * 32}"


@pytest.mark.parametrize(("kind", "where"), MACHINES)
@pytest.mark.parametrize(
    "image",
    ["node", "kindest/node:v1.35.0", "localhost:5000/a/b_c--d:x", f"R.example.com/node@{DIGEST}", f"node:v1@{DIGEST}", "[::1]:5000/node"],
)  # fmt: skip
def test_images_that_an_engine_can_read(kind: str, where: str, image: str) -> None:
    assert refused(in_machine(kind, {"customImage": image, "preLoadImages": [image]})) == {}


@pytest.mark.parametrize(("kind", "where"), MACHINES)
@pytest.mark.parametrize(
    "image",
    [" ", "Node", "kindest/node:", "kindest//node", "node:v1:v2", "https://example.com/node", "node@sha256:12", "a b", "-a", "a" * 600, "node\n"],
)  # fmt: skip
def test_images_that_no_engine_can_read(kind: str, where: str, image: str) -> None:
    said = refused(in_machine(kind, {"customImage": image, "preLoadImages": ["node", image, ""]}))
    assert set(said) == {f"{where}.customImage", f"{where}.preLoadImages[1]", f"{where}.preLoadImages[2]"}


@pytest.mark.parametrize("kind", ["DevMachine", "DevMachinePool"])
def test_times_that_cannot_be_read_are_named(kind: str) -> None:
    step = {"provisioning": {"startupDuration": "soon", "startupJitter": "much"}}
    assert set(refused(of(kind, {"backend": {"inMemory": {"vm": step}}}))) == {
        "spec.backend.inMemory.vm.provisioning.startupDuration",
        "spec.backend.inMemory.vm.provisioning.startupJitter",
    }


@pytest.mark.parametrize(
    ("strategy", "fields"),
    [
        pytest.param({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, set(), id="no surge"),
        pytest.param({"rollingUpdate": {"maxSurge": "20%", "deletePolicy": "Random"}}, set(), id="a share"),
        pytest.param({"type": "OnDelete", "rollingUpdate": {"deletePolicy": "Newest"}}, set(), id="an order alone"),
        pytest.param({"rollingUpdate": {"maxSurge": -1}}, {f"{ROLLING}.maxSurge"}, id="negative"),
        pytest.param({"rollingUpdate": {"maxUnavailable": "two"}}, {f"{ROLLING}.maxUnavailable"}, id="a word"),
        pytest.param({"rollingUpdate": {"maxSurge": "-5%"}}, {f"{ROLLING}.maxSurge"}, id="a negative share"),
        pytest.param({"rollingUpdate": {"maxSurge": 0}}, {f"{ROLLING}.maxUnavailable"}, id="nothing may move"),
        pytest.param(
            {"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": 0}},
            {f"{ROLLING}.maxUnavailable"},
            id="nor by shares",
        ),
        pytest.param({"type": "OnDelete", "rollingUpdate": {"maxSurge": 2}}, {ROLLING}, id="on delete has no surge"),
    ],
)
@pytest.mark.parametrize("kind", ["DevMachinePool", "DockerMachinePool"])
def test_a_strategy_that_cannot_be_meant_is_named(kind: str, strategy: Object, fields: set[str]) -> None:
    spec: Object = {"backend": {"inMemory": {}}} if kind == "DevMachinePool" else {"template": {}}
    assert set(refused(of(kind, {**spec, "strategy": strategy}))) == fields


IMMUTABLE = [*TEMPLATES, "DockerMachineTemplate"]
BEFORE: dict[str, Object] = {
    "DevClusterTemplate": {"backend": {"docker": {"loadBalancer": {"imageTag": "v1"}}}},
    "DevMachineTemplate": {"backend": {"docker": {"customImage": "a"}}},
    "DevMachinePoolTemplate": {"backend": {"docker": {"customImage": "a"}}},
    "DockerMachineTemplate": {"customImage": "a"},
}
AFTER: dict[str, Object] = {
    "DevClusterTemplate": {"backend": {"docker": {"loadBalancer": {"imageTag": "v2"}}}},
    "DevMachineTemplate": {"backend": {"docker": {"customImage": "b"}}},
    "DevMachinePoolTemplate": {"backend": {"inMemory": {}}},
    "DockerMachineTemplate": {"customImage": "b"},
}


@pytest.mark.parametrize("kind", IMMUTABLE)
def test_what_a_template_makes_does_not_change(kind: str) -> None:
    old = filled(template(kind, BEFORE[kind]))
    said = refused(template(kind, AFTER[kind]), old)
    assert set(said) == {"spec.template.spec"}
    assert f"create a new {kind}" in said["spec.template.spec"]
    assert refused(template(kind, BEFORE[kind]), old) == {}


@pytest.mark.parametrize("kind", IMMUTABLE)
def test_labels_of_what_a_template_makes_may_change_if_they_are_labels(kind: str) -> None:
    old = filled(template(kind, BEFORE[kind]))
    assert refused(template(kind, BEFORE[kind], {"labels": {"a": "b"}, "annotations": {"a/b": "c d"}}), old) == {}
    bad = {"labels": {"a": "b c"}, "annotations": {"a b": "c"}}
    assert set(refused(template(kind, BEFORE[kind], bad), old)) == {
        "spec.template.metadata.labels",
        "spec.template.metadata.annotations",
    }
    assert "spec.template.metadata.labels" in refused(template(kind, BEFORE[kind], bad))


@pytest.mark.parametrize("kind", [kind for kind in IMMUTABLE if kind != "DevClusterTemplate"])
def test_a_managed_topology_may_try_a_change(kind: str) -> None:
    old = filled(template(kind, BEFORE[kind]))
    assert refused(template(kind, AFTER[kind], annotations=TOPOLOGY), old, DRY_RUN) == {}
    assert set(refused(template(kind, AFTER[kind]), old, DRY_RUN)) == {"spec.template.spec"}
    assert set(refused(template(kind, AFTER[kind], annotations=TOPOLOGY), old)) == {"spec.template.spec"}
    bad = template(kind, AFTER[kind], {"labels": {"a": "b c"}}, annotations=TOPOLOGY)
    assert set(refused(bad, old, DRY_RUN)) == {"spec.template.metadata.labels"}


def test_a_template_of_clusters_has_no_exception_for_managed_topologies() -> None:
    old = filled(template("DevClusterTemplate", BEFORE["DevClusterTemplate"]))
    new = template("DevClusterTemplate", AFTER["DevClusterTemplate"], annotations=TOPOLOGY)
    assert set(refused(new, old, DRY_RUN)) == {"spec.template.spec"}


def test_a_default_that_is_written_down_is_no_change() -> None:
    old = template("DevClusterTemplate", {"backend": {"docker": {"failureDomains": [{"name": "a"}]}}})
    docker = {"failureDomains": [{"name": "a", "controlPlane": False}]}
    new: Object = {"controlPlaneEndpoint": {"port": 6443}, "backend": {"docker": docker}}
    assert refused(template("DevClusterTemplate", new), old) == {}
    new["controlPlaneEndpoint"] = {"port": 6444}
    assert set(refused(template("DevClusterTemplate", new), old)) == {"spec.template.spec"}


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        (template("DevMachineTemplate", {"backend": {"docker": {"customImage": "A"}}}), "customImage"),
        (template("DevMachinePoolTemplate", {"backend": {"docker": {"extraMounts": [{"hostPath": "/a"}]}}}), "extraMounts[0].containerPath"),
        (template("DevClusterTemplate", {"backend": {"docker": {"failureDomains": [{"name": "b"}, {"name": "a"}]}}}), "failureDomains"),
    ],
)  # fmt: skip
def test_rules_of_what_a_template_makes_hold_in_it(obj: Object, field: str) -> None:
    assert set(refused(obj)) == {f"spec.template.spec.backend.docker.{field}"}


def test_rules_of_a_docker_machine_hold_in_its_template() -> None:
    assert set(refused(template("DockerMachineTemplate", {"customImage": "A"}))) == {"spec.template.spec.customImage"}


@pytest.mark.parametrize("kind", [*DEV, *TEMPLATES, "DockerCluster"])
@pytest.mark.parametrize(
    "spec",
    ["x", 5, [], {"backend": "x"}, {"template": "x"}, {"template": {"spec": []}}, {"controlPlaneEndpoint": "x", "failureDomains": [5]}],
)  # fmt: skip
def test_what_is_no_object_of_its_kind_is_left_to_the_schema(kind: str, spec: Any) -> None:
    """Defaults come before any schema has looked at it: what is wrong must still be wrong after them."""
    found = filled(of(kind, spec))["spec"]
    assert ({name: found.get(name) for name in spec} if isinstance(spec, dict) else found) == spec

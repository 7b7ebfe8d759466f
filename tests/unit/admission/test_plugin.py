"""The plug-in of the embedded server, and the Dev kinds."""

import pytest

from capi.admission import ClusterApiAdmission
from capi.kube.errors import Forbidden
from capi.kube.types import Object, ResourceType
from capi.server.registry.interface import ResourceInfo, WriteOptions

OPTIONS = WriteOptions(field_manager="test")
CORE, INFRA = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"


def info(group: str, kind: str) -> ResourceInfo:
    resource = ResourceType(group, "v1beta2", kind, f"{kind.lower()}s")
    return ResourceInfo(resource, kind.lower(), f"{kind}List")


def causes(kind: str, spec: Object, **metadata: object) -> dict[str, str]:
    obj: Object = {"metadata": {"name": "a", **metadata}, "spec": spec}
    found, _ = ClusterApiAdmission().validate(info(INFRA, kind), obj, None, OPTIONS)
    return {cause.field: cause.message for cause in found}


@pytest.mark.parametrize("kind", ["MachineSet", "MachineDeployment"])
def test_a_kind_that_nothing_acts_on_cannot_be_created_and_says_why(kind: str) -> None:
    with pytest.raises(Forbidden, match="by this version of capi"):
        ClusterApiAdmission().default(info(CORE, kind), {"metadata": {"name": "a"}}, None, OPTIONS)


def test_objects_of_other_kinds_pass() -> None:
    obj: Object = {"metadata": {"name": "a"}}
    other = info("", "ConfigMap")
    assert ClusterApiAdmission().default(other, obj, None, OPTIONS) is obj
    assert ClusterApiAdmission().validate(other, obj, None, OPTIONS) == ((), ())


@pytest.mark.parametrize("kind", ["DevCluster", "DevMachine", "DevMachinePool"])
def test_the_docker_backend_is_refused_and_the_other_one_named(kind: str) -> None:
    assert "inMemory" in causes(kind, {"backend": {"docker": {}}})["spec.backend.docker"]
    assert "inMemory" in causes(kind, {})["spec.backend"]
    assert causes(kind, {"backend": {"inMemory": {}}}) == {}


def test_times_that_cannot_be_read_are_named() -> None:
    step = {"provisioning": {"startupDuration": "soon", "startupJitter": "much"}}
    assert set(causes("DevMachinePool", {"backend": {"inMemory": {"vm": step}}})) == {
        "spec.backend.inMemory.vm.provisioning.startupDuration",
        "spec.backend.inMemory.vm.provisioning.startupJitter",
    }


ROLLING = "spec.strategy.rollingUpdate"


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
def test_a_strategy_that_cannot_be_meant_is_named(strategy: Object, fields: set[str]) -> None:
    assert set(causes("DevMachinePool", {"backend": {"inMemory": {}}, "strategy": strategy})) == fields


def test_an_object_that_is_being_deleted_is_not_held_up() -> None:
    assert causes("DevMachinePool", {}, deletionTimestamp="2026-01-01T00:00:00Z") == {}

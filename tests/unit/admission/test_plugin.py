"""The plug-in of the embedded server."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capi.admission import ClusterApiAdmission
from capi.kube.errors import Forbidden
from capi.kube.types import Object, ResourceType
from capi.server.registry.interface import ResourceInfo, WriteOptions
from tests.unit.admission.convert import objects
from tests.unit.admission.convert.ways import bare, down, spoilt

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


def test_an_object_that_is_being_deleted_is_not_held_up() -> None:
    assert causes("DevMachinePool", {}, deletionTimestamp="2026-01-01T00:00:00Z") == {}


@settings(max_examples=300, deadline=None)
@given(hub=objects.hubs(), old=st.booleans(), data=st.data())
def test_defaults_of_nonsense_do_no_harm(hub: Object, old: bool, data: st.DataObject) -> None:
    """Defaults come before any schema has looked at an object; a second time they fill in nothing."""
    before = bare(down(hub)) if old else hub
    obj = {**before, "spec": spoilt(before["spec"], data)}
    group, _, version = obj["apiVersion"].partition("/")
    kind = ResourceInfo(ResourceType(group, version, obj["kind"], f"{obj['kind'].lower()}s"), "", "")
    filled = ClusterApiAdmission().default(kind, obj, before, OPTIONS)
    assert ClusterApiAdmission().default(kind, filled, before, OPTIONS) == filled

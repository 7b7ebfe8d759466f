"""What a CustomResourceDefinition serves, and its status."""

from capi.server.registry import crd
from tests.unit.server.schema.test_definition import a_crd, a_version


def conditions(obj):
    return {c["type"]: (c["status"], c["reason"]) for c in obj["status"]["conditions"]}


def test_a_new_definition_is_established_with_its_names(now):
    obj = crd.status(crd.create(a_crd(shortNames=["wd"])), [], now)
    assert conditions(obj) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    wanted = {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
        "shortNames": ["wd"],
    }
    assert obj["status"]["acceptedNames"] == wanted
    assert obj["status"]["storedVersions"] == ["v1"]
    assert crd.status(obj, [], now) is obj


def test_names_of_others_in_the_group_are_not_accepted(now):
    first = crd.status(a_crd(shortNames=["wd"]), [], now)
    clash = crd.status(a_crd(plural="gadgets", kind="Gadget", shortNames=["wd"]), [first], now)
    assert conditions(clash) == {
        "NamesAccepted": ("False", "ShortNamesConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert crd.condition(clash, "NamesAccepted")["message"] == '"wd" is already in use'
    assert crd.resources_of(clash) == ()
    elsewhere = crd.status(a_crd(group="other.io", shortNames=["wd"]), [first], now)
    assert conditions(elsewhere)["Established"][0] == "True"


def test_an_established_definition_serves_its_versions_preferred_first(now):
    versions = [a_version("v1beta1", storage=False), a_version("v1"), a_version("v2", storage=False, served=False)]
    infos = crd.resources_of(crd.status(a_crd(*versions), [], now))
    assert [info.type.version for info in infos] == ["v1", "v1beta1"]
    assert {info.storage_version for info in infos} == {"v1"}


def test_a_resource_says_what_discovery_and_printing_need(now):
    version = a_version(
        additionalPrinterColumns=[{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}],
        subresources={"status": {}, "scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}},
        selectableFields=[{"jsonPath": ".spec.mode"}],
    )
    (info,) = crd.resources_of(crd.status(a_crd(version, categories=["all"]), [], now))
    assert info.subresources == ("status", "scale")
    assert info.scale is not None
    assert info.scale.spec_replicas == ".spec.r"
    assert (info.columns[0].name, info.columns[0].priority) == ("Size", 1)
    assert info.selectable_fields == ("spec.mode",)
    assert info.categories == ("all",)
    assert "ownerReferences" in info.schema["properties"]["metadata"]["properties"]


def test_a_deprecated_version_points_at_a_better_one(now):
    versions = [a_version("v1", storage=False, deprecated=True), a_version("v2")]
    infos = crd.resources_of(crd.status(a_crd(*versions), [], now))
    warnings = {info.type.version: info.deprecation_warning for info in infos}
    assert warnings == {"v2": "", "v1": "ex.io/v1 Widget is deprecated; use ex.io/v2 Widget"}


def test_a_new_storage_version_is_remembered(now):
    old = crd.status(a_crd(a_version("v1"), a_version("v2", storage=False)), [], now)
    new = a_crd(a_version("v1", storage=False), a_version("v2"))
    assert crd.update(new, old)["status"]["storedVersions"] == ["v1", "v2"]


def test_a_terminating_definition_takes_no_new_objects(now):
    obj = crd.terminating(crd.status(a_crd(), [], now), ("True", "InstanceDeletionInProgress", "…"), now)
    (info,) = crd.resources_of(obj)
    assert "create" not in info.verbs
    assert "delete" in info.verbs


def test_versions_are_ordered_as_kubernetes_orders_them():
    order = ["v10", "v2", "v1", "v11beta2", "v1beta1", "v2alpha1", "v1alpha1", "foo", "foo10"]
    assert sorted(sorted(order), key=crd.version_order) == order

"""What a CustomResourceDefinition must be."""

import pytest

from capi.server.registry import crd
from capi.server.registry.schema import definition
from tests.unit.server.schema.widgets import NUMBER, SPEC, TEXT, a_rule, an_object


def a_version(name="v1", schema=None, storage=True, **more):
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema or free}, **more}


def a_crd(*versions, group="ex.io", plural="widgets", kind="Widget", **names):
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": plural, "kind": kind, **names},
        "versions": list(versions) or [a_version()],
    }
    return crd.default({"metadata": {"name": f"{plural}.{group}"}, "spec": spec})


def with_spec(spec):
    return a_crd(a_version(schema=an_object({"spec": spec})))


def texts(obj, old=None):
    return [f"{cause.field}: {cause.message}" for cause in definition.validate(obj, old)]


HERE = "spec.validation.openAPIV3Schema.properties[spec]"


def test_a_schema_with_one_of_everything_is_accepted():
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    version = a_version(
        schema=an_object({"spec": SPEC}),
        additionalPrinterColumns=columns,
        selectableFields=[{"jsonPath": ".spec.mode"}],
        subresources={"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
    )
    assert texts(a_crd(version)) == []


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, f"{HERE}.type: Required value: must not be empty for specified object fields"),
        ({"type": "array", "items": {}}, f"{HERE}.items.type: Required value: must not be empty for specified array items"),
        ({"type": "array"}, f"{HERE}.items: Required value: must be specified"),
        ({"type": "text"}, f'{HERE}.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"'),
        ({**TEXT, "pattern": "("}, f'{HERE}.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t'),
        ({**NUMBER, "default": "x"}, f"{HERE}.default: Invalid value: \"string\": {HERE}.default in body must be of type integer"),
        (an_object({}, default={"a": 1}), f'{HERE}.default: Invalid value: {{"a":1}}: must not have unknown fields'),
        ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "map"}, f"{HERE}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"),
        (
            {"type": "array", "items": an_object({"k": TEXT}), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            f"{HERE}.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys",
        ),
        (an_object({"a": TEXT}, anyOf=[{"properties": {"a": {"type": "string"}}}]), f"{HERE}.anyOf[0].properties[a].type: Forbidden: must be empty to be structural"),
        (an_object({"a": TEXT}, **a_rule("self.nope == 1")), f'{HERE}.x-kubernetes-validations[0].rule: Invalid value: {{"rule":"self.nope == 1"}}: compilation failed: ERROR: <input>:1:5: undefined field \'nope\''),
        (an_object({"a": TEXT}, **a_rule("has(self.a)", fieldPath=".b")), f'{HERE}.x-kubernetes-validations[0].fieldPath: Invalid value: ".b": must be a valid path'),
        (an_object({"a": TEXT}, additionalProperties=TEXT), f"{HERE}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"),
    ],
)  # fmt: skip
def test_a_schema_that_is_not_sound_says_where(spec, wanted):
    assert any(text.startswith(wanted) for text in texts(with_spec(spec))), texts(with_spec(spec))


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        (a_crd(group="ex"), "spec.group"),
        (a_crd(a_version("v1"), a_version("v2")), "spec.versions"),
        (a_crd(a_version("v1"), a_version("v1", storage=False)), "spec.versions"),
        (a_crd(plural="a_b"), "spec.names.plural"),
        (a_crd(group="x.k8s.io"), "metadata.annotations[api-approved.kubernetes.io]"),
        ({**a_crd(), "metadata": {"name": "other.ex.io"}}, "metadata.name"),
        (a_crd(a_version(additionalPrinterColumns=[{"name": "A", "type": "integer", "jsonPath": "spec"}])), "spec.additionalPrinterColumns[0].JSONPath"),
        (a_crd(a_version(subresources={"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".status.r"}})), "spec.subresources.scale.specReplicasPath"),
    ],
)  # fmt: skip
def test_a_bad_definition_names_the_field(obj, field):
    assert field in [cause.field for cause in definition.validate(obj, None)]


def test_scope_and_kind_are_fixed_once_established_and_stored_versions_stay(now):
    old = crd.status(a_crd(), [], now)
    changed = {**old["spec"], "scope": "Cluster", "versions": [a_version("v2")]}
    found = [cause.field for cause in definition.validate(crd.update({**old, "spec": changed}, old), old)]
    assert found == ["status.storedVersions[0]", "spec.scope"]


def test_versions_with_different_schemas_are_named_one_by_one():
    good, bad = an_object({"spec": an_object({})}), an_object({"spec": {}})
    fields = [c.field for c in definition.validate(a_crd(a_version(schema=good), a_version("v2", bad, False)), None)]
    assert fields == ["spec.versions[1].schema.openAPIV3Schema.properties[spec].type"]

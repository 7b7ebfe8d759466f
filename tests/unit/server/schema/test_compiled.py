"""Pruning, defaulting and validation by a schema, as Kubernetes does it."""

import pytest

from tests.unit.server.schema.widgets import SPEC, a_widget, an_object, compiled

WIDGETS = compiled()
FULL = {"size": 2, "mode": "a", "sub": {"x": 7}}


def texts(causes):
    return [f"{cause.field}: {cause.message}" for cause in causes]


def test_undeclared_fields_are_pruned_and_reported():
    obj = a_widget({"size": 2, "unknown": {"a": 1}, "free": {"q": [1]}, "map": [{"k": "a", "zz": 1}]}, other=1)
    pruned, dropped = WIDGETS.prune(obj)
    assert dropped == ["spec.unknown", "spec.map[0].zz", "other"]
    assert pruned == a_widget({"size": 2, "free": {"q": [1]}, "map": [{"k": "a"}]})


def test_unknown_metadata_is_pruned_also_in_embedded_resources():
    obj = a_widget(
        {"size": 2, "embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "bad": 1}, "z": 1}}
    )
    obj["metadata"] = {"name": "w", "bad": 1}
    pruned, dropped = WIDGETS.prune(obj)
    assert dropped == ["metadata.bad", "spec.embedded.metadata.bad"]
    assert pruned["spec"]["embedded"]["z"] == 1


def test_defaults_fill_objects_that_exist():
    assert WIDGETS.default(a_widget())["spec"] == FULL


def test_null_is_kept_defaulted_or_dropped():
    filled = WIDGETS.default(a_widget({"size": 2, "nullable": None, "mode": None, "text": None, "plain": None}))["spec"]
    assert filled == {**FULL, "nullable": None}


def test_what_needs_nothing_is_returned_as_it_is():
    obj = a_widget(FULL)
    assert WIDGETS.prune(obj)[0] is obj
    assert WIDGETS.default(obj) is obj
    assert WIDGETS.validate(obj) == []


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({"size": 11}, "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"),
        ({"size": "x"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
        ({"size": 1.5}, 'spec.size: Invalid value: "number": spec.size in body must be of type integer: "number"'),
        ({}, "spec.size: Required value"),
        ({"size": 2, "mode": "z"}, 'spec.mode: Unsupported value: "z": supported values: "a", "b"'),
        ({"size": 2, "name": "AB"}, "spec.name: Invalid value: \"AB\": spec.name in body should match '^[a-z]+$'"),
        ({"size": 2, "name": "abcdef"}, "spec.name: Too long: may not be more than 5 bytes"),
        ({"size": 2, "name": "a"}, 'spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long'),
        ({"size": 2, "map": [{"k": c} for c in "abcd"]}, "spec.map: Too many: 4: must have at most 3 items"),
        ({"size": 2, "map": [{"k": "a"}, {"k": "a"}]}, 'spec.map[1]: Duplicate value: {"k":"a"}'),
        ({"size": 2, "set": ["a", "b", "a"]}, 'spec.set[2]: Duplicate value: "a"'),
        ({"size": 2, "labels": {"a": 1}}, 'spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"'),
        ({"size": 2, "plain": [1, "x"]}, 'spec.plain[1]: Invalid value: "string": spec.plain[1] in body must be of type integer: "string"'),
        ({"size": 2, "time": "now"}, 'spec.time: Invalid value: "now": spec.time in body must be of type date-time: "now"'),
        ({"size": 2, "ratio": 0}, "spec.ratio: Invalid value: 0: spec.ratio in body should be greater than 0"),
        ({"size": 2, "one": {}}, '<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found none valid'),
        ({"size": 2, "embedded": {"kind": "X"}}, "spec.embedded.apiVersion: Required value"),
        ({"size": 2, "port": True}, 'spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"'),
    ],
)  # fmt: skip
def test_a_bad_value_is_named_as_kubernetes_names_it(spec, wanted):
    assert wanted in texts(WIDGETS.validate(a_widget(spec)))


def test_a_missing_spec_is_required():
    obj = a_widget()
    del obj["spec"]
    assert texts(WIDGETS.validate(obj)) == ["spec: Required value"]


@pytest.mark.parametrize("port", [5, "http"])
def test_int_or_string_takes_either(port):
    assert WIDGETS.validate(a_widget({"size": 2, "port": port})) == []


def test_an_unchanged_bad_value_does_not_block_other_changes():
    old = a_widget({"size": 99, "map": [{"k": "a", "n": 9}, {"k": "b"}]})
    new = a_widget({"size": 99, "map": [{"k": "b"}, {"k": "a", "n": 9}], "text": "x"})
    assert WIDGETS.validate(new, old) == []
    assert [c.field for c in WIDGETS.validate(a_widget({"size": 98}), old)] == ["spec.size"]


def test_duplicates_that_were_there_before_are_tolerated():
    old = a_widget({"size": 2, "set": ["a", "a"]})
    assert WIDGETS.validate(a_widget({"size": 3, "set": ["a", "a"]}), old) == []


def test_a_status_write_is_judged_by_its_status():
    old = a_widget({"size": 99})
    assert WIDGETS.validate_status(a_widget({"size": 99}, status={"phase": "Up"}), old) == []
    assert [c.field for c in WIDGETS.validate_status(a_widget({"size": 99}, status={"phase": 3}), old)] == [
        "status.phase"
    ]


def test_type_errors_speak_go():
    assert WIDGETS.type_error(a_widget()) == ""
    wrong = WIDGETS.type_error(a_widget({"text": 3}))
    assert wrong == "json: cannot unmarshal number into Go struct field spec.text of type string"


def test_an_untouched_default_is_not_shared_with_its_schema():
    first = WIDGETS.default(a_widget())
    assert SPEC["properties"]["sub"]["default"] == {}
    assert first["spec"]["sub"] == {"x": 7}


def test_an_empty_schema_takes_anything():
    anything = compiled(an_object({}, **{"x-kubernetes-preserve-unknown-fields": True}))
    obj = a_widget({"a": [1, {"b": None}]})
    assert anything.prune(obj) == (obj, [])
    assert anything.validate(obj) == []

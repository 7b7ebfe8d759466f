"""CEL validation rules."""

import pytest

from capi.server.registry.schema import cel
from tests.unit.server.schema.widgets import NUMBER, TEXT, a_rule, a_widget, an_object, compiled


def judged(spec_schema, spec, old=None):
    found = compiled(spec_schema).validate(a_widget(spec), None if old is None else a_widget(old))
    return [f"{cause.field}: {cause.message}" for cause in found]


def test_a_broken_rule_without_message_shows_the_rule():
    schema = an_object({"a": NUMBER}, **a_rule("self.a < 3"))
    assert judged(schema, {"a": 3}) == ["spec: Invalid value: failed rule: self.a < 3"]
    assert judged(schema, {"a": 2}) == []


def test_a_runtime_error_is_a_cause():
    schema = an_object({"a": NUMBER}, **a_rule("self.a < 3"))
    assert judged(schema, {}) == ['spec: Invalid value: "object": no such key: a evaluating rule: self.a < 3']


def test_a_transition_rule_needs_an_old_value():
    schema = an_object({"a": {**TEXT, **a_rule("self == oldSelf", message="a is immutable")}})
    assert judged(schema, {"a": "y"}) == []
    assert judged(schema, {"a": "y"}, {}) == []
    assert judged(schema, {"a": "y"}, {"a": "x"}) == ['spec.a: Invalid value: "y": a is immutable']


def test_optional_old_self_is_asked_at_create_too():
    schema = an_object(
        {"a": {**NUMBER, **a_rule("oldSelf.hasValue() || self == 1", optionalOldSelf=True, message="1 first")}}
    )
    assert judged(schema, {"a": 2}) == ["spec.a: Invalid value: 2: 1 first"]
    assert judged(schema, {"a": 2}, {"a": 1}) == []


def test_reason_field_path_and_message_expression_shape_the_cause():
    schema = an_object(
        {"a": NUMBER, "b": {**TEXT, **a_rule("self != 'no'", reason="FieldValueForbidden", message="not that")}},
        **a_rule("self.a != 9", fieldPath=".a", messageExpression="'not ' + string(self.a)"),
    )
    assert judged(schema, {"a": 9}) == ["spec.a: Invalid value: not 9"]
    assert judged(schema, {"a": 1, "b": "no"}) == ["spec.b: Forbidden: not that"]


def test_map_list_items_are_compared_with_the_old_item_of_the_same_key():
    item = an_object({"k": TEXT, "v": NUMBER}, required=["k"], **a_rule("self.v >= oldSelf.v", message="shrinks"))
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    schema = an_object({"m": {"type": "array", "items": item, **keyed}})
    old = {"m": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]}
    assert judged(schema, {"m": [{"k": "b", "v": 4}, {"k": "a", "v": 2}]}, old) == ["spec.m[0]: Invalid value: shrinks"]


def test_rules_are_not_asked_about_unchanged_values():
    schema = an_object({"a": {**NUMBER, **a_rule("self < 3")}, "b": NUMBER})
    assert judged(schema, {"a": 5, "b": 2}, {"a": 5, "b": 1}) == []
    assert judged(schema, {"a": 6}, {"a": 5}) == ["spec.a: Invalid value: 6: failed rule: self < 3"]


def test_rules_are_not_asked_about_malformed_objects():
    schema = an_object({"a": NUMBER, "b": NUMBER}, required=["b"], **a_rule("self.a < 3"))
    found = judged(schema, {"a": "x", "b": 1})
    assert found[1].startswith("<nil>: Invalid value: null: some validation rules were not checked")


def test_names_that_are_no_identifiers_are_escaped():
    schema = an_object(
        {"foo-bar": NUMBER, "x.y/z": TEXT, "if": NUMBER}, **a_rule("self.foo__dash__bar + self.__if__ < 3")
    )
    assert judged(schema, {"foo-bar": 1, "if": 1}) == []
    assert len(judged(schema, {"foo-bar": 3, "if": 1})) == 1


def test_root_rules_see_the_name_only():
    rules = a_rule("self.metadata.name.startsWith('w') && self.spec.a == 1")
    schema = compiled(an_object({"a": NUMBER}), **rules)
    assert schema.validate(a_widget({"a": 1})) == []
    assert [c.field for c in schema.validate(a_widget({"a": 2}))] == ["<nil>"]


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ("self.nope == 1", "ERROR: <input>:1:5: undefined field 'nope'"),
        ("self.list.all(x, x.nope)", "ERROR: <input>:1:19: undefined field 'nope'"),
        ("quantity('1') == self.a", "ERROR: <input>:1:9: undeclared reference to 'quantity'"),
        ("self.a ==", "ERROR: <input>:1:10: Syntax error"),
        ("'a'", "cel expression must evaluate to a bool"),
    ],
)
def test_a_rule_that_does_not_compile_says_where(rule, complaint):
    schema = an_object({"a": NUMBER, "list": {"type": "array", "items": an_object({"k": TEXT})}})
    with pytest.raises(cel.CelError) as failure:
        cel.compile_rule(rule, schema)
    assert str(failure.value).startswith(complaint)


def test_lists_know_the_kubernetes_functions():
    program = cel.compile_rule("self.isSorted() && self.sum() == 3", {"type": "array", "items": NUMBER})
    assert program.evaluate([1, 2]) is True

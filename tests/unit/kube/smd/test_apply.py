"""Server-side apply: what it merges, owns, refuses and removes."""

import copy
from typing import Any

import pytest

from capi.kube import smd
from capi.kube.errors import ApiError, BadRequest, Conflict
from tests.unit.kube.smd.rig import SCHEMA, a_widget, apply, bare, entries, owned, update


def test_applying_to_nothing_creates_and_owns_the_leaves() -> None:
    created = apply(None, a_widget({"size": 3}, namespace="n"))
    assert created["spec"] == {"size": 3}
    assert entries(created) == [
        {
            "manager": "m1",
            "operation": "Apply",
            "apiVersion": "ex.io/v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:size": {}}},
        }
    ]


def test_another_value_of_an_owned_field_is_a_conflict() -> None:
    live = apply(None, a_widget({"size": 3}))
    with pytest.raises(Conflict) as error:
        apply(live, a_widget({"size": 4}), "m2")
    assert error.value.status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "m1": .spec.size',
        "reason": "Conflict",
        "details": {
            "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".spec.size"}]
        },
        "code": 409,
    }


def test_conflicts_with_updaters_and_subresources_name_them() -> None:
    live = update(None, a_widget({"size": 1, "mode": "a"}), "x")
    live = update(live, {**live, "spec": {"size": 2, "mode": "a"}}, "sc", subresource="scale")
    with pytest.raises(Conflict) as error:
        apply(live, a_widget({"size": 3, "mode": "b"}))
    assert error.value.message == (
        "Apply failed with 2 conflicts: "
        'conflicts with "sc" with subresource "scale" using ex.io/v1:\n- .spec.size\n'
        'conflicts with "x" using ex.io/v1:\n- .spec.mode'
    )


def test_conflicts_show_keys_and_values_of_list_items() -> None:
    live = apply(
        None, a_widget({"items": [{"name": "a", "value": 1}], "ports": [{"port": 80, "name": "x"}], "atom": ["a"]})
    )
    change = a_widget({"items": [{"name": "a", "value": 2}], "ports": [{"port": 80, "name": "y"}], "atom": ["b"]})
    with pytest.raises(Conflict) as error:
        apply(live, change, "m2")
    assert [cause.field for cause in error.value.causes] == [
        ".spec.atom",
        '.spec.items[name="a"].value',
        '.spec.ports[port=80,protocol="TCP"].name',
    ]


def test_atomic_lists_and_maps_conflict_as_one_field() -> None:
    live = apply(None, a_widget({"atom": ["a"], "amap": {"a": "1"}, "plain": ["a"]}))
    with pytest.raises(Conflict) as error:
        apply(live, a_widget({"atom": ["b"], "amap": {"b": "1"}, "plain": ["b"]}), "m2")
    assert sorted(cause.field for cause in error.value.causes) == [".spec.amap", ".spec.atom", ".spec.plain"]


def test_force_takes_the_field_over() -> None:
    live = apply(None, a_widget({"size": 3}))
    taken = apply(live, a_widget({"size": 4}), "m2", force=True)
    assert taken["spec"] == {"size": 4}
    assert owned(taken, "m1") is None
    assert owned(taken, "m2") == {"f:spec": {"f:size": {}}}


def test_a_shared_value_stays_until_its_last_owner_drops_it() -> None:
    live = apply(None, a_widget({"size": 3, "mode": "v"}))
    live = apply(live, a_widget({"size": 3, "mode": "v"}), "m2")
    live = apply(live, a_widget({"size": 3}))
    assert live["spec"] == {"size": 3, "mode": "v"}
    live = apply(live, a_widget({"size": 3}), "m2")
    assert live["spec"] == {"size": 3}


def test_keys_of_a_granular_map_have_their_own_owners() -> None:
    live = apply(None, a_widget({"gmap": {"a": "1"}}))
    live = apply(live, a_widget({"gmap": {"b": "2"}}), "m2")
    assert live["spec"]["gmap"] == {"a": "1", "b": "2"}
    live = apply(live, a_widget({"gmap": {}}))
    assert live["spec"]["gmap"] == {"b": "2"}


def test_metadata_is_owned_by_key_item_and_uid() -> None:
    owner = {"uid": "u1", "name": "o"}
    live = apply(None, a_widget(labels={"a": "b"}, finalizers=["x.io/f"], ownerReferences=[owner]))
    assert owned(live, "m1") == {
        "f:metadata": {
            "f:labels": {"f:a": {}},
            "f:finalizers": {'v:"x.io/f"': {}},
            "f:ownerReferences": {'k:{"uid":"u1"}': {}},
        }
    }


def test_list_keys_take_their_defaults() -> None:
    live = apply(None, a_widget({"ports": [{"port": 80}]}))
    assert owned(live, "m1") == {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}}}
    again = apply(live, a_widget({"ports": [{"port": 80, "protocol": "TCP", "name": "x"}]}))
    assert again["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "name": "x"}]


def test_html_characters_in_set_items_are_escaped_as_upstream_does() -> None:
    live = apply(None, a_widget({"names": ["<a>&"]}))
    assert owned(live, "m1") == {"f:spec": {"f:names": {'v:"\\u003ca\\u003e\\u0026"': {}}}}


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        ("abcd", "xdyb", "acxdyb"),
        ("abc", "cda", "bcda"),
        ("abc", "ac", "abc"),
        ("abc", "ca", "bca"),
        ("ab", "ba", "ba"),
        ("", "ab", "ab"),
        ("ab", "c", "abc"),
        ("abc", "xb", "axbc"),
    ],
)
def test_merged_lists_keep_the_live_order_and_the_configuration_s(live: str, config: str, merged: str) -> None:
    old = update(None, a_widget({"names": list(live)}), "u")
    assert "".join(apply(old, a_widget({"names": list(config)}), force=True)["spec"]["names"]) == merged
    keyed = update(None, a_widget({"items": [{"name": c, "value": 1} for c in live]}), "u")
    items = apply(keyed, a_widget({"items": [{"name": c} for c in config]}), force=True)["spec"]["items"]
    assert "".join(item["name"] for item in items) == merged
    assert all(("value" in item) is (item["name"] in live) for item in items)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (a_widget({"bogus": 1}), ".spec.bogus: field not declared in schema"),
        (a_widget({"size": "x"}), ".spec.size: expected numeric (int or float), got string"),
        (a_widget({"mode": 1}), ".spec.mode: expected string, got &value.valueUnstructured{Value:1}"),
        (a_widget({"on": "x"}), ".spec.on: expected boolean, got &{x}"),
        (a_widget({"gmap": "x"}), ".spec.gmap: expected map, got &{x}"),
        (a_widget({"names": "x"}), ".spec.names: expected list, got &{x}"),
        (a_widget({"names": ["a", "a"]}), '.spec.names: duplicate entries for key [="a"]'),
        (a_widget({"items": [{"name": "a"}, {"name": "a"}]}), '.spec.items: duplicate entries for key [name="a"]'),
        (
            a_widget({"items": [{"value": 1}]}),
            '.spec.items: element 0: associative list with keys has an element that omits all key fields ["name"] '
            "(and doesn't have default values for any key fields)",
        ),
        (a_widget({"atom": [1]}), ".spec.atom[0]: expected string, got &value.valueUnstructured{Value:1}"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused_as_upstream_does(config: Any, message: str) -> None:
    with pytest.raises(ApiError) as error:
        apply(None, config)
    assert error.value.message == f"failed to create typed patch object (/w; ex.io/v1, Kind=Widget): {message}"
    assert (error.value.status_code, error.value.status_reason) == (500, "")


def test_several_misfits_are_listed() -> None:
    with pytest.raises(ApiError) as error:
        apply(None, a_widget({"size": "x", "bogus": 1}))
    assert error.value.message.endswith(
        "errors:\n  .spec.size: expected numeric (int or float), got string\n  .spec.bogus: field not declared in schema"
    )


def test_managed_fields_in_a_configuration_are_refused() -> None:
    with pytest.raises(BadRequest, match=r"metadata\.managedFields must be nil"):
        apply(None, a_widget({"size": 1}, managedFields=[{}]))


def test_applying_the_same_again_returns_the_live_object_itself() -> None:
    config = a_widget({"size": 3, "items": [{"name": "a"}], "free": {"x": [1]}, "atom": ["a"]}, labels={"a": "b"})
    live = apply(None, config)
    assert apply(live, copy.deepcopy(config), at=60) is live


def test_a_manager_that_joins_without_changing_anything_has_no_time() -> None:
    live = apply(None, a_widget({"size": 3}))
    joined = apply(live, a_widget({"size": 3}), "m2", at=60)
    assert bare(joined) == bare(live)
    assert [(e["manager"], e.get("time")) for e in entries(joined)] == [("m2", None), ("m1", "2026-01-01T00:00:00Z")]


def test_the_time_moves_when_the_object_changes() -> None:
    live = apply(None, a_widget({"size": 3}))
    changed = apply(live, a_widget({"size": 4}), at=60)
    assert [e["time"] for e in entries(changed)] == ["2026-01-01T00:01:00Z"]


def test_unchanged_parts_are_shared_not_copied() -> None:
    live = apply(None, a_widget({"size": 1, "gmap": {"a": "1"}, "items": [{"name": "a"}, {"name": "b", "value": 1}]}))
    before = copy.deepcopy(live)
    changed = apply(
        live, a_widget({"size": 2, "gmap": {"a": "1"}, "items": [{"name": "a"}, {"name": "b", "value": 2}]})
    )
    assert changed["spec"]["gmap"] is live["spec"]["gmap"]
    assert changed["spec"]["items"][0] is live["spec"]["items"][0]
    assert live == before


def test_the_first_apply_gives_what_is_there_to_before_first_apply() -> None:
    live = a_widget({"size": 1, "gmap": {"a": "1"}}, {"phase": "P"}, uid="u")
    applied = apply(live, a_widget({"size": 1}))
    assert owned(applied, "before-first-apply", "Update") == {
        "f:spec": {".": {}, "f:size": {}, "f:gmap": {".": {}, "f:a": {}}}
    }
    assert owned(applied, "m1") == {"f:spec": {"f:size": {}}}
    with pytest.raises(Conflict, match=r'conflict with "before-first-apply" using ex\.io/v1: \.spec\.size'):
        apply(live, a_widget({"size": 2}))


def test_status_belongs_to_its_subresource() -> None:
    live = apply(None, a_widget({"size": 1}, {"phase": "P"}))
    assert owned(live, "m1") == {"f:spec": {"f:size": {}}}
    live = apply(
        live, a_widget({"size": 9}, {"conditions": [{"type": "A", "status": "True"}]}), "m1", subresource="status"
    )
    assert owned(live, "m1", subresource="status") == {
        "f:status": {"f:conditions": {'k:{"type":"A"}': {".": {}, "f:type": {}, "f:status": {}}}}
    }
    assert owned(live, "m1") == {"f:spec": {"f:size": {}}}


def test_containers_go_with_the_last_thing_owned_in_them() -> None:
    live = apply(None, a_widget({"deep": {"a": {"b": 1}}, "size": 1}))
    live = apply(live, a_widget({"size": 1}))
    assert live["spec"] == {"size": 1}


def test_a_dropped_list_item_stays_if_another_owns_a_field_of_it() -> None:
    live = apply(None, a_widget({"items": [{"name": "a", "value": 1}]}))
    live = apply(live, a_widget({"items": [{"name": "a", "tags": ["t"]}]}), "m2")
    live = apply(live, a_widget({"items": []}))
    assert live["spec"]["items"] == [{"name": "a", "tags": ["t"]}]


def test_metadata_survives_when_all_owned_metadata_is_dropped() -> None:
    live = apply(None, a_widget({"size": 1}, labels={"a": "b"}, namespace="n", uid="u"))
    live = apply(live, a_widget({"size": 1}))
    assert bare(live)["metadata"] == {"name": "w", "namespace": "n", "uid": "u"}


def test_entries_of_versions_no_longer_served_are_dropped() -> None:
    live = apply(None, a_widget({"size": 1}), "old", api_version="ex.io/v0")
    changed = apply(live, a_widget({"mode": "x"}), versions=["ex.io/v1"])
    assert [e["manager"] for e in entries(changed)] == ["m1"]


def test_a_field_that_became_atomic_is_owned_as_a_whole() -> None:
    live = apply(None, a_widget({"gmap": {"a": "1"}}))
    fields = [{**entries(live)[0], "fieldsV1": {"f:spec": {"f:amap": {"f:a": {}}}}}]
    live = a_widget({"amap": {"a": "1"}}, managedFields=fields)
    with pytest.raises(Conflict) as error:
        apply(live, a_widget({"amap": {"b": "1"}}), "m2")
    assert [cause.field for cause in error.value.causes] == [".spec.amap"]


def test_a_kind_without_schema_merges_maps_and_replaces_lists() -> None:
    schema = smd.Schema.of({})
    live = smd.apply(None, {"a": {"b": 1, "l": [1]}}, schema=schema, manager="m", api_version="v1", now=_now())
    live = smd.apply(live, {"a": {"c": 2, "l": [1]}}, schema=schema, manager="n", api_version="v1", now=_now())
    assert live["a"] == {"b": 1, "c": 2, "l": [1]}
    assert owned(live, "n") == {"f:a": {".": {}, "f:c": {}, "f:l": {}}}


def _now() -> Any:
    from tests.unit.kube.smd.rig import T0

    return T0


def test_references_in_a_schema_are_followed() -> None:
    openapi = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/components/schemas/A"},
            "b": {"allOf": [{"$ref": "#/components/schemas/A"}], "x-kubernetes-map-type": "atomic"},
        },
        "components": {
            "schemas": {
                "A": {
                    "type": "object",
                    "properties": {"a": {"$ref": "#/components/schemas/A"}, "x": {"type": "integer"}},
                }
            }
        },
    }
    schema = smd.Schema.of(openapi)
    live = smd.apply(
        None, {"a": {"a": {"x": 1}}, "b": {"x": 1}}, schema=schema, manager="m", api_version="v1", now=_now()
    )
    assert owned(live, "m") == {"f:a": {"f:a": {"f:x": {}}}, "f:b": {}}


def kubectl_applied(spec: Any, said: str) -> Any:
    return update(
        None,
        a_widget(spec, annotations={"kubectl.kubernetes.io/last-applied-configuration": said}),
        "kubectl-client-side-apply",
    )


LAST = '{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1}}'


def test_kubectl_takes_over_what_it_applied_client_side() -> None:
    live = kubectl_applied({"size": 1, "mode": "x"}, LAST)
    changed = apply(live, a_widget({"size": 2}), "kubectl")
    assert changed["spec"]["size"] == 2
    said = changed["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert said == '{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":2}}\n'


def test_kubectl_still_conflicts_over_other_fields() -> None:
    live = kubectl_applied({"size": 1, "mode": "x"}, LAST)
    with pytest.raises(Conflict) as error:
        apply(live, a_widget({"size": 2, "mode": "y"}), "kubectl")
    assert [cause.field for cause in error.value.causes] == [".spec.mode"]


@pytest.mark.parametrize("said", ["", "no json", '{"apiVersion":"ex.io/v0"}', "[]"])
def test_an_unusable_annotation_helps_nobody(said: str) -> None:
    with pytest.raises(Conflict):
        apply(kubectl_applied({"size": 1}, said), a_widget({"size": 2}), "kubectl")


def test_other_managers_get_no_such_help() -> None:
    with pytest.raises(Conflict):
        apply(kubectl_applied({"size": 1}, LAST), a_widget({"size": 2}), "m1")


def test_schemas_are_compiled_once_per_shared_part() -> None:
    assert (
        SCHEMA.root.fields["metadata"].fields["labels"].element
        is SCHEMA.root.fields["metadata"].fields["annotations"].element
    )

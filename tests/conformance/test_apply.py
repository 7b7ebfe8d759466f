"""S: server-side apply and managedFields."""

import pytest

from tests.conformance.site import manager_entry


def a_widget(site, name, spec, **meta):
    return {"apiVersion": f"{site.group}/v1", "kind": "Widget", "metadata": {"name": name, **meta}, "spec": spec}


@pytest.fixture
def put(api, site):
    """Apply `spec` to the Widget of that name."""

    def apply(name, spec, manager="m1", *, meta=None, **query):
        return api.apply(f"{site.widgets}/{name}", a_widget(site, name, spec, **(meta or {})), manager, **query)

    return apply


def test_s01_the_first_apply_owns_what_it_says(site, put):
    made = put("s01", {"size": 3}).ok(201)
    (entry,) = made.meta["managedFields"]
    shown = {key: entry[key] for key in ("manager", "operation", "apiVersion", "fieldsType", "fieldsV1")}
    assert shown == {
        "manager": "m1", "operation": "Apply", "apiVersion": f"{site.group}/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:size": {}}},
    }  # fmt: skip
    assert (made.meta["generation"], made.json["spec"]["mode"]) == (1, "a")
    assert put("s01", {"size": 3}).ok().version == made.version


def test_s03_requests_that_are_no_apply(api, site, put):
    put("s03", {"size": 3}).ok(201)
    body = a_widget(site, "s03", {"size": 3})
    nameless = api.ask("PATCH", f"{site.widgets}/s03", body, media="application/apply-patch+yaml").ok(422, "Invalid")
    assert "fieldManager: Required value" in nameless.message
    assert "metadata.managedFields must be nil" in put("s03", {"size": 3}, meta={"managedFields": [{}]}).ok(400).message
    assert api.apply(f"{site.widgets}/s03", {**body, "kind": "Other"}).status in (400, 409, 422)


def test_s04_s06_conflicts_and_force(put):
    put("s04", {"size": 3}).ok(201)
    conflict = put("s04", {"size": 4}, "m2").ok(409, "Conflict")
    assert conflict.message == 'Apply failed with 1 conflict: conflict with "m1": .spec.size'
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".spec.size"}
    assert conflict.json["details"]["causes"] == [cause]
    forced = put("s04", {"size": 4}, "m2", force="true").ok()
    assert (manager_entry(forced, "m2"), manager_entry(forced, "m1")) == ({"f:spec": {"f:size": {}}}, None)


def test_s05_shared_fields_go_with_their_last_owner(put):
    both = {"size": 3, "plain": "v"}
    put("s05", both).ok(201)
    put("s05", both, "m2").ok()
    assert put("s05", {"size": 3}).ok().json["spec"]["plain"] == "v"
    assert "plain" not in put("s05", {"size": 3}, "m2").ok().json["spec"]


def test_s07_a_default_comes_back(put):
    put("s07", {"size": 3, "mode": "b"}).ok(201)
    dropped = put("s07", {"size": 3}).ok()
    assert dropped.json["spec"]["mode"] == "a" and "f:mode" not in manager_entry(dropped, "m1")["f:spec"]


def test_s09_s10_atomic_and_granular(put):
    put("s09", {"size": 3, "atom": ["a"], "list": ["a"], "labels": {"a": "1"}}).ok(201)
    conflict = put("s09", {"size": 3, "atom": ["b"], "list": ["b"]}, "m2").ok(409)
    assert sorted(conflict.fields) == [".spec.atom", ".spec.list"]
    assert 'Apply failed with 2 conflicts: conflicts with "m1":\n- .spec.' in conflict.message
    assert put("s09", {"size": 3, "labels": {"b": "1"}}, "m2").ok().json["spec"]["labels"] == {"a": "1", "b": "1"}


def test_s11_lists_merge_by_key(put):
    put("s11", {"size": 3, "map": [{"k": "a", "v": "1"}]}).ok(201)
    merged = put("s11", {"size": 3, "map": [{"k": "b", "v": "2"}]}, "m2").ok()
    assert [item["k"] for item in merged.json["spec"]["map"]] == ["a", "b"]
    assert 'k:{"k":"b"}' in manager_entry(merged, "m2")["f:spec"]["f:map"]


def test_s12_s19_updates_own_and_keep_entries(api, site, put):
    fields = manager_entry(api.post(site.widgets, site.a_widget("s12"), User_Agent="x/1").ok(201), "x")["f:spec"]
    assert {".", "f:size", "f:mode"} <= set(fields)
    body = put("s19", {"size": 3}).ok(201).json
    del body["metadata"]["managedFields"]
    assert manager_entry(api.put(f"{site.widgets}/s19", body).ok(), "m1")


def test_s14_scale_is_a_subresource_of_its_own(api, site, put):
    put("s14", {"size": 3, "replicas": 1}).ok(201)
    api.merge(f"{site.widgets}/s14/scale", {"spec": {"replicas": 2}}, User_Agent="sc/1").ok()
    assert manager_entry(api.get(f"{site.widgets}/s14"), "sc", "scale")
    assert 'conflict with "sc" with subresource "scale"' in put("s14", {"size": 3, "replicas": 1}).ok(409).message


def test_s16_preconditions(api, site, put):
    made = put("s16", {"size": 3}).ok(201)
    api.merge(f"{site.widgets}/s16", {"metadata": {"labels": {"a": "b"}}}).ok()
    put("s16", {"size": 4}, meta={"resourceVersion": made.version}).ok(409, "Conflict")
    assert "uid mismatch" in put("s16n", {"size": 3}, meta={"uid": "zz"}).ok(409).message


def test_s17_applies_are_validated_and_may_be_yaml(api, site, put):
    put("s17", {"size": 99}).ok(422, "Invalid")
    put("s17", {"size": 3}, dryRun="All").ok(201)
    api.get(f"{site.widgets}/s17").ok(404)
    text = f"apiVersion: {site.group}/v1\nkind: Widget\nmetadata:\n  name: s17\nspec:\n  size: 3\n"
    api.apply(f"{site.widgets}/s17", text).ok(201)


def test_s18_managed_fields_can_be_reset(api, site, put):
    api.post(site.widgets, site.a_widget("s18"), User_Agent="x/1").ok(201)
    assert "managedFields" not in api.merge(f"{site.widgets}/s18", {"metadata": {"managedFields": [{}]}}).ok().meta
    assert manager_entry(put("s18", {"size": 2}).ok(), "before-first-apply")


def test_s20_metadata_is_owned_by_key(api, site):
    owner = {"apiVersion": "v1", "kind": "Node", "name": f"n-{site.suffix}", "uid": "u1"}
    meta = {"name": "s20", "labels": {"a": "b"}, "finalizers": ["x.io/f"], "ownerReferences": [owner]}
    made = api.apply(f"{site.maps}/s20", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}).ok(201)
    assert manager_entry(made, "m1")["f:metadata"] == {
        "f:labels": {"f:a": {}}, "f:finalizers": {'v:"x.io/f"': {}}, "f:ownerReferences": {'k:{"uid":"u1"}': {}},
    }  # fmt: skip
    api.merge(f"{site.maps}/s20", {"metadata": {"finalizers": None}})


def test_s21_builtin_lists_merge_by_their_keys(api, site):
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "s21"}}
    made = api.apply(
        f"{site.deployments}/s21", {**body, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    ).ok(201)
    owned = manager_entry(made, "m1")["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert (
        list(owned) == ['k:{"name":"c"}']
        and 'k:{"containerPort":80,"protocol":"TCP"}' in owned['k:{"name":"c"}']["f:ports"]
    )
    second = {"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "i"}]}}}}
    merged = api.apply(f"{site.deployments}/s21", {**body, **second}, "m2").ok()
    assert sorted(c["name"] for c in merged.json["spec"]["template"]["spec"]["containers"]) == ["c", "d"]

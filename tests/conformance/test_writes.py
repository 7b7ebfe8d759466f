"""C: create. F: field validation. U: update and subresources. P: patch."""

import re

import pytest

from tests.conformance.site import GENERATED


def test_c01_what_the_server_fills_in(site):
    made = site.map("c01")
    assert made.meta["uid"] and made.version and made.meta["namespace"] == site.namespace
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made.meta["creationTimestamp"])
    assert made.header("cache-control") == "no-cache, private"


def test_c02_the_same_name_again(api, site):
    site.map("c02")
    reply = api.post(site.maps, {"metadata": {"name": "c02"}}).ok(409, "AlreadyExists")
    assert reply.message == 'configmaps "c02" already exists'
    assert reply.json["details"] == {"name": "c02", "kind": "configmaps"}
    assert {key: reply.json[key] for key in ("kind", "apiVersion", "status", "code", "metadata")} == {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409, "metadata": {},
    }  # fmt: skip


def test_c04_what_a_client_cannot_set(site):
    past = "2001-01-01T00:00:00Z"
    meta = site.map("c04", uid="u", creationTimestamp=past, deletionTimestamp=past, selfLink="/x").meta
    assert (
        meta["uid"] != "u" and meta["creationTimestamp"] != past and not {"deletionTimestamp", "selfLink"} & set(meta)
    )


def test_c05_a_resource_version_in_a_new_object(api, site):
    reply = api.post(site.maps, {"metadata": {"name": "c05", "resourceVersion": "5"}}).ok(500)
    assert "resourceVersion should not be set on objects to be created" in reply.message


def test_c06_c07_generated_names(api, site):
    meta = api.post(site.maps, {"metadata": {"generateName": "gen-"}}).ok(201).meta
    assert GENERATED.fullmatch(meta["name"]) and meta["generateName"] == "gen-"
    assert len(api.post(site.maps, {"metadata": {"generateName": "g" * 70}}).ok(201).meta["name"]) == 63


def test_c08_no_name(api, site):
    reply = api.post(site.maps, {"metadata": {}}).ok(422, "Invalid")
    text = "Required value: name or generateName is required"
    assert reply.json["details"]["causes"] == [
        {"reason": "FieldValueRequired", "message": text, "field": "metadata.name"}
    ]
    assert reply.message == f'ConfigMap "" is invalid: metadata.name: {text}'


def test_c09_a_bad_name(api, site):
    reply = api.post(site.maps, {"metadata": {"name": "Bad_Name"}}).ok(422, "Invalid")
    assert 'Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of' in reply.message
    assert (reply.fields, reply.json["details"]["kind"]) == (["metadata.name"], "ConfigMap")


def test_c10_c11_namespaces_that_do_not_fit(api, site):
    reply = api.post(site.maps, {"metadata": {"name": "c10", "namespace": "default"}}).ok(400, "BadRequest")
    assert reply.message == "the namespace of the provided object does not match the namespace sent on the request"
    missing = api.post("/api/v1/namespaces/nosuch/configmaps", {"metadata": {"name": "x"}}).ok(404, "NotFound")
    assert missing.message == 'namespaces "nosuch" not found'


def test_c13_bodies_without_kind_and_of_another_kind(api, site):
    api.post(site.maps, {"metadata": {"name": "c13"}}).ok(201)
    api.post(site.maps, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c13b"}}).ok(400, "BadRequest")
    refused = api.post(site.widgets, {"metadata": {"name": "c13"}, "spec": {"size": 2}}).ok(400, "BadRequest")
    assert (
        "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in " in refused.message
    )


def test_c15_yaml_and_no_content_type(api, site):
    api.post(site.maps, 'metadata:\n  name: c15\ndata: {a: "1"}\n', media="application/yaml").ok(201)
    api.post(site.maps, {"metadata": {"name": "c15b"}}, media=None).ok(201)


def test_c16_c17_media_types_nobody_speaks(api, site):
    reply = api.post(site.maps, {}, media="text/plain").ok(415, "UnsupportedMediaType")
    text = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"
    assert text in reply.message
    assert "application/json" in api.get(site.maps, Accept="application/xml").ok(406).text


def test_c18_dry_run(api, site):
    meta = api.post(site.maps, {"metadata": {"name": "c18"}}, query={"dryRun": "All"}).ok(201).meta
    assert meta["uid"] and not meta.get("resourceVersion")
    api.get(f"{site.maps}/c18").ok(404)
    api.post(site.maps, {"metadata": {"name": "c18"}}, query={"dryRun": "x"}).ok(422, "Invalid")


def test_c19_sizes(api, site):
    reply = api.post(site.maps, {"metadata": {"name": "c19"}, "data": {"a": "x" * 1_048_577}}).ok(422, "Invalid")
    assert "may not be more than 1048576 bytes" in reply.message
    api.post(site.maps, {"metadata": {"name": "c19"}, "data": {"a": "x" * 3_200_000}}).ok(413, "RequestEntityTooLarge")


def test_c20_owner_references(api, site):
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": ""}
    assert api.post(site.maps, {"metadata": {"name": "c20", "ownerReferences": [owner]}}).ok(422).fields == [
        "metadata.ownerReferences.uid"
    ]
    two = [{**owner, "name": name, "uid": name, "controller": True} for name in ("u1", "u2")]
    reply = api.post(site.maps, {"metadata": {"name": "c20", "ownerReferences": two}}).ok(422)
    assert "Only one reference can have Controller set to true" in reply.message


def test_c22_unqualified_finalizers(api, site):
    reply = api.post(site.maps, {"metadata": {"name": "c22", "finalizers": ["plain"]}}).ok(422)
    assert "name is neither a standard finalizer name nor is it fully qualified" in reply.message
    assert "prefer a domain-qualified finalizer name" in " ".join(site.widget("c22", finalizers=["plain"]).warnings)
    api.merge(f"{site.widgets}/c22", {"metadata": {"finalizers": None}}).ok()


def test_f01_strict(api, site):
    body = '{"metadata":{"name":"f01"},"data":{"a":"1","a":"2"},"foo":1}'
    message = api.post(site.maps, body, query={"fieldValidation": "Strict"}).ok(400, "BadRequest").message
    assert all(
        text in message for text in ("strict decoding error:", 'duplicate field "data.a"', 'unknown field "foo"')
    )


def test_f02_warn_is_the_default(api, site):
    reply = api.post(site.maps, '{"metadata":{"name":"f02"},"data":{"a":"1","a":"2"},"foo":1}').ok(201)
    assert '299 - "unknown field \\"foo\\""' in reply.warnings and "duplicate field" in " ".join(reply.warnings)
    assert reply.json["data"] == {"a": "2"}


def test_f03_ignore(api, site):
    assert (
        api.post(site.maps, {"metadata": {"name": "f03"}, "foo": 1}, query={"fieldValidation": "Ignore"})
        .ok(201)
        .warnings
        == []
    )
    api.post(site.maps, {"metadata": {"name": "f03b"}}, query={"fieldValidation": "Bogus"}).ok(422, "Invalid")


def test_f04_unknown_fields_of_custom_resources(api, site):
    made = site.widget("f04", {"unk": 1})
    assert "unk" not in made.json["spec"] and 'unknown field \\"spec.unk\\"' in " ".join(made.warnings)
    refused = api.post(site.widgets, site.a_widget("f04b", {"unk": 1}), query={"fieldValidation": "Strict"}).ok(400)
    assert 'strict decoding error: unknown field "spec.unk"' in refused.message


def test_f05_strict_patches(api, site):
    site.map("f05")
    reply = api.merge(f"{site.maps}/f05", {"foo": 1}, query={"fieldValidation": "Strict"}).ok(422, "Invalid")
    assert 'strict decoding error: unknown field "foo"' in reply.message


def test_u01_u02_updates_and_stale_ones(api, site):
    made = site.map("u01")
    changed = api.put(f"{site.maps}/u01", {**made.json, "data": {"a": "2"}}).ok()
    assert int(changed.version) > int(made.version) and changed.meta["uid"] == made.meta["uid"]
    stale = api.put(f"{site.maps}/u01", made.json).ok(409, "Conflict")
    assert stale.message == (
        'Operation cannot be fulfilled on configmaps "u01": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert stale.json["details"] == {"name": "u01", "kind": "configmaps"}


def test_u03_u04_updates_without_a_resource_version(api, site):
    site.map("u03")
    api.put(f"{site.maps}/u03", {"metadata": {"name": "u03"}, "data": {"z": "1"}}).ok()
    site.widget("u04")
    reply = api.put(f"{site.widgets}/u04", site.a_widget("u04")).ok(422, "Invalid")
    assert (reply.fields, reply.json["details"]["kind"]) == (["metadata.resourceVersion"], "widgets")
    assert "must be specified for an update" in reply.message


def test_u09_immutable_metadata(api, site):
    made = site.widget("u09").json
    changed = {**made, "metadata": {**made["metadata"], "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 77}}
    meta = api.put(f"{site.widgets}/u09", changed).ok().meta
    assert (meta["generation"], meta["creationTimestamp"]) == (1, made["metadata"]["creationTimestamp"])
    dying = {**made, "metadata": {**meta, "deletionTimestamp": "2030-01-01T00:00:00Z"}}
    assert "metadata.deletionTimestamp" in api.put(f"{site.widgets}/u09", dying).ok(422).message


def test_u10_generation(api, site):
    path = f"{site.widgets}/u10"
    generations = [
        site.widget("u10"),
        api.merge(path, {"spec": {"size": 3}}),
        api.merge(path, {"metadata": {"labels": {"a": "b"}}}),
        api.merge(f"{path}/status", {"status": {"phase": "x"}}),
        api.merge(path, {"spec": {"size": 3}}),
    ]
    assert [reply.meta["generation"] for reply in generations] == [1, 2, 2, 2, 2]


def test_u11_generation_without_a_status_subresource(api, site):
    body = {
        "apiVersion": f"{site.group}/v1",
        "kind": "Plain",
        "metadata": {"name": "u11"},
        "spec": {"x": "1"},
        "status": {"y": "1"},
    }
    made = api.post(site.plains, body).ok(201)
    path = f"{site.plains}/u11"
    assert (made.meta["generation"], made.json["status"]) == (1, {"y": "1"})
    assert api.merge(path, {"status": {"y": "2"}}).meta["generation"] == 2
    api.get(f"{path}/status").ok(404)


def test_u12_u13_the_status_subresource(api, site):
    path = f"{site.widgets}/u12"
    made = api.post(site.widgets, {**site.a_widget("u12"), "status": {"phase": "x"}}).ok(201)
    assert "status" not in made.json
    patch = {"status": {"phase": "p"}, "spec": {"size": 9}, "metadata": {"labels": {"q": "q"}}}
    shown = api.merge(f"{path}/status", patch).ok().json
    assert (shown["status"]["phase"], shown["spec"]["size"], shown["metadata"].get("labels")) == ("p", 2, None)
    assert api.merge(path, {"status": {"phase": "z"}}).ok().json["status"]["phase"] == "p"
    api.post(f"{path}/status", made.json).ok(405)
    assert api.get(f"{path}/status").ok().json["kind"] == "Widget"


def test_u14_u15_the_scale_subresource(api, site):
    path = f"{site.widgets}/u14"
    made = site.widget("u14", {"replicas": 1})
    api.merge(f"{path}/status", {"status": {"replicas": 1, "selector": "a=b"}}).ok()
    scale = api.get(f"{path}/scale").ok().json
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 1, "selector": "a=b"})
    scaled = api.merge(f"{path}/scale", {"spec": {"replicas": 2}}).ok()
    whole = api.get(path).json
    assert (whole["spec"]["replicas"], whole["metadata"]["generation"]) == (2, 2)
    assert (scaled.meta["uid"], scaled.version) == (made.meta["uid"], whole["metadata"]["resourceVersion"])
    without = api.put(f"{path}/scale", {**scaled.json, "spec": {"replicas": 1}}, media=None).ok()
    assert without.json["spec"]["replicas"] == 1
    site.widget("u14b")
    assert (
        'the spec replicas field ".spec.replicas" does not exist'
        in api.get(f"{site.widgets}/u14b/scale").ok(500).message
    )


def test_p01_p03_merge_patches(api, site):
    site.map("p01", {"a": "1", "b": "2"})
    changed = api.merge(f"{site.maps}/p01", {"data": {"a": None, "c": "3"}}).ok()
    assert changed.json["data"] == {"b": "2", "c": "3"}
    assert api.merge(f"{site.maps}/p01", {"data": {"c": "3"}}).ok().version == changed.version


def test_p02_a_stale_merge_patch(api, site):
    made = site.map("p02")
    api.merge(f"{site.maps}/p02", {"data": {"b": "1"}}).ok()
    api.merge(f"{site.maps}/p02", {"metadata": {"resourceVersion": made.version}, "data": {"c": "1"}}).ok(
        409, "Conflict"
    )


def test_p04_json_patches(api, site):
    site.map("p04", {"a": "1", "b": "2"})
    path = f"{site.maps}/p04"
    good = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "remove", "path": "/data/b"},
        {"op": "add", "path": "/data/c", "value": "3"},
    ]
    assert api.json_patch(path, good).ok().json["data"] == {"a": "1", "c": "3"}
    for bad in ({"op": "test", "path": "/data/a", "value": "x"}, {"op": "remove", "path": "/data/nope"}):
        assert (
            "the server rejected our request due to an error in our request"
            in api.json_patch(path, [bad]).ok(422, "Invalid").message
        )


def test_p05_p06_patch_types(api, site):
    site.widget("p05")
    reply = api.ask("PATCH", f"{site.widgets}/p05", {"spec": {}}).ok(415, "UnsupportedMediaType")
    types = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    assert f"accepted media types include: {types}" in reply.message
    api.strategic(f"{site.widgets}/p05", {"spec": {"size": 3}}).ok(415, "UnsupportedMediaType")
    site.map("p05")
    api.ask("PATCH", f"{site.maps}/p05", {"data": {}}).ok(415, "UnsupportedMediaType")


def test_p08_strategic_merge_patches(api, site):
    site.map("p08", finalizers=["x.io/a"])
    path = f"{site.maps}/p08"
    merged = api.strategic(path, {"metadata": {"finalizers": ["x.io/b"]}}).ok()
    assert sorted(merged.meta["finalizers"]) == ["x.io/a", "x.io/b"]
    removed = api.strategic(path, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a", "x.io/b"]}}).ok()
    assert "finalizers" not in removed.meta


@pytest.mark.parametrize(
    ("patch", "statuses"),
    [({"metadata": {"uid": "zz"}}, (409, 422)), ({"metadata": {"name": "zz"}}, (400,))],
    ids=["uid", "name"],
)
def test_p09_identity_cannot_be_patched(api, site, patch, statuses):
    name = f"p09{len(statuses)}"
    made = site.map(name)
    assert api.merge(f"{site.maps}/{name}", patch).status in statuses
    assert api.get(f"{site.maps}/{name}").meta["uid"] == made.meta["uid"]


def test_p10_p11_patches_that_cannot_be(api, site):
    api.merge(f"{site.maps}/nope", {"data": {}}).ok(404, "NotFound")
    site.map("p10")
    api.merge(f"{site.maps}/p10", '{"a').ok(400, "BadRequest")
    assert "force" in api.merge(f"{site.maps}/p10", {"data": {"b": "1"}}, query={"force": "true"}).ok(422).message

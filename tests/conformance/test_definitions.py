"""R: CustomResourceDefinitions. V: validation, pruning and defaulting of custom resources."""

import pytest

from tests.conformance.site import CRDS, STRING, a_version, obj, until


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        pytest.param(obj(spec={}), "must not be empty for specified object fields", id="r03"),
        pytest.param(
            obj(spec={**obj(a=STRING), "x-kubernetes-validations": [{"rule": "self.nope == 1"}]}),
            "compilation failed: ERROR: <input>:1:5: undefined field",
            id="r04 rule",
        ),
        pytest.param(obj(spec=obj(a={"type": "integer", "default": "x"})), "must be of type integer", id="r04 default"),
    ],
)
def test_r03_r04_bad_schemas(api, site, schema, text):
    assert text in api.post(CRDS, site.crd("bads", "Bad", [a_version(schema=schema)])).ok(422, "Invalid").message


def test_r05_protected_groups(api, site):
    reply = api.post(CRDS, site.crd("bads", "Bad", group=f"{site.suffix}.k8s.io")).ok(422)
    assert "metadata.annotations[api-approved.kubernetes.io]" in reply.fields


def test_r06_what_cannot_change(api, site):
    path = f"{CRDS}/plains.{site.group}"
    assert "field is immutable" in api.merge(path, {"spec": {"scope": "Namespaced"}}).ok(422).message
    version = api.get(path).json["spec"]["versions"][0]
    assert (
        "status.storedVersions[0]"
        in api.merge(path, {"spec": {"versions": [{**version, "name": "v2"}]}}).ok(422).fields
    )


def an(group, kind, name, spec=None, version="v1"):
    return {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": {"name": name},
        **({"spec": spec} if spec else {}),
    }


def test_r08_r09_two_versions_and_a_new_storage_version(api, site):
    schema, group = obj(spec=obj(x=STRING)), site.versions_group
    first = site.define("gears", "Gear", [a_version("v1", schema), a_version("v2", schema, storage=False)], group=group)
    second, crd = first.replace("/v1/", "/v2/"), f"{CRDS}/gears.{group}"
    until(lambda: api.get(second).status == 200)
    until(lambda: api.post(first, an(group, "Gear", "g", {"x": "y"})).status in (201, 409))
    shown = api.get(f"{second}/g").ok().json
    assert (shown["apiVersion"], shown["spec"]) == (f"{group}/v2", {"x": "y"})
    api.json_patch(
        crd, [{"op": "replace", "path": f"/spec/versions/{n}/storage", "value": bool(n)} for n in (0, 1)]
    ).ok()
    until(lambda: api.get(crd).json["status"]["storedVersions"] == ["v1", "v2"])

    def rewritten() -> bool:
        before = api.get(f"{second}/g").ok()
        return api.put(f"{second}/g", before.json).ok().version != before.version

    until(rewritten)
    api.merge(f"{crd}/status", {"status": {"storedVersions": ["v2"]}}).ok()
    api.json_patch(crd, [{"op": "remove", "path": "/spec/versions/0"}]).ok()
    until(lambda: api.get(first).status == 404)


def test_r10_deprecated_versions_warn(api, site):
    group = site.versions_group
    path = site.define("olds", "Old", [a_version("v1", storage=False, deprecated=True), a_version("v2")], group=group)
    wanted = f"{group}/v1 Old is deprecated; use {group}/v2 Old"
    until(lambda: wanted in " ".join(api.get(path).warnings))


def test_r11_a_deleted_definition_takes_its_objects_along(api, site):
    path, crd = site.define("temps", "Temp"), f"{CRDS}/temps.{site.group}"
    until(lambda: api.post(path, an(site.group, "Temp", "t")).status in (201, 409))
    meta = api.delete(crd).ok().meta
    assert meta["deletionTimestamp"] and "customresourcecleanup.apiextensions.k8s.io" in meta["finalizers"]
    until(lambda: api.get(crd).status == 404)
    until(lambda: api.get(path).status == 404)


def refused(api, site, name, spec):
    return api.post(site.widgets, site.a_widget(name, spec)).ok(422, "Invalid")


def test_v01_v06_defaults_and_nulls(site):
    spec = site.widget("v01", {"nullable": None, "defaulted": None, "plain": None}).json["spec"]
    assert (spec["mode"], spec["defaulted"], spec["sub"], spec["nullable"]) == ("a", "dd", {"x": 7}, None)
    assert "plain" not in spec


def test_v02_who_is_named_in_an_error(api, site):
    reply = refused(api, site, "v02", {"size": 0})
    text = f'Widget.{site.group} "v02" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1'
    assert reply.message == text
    details = reply.json["details"]
    assert (details["name"], details["group"], details["kind"]) == ("v02", site.group, "Widget")
    assert (details["causes"][0]["reason"], details["causes"][0]["field"]) == ("FieldValueInvalid", "spec.size")


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"size": "x"}, 'spec.size in body must be of type integer: "string"'),
        ({"mode": "z"}, 'spec.mode: Unsupported value: "z": supported values: "a", "b"'),
        ({"name": "AB"}, "should match"),
        ({"name": "abcdefg"}, "spec.name: Too long: may not be more than 5 bytes"),
        ({"map": [{"k": str(n)} for n in range(4)]}, "spec.map: Too many: 4: must have at most 3 items"),
        ({"map": [{"k": "a"}, {"k": "a"}]}, 'Duplicate value: {"k":"a"}'),
        ({"port": True}, "spec.port"),
        ({"when": "yesterday"}, "spec.when"),
        ({"word": "forbid"}, "spec.word: Forbidden: no forbid"),
        ({"replicas": 5}, "failed rule: !has(self.replicas) || self.replicas <= self.size"),
    ],
)
def test_v03_v12_values_that_break_their_schema(api, site, spec, text):
    assert text in refused(api, site, "v03", spec).message


def test_v03_a_missing_spec(api, site):
    body = site.a_widget("v03")
    del body["spec"]
    assert "spec: Required value" in api.post(site.widgets, body).ok(422).message


def test_v07_int_or_string_and_preserved_fields(site):
    spec = site.widget("v07", {"port": "http", "free": {"any": [1, {"x": None}]}}).json["spec"]
    assert (spec["port"], spec["free"]["any"][0]) == ("http", 1)


def test_v09_transition_rules(api, site):
    site.widget("v09", {"fixed": "x"})
    reply = api.merge(f"{site.widgets}/v09", {"spec": {"fixed": "y"}}).ok(422)
    assert 'spec.fixed: Invalid value: "y": fixed is immutable' in reply.message


def test_v11_ratcheting(api, site):
    plural = "teeth"
    path = site.define(plural, "Tooth", [a_version(schema=obj(spec=obj(a=STRING, b=STRING)))])
    until(lambda: api.post(path, an(site.group, "Tooth", "t", {"a": "old", "b": "1"})).status in (201, 409))
    tight = obj(spec=obj(a={"type": "string", "enum": ["new"]}, b=STRING))
    api.json_patch(
        f"{CRDS}/{plural}.{site.group}",
        [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": tight}],
    ).ok()
    until(lambda: api.merge(f"{path}/t", {"spec": {"a": "worse"}}, query={"dryRun": "All"}).status == 422)
    api.merge(f"{path}/t", {"spec": {"b": "2"}}).ok()


def test_v13_status_is_validated_by_itself(api, site):
    site.widget("v13")
    api.merge(f"{site.widgets}/v13/status", {"status": {"replicas": "x"}}).ok(422)
    api.merge(f"{site.widgets}/v13/status", {"status": {"replicas": 1}, "spec": {"size": 99}}).ok()

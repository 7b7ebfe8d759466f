"""Server-side apply and managedFields through the registry; the algebra itself is tested with kube.smd."""

import re
from typing import Any

import pytest

from capi.kube.errors import ApiError, BadRequest, Conflict, Invalid, NotFound
from capi.kube.types import Object
from tests.unit.server.registry.conftest import run
from tests.unit.server.registry.rig import APPLY, MERGE, Rig, a_config_map, a_definition, a_widget

_SPEC: Object = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "maximum": 10},
        "mode": {"type": "string", "default": "a"},
        "replicas": {"type": "integer"},
    },
}
_CONDITIONS: Object = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
    },
}
_STATUS: Object = {"type": "object", "properties": {"phase": {"type": "string"}, "conditions": _CONDITIONS}}
SCHEMA: Object = {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}


@pytest.fixture
def widgets(rig: Rig) -> Rig:
    run(rig.create("customresourcedefinitions", a_definition(schema=SCHEMA), namespace=""))
    return rig


def managers(obj: Object) -> list[tuple[str, str, str]]:
    return [(e["manager"], e["operation"], e.get("subresource", "")) for e in obj["metadata"].get("managedFields", ())]


async def test_apply_creates_and_owns_what_it_says(widgets: Rig) -> None:
    made = await widgets.apply("widgets", "w", {"spec": {"size": 1}})
    assert made["metadata"]["generation"] == 1 and made["spec"] == {"size": 1, "mode": "a"}
    [entry] = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["fieldsV1"]) == ("a", "Apply", {"f:spec": {"f:size": {}}})


async def test_applying_the_same_again_writes_nothing(widgets: Rig) -> None:
    made = await widgets.apply("widgets", "w", {"metadata": {"labels": {"x": "y"}}, "spec": {"size": 1}})
    revision = widgets.registry.revision
    assert await widgets.apply("widgets", "w", {"metadata": {"labels": {"x": "y"}}, "spec": {"size": 1}}) == made
    assert widgets.registry.revision == revision


async def test_managers_conflict_unless_forced(widgets: Rig) -> None:
    await widgets.apply("widgets", "w", {"spec": {"size": 1}})
    with pytest.raises(Conflict, match=re.escape('Apply failed with 1 conflict: conflict with "a": .spec.size')):
        await widgets.apply("widgets", "w", {"spec": {"size": 2}}, manager="b")
    forced = await widgets.apply("widgets", "w", {"spec": {"size": 2}}, manager="b", force=True)
    assert forced["spec"]["size"] == 2 and managers(forced) == [("b", "Apply", "")]


async def test_what_is_dropped_is_removed_and_defaults_come_back(widgets: Rig) -> None:
    await widgets.apply("widgets", "w", {"spec": {"size": 1, "mode": "b"}})
    left = await widgets.apply("widgets", "w", {"spec": {"size": 1}})
    assert left["spec"] == {"size": 1, "mode": "a"}


async def test_status_conditions_of_two_managers_live_side_by_side(widgets: Rig) -> None:
    await widgets.create("widgets", a_widget())
    for manager, kind in (("a", "Ready"), ("b", "Healthy")):
        body = {"status": {"conditions": [{"type": kind, "status": "True"}]}, "spec": {"size": 9}}
        widget = await widgets.apply("widgets", "w", body, manager=manager, subresource="status")
    assert {c["type"] for c in widget["status"]["conditions"]} == {"Ready", "Healthy"}
    assert widget["spec"]["size"] == 1 and widget["metadata"]["generation"] == 1
    assert managers(widget)[:2] == [("a", "Apply", "status"), ("b", "Apply", "status")]
    gone = await widgets.apply("widgets", "w", {"status": {}}, manager="a", subresource="status")
    assert [c["type"] for c in gone["status"]["conditions"]] == ["Healthy"]


async def test_an_apply_is_validated_like_any_write(widgets: Rig) -> None:
    with pytest.raises(Invalid, match=r"spec\.size"):
        await widgets.apply("widgets", "w", {"spec": {"size": 99}})
    with pytest.raises(ApiError, match=re.escape(".spec.bogus: field not declared in schema")):
        await widgets.apply("widgets", "w", {"spec": {"bogus": 1}})
    assert widgets.names("widgets") == []


@pytest.mark.parametrize(
    "body, options, error, text",
    [
        pytest.param(
            {},
            {"field_manager": ""},
            Invalid,
            "fieldManager: Required value: is required for apply patch",
            id="S03 manager",
        ),
        pytest.param(
            {"metadata": {"managedFields": []}},
            {},
            BadRequest,
            "metadata.managedFields must be nil",
            id="S03 managedFields",
        ),
        pytest.param({"kind": "Gadget"}, {}, BadRequest, "kind", id="S03 kind"),
        pytest.param({"metadata": {"name": "other"}}, {}, BadRequest, "does not match the name on the URL", id="name"),
        pytest.param({"metadata": {"uid": "x"}}, {}, Conflict, "uid mismatch", id="S16 uid"),
        pytest.param({}, {"subresource": "status"}, NotFound, "not found", id="subresource of nothing"),
    ],
)
async def test_a_bad_apply_is_refused(
    widgets: Rig, body: Object, options: dict[str, Any], error: type[ApiError], text: str
) -> None:
    config = {"apiVersion": "ex.io/v1", "kind": "Widget", "spec": {"size": 1}, **body}
    with pytest.raises(error, match=re.escape(text)):
        await widgets.patch("widgets", "w", config, kind=APPLY, **options)


async def test_a_stale_revision_in_an_apply_is_a_conflict(widgets: Rig) -> None:
    made = await widgets.apply("widgets", "w", {"spec": {"size": 1}})
    await widgets.patch("widgets", "w", {"spec": {"replicas": 1}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await widgets.apply(
            "widgets", "w", {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "spec": {"size": 2}}
        )


async def test_yaml_is_taken_too(widgets: Rig) -> None:
    made = await widgets.patch("widgets", "w", b"apiVersion: ex.io/v1\nkind: Widget\nspec: {size: 3}\n", kind=APPLY)
    assert made["spec"]["size"] == 3
    with pytest.raises(BadRequest, match="error decoding YAML"):
        await widgets.patch("widgets", "w", b"a: b: c", kind=APPLY)


async def test_other_writes_are_recorded_and_take_fields_over(widgets: Rig) -> None:
    await widgets.apply("widgets", "w", {"spec": {"size": 1}})
    changed = await widgets.patch("widgets", "w", {"spec": {"size": 2}}, field_manager="m")
    assert managers(changed) == [("m", "Update", "")]
    scaled = await widgets.patch("widgets", "w", {"spec": {"replicas": 3}})
    assert scaled["spec"]["replicas"] == 3
    await widgets.patch("widgets", "w", {"spec": {"replicas": 4}}, subresource="scale", field_manager="scaler")
    assert ("scaler", "Update", "scale") in managers(widgets.get("widgets", "w"))


async def test_managed_fields_are_kept_and_can_be_reset(rig: Rig) -> None:
    made = await rig.create("configmaps", a_config_map())
    kept = await rig.update("configmaps", {**a_config_map(), "data": {"k": "2"}})
    assert managers(kept) == [("test", "Update", "")]
    cleared = await rig.patch("configmaps", "a", {"metadata": {"managedFields": [{}]}}, kind=MERGE)
    assert "managedFields" not in cleared["metadata"] and made["metadata"]["managedFields"]
    applied = await rig.apply("configmaps", "a", {"data": {"x": "1"}})
    assert managers(applied) == [("a", "Apply", ""), ("before-first-apply", "Update", "")]


async def test_objects_move_to_a_new_storage_version_with_any_write(rig: Rig) -> None:
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    made = await rig.create("widgets", a_widget())
    v1 = a_definition()["spec"]["versions"][0]
    versions = {"spec": {"versions": [{**v1, "storage": False}, {**v1, "name": "v2"}]}}
    changed = await rig.patch("customresourcedefinitions", "widgets.ex.io", versions)
    assert changed["status"]["storedVersions"] == ["v1", "v2"]
    seen, _ = rig.watch("widgets")
    assert rig.info("widgets").type.version == "v2" and rig.get("widgets", "w")["apiVersion"] == "ex.io/v2"
    assert seen.events[0]["object"]["apiVersion"] == "ex.io/v2"
    moved = await rig.patch("widgets", "w", {})
    assert int(moved["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert await rig.patch("widgets", "w", {}) == moved, "once"
    v1_info = rig.registry.lookup("ex.io", "v1", "widgets")
    assert v1_info is not None
    old, encoded = rig.registry.get(v1_info, "ns", "w")
    assert old == {**moved, "apiVersion": "ex.io/v1"} and encoded.startswith(
        b'{"apiVersion":"ex.io/v1","kind":"Widget",'
    )

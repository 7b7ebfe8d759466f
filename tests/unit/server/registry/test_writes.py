"""Create, update and patch. Case numbers of a real kube-apiserver's behaviour are in the ids."""

import re
from typing import Any

import pytest

from capi.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    UnsupportedMediaType,
)
from capi.server.registry.interface import WriteOptions
from tests.unit.server.registry.rig import JSON_PATCH, Rig, a_config_map, a_definition, a_widget

OPTIONS = WriteOptions(field_manager="test")


async def test_a_created_object_gets_what_only_the_system_sets(rig: Rig) -> None:
    sent = a_config_map(
        uid="u", creationTimestamp="2001-01-01T00:00:00Z", deletionTimestamp="2001-01-01T00:00:00Z", selfLink="/x"
    )
    made = (await rig.create("configmaps", sent))["metadata"]
    assert made["uid"] != "u" and made["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert not {"deletionTimestamp", "selfLink", "generation"} & made.keys()
    assert made["namespace"] == "ns" and made["resourceVersion"] == str(rig.registry.revision)


@pytest.mark.parametrize(
    "sent, error, text",
    [
        pytest.param(a_config_map(resourceVersion="5"), ApiError, "resourceVersion should not be set on objects to be created", id="C05"),
        pytest.param({"metadata": {}}, Invalid, 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required', id="C08"),
        pytest.param(a_config_map("Bad_Name"), Invalid, 'Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain', id="C09"),
        pytest.param(a_config_map(namespace="default"), BadRequest, "the namespace of the provided object does not match", id="C10"),
        pytest.param({**a_config_map(), "kind": "Secret"}, BadRequest, "Secret", id="C13"),
        pytest.param({**a_config_map(), "apiVersion": "v2"}, BadRequest, "v2", id="wrong version"),
        pytest.param(a_config_map(labels={"a": 1}), BadRequest, "metadata.labels", id="labels of the wrong type"),
        pytest.param(a_config_map(labels={"a": "-"}), Invalid, "metadata.labels", id="K16 labels"),
        pytest.param(a_config_map(annotations={"a": "x" * 300_000}), Invalid, "metadata.annotations: Too long", id="K16 annotations"),
        pytest.param(a_config_map(finalizers=["plain"]), Invalid, "neither a standard finalizer name nor is it fully qualified", id="C22"),
        pytest.param(
            a_config_map(ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": ""}]),
            Invalid, "metadata.ownerReferences.uid", id="C20",
        ),
    ],
)  # fmt: skip
async def test_a_bad_new_object_is_refused(rig: Rig, sent: Any, error: type[ApiError], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        await rig.create("configmaps", sent)
    assert rig.names("configmaps") == []


async def test_an_existing_name_is_refused(rig: Rig) -> None:
    await rig.create("configmaps", a_config_map())
    with pytest.raises(AlreadyExists, match='configmaps "a" already exists') as raised:
        await rig.create("configmaps", a_config_map())
    assert raised.value.status["details"] == {"name": "a", "kind": "configmaps"}


async def test_generate_name_makes_a_name(rig: Rig) -> None:
    made = (await rig.create("configmaps", {"metadata": {"generateName": "gen-"}}))["metadata"]
    assert re.fullmatch("gen-[bcdfghjklmnpqrstvwxz2456789]{5}", made["name"]) and made["generateName"] == "gen-"
    assert len((await rig.create("configmaps", {"metadata": {"generateName": "g" * 70}}))["metadata"]["name"]) == 63


async def test_a_missing_or_terminating_namespace_takes_nothing_new(rig: Rig) -> None:
    with pytest.raises(NotFound, match='namespaces "nosuch" not found'):
        await rig.create("configmaps", a_config_map(), namespace="nosuch")
    await rig.create("configmaps", a_config_map(finalizers=["x.io/y"]))
    await rig.delete("namespaces", "ns", "")
    with pytest.raises(Forbidden, match="because it is being terminated"):
        await rig.create("configmaps", a_config_map("b"))


async def test_dry_run_stores_nothing(rig: Rig) -> None:
    made = await rig.create("configmaps", a_config_map(), dry_run=True)
    assert made["metadata"]["uid"] and "resourceVersion" not in made["metadata"]
    await rig.create("configmaps", a_config_map())
    before = rig.registry.revision
    assert (await rig.patch("configmaps", "a", {"data": {"k": "2"}}, dry_run=True))["data"] == {"k": "2"}
    await rig.delete("configmaps", "a", dry_run=True)
    assert rig.registry.revision == before and rig.get("configmaps", "a")["data"] == {"k": "1"}


async def test_a_write_without_effect_keeps_the_revision_and_tells_nobody(rig: Rig) -> None:
    made = await rig.create("configmaps", a_config_map())
    seen, _ = rig.watch("configmaps", resource_version=made["metadata"]["resourceVersion"])
    assert await rig.patch("configmaps", "a", {"data": {"k": "1"}}) == made
    assert await rig.update("configmaps", made) == made
    assert seen.events == []


async def test_a_stale_revision_is_a_conflict(rig: Rig) -> None:
    made = await rig.create("configmaps", a_config_map())
    await rig.patch("configmaps", "a", {"data": {"b": "1"}})
    with pytest.raises(
        Conflict, match='Operation cannot be fulfilled on configmaps "a": the object has been modified'
    ) as raised:
        await rig.update("configmaps", made)
    assert raised.value.status["details"] == {"name": "a", "kind": "configmaps"}
    with pytest.raises(Conflict):
        await rig.patch(
            "configmaps",
            "a",
            {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"c": "1"}},
        )


async def test_update_without_a_revision_is_unconditional_for_core_kinds_only(rig: Rig) -> None:
    await rig.create("configmaps", a_config_map())
    assert (await rig.update("configmaps", {"metadata": {"name": "a"}, "data": {"z": "1"}}))["data"] == {"z": "1"}
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    await rig.create("widgets", a_widget())
    with pytest.raises(
        Invalid, match=r"metadata\.resourceVersion: Invalid value: 0: must be specified for an update"
    ) as raised:
        await rig.update("widgets", a_widget())
    assert raised.value.status["details"]["kind"] == "widgets"


async def test_update_cannot_change_identity(rig: Rig) -> None:
    made = await rig.create("configmaps", a_config_map())
    meta = made["metadata"]
    again = await rig.update(
        "configmaps", {**made, "metadata": {**meta, "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}}
    )
    assert again == made
    with pytest.raises(Invalid, match="field is immutable"):
        await rig.update("configmaps", {**made, "metadata": {**meta, "deletionTimestamp": "2030-01-01T00:00:00Z"}})
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: x"):
        await rig.update("configmaps", {**made, "metadata": {**meta, "uid": "x"}})
    with pytest.raises(BadRequest, match="does not match the name on the URL"):
        await rig.patch("configmaps", "a", {"metadata": {"name": "b"}})


async def test_put_creates_leases_but_not_config_maps(rig: Rig) -> None:
    lease = {"metadata": {"name": "l", "namespace": "ns"}, "spec": {"holderIdentity": "me"}}
    assert (await rig.update("leases", lease))["metadata"]["uid"]
    with pytest.raises(NotFound):
        await rig.update("configmaps", a_config_map("nosuch"))


async def test_generation_counts_spec_changes_of_custom_resources(rig: Rig) -> None:
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    assert (await rig.create("widgets", a_widget()))["metadata"]["generation"] == 1
    for body, subresource, generation in (
        ({"spec": {"size": 3}}, "", 2),
        ({"metadata": {"labels": {"a": "b"}}}, "", 2),
        ({"status": {"phase": "x"}}, "status", 2),
        ({"spec": {"size": 3}}, "", 2),
        ({"spec": {"size": 4}, "status": {"phase": "ignored"}}, "", 3),
    ):
        widget = await rig.patch("widgets", "w", body, subresource=subresource)
        assert widget["metadata"]["generation"] == generation, body
    assert widget["status"] == {"phase": "x"}


async def test_status_changes_status_only(rig: Rig) -> None:
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    made = await rig.create("widgets", {**a_widget(), "status": {"phase": "sent"}})
    assert "status" not in made
    body = {"spec": {"size": 9}, "metadata": {"labels": {"a": "b"}}, "status": {"phase": "y"}}
    changed = await rig.patch("widgets", "w", body, subresource="status")
    assert (changed["spec"], changed["status"]) == ({"size": 1}, {"phase": "y"})
    assert "labels" not in changed["metadata"]
    with pytest.raises(MethodNotAllowed):
        await rig.registry.create(rig.info("widgets"), "ns", made, OPTIONS, name="w", subresource="status")


async def test_scale_changes_replicas_only(rig: Rig) -> None:
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    await rig.create("widgets", a_widget())
    with pytest.raises(ApiError, match=re.escape('the spec replicas field ".spec.replicas" does not exist')):
        rig.get("widgets", "w", subresource="scale")
    await rig.patch("widgets", "w", {"spec": {"replicas": 2}})
    shown = rig.get("widgets", "w", subresource="scale")
    assert (shown["kind"], shown["spec"], shown["status"]) == ("Scale", {"replicas": 2}, {"replicas": 0})
    changed = await rig.patch("widgets", "w", {"spec": {"replicas": 5}}, subresource="scale")
    assert changed["spec"] == {"replicas": 5} and changed["metadata"]["uid"]
    assert (await rig.update("widgets", {**changed, "spec": {"replicas": 6}}, subresource="scale"))["spec"] == {
        "replicas": 6
    }
    assert rig.get("widgets", "w")["spec"] == {"size": 1, "replicas": 6}
    with pytest.raises(Conflict):
        await rig.update("widgets", changed, subresource="scale")
    with pytest.raises(Invalid, match="should be a non-negative integer"):
        await rig.patch("widgets", "w", {"spec": {"replicas": -1}}, subresource="scale")


async def test_merge_patch_deletes_replaces_and_merges(rig: Rig) -> None:
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    await rig.create("widgets", a_widget(a={"x": 1, "y": 2}, b=[1, 2]))
    changed = await rig.patch("widgets", "w", {"spec": {"a": {"x": None, "z": 3}, "b": [3]}})
    assert changed["spec"] == {"size": 1, "a": {"y": 2, "z": 3}, "b": [3]}


async def test_json_patch_of_a_missing_path_is_refused(rig: Rig) -> None:
    await rig.create("configmaps", a_config_map())
    ops = [{"op": "add", "path": "/data/b", "value": "2"}, {"op": "test", "path": "/data/b", "value": "2"}]
    assert (await rig.patch("configmaps", "a", ops, kind=JSON_PATCH))["data"] == {"k": "1", "b": "2"}
    with pytest.raises(Invalid, match="the server rejected our request due to an error in our request"):
        await rig.patch("configmaps", "a", [{"op": "remove", "path": "/data/nosuch"}], kind=JSON_PATCH)


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"'])
async def test_a_patch_that_is_no_object_is_refused(rig: Rig, body: bytes) -> None:
    await rig.create("configmaps", a_config_map())
    with pytest.raises(BadRequest, match="error decoding patch"):
        await rig.patch("configmaps", "a", body)


async def test_patches_of_missing_objects_and_unsupported_patches_are_refused(rig: Rig) -> None:
    with pytest.raises(NotFound):
        await rig.patch("configmaps", "nosuch", {})
    await rig.create("customresourcedefinitions", a_definition(), namespace="")
    await rig.create("widgets", a_widget())
    with pytest.raises(
        UnsupportedMediaType,
        match=re.escape("application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"),
    ):
        await rig.patch("widgets", "w", {}, kind="application/strategic-merge-patch+json")


async def test_a_pod_can_be_bound_once(rig: Rig) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await rig.create("pods", pod)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    written = await rig.registry.create(rig.info("pods"), "ns", binding, OPTIONS, name="p", subresource="binding")
    assert written.created and written.object["status"] == "Success"
    bound = rig.get("pods", "p")
    assert bound["spec"]["nodeName"] == "n1" and bound["status"]["conditions"][0]["type"] == "PodScheduled"
    with pytest.raises(Conflict, match='pod p is already assigned to node "n1"'):
        await rig.registry.create(rig.info("pods"), "ns", binding, OPTIONS, name="p", subresource="binding")
    written = await rig.registry.create(
        rig.info("pods"),
        "ns",
        {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 0}},
        OPTIONS,
        name="p",
        subresource="eviction",
    )
    assert written.created and rig.gone("pods", "p")


async def test_webhook_configurations_are_refused_while_nobody_would_call_the_webhook(rig: Rig) -> None:
    with pytest.raises(Forbidden, match="does not call admission webhooks"):
        await rig.create("validatingwebhookconfigurations", {"metadata": {"name": "x"}, "webhooks": []}, namespace="")

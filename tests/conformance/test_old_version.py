"""v1beta1 for older clients, the same on the embedded server and, by webhook, on a real one."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.conformance.site import TABLE, Api

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

OLD = "/apis/cluster.x-k8s.io/v1beta1/namespaces/default/machinepools"
NEW = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinepools"
DATA = "cluster.x-k8s.io/conversion-data"
INFRA = "infrastructure.cluster.x-k8s.io"


def old_pool(**spec: Any) -> dict[str, Any]:
    ref = {"apiVersion": f"{INFRA}/v1beta2", "kind": "DevMachinePool", "name": "p"}
    machine = {
        "clusterName": "c", "version": "v1.33.1", "bootstrap": {"dataSecretName": ""}, "infrastructureRef": ref, "nodeDrainTimeout": "1m30s",
    }  # fmt: skip
    body = {"clusterName": "c", "replicas": 2, "minReadySeconds": 7, "template": {"spec": machine}, **spec}
    return {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachinePool", "metadata": {"name": "p"}, "spec": body}


@pytest.fixture
def api(capi_server: Api) -> Iterator[Api]:
    """With a pool that an old client made."""
    capi_server.post(OLD, old_pool(), query={"fieldManager": "old"}).ok(201)
    yield capi_server
    capi_server.merge(f"{NEW}/p", {"metadata": {"finalizers": None}})
    capi_server.delete(f"{NEW}/p")


def test_an_old_object_is_a_new_one(api: Api) -> None:
    found = api.get(f"{NEW}/p").ok().json
    machine = found["spec"]["template"]["spec"]
    assert machine["deletion"] == {"nodeDrainTimeoutSeconds": 90, "nodeDeletionTimeoutSeconds": 10}
    assert machine["minReadySeconds"] == 7
    assert machine["infrastructureRef"] == {"apiGroup": INFRA, "kind": "DevMachinePool", "name": "p"}
    assert DATA not in found["metadata"].get("annotations", {})
    assert found["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "c"


def test_a_new_object_is_an_old_one_and_says_that_it_is_deprecated(api: Api) -> None:
    answer = api.get(f"{OLD}/p").ok()
    machine = answer.json["spec"]["template"]["spec"]
    assert (machine["nodeDrainTimeout"], machine["nodeDeletionTimeout"]) == ("1m30s", "10s")
    assert machine["infrastructureRef"]["apiVersion"] == f"{INFRA}/v1beta2"
    assert answer.json["spec"]["minReadySeconds"] == 7
    assert answer.json["status"]["bootstrapReady"] is False
    assert DATA in answer.json["metadata"]["annotations"]
    [warning] = answer.warnings
    assert "cluster.x-k8s.io/v1beta1 MachinePool is deprecated; use cluster.x-k8s.io/v1beta2 MachinePool" in warning


def test_lists_and_tables_of_old_objects(api: Api) -> None:
    found = api.get(OLD).ok().json
    assert (found["apiVersion"], found["kind"]) == ("cluster.x-k8s.io/v1beta1", "MachinePoolList")
    assert [item["apiVersion"] for item in found["items"]] == ["cluster.x-k8s.io/v1beta1"]
    table = api.get(OLD, Accept=TABLE).ok().json
    assert [c["name"] for c in table["columnDefinitions"]] == [
        "Name", "Cluster", "Desired", "Replicas", "Phase", "Age", "Version"
    ]  # fmt: skip


def test_an_old_client_keeps_what_it_does_not_know(api: Api) -> None:
    gate = [{"conditionType": "x", "polarity": "Negative"}]
    api.merge(
        f"{NEW}/p",
        {"spec": {"template": {"spec": {"readinessGates": gate, "deletion": {"nodeVolumeDetachTimeoutSeconds": 0}}}}},
    ).ok()
    shown = api.get(f"{OLD}/p").ok().json
    shown["spec"]["replicas"] = 5
    api.put(f"{OLD}/p", shown).ok()
    found = api.get(f"{NEW}/p").ok().json["spec"]
    assert found["replicas"] == 5
    assert found["template"]["spec"]["readinessGates"] == gate
    assert found["template"]["spec"]["deletion"]["nodeVolumeDetachTimeoutSeconds"] == 0


def test_a_write_without_effect_changes_nothing(api: Api) -> None:
    before = api.get(f"{NEW}/p").ok()
    shown = api.get(f"{OLD}/p").ok()
    assert api.put(f"{OLD}/p", shown.json).ok().version == shown.version
    assert api.merge(f"{OLD}/p", {"spec": {"replicas": 2}}).ok().version == shown.version
    assert api.get(f"{NEW}/p").ok().json == before.json


def test_status_and_scale_of_an_old_object(api: Api) -> None:
    api.merge(f"{OLD}/p/status", {"status": {"replicas": 4, "readyReplicas": 3, "infrastructureReady": True}}).ok()
    found = api.get(f"{NEW}/p").ok().json["status"]
    assert found["replicas"] == 4
    assert found["initialization"] == {"infrastructureProvisioned": True}
    assert found["deprecated"]["v1beta1"]["readyReplicas"] == 3
    assert api.get(f"{OLD}/p/scale").ok().json["status"]["replicas"] == 4
    api.merge(f"{OLD}/p/scale", {"spec": {"replicas": 6}}).ok()
    assert api.get(f"{NEW}/p").ok().json["spec"]["replicas"] == 6


def test_a_watch_of_old_objects(api: Api) -> None:
    start = api.get(OLD).ok().version
    api.merge(f"{NEW}/p", {"spec": {"replicas": 3}}).ok()
    _, events = api.watch(OLD, seconds=2, most=1, resourceVersion=start)
    [event] = events
    assert (event["type"], event["object"]["apiVersion"]) == ("MODIFIED", "cluster.x-k8s.io/v1beta1")
    assert event["object"]["spec"]["minReadySeconds"] == 7


def test_a_watch_of_selected_old_objects_sees_them_come_and_go(api: Api) -> None:
    """Written in v1beta2; an object that is selected no longer is gone, in the state it had."""
    start = api.get(OLD).ok().version
    api.merge(f"{NEW}/p", {"metadata": {"labels": {"team": "a"}}, "spec": {"replicas": 3}}).ok()
    api.merge(f"{NEW}/p", {"spec": {"replicas": 4}}).ok()
    api.merge(f"{NEW}/p", {"metadata": {"labels": {"team": "b"}}, "spec": {"replicas": 5}}).ok()
    api.merge(f"{NEW}/p", {"metadata": {"labels": {"team": "a"}}}).ok()
    api.delete(f"{NEW}/p").ok()
    _, events = api.watch(OLD, seconds=2, most=5, resourceVersion=start, labelSelector="team=a")
    seen = [(e["type"], e["object"]["apiVersion"].rpartition("/")[2], e["object"]["spec"]["replicas"]) for e in events]
    assert seen == [
        ("ADDED", "v1beta1", 3), ("MODIFIED", "v1beta1", 4), ("DELETED", "v1beta1", 4), ("ADDED", "v1beta1", 5), ("DELETED", "v1beta1", 5)
    ]  # fmt: skip
    assert all(e["object"]["spec"]["minReadySeconds"] == 7 for e in events)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"clusterName": "d"}, "spec.clusterName"),
        ({"template": {"spec": {"version": "latest"}}}, "spec.template.spec.version"),
        ({"template": {"spec": {"nodeDrainTimeout": "soon"}}}, "spec.template.spec.nodeDrainTimeout"),
        ({"replicas": -1}, "spec.replicas"),
    ],
)
def test_an_old_client_is_told_what_is_wrong(api: Api, change: dict[str, Any], field: str) -> None:
    assert field in api.merge(f"{OLD}/p", {"spec": change}).ok(422, "Invalid").fields


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"nodeDrainTimeout": "soon"}, "spec.template.spec.nodeDrainTimeout"),
        ({"nodeDrainTimeout": 5}, "spec.template.spec.nodeDrainTimeout"),
        ({"bootstrap": 5}, "spec.template.spec.bootstrap"),
        ({"bootstrap": []}, "spec.template.spec.bootstrap"),
        ({"infrastructureRef": "p"}, "spec.template.spec.infrastructureRef"),
        ({"version": 1}, "spec.template.spec.version"),
    ],
)
def test_what_cannot_be_converted_is_refused_by_its_own_schema(api: Api, change: dict[str, Any], field: str) -> None:
    body = old_pool()
    body["metadata"]["name"] = "q"
    body["spec"]["template"]["spec"].update(change)
    assert field in api.post(OLD, body).ok(422, "Invalid").fields
    assert field in api.merge(f"{OLD}/p", {"spec": {"template": {"spec": change}}}).ok(422, "Invalid").fields


def test_a_typed_go_client_may_write_what_it_read(api: Api) -> None:
    """It has no way to leave out the metadata of a template."""
    shown = api.get(f"{OLD}/p").ok().json
    shown["spec"]["template"]["metadata"] = {}
    shown["spec"]["template"]["spec"]["readinessGates"] = []
    shown["spec"]["replicas"] = 6
    api.put(f"{OLD}/p", shown).ok()
    found = api.get(f"{NEW}/p").ok().json["spec"]
    assert found["replicas"] == 6
    assert "metadata" not in found["template"] and "readinessGates" not in found["template"]["spec"]


@pytest.mark.parametrize(
    "ref", [{}, {"kind": "DevMachinePool", "name": "p"}, {"apiVersion": "v1", "kind": "X", "name": "p"}]
)
def test_an_incomplete_reference_is_refused(api: Api, ref: dict[str, str]) -> None:
    """Stored, no controller could read the object any more, nor end its deletion."""
    shown = api.get(f"{OLD}/p").ok().json
    shown["spec"]["template"]["spec"]["infrastructureRef"] = ref
    assert "spec.template.spec.infrastructureRef" in api.put(f"{OLD}/p", shown).ok(422, "Invalid").fields


@pytest.mark.parametrize(
    "data", ["nonsense", "[]", '{"spec": 5}', '{"spec": {"template": {"spec": {"minReadySeconds": "x"}}}}']
)
def test_an_annotation_that_was_tampered_with_does_no_harm(api: Api, data: str) -> None:
    before = api.get(f"{NEW}/p").ok().json["spec"]
    shown = api.get(f"{OLD}/p").ok().json
    shown["metadata"]["annotations"][DATA] = data
    shown["spec"]["replicas"] = 4
    api.put(f"{OLD}/p", shown).ok()
    assert api.get(f"{NEW}/p").ok().json["spec"] == {**before, "replicas": 4}


def test_a_large_pool_can_be_changed_by_an_old_client(api: Api) -> None:
    """The annotation would be larger than all annotations may be."""
    nodes = [{"apiVersion": "v1", "kind": "Node", "name": f"node-{i}", "uid": f"{i:036}"} for i in range(4000)]
    api.merge(f"{NEW}/p/status", {"status": {"nodeRefs": nodes}}).ok()
    api.merge(f"{OLD}/p", {"spec": {"replicas": 6}}).ok()
    api.merge(f"{OLD}/p/scale", {"spec": {"replicas": 8}}).ok()
    shown = api.get(f"{OLD}/p").ok().json
    shown["spec"]["replicas"] = 9
    api.put(f"{OLD}/p", shown).ok()
    found = api.get(f"{NEW}/p").ok().json
    assert (found["spec"]["replicas"], found["status"]["nodeRefs"]) == (9, nodes)


def test_both_versions_may_own_fields(api: Api) -> None:
    """An apply in one version sees what a manager owns in the other, under its other name."""
    mine = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "metadata": {"name": "p"}}
    spec = {"spec": {"template": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 60}}}}}
    conflict = api.apply(f"{NEW}/p", {**mine, **spec}, manager="new").ok(409)
    assert "nodeDrainTimeout" in conflict.text
    api.apply(f"{NEW}/p", {**mine, **spec}, manager="new", force="true").ok()
    assert api.get(f"{OLD}/p").ok().json["spec"]["template"]["spec"]["nodeDrainTimeout"] == "1m0s"
    owners = {entry["manager"]: str(entry["fieldsV1"]) for entry in api.get(f"{NEW}/p").ok().meta["managedFields"]}
    assert "f:nodeDrainTimeout" not in owners["old"]
    assert "f:nodeDrainTimeoutSeconds" in owners["new"]
    api.merge(
        f"{OLD}/p", {"spec": {"template": {"spec": {"nodeDrainTimeout": "2m"}}}}, query={"fieldManager": "old"}
    ).ok()
    owners = {entry["manager"]: str(entry["fieldsV1"]) for entry in api.get(f"{NEW}/p").ok().meta["managedFields"]}
    assert "f:nodeDrainTimeoutSeconds" not in owners.get("new", "")
    assert "f:nodeDrainTimeout" in owners["old"]


def test_conditions_belong_to_managers_of_both_versions(api: Api) -> None:
    """status.conditions of v1beta2 is a list by type; what has that name in v1beta1 is another, and one whole."""
    ready = {"status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    head = {"kind": "MachinePool", "metadata": {"name": "p"}}
    new = {"apiVersion": "cluster.x-k8s.io/v1beta2", **head, "status": {"conditions": [{"type": "A", **ready}]}}
    api.apply(f"{NEW}/p/status", new, manager="new").ok()
    old = {"conditions": [{"type": "B", **ready}]}
    body = {"apiVersion": "cluster.x-k8s.io/v1beta1", **head, "status": {"v1beta2": old}}
    found = api.apply(f"{OLD}/p/status", body, manager="old").ok()
    [mine] = [entry["fieldsV1"] for entry in found.meta["managedFields"] if entry["manager"] == "new"]
    assert set(mine["f:status"]["f:conditions"]) == {'k:{"type":"A"}'}
    api.apply(f"{NEW}/p/status", {**new, "status": {"conditions": []}}, manager="new").ok()
    assert [c["type"] for c in api.get(f"{NEW}/p").ok().json["status"]["conditions"]] == ["B"]


@pytest.mark.parametrize(("first", "second"), [(OLD, NEW), (NEW, OLD)])
def test_an_apply_drops_its_own_and_leaves_what_is_owned_in_the_other_version(
    api: Api, first: str, second: str
) -> None:
    """Two timeouts of a Machine have other names there, and another place."""
    one: dict[str, dict[str, Any]] = {
        OLD: {"nodeVolumeDetachTimeout": "7s"},
        NEW: {"deletion": {"nodeVolumeDetachTimeoutSeconds": 7}},
    }
    both: dict[str, dict[str, Any]] = {
        OLD: {"nodeVolumeDetachTimeout": "7s", "providerID": "x://1"},
        NEW: {"deletion": {"nodeVolumeDetachTimeoutSeconds": 7}, "providerID": "x://1"},
    }

    def apply(where: str, manager: str, machine: dict[str, Any]) -> None:
        body = {"apiVersion": where[6:].split("/n")[0], "kind": "MachinePool", "metadata": {"name": "p"}}
        spec = {"spec": {"template": {"spec": machine}}} if machine else {}
        api.apply(f"{where}/p", {**body, **spec}, manager=manager).ok()

    apply(first, "first", both[first])
    apply(second, "second", one[second])
    apply(first, "first", {})
    found = api.get(f"{NEW}/p").ok().json["spec"]["template"]["spec"]
    assert found["deletion"]["nodeVolumeDetachTimeoutSeconds"] == 7
    assert "providerID" not in found
    apply(second, "second", {})
    assert "nodeVolumeDetachTimeoutSeconds" not in api.get(f"{NEW}/p").ok().json["spec"]["template"]["spec"]["deletion"]


@pytest.mark.parametrize("where", [OLD, NEW])
def test_what_admission_fills_in_belongs_to_nobody(api: Api, where: str) -> None:
    body = api.get(f"{where}/p").ok().json
    body = {"apiVersion": body["apiVersion"], "kind": "MachinePool", "metadata": {"name": "q"}, "spec": body["spec"]}
    del body["spec"]["replicas"]
    found = api.post(where, body, query={"fieldManager": "mine", "dryRun": "All"}).ok(201)
    assert found.json["spec"]["replicas"] == 1
    [entry] = found.meta["managedFields"]
    assert "f:replicas" not in entry["fieldsV1"]["f:spec"]
    assert "f:metadata" not in entry["fieldsV1"]


def test_a_dry_run_in_the_old_version_reads_as_what_would_be_stored(api: Api) -> None:
    change = {"spec": {"template": {"spec": {"nodeDrainTimeout": "60s"}}}}
    tried = api.merge(f"{OLD}/p", change, query={"dryRun": "All"}).ok().json
    done = api.merge(f"{OLD}/p", change).ok().json
    assert tried["spec"] == done["spec"]
    assert tried["metadata"]["annotations"] == done["metadata"]["annotations"]


def test_an_apply_in_the_old_version(api: Api) -> None:
    body = deepcopy(old_pool())
    body["spec"]["template"]["spec"]["nodeDrainTimeout"] = "3m"
    body["spec"]["template"]["spec"]["nodeDeletionTimeout"] = "10s"
    api.apply(f"{OLD}/p", body, manager="gitops", force="true").ok()
    found = api.get(f"{NEW}/p").ok().json
    assert found["spec"]["template"]["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 180
    del body["spec"]["minReadySeconds"]
    api.apply(f"{OLD}/p", body, manager="gitops", force="true").ok()
    assert api.get(f"{OLD}/p").ok().json["spec"]["minReadySeconds"] == 7, "the manager that made it owns it too"

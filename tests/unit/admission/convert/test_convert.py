"""v1beta1 and v1beta2: what is where, and what survives."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capi.admission.convert import convert, convert_review, default_old
from capi.admission.convert.values import duration_up
from capi.admission.kinds import KINDS
from capi.kube.errors import BadRequest
from capi.kube.types import GroupKind, Object
from tests.unit.admission.convert import objects
from tests.unit.admission.convert.ways import DATA, HUB, INFRA, OLD, bare, down, infra, of, spoilt, up, versions

MACHINE: Object = {
    "clusterName": "c",
    "version": "v1.35.0",
    "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "b"}},
    "infrastructureRef": {"apiGroup": INFRA, "kind": "DevMachine", "name": "i"},
    "deletion": {"nodeDrainTimeoutSeconds": 90, "nodeDeletionTimeoutSeconds": 0},
    "minReadySeconds": 7,
}


def test_a_machine_spec() -> None:
    found = down(of("Machine", MACHINE))["spec"]
    assert found["nodeDrainTimeout"] == "1m30s"
    assert found["nodeDeletionTimeout"] == "0s"
    assert "deletion" not in found and "minReadySeconds" not in found
    assert found["infrastructureRef"] == {
        "apiVersion": f"{INFRA}/v1beta7", "kind": "DevMachine", "name": "i", "namespace": "n"
    }  # fmt: skip
    assert found["bootstrap"]["configRef"]["apiVersion"] == "bootstrap.cluster.x-k8s.io/v1beta7"
    assert up(down(of("Machine", MACHINE)))["spec"] == MACHINE
    assert "minReadySeconds" not in up(bare(down(of("Machine", MACHINE))))["spec"]


def test_what_go_clients_always_send_of_old_objects_is_not_stored() -> None:
    machine = {**down(of("Machine", MACHINE))["spec"], "readinessGates": []}
    spec = {"clusterName": "c", "template": {"metadata": {}, "spec": machine}}
    for kind in ("MachinePool", "MachineSet", "MachineDeployment"):
        template = up(of(kind, spec, version=OLD))["spec"]["template"]
        assert "metadata" not in template and "readinessGates" not in template["spec"]
    network = {"services": {"cidrBlocks": []}, "pods": {"cidrBlocks": ["10.0.0.0/8"]}}
    cluster = up(of("Cluster", {"clusterNetwork": network, "availabilityGates": []}, version=OLD))["spec"]
    assert cluster == {"clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/8"]}}}


def test_an_empty_data_secret_name_is_not_no_data_secret_name() -> None:
    spec = {**MACHINE, "bootstrap": {"dataSecretName": ""}}
    assert down(of("Machine", spec))["spec"]["bootstrap"] == {"dataSecretName": ""}
    assert up(bare(down(of("Machine", spec))))["spec"]["bootstrap"] == {"dataSecretName": ""}
    assert up(of("Machine", {"clusterName": "c", "bootstrap": {}}, version=OLD))["spec"]["bootstrap"] == {}


def test_a_machine_status() -> None:
    new = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    old = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status: Object = {
        "conditions": [new],
        "phase": "Updating",
        "failureDomain": "fd",
        "nodeRef": {"name": "node"},
        "initialization": {"infrastructureProvisioned": True, "bootstrapDataSecretCreated": False},
        "deprecated": {"v1beta1": {"conditions": [old], "failureReason": "CreateError", "failureMessage": "no"}},
    }
    found = down(of("Machine", MACHINE, status))["status"]
    assert found["phase"] == "Running"
    assert found["nodeRef"] == {"apiVersion": "v1", "kind": "Node", "name": "node"}
    assert (found["infrastructureReady"], found["bootstrapReady"]) == (True, False)
    assert (found["conditions"], found["v1beta2"]["conditions"]) == ([old], [new])
    assert (found["failureReason"], found["failureMessage"]) == ("CreateError", "no")
    assert up(down(of("Machine", MACHINE, status)))["status"] == status


def test_what_an_old_client_changes_counts_and_the_rest_is_kept() -> None:
    old = down(of("Machine", MACHINE, {"phase": "Updating"}))
    old["spec"]["nodeDrainTimeout"] = "2m"
    old["spec"]["version"] = "v1.36.0"
    found = up(old)
    assert found["spec"]["deletion"] == {"nodeDrainTimeoutSeconds": 120, "nodeDeletionTimeoutSeconds": 0}
    assert (found["spec"]["version"], found["spec"]["minReadySeconds"]) == ("v1.36.0", 7)
    assert found["status"]["phase"] == "Updating"
    assert "annotations" not in found["metadata"]


def test_an_explicit_false_is_remembered_until_it_is_changed() -> None:
    ref = {"apiGroup": INFRA, "kind": "DevCluster", "name": "c"}
    hub = of("Cluster", {"paused": False, "infrastructureRef": ref})
    assert "paused" not in down(hub)["spec"]
    assert up(down(hub))["spec"]["paused"] is False
    assert "paused" not in up(bare(down(hub)))["spec"]
    old = down(hub)
    old["spec"]["paused"] = True
    assert up(old)["spec"]["paused"] is True


def test_a_pool() -> None:
    spec: Object = {"clusterName": "c", "replicas": 3, "template": {"spec": MACHINE}}
    status: Object = {
        "replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "upToDateReplicas": 3,
        "deprecated": {"v1beta1": {"readyReplicas": 9, "unavailableReplicas": 0}},
    }  # fmt: skip
    found = down(of("MachinePool", spec, status))
    assert found["spec"]["minReadySeconds"] == 7
    assert "minReadySeconds" not in found["spec"]["template"]["spec"]
    assert (found["status"]["readyReplicas"], found["status"]["unavailableReplicas"]) == (9, 0)
    assert found["status"]["v1beta2"] == {"readyReplicas": 2, "availableReplicas": 1, "upToDateReplicas": 3}
    assert up(bare(found))["spec"] == spec
    assert up(found)["status"] == status


def test_a_check() -> None:
    spec: Object = {
        "clusterName": "c",
        "selector": {"matchLabels": {"a": "b"}},
        "checks": {
            "nodeStartupTimeoutSeconds": 600,
            "unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}],
            "unhealthyMachineConditions": [{"type": "NodeReady", "status": "False", "timeoutSeconds": 0}],
        },
        "remediation": {
            "triggerIf": {"unhealthyLessThanOrEqualTo": "40%", "unhealthyInRange": "[1-2]"},
            "templateRef": {"apiVersion": f"{INFRA}/v1", "kind": "FixTemplate", "name": "t"},
        },
    }
    found = down(of("MachineHealthCheck", spec))["spec"]
    assert found["unhealthyConditions"] == [{"type": "Ready", "status": "False", "timeout": "5m0s"}]
    assert found["unhealthyMachineConditions"] == [{"type": "NodeReady", "status": "False", "timeout": "0s"}]
    assert (found["nodeStartupTimeout"], found["maxUnhealthy"], found["unhealthyRange"]) == ("10m0s", "40%", "[1-2]")
    assert found["remediationTemplate"]["namespace"] == "n"
    assert up(bare(down(of("MachineHealthCheck", spec))))["spec"] == spec


def test_a_cluster() -> None:
    ref = {"apiGroup": INFRA, "kind": "DevCluster", "name": "c"}
    status: Object = {
        "failureDomains": [{"name": "a"}, {"name": "b", "controlPlane": True}],
        "workers": {"replicas": 3},
        "initialization": {"controlPlaneInitialized": True},
    }
    hub = of("Cluster", {"infrastructureRef": ref, "clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/16"]}}}, status)
    found = down(hub)
    assert found["spec"]["controlPlaneEndpoint"] == {"host": "", "port": 0}
    assert found["status"]["failureDomains"] == {"a": {"controlPlane": False}, "b": {"controlPlane": True}}
    assert (found["status"]["controlPlaneReady"], found["status"]["infrastructureReady"]) == (True, False)
    assert found["status"]["v1beta2"] == {"workers": {"replicas": 3}}
    assert up(found) == hub
    assert up(bare(found))["status"]["failureDomains"][0] == {"name": "a", "controlPlane": False}


def test_a_version_of_one_group_is_none_of_another() -> None:
    with pytest.raises(BadRequest, match="cannot be converted"):
        convert(infra("DevMachine", {}), OLD, versions)
    with pytest.raises(BadRequest, match="cannot be converted"):
        convert({**of("Machine", MACHINE), "apiVersion": f"{INFRA}/v1beta2"}, f"{INFRA}/v1beta1", versions)


def test_a_deployment_and_a_set() -> None:
    rollout = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    spec: Object = {
        "clusterName": "c", "selector": {}, "template": {"spec": MACHINE}, "rollout": rollout, "deletion": {"order": "Oldest"},
        "remediation": {"maxInFlight": "20%"}, "paused": True,
    }  # fmt: skip
    found = down(of("MachineDeployment", spec))["spec"]
    assert found["strategy"] == {
        "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "deletePolicy": "Oldest"}, "remediation": {"maxInFlight": "20%"}
    }  # fmt: skip
    assert up(bare(down(of("MachineDeployment", spec))))["spec"] == spec
    spec = {"clusterName": "c", "selector": {}, "template": {"spec": MACHINE}, "deletion": {"order": "Newest"}}
    assert down(of("MachineSet", spec))["spec"]["deletePolicy"] == "Newest"
    assert DATA not in down(of("MachineSet", spec))["metadata"].get("annotations", {})
    assert up(down(of("MachineSet", spec)))["spec"] == spec


def test_the_annotation_is_the_whole_object_without_its_metadata() -> None:
    hub = of("Machine", MACHINE, {"phase": "Running"})
    held = json.loads(down(hub)["metadata"]["annotations"][DATA])
    assert held == {key: value for key, value in hub.items() if key != "metadata"}


@pytest.mark.parametrize("data", ["", "nonsense", "[]", "3"])
def test_an_annotation_nobody_can_read_is_taken_away(data: str) -> None:
    old = down(of("Machine", MACHINE))
    old["metadata"]["annotations"] = {DATA: data, "mine": "1"}
    found = up(old)
    assert found["metadata"]["annotations"] == {"mine": "1"}
    assert found["spec"]["version"] == "v1.35.0"


@pytest.mark.parametrize(
    "held",
    [
        {"spec": 5},
        {"spec": {"clusterName": "c", "bootstrap": {}, "infrastructureRef": {}, "deletion": "never"}},
        {"spec": {**MACHINE, "minReadySeconds": "abc"}},
        {"spec": {**MACHINE, "deletion": {"nodeDrainTimeoutSeconds": 2**60}}},
        {"spec": MACHINE, "status": {"phase": 7}},
    ],
)
def test_an_annotation_that_holds_no_object_of_the_kind_is_taken_away(held: Object) -> None:
    old = bare(down(of("Machine", {**MACHINE, "minReadySeconds": 0})))
    plain = up(old)
    old["metadata"]["annotations"] = {DATA: json.dumps({"apiVersion": HUB, "kind": "Machine", **held})}
    assert up(old) == {**plain, "metadata": {"name": "a", "namespace": "n"}}


def test_a_large_pool_fits_into_its_annotations() -> None:
    """Lists that v1beta1 shows as they are need not be held: API servers take 256 KiB of annotations."""
    ids = [f"docker:////{'x' * 60}-{i}" for i in range(5000)]
    nodes = [{"apiVersion": "v1", "kind": "Node", "name": f"node-{i}", "uid": "u" * 36} for i in range(5000)]
    spec: Object = {
        "clusterName": "c", "replicas": 0, "providerIDList": ids, "failureDomains": ["a"],
        "template": {"spec": {**MACHINE, "readinessGates": [{"conditionType": "x", "polarity": "Negative"}]}},
    }  # fmt: skip
    status = {"nodeRefs": nodes, "replicas": 0, "initialization": {"infrastructureProvisioned": False}}
    hub = of("MachinePool", spec, status)
    old = down(hub)
    assert len(old["metadata"]["annotations"][DATA]) < 10_000
    assert up(old) == hub
    old["spec"]["replicas"] = 7
    old["spec"]["providerIDList"] = ids[1:]
    assert up(old)["spec"] == {**spec, "replicas": 7, "providerIDList": ids[1:]}
    del old["status"]["nodeRefs"]
    assert "nodeRefs" not in up(old)["status"]


@settings(max_examples=300, deadline=None)
@given(hub=objects.hubs(), data=st.data())
def test_what_is_no_object_of_its_kind_is_converted_or_refused(hub: Object, data: st.DataObject) -> None:
    """Conversion comes before any schema has looked at an object."""
    with contextlib.suppress(BadRequest):
        down({**hub, "spec": spoilt(hub["spec"], data)})
    with contextlib.suppress(BadRequest):
        up({**down(hub), "status": spoilt(hub.get("status") or {}, data)})
    old = down(hub)
    held = {key: spoilt(value, data) for key, value in hub.items() if key in ("spec", "status")}
    old["metadata"] = {**old["metadata"], "annotations": {DATA: json.dumps({**hub, **held})}}
    assert DATA not in up(old)["metadata"].get("annotations", {})


def labelled(obj: Object, old: Object | None) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "labels": {"a": "b"}}}


def test_defaults_of_an_old_object_leave_the_rest_as_it_was_written() -> None:
    ref = {"apiVersion": f"{INFRA}/v1alpha9", "kind": "DevMachine", "name": "i", "uid": "u"}
    old = of("Machine", {"clusterName": "c", "bootstrap": {}, "infrastructureRef": ref}, version=OLD)
    found = default_old(old, None, labelled)
    assert found == {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert default_old(old, old, lambda obj, _: obj) is old


@pytest.mark.parametrize("spec", ["x", {"nodeDrainTimeout": "soon"}, {"bootstrap": 5}])
def test_what_cannot_be_converted_is_left_to_its_schema(spec: Any) -> None:
    old = of("Machine", spec, version=OLD)
    assert default_old(old, None, labelled) is old


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1m", 60), ("1.9s", 1), ("500ms", 0), ("99999h", 359996400), ("2000000h", 2**31 - 1), ("0", 0), (None, None)],
)
def test_durations(text: str | None, seconds: int | None) -> None:
    assert duration_up(text) == seconds


@settings(max_examples=300, deadline=None)
@given(hub=objects.hubs())
def test_a_stored_object_survives_the_way_there_and_back(hub: Object) -> None:
    before = json.dumps(hub)
    assert up(down(hub)) == hub
    assert json.dumps(hub) == before, "converted in place"


@settings(max_examples=300, deadline=None)
@given(hub=objects.hubs())
def test_an_old_object_survives_the_way_there_and_back(hub: Object) -> None:
    old = bare(down(hub))
    assert bare(down(up(old))) == bare(down(up(bare(down(up(old))))))
    for member in ("spec", "status"):
        assert bare(down(up(down(hub)))).get(member) == old.get(member)


@settings(max_examples=300, deadline=None)
@given(hub=objects.hubs())
def test_defaults_come_to_the_same_in_both_versions(hub: Object) -> None:
    """Whichever version an object is written in, the same is stored, and a second time fills in nothing."""
    default = KINDS[GroupKind(hub["apiVersion"].rpartition("/")[0], hub["kind"])].default
    old = bare(down(hub))
    filled = default_old(old, None, default)
    assert up(filled) == default(up(old), None)
    assert default_old(filled, None, default) == filled


@settings(max_examples=200, deadline=None)
@given(hub=objects.hubs(), label=st.text(min_size=1, max_size=5))
def test_a_change_of_metadata_changes_nothing_else(hub: Object, label: str) -> None:
    old = down(hub)
    old["metadata"] = {**old["metadata"], "labels": {"l": label}}
    found = up(old)
    assert found["metadata"]["labels"] == {"l": label}
    assert {k: v for k, v in found.items() if k != "metadata"} == {k: v for k, v in hub.items() if k != "metadata"}


def review(wanted: str, *given_: Any) -> Object:
    request = {"uid": "7", "desiredAPIVersion": wanted, "objects": list(given_)}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


def test_a_review_converts_all_objects_in_order() -> None:
    first, second = of("Machine", MACHINE), down(of("MachinePool", {"clusterName": "c", "template": {"spec": MACHINE}}))
    answer = convert_review(review(OLD, first, second), versions)["response"]
    assert (answer["uid"], answer["result"]) == ("7", {"status": "Success"})
    assert answer["convertedObjects"] == [down(first), second]


def test_a_review_fails_as_a_whole_and_says_why() -> None:
    answer = convert_review(review("x/v1", of("Machine", MACHINE)), versions)["response"]
    assert answer["result"]["status"] == "Failure"
    assert "Machine cannot be converted" in answer["result"]["message"]
    assert "convertedObjects" not in answer


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "ConversionReview", "request": {}},
        review(OLD, "x"),
        review(OLD, of("Machine", MACHINE), None),
        {**review(OLD), "request": {"objects": 5}},
    ],
)
def test_what_is_no_review_is_refused(body: Object) -> None:
    with pytest.raises(BadRequest, match=r"ConversionReview|request\.objects"):
        convert_review(body, versions)

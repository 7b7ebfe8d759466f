"""What a webhook answers."""

import base64
import json
from typing import Any

import pytest

from capi.admission import review
from capi.admission.kinds import KINDS
from capi.admission.webhooks import WEBHOOKS, Endpoint, configurations
from capi.kube.errors import BadRequest
from capi.kube.types import GroupKind, Object

CORE = "cluster.x-k8s.io"


def asked(kind: str, obj: Object | None, old: Object | None = None) -> Object:
    request: Object = {
        "uid": "7", "kind": {"group": CORE, "version": "v1beta2", "kind": kind}, "object": obj, "oldObject": old
    }  # fmt: skip
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def patch_of(answer: Object) -> list[Object]:
    found: list[Object] = json.loads(base64.b64decode(answer["response"]["patch"]))
    return found


def a_check(**spec: Any) -> Object:
    return {"metadata": {"name": "h"}, "spec": {"clusterName": "c", "selector": {"matchLabels": {"a": "b"}}, **spec}}


def test_defaults_are_a_patch_that_only_adds() -> None:
    answer = review.mutate(asked("MachineHealthCheck", a_check()))
    assert (answer["response"]["uid"], answer["response"]["allowed"], answer["response"]["patchType"]) == (
        "7",
        True,
        "JSONPatch",
    )
    assert patch_of(answer) == [
        {"op": "add", "path": "/metadata/labels", "value": {"cluster.x-k8s.io/cluster-name": "c"}},
        {"op": "add", "path": "/spec/checks", "value": {"nodeStartupTimeoutSeconds": 600}},
    ]


def test_paths_of_a_patch_are_escaped() -> None:
    obj = a_check(checks={"nodeStartupTimeoutSeconds": 0})
    obj["metadata"]["labels"] = {"a": "b"}
    [operation] = patch_of(review.mutate(asked("MachineHealthCheck", obj)))
    assert operation["path"] == "/metadata/labels/cluster.x-k8s.io~1cluster-name"


def test_a_complete_object_needs_no_patch() -> None:
    obj = a_check(checks={"nodeStartupTimeoutSeconds": 0})
    obj["metadata"]["labels"] = {"cluster.x-k8s.io/cluster-name": "c"}
    assert review.mutate(asked("MachineHealthCheck", obj))["response"] == {"uid": "7", "allowed": True}


def test_a_refusal_names_every_field() -> None:
    bad = a_check(selector={}, checks={"nodeStartupTimeoutSeconds": 5})
    answer = review.validate(asked("MachineHealthCheck", bad))["response"]
    assert (answer["allowed"], answer["status"]["code"], answer["status"]["reason"]) == (False, 422, "Invalid")
    assert [cause["field"] for cause in answer["status"]["details"]["causes"]] == [
        "spec.selector", "spec.checks.nodeStartupTimeoutSeconds"
    ]  # fmt: skip
    assert answer["status"]["message"].startswith(
        'MachineHealthCheck.cluster.x-k8s.io "h" is invalid: [spec.selector: '
    )


def test_an_object_on_its_way_out_is_not_held_up() -> None:
    bad = a_check(selector={})
    bad["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert review.validate(asked("MachineHealthCheck", bad))["response"]["allowed"]


@pytest.mark.parametrize("answer", [review.mutate, review.validate])
def test_other_kinds_and_deletions_pass(answer: review.Review) -> None:
    assert answer(asked("Foo", {"spec": {}}))["response"]["allowed"]
    assert answer(asked("MachinePool", None, {"spec": {}}))["response"]["allowed"]


@pytest.mark.parametrize(
    "body", [{}, {"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {}}]
)
def test_what_is_no_review_is_refused(body: Object) -> None:
    with pytest.raises(BadRequest, match="AdmissionReview"):
        review.validate(body)


@pytest.mark.parametrize("member", ["kind", "object"])
def test_a_review_with_nonsense_in_it_is_refused(member: str) -> None:
    body = asked("MachineHealthCheck", {"metadata": {"name": "h"}, "spec": {"selector": {"matchLabels": [1]}}})
    body["request"] = {**body["request"], **({"kind": [1]} if member == "kind" else {})}
    with pytest.raises(BadRequest, match=rf"request\.{member}"):
        review.validate(body)


def test_defaults_of_an_old_object_are_asked_for_in_its_version() -> None:
    """Conversion, which other ways need, is not possible before a schema has looked at the object."""
    spec = {"clusterName": "c", "selector": {"matchLabels": {"a": "b"}}}
    old = {"apiVersion": f"{CORE}/v1beta1", "kind": "MachineHealthCheck", "metadata": {"name": "h"}, "spec": spec}
    assert patch_of(review.mutate(asked("MachineHealthCheck", old))) == [
        {"op": "add", "path": "/metadata/labels", "value": {"cluster.x-k8s.io/cluster-name": "c"}},
        {"op": "add", "path": "/spec/nodeStartupTimeout", "value": "10m0s"},
    ]
    old = {**old, "spec": {**spec, "nodeStartupTimeout": "soon"}}
    assert review.mutate(asked("MachineHealthCheck", old))["response"] == {"uid": "7", "allowed": True}


def test_every_kind_with_rules_has_its_webhook() -> None:
    asked_about = {GroupKind(hook.group, hook.kind) for hook in WEBHOOKS}
    assert {kind for kind, rules in KINDS.items() if not rules.refused} == asked_about


def test_configurations_name_service_or_url() -> None:
    for body in configurations(Endpoint(namespace="n"), {}):
        for hook in body["webhooks"]:
            assert hook["clientConfig"]["service"] | {"path": ""} == {
                "namespace": "n", "name": "capi-webhook", "path": "", "port": 443
            }  # fmt: skip
    for body in configurations(Endpoint(url="https://h:1/", ca="Q0E="), {}):
        for hook in body["webhooks"]:
            assert hook["clientConfig"]["url"].startswith("https://h:1/")
            assert hook["clientConfig"]["caBundle"] == "Q0E="

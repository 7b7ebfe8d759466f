"""Defaults and rules of the kinds of Cluster API, the same on the embedded server and, by webhook, on a real one.

The real server is one of this module's own: its webhooks end with it, and others could not write any more.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from capi.admission.convert import convert, old_of
from capi.api.core import annotations
from capi.kube.types import GroupKind
from tests.conformance.site import Api

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

CORE = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default"
POOL_LABEL = "cluster.x-k8s.io/pool-name"
MIN = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
MAX = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
INFRA = "infrastructure.cluster.x-k8s.io"
PLANE_TAINT = "node-role.kubernetes.io/control-plane"


@pytest.fixture(scope="module")
def api(capi_server: Api) -> Api:
    return capi_server


@dataclass(frozen=True)
class Case:
    """A body to create, and what is wrong with it (no field: nothing)."""

    id: str
    plural: str
    body: dict[str, Any]
    field: str = ""
    says: str = ""


def pool(changes: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A pool; `changes` are of its Machine spec, None takes a member away."""
    machine: dict[str, Any] = {
        "clusterName": "c",
        "version": "v1.33.1",
        "bootstrap": {"dataSecretName": "s"},
        "infrastructureRef": {"apiGroup": INFRA, "kind": "DevMachinePool", "name": "p"},
        **(changes or {}),
    }
    template = {"spec": {k: v for k, v in machine.items() if v is not None}, **spec.pop("template", {})}
    meta = spec.pop("meta", {})
    return {
        "kind": "MachinePool",
        "metadata": {"name": "p", **meta},
        "spec": {"clusterName": "c", "template": template, **spec},
    }


def machine(bootstrap: dict[str, Any], **meta: Any) -> dict[str, Any]:
    spec = {
        "clusterName": "c",
        "bootstrap": bootstrap,
        "infrastructureRef": {"apiGroup": INFRA, "kind": "DevMachine", "name": "m"},
    }
    return {"kind": "Machine", "metadata": {"name": "m", **meta}, "spec": spec}


def tainted(key: str, **meta: Any) -> dict[str, Any]:
    body = machine({"dataSecretName": "s"}, **meta)
    body["spec"]["taints"] = [{"key": key, "effect": "NoSchedule", "propagation": "Always"}]
    return body


def check(**spec: Any) -> dict[str, Any]:
    body = {"clusterName": "c", "selector": {"matchLabels": {POOL_LABEL: "p"}}, **spec}
    return {"kind": "MachineHealthCheck", "metadata": {"name": "h"}, "spec": body}


def limit(value: Any) -> dict[str, Any]:
    return check(remediation={"triggerIf": {"unhealthyLessThanOrEqualTo": value}})


def rule(drain: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"kind": "MachineDrainRule", "metadata": {"name": "r"}, "spec": {"drain": drain, **spec}}


def cluster(name: str = "c", **spec: Any) -> dict[str, Any]:
    ref = {"apiGroup": INFRA, "kind": "DevCluster", "name": "c"}
    return {"kind": "Cluster", "metadata": {"name": name}, "spec": {"infrastructureRef": ref, **spec}}


BAD_SELECTOR = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
LIMIT = "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo"
OWNED = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "name": "p", "uid": "1"}
CASES = [
    Case("pool", "machinepools", pool()),
    Case("pool, empty data secret name", "machinepools", pool({"bootstrap": {"dataSecretName": ""}})),
    Case("pool, pre-release", "machinepools", pool({"version": "v1.36.0-rc.1"})),
    Case("pool without bootstrap", "machinepools", pool({"bootstrap": {}}), "spec.template.spec.bootstrap", "must be set"),
    Case("pool of two clusters", "machinepools", pool({"clusterName": "d"}), "spec.clusterName", "spec.template.spec.clusterName"),
    Case("pool with half a version", "machinepools", pool({"version": "v1.31"}), "spec.template.spec.version", "version"),
    Case("pool with no version", "machinepools", pool({"version": "vfoo"}), "spec.template.spec.version", "version"),
    Case("pool with an empty version", "machinepools", pool({"version": ""}), "spec.template.spec.version", "version"),
    Case("pool, latest", "machinepools", pool({"version": "latest"}), "spec.template.spec.version", "version"),
    Case(
        "pool with taints", "machinepools",
        pool({"taints": [{"key": "a", "effect": "NoSchedule", "propagation": "Always"}]}), "spec.template.spec.taints", "not supported",
    ),
    Case(
        "pool with a bad template label", "machinepools",
        pool(template={"metadata": {"labels": {"a": "not a value!"}}}), "spec.template.metadata.labels", "a valid label",
    ),
    Case("pool with bounds that are no numbers", "machinepools", pool(meta={"annotations": {MIN: "few", MAX: "5"}}), f"metadata.annotations[{MIN}]", "32 bit"),
    Case("pool below zero", "machinepools", pool(replicas=-1), "spec.replicas", "greater than or equal to 0"),
    Case("machine", "machines", machine({"dataSecretName": "s"})),
    Case("machine, empty data secret name", "machines", machine({"dataSecretName": ""})),
    Case("machine with a pool's label", "machines", machine({}, labels={POOL_LABEL: "p"})),
    Case("machine of a pool", "machines", machine({}, ownerReferences=[OWNED])),
    Case("machine without bootstrap", "machines", machine({}), "spec.bootstrap", "must be set"),
    Case("machine with a taint", "machines", tainted("example.com/gpu")),
    Case("machine out of service", "machines", tainted("node.kubernetes.io/out-of-service")),
    Case("control plane with its taint", "machines", tainted(PLANE_TAINT, labels={"cluster.x-k8s.io/control-plane": ""})),
    Case("worker with the taint of control planes", "machines", tainted(PLANE_TAINT), "spec.taints[0].key", "control-plane"),
    *(
        Case(f"machine with a taint of others, {key}", "machines", tainted(key), "spec.taints[0].key", "use another key")
        for key in (
            "node.cluster.x-k8s.io/uninitialized", "node.cluster.x-k8s.io/outdated-revision", "node.kubernetes.io/not-ready",
            "node.cloudprovider.kubernetes.io/uninitialized", "node-role.kubernetes.io/master",
        )
    ),
    Case("check", "machinehealthchecks", check()),
    Case("check without startup timeout", "machinehealthchecks", check(checks={"nodeStartupTimeoutSeconds": 0})),
    Case("check, least startup timeout", "machinehealthchecks", check(checks={"nodeStartupTimeoutSeconds": 30})),
    Case("check, number", "machinehealthchecks", limit(10)),
    Case("check, percentage", "machinehealthchecks", limit("10%")),
    Case("check of nothing", "machinehealthchecks", check(selector={}), "spec.selector", "must not be empty"),
    Case(
        "check of another cluster", "machinehealthchecks",
        check(selector={"matchLabels": {"cluster.x-k8s.io/cluster-name": "d"}}), "spec.selector", "spec.clusterName",
    ),
    Case("check in a hurry", "machinehealthchecks", check(checks={"nodeStartupTimeoutSeconds": 29}), "spec.checks.nodeStartupTimeoutSeconds", "at least 30"),
    Case("check with a word as limit", "machinehealthchecks", limit("abcdef"), LIMIT, "integer or a percentage"),
    Case("check with a number in quotes", "machinehealthchecks", limit("10"), LIMIT, "integer or a percentage"),
    Case(
        "check of a forbidden condition", "machinehealthchecks",
        check(checks={"unhealthyMachineConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 1}]}),
        "spec.checks.unhealthyMachineConditions[0].type", "must not be one of",
    ),
    Case("rule", "machinedrainrules", rule({"behavior": "Drain", "order": 5})),
    Case("rule that skips in order", "machinedrainrules", rule({"behavior": "Skip", "order": 5}), "spec.drain.order", "must be unset"),
    Case(
        "rule with a bad selector", "machinedrainrules",
        rule({"behavior": "Skip"}, pods=[{"selector": BAD_SELECTOR}]), "spec.pods[0].selector", "Near",
    ),
    Case("cluster", "clusters", cluster()),
    Case("cluster without anything", "clusters", {**cluster(), "spec": {"paused": False}}, "spec", "must be set"),
    Case("cluster whose name is no label", "clusters", cluster("a" * 64), "metadata.name", "63"),
    Case(
        "cluster with a network that is none", "clusters", cluster(clusterNetwork={"pods": {"cidrBlocks": ["10.0.0.0/99"]}}),
        "spec.clusterNetwork.pods.cidrBlocks[0]", "address range",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_what_may_be_created(api: Api, case: Case) -> None:
    body = {"apiVersion": "cluster.x-k8s.io/v1beta2", **deepcopy(case.body)}
    answer = api.post(f"{CORE}/{case.plural}", body, query={"dryRun": "All"})
    if not case.field:
        answer.ok(201)
        return
    answer.ok(422, "Invalid")
    causes = answer.json["details"]["causes"]
    said = [cause["message"] for cause in causes if cause.get("field") == case.field]
    assert said, causes
    assert any(case.says in message for message in said), said


def versions(kind: GroupKind) -> str:
    return f"{kind.group}/v1beta2"


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_what_may_be_created_in_the_old_version(api: Api, case: Case) -> None:
    """The same; fields may have other names there."""
    hub = {"apiVersion": "cluster.x-k8s.io/v1beta2", **deepcopy(case.body)}
    old = convert(hub, old_of(hub), versions)
    old["metadata"].get("annotations", {}).pop(annotations.CONVERSION_DATA, None)
    answer = api.post(f"{CORE.replace('v1beta2', 'v1beta1')}/{case.plural}", old, query={"dryRun": "All"})
    if not case.field:
        answer.ok(201)
        return
    answer.ok(422, "Invalid")
    last = case.field.rpartition(".")[2]
    said = [cause["message"] for cause in answer.json["details"]["causes"] if cause.get("field", "").endswith(last)]
    assert any(case.says in message for message in said), answer.json["details"]["causes"]


def test_taints_of_a_pool_are_refused_in_the_old_version_too(api: Api) -> None:
    body = pool({"taints": [{"key": "a", "effect": "NoSchedule", "propagation": "Always"}]})
    body["spec"]["template"]["spec"]["infrastructureRef"] = {
        "apiVersion": f"{INFRA}/v1beta2", "kind": "DevMachinePool", "name": "p",
    }  # fmt: skip
    old = {"apiVersion": "cluster.x-k8s.io/v1beta1", **body}
    answer = api.post(f"{CORE.replace('v1beta2', 'v1beta1')}/machinepools", old, query={"dryRun": "All"})
    assert "spec.template.spec.taints" in answer.ok(422, "Invalid").fields


def made(api: Api, plural: str, body: dict[str, Any]) -> dict[str, Any]:
    full = {"apiVersion": "cluster.x-k8s.io/v1beta2", **deepcopy(body)}
    found: dict[str, Any] = api.post(f"{CORE}/{plural}", full).ok(201).json
    return found


@pytest.fixture
def names(api: Api) -> Iterator[list[tuple[str, str]]]:
    """Objects that a test made: they go at its end."""
    found: list[tuple[str, str]] = []
    yield found
    for plural, name in found:
        api.merge(f"{CORE}/{plural}/{name}", {"metadata": {"finalizers": None}})
        api.delete(f"{CORE}/{plural}/{name}")


def test_what_is_filled_in(api: Api, names: list[tuple[str, str]]) -> None:
    names += [("machinepools", "p"), ("machines", "m"), ("machinehealthchecks", "h")]
    found = made(api, "machinepools", pool({"version": "1.33.1"}))
    template = found["spec"]["template"]["spec"]
    assert (found["spec"]["replicas"], template["version"]) == (1, "v1.33.1")
    assert template["deletion"] == {"nodeDeletionTimeoutSeconds": 10}
    assert found["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "c"
    found = made(api, "machines", machine({"dataSecretName": "s"}))
    assert found["spec"]["deletion"] == {"nodeDeletionTimeoutSeconds": 10}
    found = made(api, "machinehealthchecks", check())
    assert found["spec"]["checks"]["nodeStartupTimeoutSeconds"] == 600


def test_replicas_follow_the_autoscalers_bounds(api: Api, names: list[tuple[str, str]]) -> None:
    names.append(("machinepools", "p"))
    found = made(api, "machinepools", pool(meta={"annotations": {MIN: "2", MAX: "5"}}))
    assert found["spec"]["replicas"] == 2
    where = f"{CORE}/machinepools/p"
    for before, after in ((9, 5), (4, 4), (1, 2)):
        api.merge(where, {"spec": {"replicas": before}}).ok()
        assert api.merge(where, {"spec": {"replicas": None}}).ok().json["spec"]["replicas"] == after
    api.merge(where, {"metadata": {"annotations": {MIN: None}}}).ok()
    assert api.merge(where, {"spec": {"replicas": None}}).ok().json["spec"]["replicas"] == 1


@pytest.mark.parametrize(
    ("plural", "body"),
    [("machinepools", pool()), ("machines", machine({"dataSecretName": "s"})), ("machinehealthchecks", check())],
)
def test_the_cluster_of_an_object_stays(
    api: Api, names: list[tuple[str, str]], plural: str, body: dict[str, Any]
) -> None:
    names.append((plural, body["metadata"]["name"]))
    made(api, plural, body)
    change = {"clusterName": "d", **({"template": {"spec": {"clusterName": "d"}}} if plural == "machinepools" else {})}
    answer = api.merge(f"{CORE}/{plural}/{body['metadata']['name']}", {"spec": change}).ok(422, "Invalid")
    assert "spec.clusterName" in answer.fields


def test_references_of_a_cluster_are_not_taken_away(api: Api, names: list[tuple[str, str]]) -> None:
    names.append(("clusters", "c"))
    plane = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "DevControlPlane", "name": "c"}
    made(api, "clusters", cluster(controlPlaneRef=plane))
    answer = api.merge(f"{CORE}/clusters/c", {"spec": {"infrastructureRef": None}}).ok(422, "Invalid")
    assert answer.fields == ["spec.infrastructureRef"]


def calls(api: Api, kind: str, group: str = "cluster.x-k8s.io") -> int:
    """How often the API server has asked a webhook about a kind."""
    counted = re.findall(
        rf'^apiserver_admission_webhook_request_total{{.*name="[a-z]+\.{kind}\.{re.escape(group)}".*}} (\d+)$',
        api.get("/metrics").ok().text,
        re.MULTILINE,
    )
    return sum(map(int, counted))


@pytest.mark.parametrize("capi_server", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
def test_a_write_of_a_complete_machine_costs_no_call(api: Api, names: list[tuple[str, str]]) -> None:
    names += [("machines", "m"), ("machines", "n")]
    complete = machine({"dataSecretName": ""}, labels={"cluster.x-k8s.io/cluster-name": "c", POOL_LABEL: "p"})
    complete["spec"] |= {"version": "v1.35.0", "deletion": {"nodeDeletionTimeoutSeconds": 10}}
    before = calls(api, "machine")
    made(api, "machines", complete)
    api.merge(f"{CORE}/machines/m", {"metadata": {"annotations": {"a": "b"}}, "spec": {"providerID": "x://1"}}).ok()
    api.merge(f"{CORE}/machines/m/status", {"status": {"phase": "Running"}}).ok()
    assert calls(api, "machine") == before
    made(api, "machines", {**complete, "metadata": {"name": "n"}})
    assert calls(api, "machine") == before + 1

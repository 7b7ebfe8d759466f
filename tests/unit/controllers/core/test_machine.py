"""Machine: from the infrastructure's first sign of life to Running."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from capi.api.core import annotations, labels
from capi.api.core.conditions import NODE_HEALTHY, NODE_READY, REMOTE_CONNECTION_PROBE
from capi.api.core.v1beta2 import (
    ClusterInitialization,
    ClusterStatus,
    MachineBootstrap,
    MachineInitialization,
    ReadinessGate,
)
from capi.controllers import owners
from capi.controllers.core.machine.plan import plan
from capi.controllers.core.machine.scope import Scope
from capi.controllers.core.nodes import NodeSync
from capi.kube import conditions
from capi.runtime.plan import Patch
from tests.unit.controllers.builders import (
    LONG_AGO,
    NOW,
    UNINITIALIZED,
    a_cluster,
    a_machine,
    a_node,
    a_pool,
    condition,
    found,
    infra_machine,
    provider,
    ref,
    running,
    with_status,
)
from tests.unit.controllers.core.passes import after, applies, brief, patches, said


def a_scope(**changes: Any) -> Scope:
    """A pool's Machine whose Node is Ready."""
    healthy: dict[str, Any] = {
        "machine": a_machine(),
        "cluster": a_cluster(),
        "pool": a_pool(),
        "infra": found(infra_machine()),
        "connected": True,
        "nodes": (a_node(),),
    }
    return Scope(**{**healthy, **changes})


def alone(**more: Any) -> Any:
    """A Machine outside any pool."""
    return a_machine(owner=None, meta={"labels": {}, **more.pop("meta", {})}, **more)


def test_a_machine_with_a_ready_node_is_running_after_one_pass() -> None:
    made = plan(a_scope(), NOW)
    status: Any = made.status
    assert status.phase == "Running"
    assert status.node_ref.name == "p-0"
    assert status.node_info.kubelet_version == "v1.35.0"
    assert [a.address for a in status.addresses] == ["10.1.0.0"]
    assert status.initialization == MachineInitialization(infrastructure_provisioned=True)
    assert {type_: brief(made, type_) for type_ in ("Ready", "Available", "UpToDate", "NodeReady", "NodeHealthy")} == {
        "Ready": ("True", "Ready"),
        "Available": ("True", "Available"),
        "UpToDate": ("True", "UpToDate"),
        "NodeReady": ("True", "NodeReady"),
        "NodeHealthy": ("True", "NodeHealthy"),
    }
    assert [event.reason for event in made.events] == ["SuccessfulSetNodeRef"]


def test_a_running_pool_machine_costs_one_write_each_on_infrastructure_and_node() -> None:
    writes = plan(a_scope(), NOW).writes
    assert [(type(w).__name__, w.target.resource.kind) for w in writes] == [("Apply", "TestMachine"), ("Patch", "Node")]


def test_a_settled_machine_is_silent() -> None:
    first = a_scope()
    made = plan(first, NOW)
    [node_patch] = patches(made, "Node").values()
    node = a_node(annotations=node_patch.body["metadata"]["annotations"])
    settled = replace(first, machine=after(first.machine, made), nodes=(node,))
    again = plan(settled, NOW + timedelta(minutes=10))
    assert after(settled.machine, again, NOW + timedelta(minutes=10)) == settled.machine
    assert not any(isinstance(write, Patch) for write in again.writes)
    assert again.writes == made.writes[:1]
    assert not again.events
    assert again.requeue_after is None


@pytest.mark.parametrize(
    ("machine", "owned"),
    [
        pytest.param(alone(), True, id="a stand-alone Machine belongs to its Cluster"),
        pytest.param(alone(meta={"labels": {labels.SET_NAME: "s"}}), False, id="one of a MachineSet does not"),
        pytest.param(alone(meta={"owner_references": (owners.reference(a_cluster("x"), controller=True),)}), False, id="one with a controller does not"),
    ],
)  # fmt: skip
def test_ownership_of_machines_outside_pools(machine: Any, owned: bool) -> None:
    body = applies(plan(a_scope(machine=machine, pool=None), NOW), "Machine")["p-0"].body
    assert body["metadata"]["labels"] == {labels.CLUSTER_NAME: "c"}
    assert ("ownerReferences" in body["metadata"]) == owned


def test_a_pool_machine_without_its_owner_is_not_given_to_the_cluster() -> None:
    assert not applies(plan(a_scope(machine=a_machine(owner=None)), NOW), "Machine")


def test_the_machine_becomes_the_controller_of_its_infrastructure() -> None:
    body = applies(plan(a_scope(), NOW), "TestMachine")["p-0"].body
    [owner] = body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Machine", "machine-p-0", True)
    assert body["metadata"]["labels"] == {labels.CLUSTER_NAME: "c"}


def test_infrastructure_that_something_else_controls_is_not_taken() -> None:
    other = infra_machine(meta={"owner_references": (owners.reference(a_machine(7), controller=True),)})
    made = plan(a_scope(infra=found(other)), NOW)
    assert not applies(made, "TestMachine")
    assert "controlled by Machine p-7" in str(made.error)
    assert made.status is not None


def test_a_controller_reference_that_outlived_its_machine_is_replaced() -> None:
    old = owners.reference(a_machine(meta={"uid": "before-the-move"}), controller=True)
    made = plan(a_scope(infra=found(infra_machine(meta={"owner_references": (old,)}))), NOW)
    body = patches(made, "TestMachine")["p-0"].body
    assert [owner["uid"] for owner in body["metadata"]["ownerReferences"]] == ["machine-p-0"]
    assert body["metadata"]["resourceVersion"] == "1"


def test_pool_machines_need_no_bootstrap_data() -> None:
    made = plan(a_scope(), NOW)
    assert brief(made, "BootstrapConfigReady") == ("True", "DataSecretProvided")
    assert made.status.initialization.bootstrap_data_secret_created is None  # type: ignore[union-attr]


def test_a_config_that_made_its_secret_gives_its_name_to_the_machine() -> None:
    config = provider("TestConfig", "b", status={"initialization": {"dataSecretCreated": True}, "dataSecretName": "s"})
    machine = alone(spec={"bootstrap": MachineBootstrap(config_ref=ref("TestConfig", "b"))})
    made = plan(a_scope(machine=machine, pool=None, bootstrap=found(config)), NOW)
    assert applies(made, "Machine")["p-0"].body["spec"]["bootstrap"] == {"dataSecretName": "s"}
    assert made.status.initialization.bootstrap_data_secret_created is True  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("status", "infra", "reason", "failure"),
    [
        pytest.param({}, None, "ObjectDoesNotExist", "", id="before provisioning"),
        pytest.param(running(), None, "ObjectDeleted", "InvalidConfiguration", id="after provisioning"),
        pytest.param({}, infra_machine(provisioned=False), "NotReady", "", id="not provisioned"),
    ],
)
def test_infrastructure_that_is_not_there(status: Any, infra: Any, reason: str, failure: str) -> None:
    seen = a_scope(machine=a_machine(status=status), infra=found(infra, "TestMachine", "p-0"), nodes=())
    made = plan(seen, NOW)
    assert brief(made, "InfrastructureReady") == ("False", reason)
    block = made.status.deprecated  # type: ignore[union-attr]
    assert (block.v1beta1.failure_reason if block else "") == failure
    assert made.error is None and made.requeue_after is None


def test_no_failure_is_terminal() -> None:
    broken = plan(a_scope(machine=a_machine(status=running()), infra=found(None, "TestMachine", "p-0")), NOW)
    healed = plan(a_scope(machine=after(a_machine(), broken)), NOW)
    old = healed.status.deprecated.v1beta1  # type: ignore[union-attr]
    assert (old.failure_reason, old.failure_message) == ("", "")
    assert healed.status.phase == "Running"  # type: ignore[union-attr]


def test_provisioning_without_a_provider_id_is_not_complete() -> None:
    machine = a_machine(spec={"provider_id": ""})
    made = plan(a_scope(machine=machine, infra=found(infra_machine(provider_id="")), nodes=()), NOW)
    assert made.status.initialization is None  # type: ignore[union-attr]
    assert "report spec.providerID" in said(made, "NodeReady").message
    assert (made.requeue_after, made.error) == (None, None)


def test_provisioned_stays_provisioned() -> None:
    seen = a_scope(machine=a_machine(status=running()), infra=found(infra_machine(provisioned=False)))
    assert plan(seen, NOW).status.initialization.infrastructure_provisioned is True  # type: ignore[union-attr]


def test_where_an_instance_is_follows_its_infrastructure() -> None:
    new = plan(a_scope(machine=alone(), infra=found(infra_machine(status={"failureDomain": "a"}))), NOW)
    assert new.status.failure_domain == "a"  # type: ignore[union-attr]
    assert "failureDomain" not in applies(new, "Machine")["p-0"].body["spec"]
    older = infra_machine()
    older.raw["spec"]["failureDomain"] = "b"
    old = plan(a_scope(machine=alone(), infra=found(older)), NOW)
    assert old.status.failure_domain == "b"  # type: ignore[union-attr]
    assert applies(old, "Machine")["p-0"].body["spec"]["failureDomain"] == "b"
    assert not applies(plan(a_scope(infra=found(older)), NOW), "Machine"), "the spec of a pool's Machine is the pool's"


def test_a_changed_provider_id_and_changed_addresses_are_taken_over() -> None:
    moved = infra_machine(
        provider_id="x://p/moved", status={"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}
    )
    machine = alone(status=running())
    made = plan(a_scope(machine=machine, pool=None, infra=found(moved), nodes=()), NOW)
    assert applies(made, "Machine")["p-0"].body["spec"]["providerID"] == "x://p/moved"
    assert [a.address for a in made.status.addresses] == ["10.9.9.9"]  # type: ignore[union-attr]
    unready = infra_machine(provisioned=False, provider_id="x://p/other")
    kept = plan(a_scope(machine=machine, pool=None, infra=found(unready)), NOW)
    assert applies(kept, "Machine")["p-0"].body["spec"]["providerID"] == "x://p/0"


def test_a_machine_waits_for_its_node_without_a_timer() -> None:
    made = plan(a_scope(nodes=()), NOW)
    assert brief(made, "NodeReady") == brief(made, "NodeHealthy") == ("Unknown", "InspectionFailed")
    assert "x://p/0" in said(made, "NodeReady").message
    assert (made.status.phase, made.requeue_after, made.error) == ("Provisioned", None, None)  # type: ignore[union-attr]


def test_a_node_that_vanished_is_reported_as_deleted() -> None:
    made = plan(a_scope(machine=a_machine(status=running()), nodes=()), NOW)
    assert brief(made, "NodeHealthy") == ("False", "NodeDeleted")
    assert brief(made, "Ready") == ("False", "NotReady")


def test_two_nodes_with_one_provider_id_are_nobodys() -> None:
    made = plan(a_scope(nodes=(a_node(0), a_node(0, name="twin"))), NOW)
    assert made.status.node_ref is None  # type: ignore[union-attr]
    assert brief(made, "NodeReady") == ("Unknown", "InternalError")
    assert not patches(made, "Node")


@pytest.mark.parametrize(
    ("initialized", "text"), [(None, "infrastructureProvisioned"), (True, "controlPlaneInitialized")]
)
def test_nodes_are_not_inspected_before_the_cluster_is_ready(initialized: bool | None, text: str) -> None:
    cluster = a_cluster(ready=False)
    if initialized:
        start = ClusterInitialization(infrastructure_provisioned=True)
        cluster = with_status(cluster, ClusterStatus(initialization=start))
    made = plan(a_scope(cluster=cluster), NOW)
    assert brief(made, "NodeReady") == ("Unknown", "InspectionFailed")
    assert text in said(made, "NodeReady").message


KNOWN = (condition(NODE_READY, "True"), condition(NODE_HEALTHY, "True"))


@pytest.mark.parametrize(
    ("known", "lost", "expected", "recheck"),
    [
        pytest.param((), None, ("Unknown", "ConnectionDown"), None, id="never known"),
        pytest.param(
            KNOWN, timedelta(minutes=1), ("True", "NodeReady"), timedelta(minutes=4), id="believed for a while"
        ),
        pytest.param(KNOWN, timedelta(minutes=5), ("Unknown", "ConnectionDown"), None, id="not for ever"),
    ],
)
def test_a_lost_connection(known: Any, lost: Any, expected: Any, recheck: Any) -> None:
    probe = () if lost is None else (condition(REMOTE_CONNECTION_PROBE, "False", "ProbeFailed", "down", NOW - lost),)
    machine = a_machine(conditions=known, status=running())
    made = plan(a_scope(machine=machine, cluster=a_cluster(conditions=probe), connected=False, nodes=()), NOW)
    assert brief(made, NODE_READY) == expected
    assert made.requeue_after == recheck


@pytest.mark.parametrize(
    ("ready", "node_ready", "healthy"),
    [
        ("False", ("False", "NodeNotReady"), ("False", "NodeNotHealthy")),
        ("Unknown", ("Unknown", "NodeReadyUnknown"), ("Unknown", "NodeHealthyUnknown")),
    ],
)
def test_the_node_decides_how_its_machine_is(ready: str, node_ready: Any, healthy: Any) -> None:
    made = plan(a_scope(nodes=(a_node(ready=ready),)), NOW)
    assert (brief(made, NODE_READY), brief(made, NODE_HEALTHY)) == (node_ready, healthy)
    assert said(made, NODE_READY).last_transition_time == LONG_AGO


def test_one_pass_marks_the_node_and_removes_the_taint() -> None:
    other = type(UNINITIALIZED)(key="dedicated", value="gpu", effect="NoSchedule")
    node = a_node(taints=(UNINITIALIZED, other), annotations={"mine": "1"})
    patch = patches(plan(a_scope(nodes=(node,)), NOW), "Node")["p-0"]
    assert patch.body["spec"]["taints"] == [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
    assert patch.body["metadata"]["resourceVersion"] == "7"
    marks = patch.body["metadata"]["annotations"]
    assert marks[annotations.NODE_OWNER_KIND] == "MachinePool"
    assert marks[annotations.NODE_OWNER_NAME] == "p"
    assert marks[annotations.NODE_MACHINE] == "p-0"
    assert (marks[annotations.NODE_CLUSTER_NAME], marks[annotations.NODE_CLUSTER_NAMESPACE]) == ("c", "default")
    assert "mine" not in marks


@pytest.mark.parametrize(
    ("label", "passed"),
    [
        ("node-role.kubernetes.io/worker", True),
        ("node-restriction.kubernetes.io/zone", True),
        ("a.node-restriction.kubernetes.io/zone", True),
        ("node.cluster.x-k8s.io/x", True),
        ("evilnode.cluster.x-k8s.io/x", False),
        ("example.com/x", False),
        ("plain", False),
    ],
)
def test_labels_that_go_to_the_node(label: str, passed: bool) -> None:
    machine = a_machine(meta={"labels": {labels.POOL_NAME: "p", label: "v"}})
    patch = patches(plan(a_scope(machine=machine), NOW), "Node")["p-0"]
    assert (patch.body["metadata"].get("labels", {}).get(label) == "v") == passed


def test_a_label_taken_from_the_machine_goes_from_the_node_and_foreign_ones_stay() -> None:
    node = a_node(
        labels={"node.cluster.x-k8s.io/old": "1", "node.cluster.x-k8s.io/foreign": "1"},
        annotations={annotations.NODE_LABELS_FROM_MACHINE: "node.cluster.x-k8s.io/old"},
    )
    patch = patches(plan(a_scope(nodes=(node,)), NOW), "Node")["p-0"]
    assert patch.body["metadata"]["labels"] == {"node.cluster.x-k8s.io/old": None}
    assert patch.body["metadata"]["annotations"][annotations.NODE_LABELS_FROM_MACHINE] == ""


def test_interruptible_instances_label_their_node_and_say_so_once() -> None:
    infra = found(infra_machine(status={"interruptible": True}))
    made = plan(a_scope(infra=infra), NOW)
    assert patches(made, "Node")["p-0"].body["metadata"]["labels"] == {labels.INTERRUPTIBLE: ""}
    assert "SuccessfulSetInterruptibleNodeLabel" in [event.reason for event in made.events]
    again = plan(a_scope(infra=infra, nodes=(a_node(labels={labels.INTERRUPTIBLE: ""}),)), NOW)
    assert "SuccessfulSetInterruptibleNodeLabel" not in [event.reason for event in again.events]


def test_available_waits_for_min_ready_seconds_on_a_timer() -> None:
    machine = a_machine(spec={"min_ready_seconds": 60})
    made = plan(a_scope(machine=machine), NOW)
    assert brief(made, "Available") == ("False", "WaitingForMinReadySeconds")
    assert made.requeue_after == timedelta(seconds=60)
    later = plan(a_scope(machine=after(machine, made)), NOW + timedelta(seconds=60))
    assert (brief(later, "Available"), later.requeue_after) == (("True", "Available"), None)


@pytest.mark.parametrize(
    ("gate", "conditions", "ready"),
    [
        (ReadinessGate(condition_type="Gate"), (), "Unknown"),
        (ReadinessGate(condition_type="Gate"), (condition("Gate", "True"),), "True"),
        (ReadinessGate(condition_type="Gate", polarity="Negative"), (condition("Gate", "True"),), "False"),
        (ReadinessGate(condition_type="Gate", polarity="Negative"), (condition("Gate", "False"),), "True"),
    ],
)
def test_readiness_gates(gate: Any, conditions: Any, ready: str) -> None:
    machine = a_machine(spec={"readiness_gates": (gate,)}, conditions=conditions)
    assert said(plan(a_scope(machine=machine), NOW), "Ready").status == ready


def test_a_failed_health_check_counts_only_when_it_was_made() -> None:
    sick = a_machine(conditions=(condition("HealthCheckSucceeded", "False", "UnhealthyNode", "no"),))
    made = plan(a_scope(machine=sick), NOW)
    assert said(made, "Ready").message == "* HealthCheckSucceeded: no"
    assert "HealthCheckSucceeded" not in [c.type for c in made.status.conditions]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("version", "infra", "expected"),
    [
        pytest.param("v1.35.0", infra_machine(), ("True", "UpToDate"), id="same version"),
        pytest.param("v1.36.0", infra_machine(), ("False", "NotUpToDate"), id="another version is wanted"),
        pytest.param("", infra_machine(), ("True", "UpToDate"), id="no version is wanted"),
        pytest.param("v1.35.0", infra_machine(status={"conditions": [{"type": "UpToDate", "status": "False", "reason": "Old", "message": "old", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}), ("False", "NotUpToDate"), id="the provider knows better"),
    ],
)  # fmt: skip
def test_up_to_date(version: str, infra: Any, expected: Any) -> None:
    pool = a_pool(template={"version": version})
    assert brief(plan(a_scope(pool=pool, infra=found(infra)), NOW), "UpToDate") == expected


def test_a_machine_being_deleted_is_not_up_to_date() -> None:
    assert brief(plan(a_scope(machine=a_machine(deleting=True)), NOW), "UpToDate") == ("False", "NotUpToDate")


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        pytest.param({"machine": a_machine(spec={"provider_id": "", "bootstrap": MachineBootstrap()}), "infra": found(None, "TestMachine", "p-0"), "nodes": ()}, "Pending", id="Pending"),
        pytest.param({"machine": a_machine(spec={"provider_id": ""}), "infra": found(infra_machine(provisioned=False, provider_id="")), "nodes": ()}, "Provisioning", id="Provisioning"),
        pytest.param({"nodes": ()}, "Provisioned", id="Provisioned"),
        pytest.param({}, "Running", id="Running"),
        pytest.param({"machine": a_machine(deleting=True)}, "Deleting", id="Deleting"),
    ],
)  # fmt: skip
def test_phases(changes: Any, phase: str) -> None:
    assert plan(a_scope(**changes), NOW).status.phase == phase  # type: ignore[union-attr]


def test_a_missing_cluster_is_waited_for() -> None:
    made = plan(a_scope(cluster=None), NOW)
    assert (made.writes, made.error) == ((), None)
    assert [event.reason for event in made.events] == ["ClusterNotFound"]
    ready = conditions.get(made.status.conditions, "Ready")  # type: ignore[union-attr]
    assert ready is not None and (ready.status, ready.message) == ("Unknown", "Cluster c does not exist")


def old(made: Any) -> dict[str, tuple[str, str, str]]:
    """Conditions of the old API: status, severity and reason by type."""
    return {c.type: (c.status, c.severity, c.reason) for c in made.status.deprecated.v1beta1.conditions}


def test_the_old_conditions_of_a_running_machine() -> None:
    assert old(plan(a_scope(), NOW)) == {
        "Ready": ("True", "", ""), "InfrastructureReady": ("True", "", ""), "NodeHealthy": ("True", "", ""),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"nodes": ()}, ("False", "Warning", "NodeProvisioning")),
        ({"nodes": (), "machine": a_machine(status=running())}, ("False", "Error", "NodeNotFound")),
        ({"nodes": (a_node(ready="False"),)}, ("False", "Warning", "NodeConditionsFailed")),
        ({"nodes": (a_node(ready="Unknown"),)}, ("True", "", "")),
        ({"infra": found(infra_machine(deleting=True))}, ("False", "Info", "Deleting")),
        (
            {"machine": a_machine(spec={"provider_id": ""}), "infra": found(infra_machine(provider_id=""))},
            ("False", "Info", "WaitingForNodeRef"),
        ),
    ],
)
def test_the_old_condition_of_the_node(changes: Any, wanted: Any) -> None:
    assert old(plan(a_scope(**changes), NOW))["NodeHealthy"] == wanted


def test_old_conditions_wait_for_infrastructure_and_data() -> None:
    config = provider("TestConfig", "b", status={"initialization": {"dataSecretCreated": False}})
    machine = alone(spec={"bootstrap": MachineBootstrap(config_ref=ref("TestConfig", "b"))})
    made = plan(
        a_scope(machine=machine, bootstrap=found(config), infra=found(infra_machine(provisioned=False)), nodes=()), NOW
    )
    assert old(made)["BootstrapReady"] == ("False", "Info", "WaitingForDataSecret")
    assert old(made)["InfrastructureReady"] == ("False", "Info", "WaitingForInfrastructure")
    assert old(made)["Ready"][0] == "False"


def test_old_conditions_of_a_health_check_follow_the_new_ones() -> None:
    sick = (
        condition("HealthCheckSucceeded", "False", "NodeDeleted", "Health check failed: Node p-0 has been deleted"),
        condition("OwnerRemediated", "False", "WaitingForRemediation"),
    )
    made = old(plan(a_scope(machine=a_machine(conditions=sick)), NOW))
    assert made["HealthCheckSucceeded"] == ("False", "Warning", "NodeNotFound")
    assert made["OwnerRemediated"] == ("False", "Warning", "WaitingForRemediation")
    assert made["Ready"][0] == "False"
    well = (condition("HealthCheckSucceeded", "True"),)
    assert old(plan(a_scope(machine=a_machine(conditions=well)), NOW))["HealthCheckSucceeded"] == ("True", "", "")


def test_old_conditions_keep_what_is_known_while_the_connection_is_lost() -> None:
    before = after(a_machine(), plan(a_scope(), NOW))
    assert old(plan(a_scope(machine=before, connected=False, nodes=()), NOW))["NodeHealthy"] == ("True", "", "")


def test_expiry_of_certificates() -> None:
    name, when = annotations.CERTIFICATES_EXPIRY, "2027-01-31T12:00:00Z"
    plane = {labels.CONTROL_PLANE: ""}
    config = provider("TestConfig", "b", annotations={name: "2026-06-01T00:00:00Z"})
    by_config = plan(a_scope(machine=alone(meta={"labels": plane}), bootstrap=found(config)), NOW)
    assert by_config.status.certificates_expiry_date.month == 6  # type: ignore[union-attr]
    both = a_scope(machine=alone(meta={"labels": plane, "annotations": {name: when}}), bootstrap=found(config))
    assert plan(both, NOW).status.certificates_expiry_date.year == 2027  # type: ignore[union-attr]
    worker = plan(a_scope(machine=alone(meta={"annotations": {name: when}})), NOW)
    assert worker.status.certificates_expiry_date is None  # type: ignore[union-attr]
    broken = plan(a_scope(machine=alone(meta={"labels": plane, "annotations": {name: "soon"}})), NOW)
    assert broken.status.certificates_expiry_date is None  # type: ignore[union-attr]
    assert [event.reason for event in broken.events if event.type == "Warning"] == ["InvalidCertificatesExpiry"]


def test_another_template_hash_than_the_pools_is_not_up_to_date() -> None:
    def seen(own: str, pools: str) -> Any:
        infra = found(infra_machine(meta={"annotations": {annotations.TEMPLATE_HASH: own}}))
        return a_scope(
            infra=infra, pool_infra=provider("TestMachinePool", "p", annotations={annotations.TEMPLATE_HASH: pools})
        )

    assert brief(plan(seen("a", "b"), NOW), "UpToDate") == ("False", "NotUpToDate")
    assert brief(plan(seen("a", "a"), NOW), "UpToDate") == ("True", "UpToDate")


def test_further_labels_and_annotations_go_to_the_node_by_setting() -> None:
    sync = NodeSync((re.compile(r"^acme\.example/"),), (re.compile(r"^note\."),))
    machine = a_machine(meta={"labels": {"acme.example/rack": "7", "x": "y"}, "annotations": {"note.a": "1", "b": "2"}})
    body = patches(plan(a_scope(machine=machine, sync=sync), NOW), "Node")["p-0"].body["metadata"]
    assert body["labels"] == {"acme.example/rack": "7"}
    assert body["annotations"]["note.a"] == "1"
    assert "b" not in body["annotations"]
    assert body["annotations"][annotations.NODE_LABELS_FROM_MACHINE] == "acme.example/rack"


def test_a_settled_machine_outside_a_pool_is_silent() -> None:
    seen = a_scope(machine=alone(), pool=None)
    first = plan(seen, NOW)
    marks = patches(first, "Node")["p-0"].body["metadata"]["annotations"]
    node = a_node(annotations={name: value for name, value in marks.items() if value is not None})
    settled = replace(seen, machine=after(alone(), first), nodes=(node,))
    assert patches(plan(settled, NOW), "Node") == {}

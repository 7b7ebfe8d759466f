"""MachinePool: bootstrap, infrastructure, Nodes, counters, phase, conditions."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from capi.api.core import annotations, labels
from capi.api.core.v1beta2 import (
    MachineBootstrap,
    MachinePoolDeprecatedStatus,
    MachinePoolInitialization,
    MachinePoolStatus,
    MachinePoolV1Beta1Status,
    ObjectReference,
    StatusVersion,
)
from capi.controllers import owners
from capi.controllers.core.machinepool.plan import plan
from capi.controllers.core.machinepool.scope import Scope
from capi.kube import conditions as kube_conditions
from tests.unit.controllers.builders import (
    NOW,
    UNINITIALIZED,
    a_cluster,
    a_machine,
    a_node,
    a_pool,
    condition,
    found,
    infra_machine,
    infra_pool,
    node_info,
    provider,
    ref,
    running,
)
from tests.unit.controllers.core.passes import after, applies, brief, deletes, patches, said

READY = (condition("Ready", "True"), condition("Available", "True"), condition("UpToDate", "True"))


def a_scope(count: int = 2, **changes: Any) -> Scope:
    """A pool whose Machines are all Running."""
    healthy: dict[str, Any] = {
        "pool": a_pool(replicas=count),
        "cluster": a_cluster(),
        "infra": found(infra_pool([f"x://p/{i}" for i in range(count)])),
        "infra_machines": [infra_machine(i) for i in range(count)],
        "machines": [a_machine(i, conditions=READY, status=running(i, node_info=node_info())) for i in range(count)],
        "nodes": {f"x://p/{i}": a_node(i) for i in range(count)},
    }
    return Scope(**{**healthy, **changes})


def plain(**changes: Any) -> Scope:
    """A pool whose infrastructure has no objects for single instances."""
    return a_scope(**{"infra": found(infra_pool(kind="")), "infra_machines": [], "machines": [], **changes})


def status_of(seen: Scope) -> Any:
    return plan(seen, NOW).status


def config(**status: Any) -> Any:
    return found(provider("TestConfig", "b", status=status))


MADE = {"initialization": {"dataSecretCreated": True}, "dataSecretName": "new"}


def with_config(name: str | None = "old", **more: Any) -> Any:
    return a_pool(
        template={"bootstrap": MachineBootstrap(config_ref=ref("TestConfig", "b"), data_secret_name=name)}, **more
    )


def secret(seen: Scope) -> Any:
    spec = applies(plan(seen, NOW), "MachinePool")["p"].body.get("spec", {})
    return spec.get("template", {}).get("spec", {}).get("bootstrap", {}).get("dataSecretName")


# Ownership ------------------------------------------------------------------------------------------------------------


def test_a_pool_belongs_to_its_cluster() -> None:
    wrong = a_pool(meta={"labels": {labels.CLUSTER_NAME: "other"}})
    body = applies(plan(a_scope(pool=wrong), NOW), "MachinePool")["p"].body
    assert body["metadata"] == {
        "labels": {labels.CLUSTER_NAME: "c"},
        "ownerReferences": [
            {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "cluster-c"}
        ],
    }


def test_the_pool_controls_its_infrastructure_and_config() -> None:
    made = plan(a_scope(pool=with_config(), bootstrap=config()), NOW)
    for kind, name in (("TestMachinePool", "p"), ("TestConfig", "b")):
        [owner] = applies(made, kind)[name].body["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == ("pool-p", True)


def test_infrastructure_of_something_else_is_not_taken_and_the_rest_goes_on() -> None:
    other = infra_pool(owner_references=(owners.reference(a_pool("q"), controller=True),))
    made = plan(a_scope(infra=found(other)), NOW)
    assert not applies(made, "TestMachinePool")
    assert made.error is not None and made.status is not None
    assert applies(made, "MachinePool")


def test_a_missing_cluster_is_waited_for() -> None:
    made = plan(a_scope(cluster=None), NOW)
    assert (made.writes, made.status, made.error) == ((), None, None)


def test_a_settled_pool_is_silent() -> None:
    seen = a_scope()
    made = plan(seen, NOW)
    later = NOW + timedelta(minutes=10)
    settled = replace(seen, pool=after(seen.pool, made))
    again = plan(settled, later)
    assert after(settled.pool, again, later) == settled.pool
    assert [w.target.resource.kind for w in again.writes if w not in made.writes] == []
    assert not again.events and again.requeue_after is None


# Bootstrap ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pool", "bootstrap", "name", "flag"),
    [
        pytest.param(with_config(None), config(**MADE), "new", True, id="the config's secret"),
        pytest.param(with_config("old"), config(**MADE), "new", True, id="always the config's of now"),
        pytest.param(with_config("old"), config(), "old", False, id="the former one until the config is ready"),
        pytest.param(with_config(None), config(ready=True, dataSecretName="new"), "new", True, id="v1beta1 contract"),
        pytest.param(a_pool(), found(None), None, True, id="the user's is left alone"),
        pytest.param(a_pool(template={"bootstrap": MachineBootstrap(data_secret_name="")}), found(None), None, True, id="none is needed"),
        pytest.param(a_pool(template={"bootstrap": MachineBootstrap()}), found(None), None, False, id="neither"),
        pytest.param(with_config("old"), found(None, "TestConfig", "b"), "old", False, id="the config does not exist"),
    ],
)  # fmt: skip
def test_bootstrap_data(pool: Any, bootstrap: Any, name: str | None, flag: bool) -> None:
    seen = a_scope(pool=pool, bootstrap=bootstrap)
    assert secret(seen) == name
    assert status_of(seen).initialization.bootstrap_data_secret_created is flag


def test_a_config_without_the_name_of_its_secret_is_an_error() -> None:
    made = plan(a_scope(pool=with_config(None), bootstrap=config(initialization={"dataSecretCreated": True})), NOW)
    assert made.error is not None and "dataSecretName" in made.error.message
    assert made.status.initialization.bootstrap_data_secret_created is False  # type: ignore[union-attr]


def test_a_config_that_is_going_keeps_the_flag() -> None:
    before = MachinePoolStatus(initialization=MachinePoolInitialization(bootstrap_data_secret_created=True))
    seen = a_scope(pool=with_config(status=before), bootstrap=found(provider("TestConfig", "b", deleting=True)))
    assert status_of(seen).initialization.bootstrap_data_secret_created is True
    assert secret(seen) == "old"


def test_a_running_pool_with_an_unready_config_is_still_running() -> None:
    assert status_of(a_scope(pool=with_config(), bootstrap=config())).phase == "Running"


def v1(seen: Scope, type_: str) -> Any:
    return next(c for c in status_of(seen).deprecated.v1beta1.conditions if c.type == type_)


def test_the_config_s_own_reason_is_shown() -> None:
    waiting = v1(a_scope(pool=with_config(), bootstrap=config()), "BootstrapReady")
    assert (waiting.status, waiting.severity, waiting.reason) == ("False", "Info", "WaitingForDataSecret")
    ready = {
        "type": "Ready",
        "status": "False",
        "reason": "Mine",
        "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    seen = a_scope(pool=with_config(), bootstrap=config(conditions=[ready]))
    assert v1(seen, "BootstrapReady").reason == "Mine"
    assert brief(plan(seen, NOW), "BootstrapConfigReady") == ("False", "Mine")


# Infrastructure -------------------------------------------------------------------------------------------------------


def listed(seen: Scope) -> Any:
    return applies(plan(seen, NOW), "MachinePool")["p"].body.get("spec", {}).get("providerIDList")


@pytest.mark.parametrize(
    ("status", "flag"),
    [
        pytest.param({"initialization": {"provisioned": True}}, True, id="only the new field"),
        pytest.param({"ready": True}, True, id="only the old field"),
        pytest.param({"initialization": {"provisioned": False}, "ready": True}, False, id="the new one wins"),
        pytest.param({}, False, id="neither"),
    ],
)
def test_provisioned_by_either_contract(status: Any, flag: bool) -> None:
    infra = provider("TestMachinePool", "p", spec={"providerIDList": ["x://p/0"]}, status={**status, "replicas": 1})
    seen = a_scope(infra=found(infra))
    assert status_of(seen).initialization.infrastructure_provisioned is flag
    assert listed(seen) == (["x://p/0"] if flag else None)


@pytest.mark.parametrize(
    ("infra", "wanted", "kept"),
    [
        pytest.param(infra_pool(["x://p/1", "x://p/0"]), 2, ["x://p/1", "x://p/0"], id="in the provider's order"),
        pytest.param(infra_pool([], replicas=2), 2, ["x://p/9"], id="empty beside replicas means not yet"),
        pytest.param(infra_pool([]), 0, [], id="empty at zero: what somebody wrote there goes"),
        pytest.param(infra_pool(deleting=True), 2, ["x://p/9"], id="kept while the infrastructure is going"),
    ],
)
def test_the_list_of_instances(infra: Any, wanted: int, kept: Any) -> None:
    seen = a_scope(infra=found(infra), pool=a_pool(replicas=wanted, provider_id_list=("x://p/9",)))
    assert listed(seen) == kept


@pytest.mark.parametrize(
    ("was", "reason", "failure"), [(None, "ObjectDoesNotExist", ""), (True, "ObjectDeleted", "InvalidConfiguration")]
)
def test_missing_infrastructure(was: Any, reason: str, failure: str) -> None:
    before = MachinePoolStatus(
        initialization=MachinePoolInitialization(infrastructure_provisioned=was), replicas=2, ready_replicas=2
    )
    seen = a_scope(pool=a_pool(status=before), infra=found(None, "TestMachinePool", "p"), infra_machines=[])
    made = plan(seen, NOW)
    assert brief(made, "InfrastructureReady") == ("False", reason)
    old = v1(seen, "InfrastructureReady")
    assert (old.status, old.severity, old.reason) == ("False", "Error", "IncorrectExternalRef")
    assert made.status.deprecated.v1beta1.failure_reason == failure  # type: ignore[union-attr]
    assert (made.status.replicas, made.status.ready_replicas) == (2, 2)  # type: ignore[union-attr]
    assert made.error is None


def test_a_reported_failure_is_shown_and_goes_with_its_cause() -> None:
    bad = a_scope(infra=found(infra_pool(status={"failureReason": "CreateError", "failureMessage": "quota"})))
    made = plan(bad, NOW)
    block = made.status.deprecated.v1beta1  # type: ignore[union-attr]
    assert block.failure_reason == "CreateError" and "quota" in block.failure_message
    assert made.error is None
    healed = status_of(a_scope(pool=after(bad.pool, made)))
    assert (healed.deprecated.v1beta1.failure_reason, healed.phase) == ("", "Running")


# Nodes ----------------------------------------------------------------------------------------------------------------


def node_ref(index: int, uid: str = "") -> ObjectReference:
    return ObjectReference(api_version="v1", kind="Node", name=f"p-{index}", uid=uid or f"node-p-{index}")


def test_node_references_follow_the_list_of_instances() -> None:
    seen = a_scope(infra=found(infra_pool(["x://p/1", "x://p/0"])))
    made = plan(seen, NOW)
    assert made.status.node_refs == (node_ref(1), node_ref(0))  # type: ignore[union-attr]
    assert v1(seen, "ReplicasReady").status == "True"
    assert made.requeue_after is None


def test_a_node_that_is_not_ready_is_referred_to_but_not_counted() -> None:
    nodes = {"x://p/0": a_node(0), "x://p/1": a_node(1, ready="False")}
    seen = a_scope(nodes=nodes)
    status = status_of(seen)
    assert len(status.node_refs) == 2
    assert (status.deprecated.v1beta1.ready_replicas, status.deprecated.v1beta1.unavailable_replicas) == (1, 1)
    waiting = v1(seen, "ReplicasReady")
    assert (waiting.status, waiting.reason) == ("False", "WaitingForReplicasReady")


def test_only_whole_provider_ids_match() -> None:
    seen = a_scope(1, nodes={"y://p/0": a_node(0, provider_id="y://p/0")})
    assert status_of(seen).node_refs == ()


def test_references_stay_while_no_node_can_be_found() -> None:
    before = MachinePoolStatus(node_refs=(node_ref(0),))
    for nodes in ({}, None):
        assert status_of(a_scope(pool=a_pool(status=before), nodes=nodes)).node_refs == (node_ref(0),)


def test_a_recreated_node_gets_its_new_uid() -> None:
    before = MachinePoolStatus(node_refs=(node_ref(0, "old"), node_ref(1)))
    assert status_of(a_scope(pool=a_pool(status=before))).node_refs == (node_ref(0), node_ref(1))


@pytest.mark.parametrize(
    ("minimum", "age", "available", "timer"), [(10, 5, 0, timedelta(seconds=5)), (10, 20, 1, None), (0, 0, 1, None)]
)
def test_min_ready_seconds_of_nodes(minimum: int, age: int, available: int, timer: Any) -> None:
    node = a_node(0, since=NOW - timedelta(seconds=age))
    pool = a_pool(replicas=1, template={"min_ready_seconds": minimum})
    made = plan(plain(pool=pool, infra=found(infra_pool(["x://p/0"], kind="")), nodes={"x://p/0": node}), NOW)
    assert made.status.deprecated.v1beta1.available_replicas == available  # type: ignore[union-attr]
    assert made.requeue_after == timer


def test_the_node_of_an_instance_that_left_goes() -> None:
    assert deletes(plan(plain(retired=[a_node(5)]), NOW), "Node") == ["p-5"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"retired": [a_node(5, provider_id="")]}, "it has no provider ID"),
        ({"retired": [a_node(5)], "machines": [a_machine(5, status=running(5))]}, "its Machine deletes it"),
        ({"retired": [a_node(1)]}, "its instance is listed"),
    ],
)
def test_nodes_that_stay(changes: Any, why: str) -> None:
    assert not deletes(plan(plain(**changes), NOW), "Node"), why


def test_at_zero_everything_is_zero_and_running() -> None:
    before = MachinePoolStatus(node_refs=(node_ref(0),), replicas=1, ready_replicas=1)
    pool = a_pool(replicas=0, status=before, provider_id_list=("x://p/0",))
    made = plan(plain(pool=pool, infra=found(infra_pool([])), nodes={}, retired=[a_node(0)]), NOW)
    status: Any = made.status
    assert (status.phase, status.node_refs, status.replicas, status.ready_replicas) == ("Running", (), 0, 0)
    assert deletes(made, "Node") == ["p-0"]
    assert made.error is None


def test_a_pool_without_machines_marks_its_nodes_in_one_patch() -> None:
    seen = plain(nodes={"x://p/0": a_node(0, taints=(UNINITIALIZED,))})
    body = patches(plan(seen, NOW), "Node")["p-0"].body
    assert body["spec"] == {"taints": None}
    assert body["metadata"]["annotations"] == {
        annotations.NODE_CLUSTER_NAME: "c",
        annotations.NODE_CLUSTER_NAMESPACE: "default",
        annotations.NODE_OWNER_KIND: "MachinePool",
        annotations.NODE_OWNER_NAME: "p",
    }
    marked = a_node(0, annotations=body["metadata"]["annotations"])
    assert not patches(plan(plain(nodes={"x://p/0": marked}), NOW), "Node")


def test_the_nodes_of_machines_are_left_to_them() -> None:
    assert not patches(plan(a_scope(), NOW), "Node")


# Phase and counters ---------------------------------------------------------------------------------------------------


def before(ready: int) -> MachinePoolStatus:
    """Of a pool whose Nodes cannot be seen at the moment."""
    block = MachinePoolV1Beta1Status(ready_replicas=ready)
    return MachinePoolStatus(deprecated=MachinePoolDeprecatedStatus(v1beta1=block))


def pool_at(wanted: int, ready: int, managed: str | None = None) -> Any:
    marks = {} if managed is None else {annotations.REPLICAS_MANAGED_BY: managed}
    return a_pool(replicas=wanted, status=before(ready), meta={"annotations": marks})


@pytest.mark.parametrize(
    ("wanted", "ready", "managed", "phase"),
    [
        (1, 1, None, "Running"),
        (5, 1, None, "ScalingUp"),
        (1, 4, None, "ScalingDown"),
        (0, 1, None, "ScalingDown"),
        (1, 0, None, "ScalingUp"),
        (5, 1, "", "Scaling"),
        (1, 4, "karpenter", "Scaling"),
        (5, 1, "false", "ScalingUp"),
        (1, 4, "false", "ScalingDown"),
        (1, 1, "karpenter", "Running"),
    ],
)
def test_phases_of_a_provisioned_pool(wanted: int, ready: int, managed: Any, phase: str) -> None:
    assert status_of(a_scope(pool=pool_at(wanted, ready, managed), nodes=None)).phase == phase


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        pytest.param({"pool": a_pool(template={"bootstrap": MachineBootstrap()}), "infra": found(infra_pool(provisioned=False)), "nodes": {}}, "Pending", id="new"),
        pytest.param({"infra": found(infra_pool(provisioned=False)), "nodes": {}}, "Provisioning", id="secret there, infrastructure not"),
        pytest.param({"infra": found(infra_pool(provisioned=False)), "pool": a_pool(provider_id_list=("x://p/0",))}, "Provisioned", id="Nodes there, infrastructure not"),
        pytest.param({"pool": a_pool(deleting=True)}, "Deleting", id="deleting"),
        pytest.param({"pool": a_pool(replicas=None, status=MachinePoolStatus(replicas=2))}, "Running", id="nobody says how many"),
    ],
)  # fmt: skip
def test_other_phases(changes: Any, phase: str) -> None:
    assert status_of(a_scope(**changes)).phase == phase


def test_counters_count_machines_by_their_conditions() -> None:
    machines = [
        a_machine(0, conditions=READY, status=running(0, node_info=node_info("v1.35.0"))),
        a_machine(1, conditions=(READY[0], READY[2]), spec={"version": "v1.34.0"}),
        a_machine(2, conditions=(condition("Ready", "False"), READY[2])),
    ]
    status = status_of(a_scope(3, machines=machines))
    assert (status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas) == (
        3,
        2,
        1,
        3,
    )
    assert status.versions == (
        StatusVersion(version="v1.34.0", replicas=1),
        StatusVersion(version="v1.35.0", replicas=2),
    )


def test_machines_of_others_are_not_counted() -> None:
    other = a_machine(1, owner=owners.reference(a_pool("q"), controller=True), conditions=READY)
    assert status_of(a_scope(machines=[a_machine(0, conditions=READY), other])).ready_replicas == 1


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([], ()),
        (["v1.32.0", "v1.31.1", "v1.31.1"], (("v1.31.1", 2), ("v1.32.0", 1))),
    ],
)
def test_counters_without_machines_are_the_provider_s(versions: Any, expected: Any) -> None:
    ids = [f"x://p/{i}" for i in range(3)]
    nodes = {f"x://p/{i}": a_node(i, version=v) for i, v in enumerate(versions)}
    status = status_of(plain(pool=a_pool(replicas=3), infra=found(infra_pool(ids, replicas=2, kind="")), nodes=nodes))
    assert (status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas) == (
        2,
        2,
        2,
        3,
    )
    assert status.versions == tuple(StatusVersion(version=v, replicas=n) for v, n in expected)


def test_a_new_pool_without_reported_replicas_is_not_ready() -> None:
    seen = a_scope(infra=found(infra_pool([], replicas=-1)), machines=[], infra_machines=[], nodes={})
    assert v1(seen, "ReplicasReady").status == "False"
    assert v1(seen, "Ready").reason == "WaitingForReplicasReady"


# Conditions -----------------------------------------------------------------------------------------------------------


def test_all_conditions_of_a_healthy_pool() -> None:
    made = plan(a_scope(), NOW)
    assert {c.type: (c.status, c.reason) for c in made.status.conditions} == {  # type: ignore[union-attr]
        "Available": ("True", "Available"),
        "BootstrapConfigReady": ("True", "DataSecretProvided"),
        "InfrastructureReady": ("True", "Ready"),
        "MachinesReady": ("True", "Ready"),
        "MachinesUpToDate": ("True", "UpToDate"),
        "ScalingUp": ("False", "NotScalingUp"),
        "ScalingDown": ("False", "NotScalingDown"),
        "Remediating": ("False", "NotRemediating"),
        "Deleting": ("False", "NotDeleting"),
    }


def test_available_says_what_is_missing() -> None:
    machines = [a_machine(i, conditions=READY if i < 3 else ()) for i in range(5)]
    made = plan(a_scope(5, machines=machines), NOW)
    assert said(made, "Available").message == "3 available replicas, at least 5 required"
    assert brief(made, "MachinesReady") == ("Unknown", "ReadyUnknown")


@pytest.mark.parametrize(
    ("wanted", "up", "down"),
    [(3, "True", "False"), (2, "False", "False"), (1, "False", "True")],
)
def test_scaling(wanted: int, up: str, down: str) -> None:
    made = plan(a_scope(pool=a_pool(replicas=wanted)), NOW)
    assert (said(made, "ScalingUp").status, said(made, "ScalingDown").status) == (up, down)


def test_pools_without_machines_say_nothing_about_them() -> None:
    types = {c.type for c in status_of(plain()).conditions}
    assert not types & {"MachinesReady", "MachinesUpToDate", "Remediating"}


def test_an_empty_pool_has_no_replicas() -> None:
    made = plan(a_scope(0, pool=a_pool(replicas=0)), NOW)
    assert brief(made, "MachinesReady") == brief(made, "MachinesUpToDate") == ("True", "NoReplicas")
    assert brief(made, "Available") == ("True", "Available")


def test_what_is_wrong_is_named_and_what_is_much_is_counted() -> None:
    sick = condition("Ready", "False", "NotReady", "no disk")
    machines = [a_machine(i, conditions=(sick,)) for i in range(5)]
    message = said(plan(a_scope(5, machines=machines), NOW), "MachinesReady").message
    assert message == "* Machines p-0, p-1, p-2, ... (2 more): no disk"


def test_old_conditions_keep_their_times() -> None:
    seen = a_scope()
    pool = after(seen.pool, plan(seen, NOW))
    again = plan(replace(seen, pool=pool), NOW + timedelta(hours=1)).status
    assert {c.last_transition_time for c in again.deprecated.v1beta1.conditions} == {NOW}  # type: ignore[union-attr]
    assert kube_conditions.is_true(pool.status.conditions, "Available")

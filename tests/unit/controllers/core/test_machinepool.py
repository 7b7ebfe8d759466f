"""MachinePool: ownership, bootstrap, infrastructure, Nodes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from capi.api.core import annotations, labels
from capi.api.core.v1beta2 import (
    MachineBootstrap,
    MachinePoolInitialization,
    MachinePoolStatus,
    ObjectReference,
)
from capi.controllers import owners
from capi.controllers.core.machinepool.plan import plan
from capi.controllers.core.machinepool.scope import Scope
from tests.unit.controllers.builders import (
    NOW,
    UNINITIALIZED,
    a_machine,
    a_node,
    a_pool,
    found,
    infra_pool,
    provider,
    running,
)
from tests.unit.controllers.core.passes import after, applies, brief, deletes, patches
from tests.unit.controllers.core.pools import MADE, a_scope, before, config, plain, status_of, v1, with_config


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
    other = infra_pool(["x://p/7"], owner_references=(owners.reference(a_pool("q"), controller=True),))
    made = plan(a_scope(infra=found(other).unless_foreign(a_pool()), infra_machines=[]), NOW)
    assert not applies(made, "TestMachinePool")
    assert made.error is not None and "controlled by MachinePool q" in str(made.error)
    assert "providerIDList" not in applies(made, "MachinePool")["p"].body.get("spec", {})
    assert brief(made, "InfrastructureReady") == ("Unknown", "InternalError")
    assert made.status.ready_replicas == 2  # type: ignore[union-attr]


def test_a_missing_cluster_is_waited_for() -> None:
    made = plan(a_scope(cluster=None), NOW)
    assert (made.writes, made.error) == ((), None)
    assert brief(made, "Available") == ("Unknown", "InternalError")


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
    assert made.error is not None and "dataSecretName" in str(made.error)
    assert made.status.initialization.bootstrap_data_secret_created is False  # type: ignore[union-attr]


def test_a_pool_without_any_bootstrap_says_what_to_set() -> None:
    made = plan(a_scope(pool=a_pool(template={"bootstrap": MachineBootstrap()})), NOW)
    assert brief(made, "BootstrapConfigReady") == ("False", "NotReady")
    assert made.error is not None and "neither configRef nor dataSecretName" in str(made.error)
    assert applies(made, "MachinePool") and made.status is not None, "the rest goes on"


def started(*, bootstrap: bool | None = True, infra: bool | None = True) -> MachinePoolStatus:
    """Of a pool that came this far before."""
    flags = MachinePoolInitialization(bootstrap_data_secret_created=bootstrap, infrastructure_provisioned=infra)
    return MachinePoolStatus(initialization=flags)


@pytest.mark.parametrize(
    ("changes", "condition_", "old"),
    [
        pytest.param({"bootstrap": config()}, "BootstrapConfigReady", "BootstrapReady", id="another config, not ready yet"),
        pytest.param({"bootstrap": found(None, "TestConfig", "b")}, "BootstrapConfigReady", None, id="the config has gone"),
        pytest.param({"infra": found(infra_pool(provisioned=False))}, "InfrastructureReady", "InfrastructureReady", id="infrastructure in trouble"),
        pytest.param({"infra": found(None, "TestMachinePool", "p")}, "InfrastructureReady", "InfrastructureReady", id="infrastructure gone"),
    ],
)  # fmt: skip
def test_flags_never_go_back_and_the_conditions_tell(changes: Any, condition_: str, old: str | None) -> None:
    pool = with_config(status=started(), provider_id_list=("x://p/0", "x://p/1"))
    ready = {"pool": pool, "bootstrap": config(**MADE)}
    seen = a_scope(**{**ready, **changes})
    made = plan(seen, NOW)
    assert made.status.initialization == started().initialization  # type: ignore[union-attr]
    assert brief(made, condition_)[0] == "False"
    assert made.status.phase == "Running"  # type: ignore[union-attr]
    assert old is None or v1(seen, old).status == "False"


def test_the_list_is_followed_while_provisioned_infrastructure_is_in_trouble() -> None:
    seen = a_scope(infra=found(infra_pool(["x://p/1"], provisioned=False)), pool=a_pool(status=started()))
    assert listed(seen) == ["x://p/1"]


def test_a_config_that_is_going_keeps_the_flag() -> None:
    before = MachinePoolStatus(initialization=MachinePoolInitialization(bootstrap_data_secret_created=True))
    seen = a_scope(pool=with_config(status=before), bootstrap=found(provider("TestConfig", "b", deleting=True)))
    assert status_of(seen).initialization.bootstrap_data_secret_created is True
    assert secret(seen) == "old"


@pytest.mark.parametrize("status", [{}, MADE])
def test_a_running_pool_with_another_config_is_still_running(status: Any) -> None:
    made = plan(a_scope(pool=with_config(), bootstrap=config(**status)), NOW)
    assert made.status.phase == "Running"  # type: ignore[union-attr]
    assert made.error is None and made.requeue_after is None


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
    old = v1(seen, "InfrastructureReady")
    assert (old.status, old.reason) == (("True", "") if flag else ("False", "WaitingForInfrastructure"))
    assert plan(seen, NOW).requeue_after is None
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


def test_the_same_instances_in_another_order_are_no_change() -> None:
    known = ("x://p/0", "x://p/1")
    for ids in (["x://p/1", "x://p/0"], list(known)):
        made = plan(a_scope(infra=found(infra_pool(ids)), pool=a_pool(provider_id_list=known)), NOW)
        assert applies(made, "MachinePool")["p"].body["spec"]["providerIDList"] == list(known)
        assert [ref.name for ref in made.status.node_refs] == ["p-0", "p-1"]  # type: ignore[union-attr]


def test_a_changed_list_is_counted_in_the_same_pass() -> None:
    seen = a_scope(3, pool=a_pool(replicas=3, provider_id_list=("x://p/0",), status=before(1)))
    block = status_of(seen).deprecated.v1beta1
    assert (block.ready_replicas, block.available_replicas, block.unavailable_replicas) == (3, 3, 0)


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
    assert plan(seen, NOW).requeue_after is None, "the Node's event is waited for"
    assert (status.deprecated.v1beta1.ready_replicas, status.deprecated.v1beta1.unavailable_replicas) == (1, 1)
    waiting = v1(seen, "ReplicasReady")
    assert (waiting.status, waiting.reason) == ("False", "WaitingForReplicasReady")


def test_only_whole_provider_ids_match() -> None:
    seen = a_scope(1, nodes={"y://p/0": a_node(0, provider_id="y://p/0")})
    assert status_of(seen).node_refs == ()


def test_references_stay_while_no_node_can_be_found() -> None:
    before = MachinePoolStatus(node_refs=(node_ref(0),))
    for nodes in (dict[str, Any](), None):
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
    assert body["metadata"]["resourceVersion"] == "7", "taints are one list with several writers"
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

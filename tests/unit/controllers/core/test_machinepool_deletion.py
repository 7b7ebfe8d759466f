"""MachinePool: its end."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from capi.api.core.v1beta2 import MachineBootstrap, MachineDeletion, MachinePoolStatus, ObjectReference
from capi.controllers import owners
from capi.controllers.core.machinepool.plan import plan
from capi.controllers.core.machinepool.scope import Scope
from tests.unit.controllers.builders import (
    NOW,
    a_cluster,
    a_machine,
    a_node,
    a_pool,
    found,
    infra_machine,
    infra_pool,
    provider,
    ref,
)
from tests.unit.controllers.core.passes import after, applies, brief, deletes, said

REFS = (ObjectReference(api_version="v1", kind="Node", name="p-0", uid="node-p-0"),)
GONE = found(None, "TestMachinePool", "p")


def doomed(**more: Any) -> Any:
    return a_pool(**{"deleting": True, "status": MachinePoolStatus(node_refs=REFS), **more})


def a_scope(**changes: Any) -> Scope:
    dying: dict[str, Any] = {
        "pool": doomed(),
        "cluster": a_cluster(),
        "infra": found(infra_pool()),
        "infra_machines": [infra_machine(0)],
        "machines": [a_machine(0)],
        "nodes": {"x://p/0": a_node(0)},
        "retired": [a_node(0)],
    }
    return Scope(**{**dying, **changes})


def test_machines_then_infrastructure_then_nodes_and_finalizer() -> None:
    pool = doomed(template={"bootstrap": MachineBootstrap(config_ref=ref("TestConfig", "b"))})
    seen = a_scope(pool=pool, bootstrap=found(provider("TestConfig", "b")))
    first = plan(seen, NOW)
    assert deletes(first) == ["p-0"] and not first.finalized
    assert brief(first, "Deleting") == ("True", "WaitingForMachinesDeletion")
    second = plan(replace(seen, machines=[], infra_machines=[]), NOW)
    assert deletes(second) == ["p", "b"] and not second.finalized
    assert brief(second, "Deleting") == ("True", "WaitingForInfrastructureDeletion")
    third = plan(replace(seen, machines=[], infra=GONE, bootstrap=found(None, "TestConfig", "b")), NOW)
    assert deletes(third, "Node") == ["p-0"] and third.finalized


def test_a_pool_that_is_going_makes_nothing() -> None:
    made = plan(a_scope(machines=[], infra_machines=[infra_machine(i) for i in range(3)]), NOW)
    assert not applies(made, "Machine")


def test_what_is_going_is_not_deleted_again_and_the_wait_is_silent() -> None:
    seen = a_scope(machines=[a_machine(0, deleting=True)])
    pool = after(seen.pool, plan(seen, NOW))
    again = plan(replace(seen, pool=pool), NOW + timedelta(minutes=5))
    assert not again.writes and not again.events and again.requeue_after is None
    assert after(pool, again, NOW + timedelta(minutes=5)) == pool


@pytest.mark.parametrize(
    ("infra", "config", "deleted", "reason"),
    [
        pytest.param(found(infra_pool()), found(provider("TestConfig", "b")), ["p", "b"], "WaitingForInfrastructureDeletion", id="both"),
        pytest.param(found(infra_pool(deleting=True)), found(provider("TestConfig", "b")), ["b"], "WaitingForInfrastructureDeletion", id="one is going already"),
        pytest.param(GONE, found(provider("TestConfig", "b")), ["b"], "WaitingForBootstrapDeletion", id="only the config"),
        pytest.param(GONE, found(provider("TestConfig", "b", deleting=True)), [], "WaitingForBootstrapDeletion", id="which is going"),
    ],
)  # fmt: skip
def test_what_the_pool_refers_to_goes_each_with_one_request(infra: Any, config: Any, deleted: Any, reason: str) -> None:
    made = plan(a_scope(machines=[], infra_machines=[], infra=infra, bootstrap=config), NOW)
    assert deletes(made) == deleted and not made.finalized
    assert brief(made, "Deleting") == ("True", reason)
    assert made.requeue_after is None, "the objects' end is watched"


def test_a_machine_of_another_cluster_that_carries_the_pool_s_label_is_not_touched() -> None:
    stray = a_machine(1, owner=None, spec={"cluster_name": "other"})
    orphan = a_machine(2, owner=None)
    assert deletes(plan(a_scope(machines=[stray, orphan]), NOW)) == ["p-2"]


def test_machines_that_lost_label_and_owner_go_too() -> None:
    lost = a_machine(0, owner=None, meta={"labels": {}})
    other = a_machine(1, owner=None, meta={"labels": {}}, spec={"infrastructure_ref": ref("OtherMachine", "p-1")})
    infra = [infra_machine(0), infra_machine(1)]
    seen = a_scope(machines=[], infra_machines=infra, strangers={"p-0": lost, "p-1": other})
    assert deletes(plan(seen, NOW)) == ["p-0"]


def test_the_wait_names_some_machines() -> None:
    made = plan(a_scope(machines=[a_machine(i) for i in range(5)]), NOW)
    assert said(made, "Deleting").message == "Waiting for Machines p-0, p-1, p-2, ... (2 more) to be deleted"


def test_machines_of_others_are_not_touched() -> None:
    other = a_machine(1, owner=owners.reference(a_pool("q"), controller=True))
    assert deletes(plan(a_scope(machines=[other]), NOW)) == ["p"]


def after_all(**changes: Any) -> Scope:
    return a_scope(machines=[], infra_machines=[], infra=GONE, **changes)


def limited(seconds: int | None) -> Any:
    return doomed(template={"deletion": MachineDeletion(node_deletion_timeout_seconds=seconds)})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"pool": doomed(status=MachinePoolStatus())}, "there are no Nodes"),
        ({"cluster": a_cluster(deleting=True)}, "the Cluster is going"),
        ({"cluster": None}, "the Cluster has gone"),
        ({"retired": []}, "the Nodes have gone"),
    ],
)
def test_the_workload_cluster_is_left_alone(changes: Any, why: str) -> None:
    made = plan(after_all(**changes), NOW)
    assert made.finalized and not made.writes, why


@pytest.mark.parametrize(("seconds", "left"), [(600, timedelta(seconds=600)), (0, None), (None, None)])
def test_without_a_connection_it_waits_and_says_so(seconds: int | None, left: Any) -> None:
    made = plan(after_all(pool=limited(seconds), nodes=None, retired=[]), NOW)
    assert not made.finalized and made.requeue_after == left
    assert "connection" in said(made, "Deleting").message


def test_the_timeout_ends_it() -> None:
    late = NOW + timedelta(seconds=10)
    assert plan(after_all(pool=limited(10), nodes=None, retired=[]), late).finalized
    assert not plan(after_all(pool=limited(0), nodes=None, retired=[]), late).finalized


def test_the_timeout_ends_failing_attempts_but_not_the_first() -> None:
    late = NOW + timedelta(seconds=11)
    seen = after_all(pool=limited(10))
    first = plan(seen, late)
    assert deletes(first, "Node") == ["p-0"] and first.finalized
    second = plan(replace(seen, pool=after(seen.pool, first)), late)
    assert second.finalized and not second.writes


def test_before_the_timeout_a_failed_attempt_is_repeated() -> None:
    seen = after_all(pool=limited(600))
    first = plan(seen, NOW)
    again = plan(replace(seen, pool=after(seen.pool, first)), NOW + timedelta(seconds=30))
    assert deletes(again, "Node") == ["p-0"] and again.finalized

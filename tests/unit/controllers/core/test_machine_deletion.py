"""Machine: the stages of its end."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from capi.api.core.v1beta2 import MachineBootstrap, MachineDeletion
from capi.controllers.core.machine import deletion
from capi.controllers.core.machine.drain.view import DrainView, VolumeView
from capi.controllers.core.machine.plan import plan
from capi.controllers.core.machine.scope import Scope
from capi.kube.errors import Forbidden
from capi.runtime.plan import ClusterKey
from tests.unit.controllers.builders import (
    NOW,
    a_cluster,
    a_machine,
    a_node,
    a_pool,
    found,
    infra_machine,
    provider,
    ref,
    running,
)
from tests.unit.controllers.core.passes import after, brief, deletes, said

PRE_DRAIN = "pre-drain.delete.hook.machine.cluster.x-k8s.io/x"
PRE_TERMINATE = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/x"
HOSTED = provider("TestControlPlane", "c", status={"externalManagedControlPlane": True})


def a_scope(**changes: Any) -> Scope:
    """A running pool Machine of a cluster with a hosted control plane, being deleted; its Node is empty."""
    dying: dict[str, Any] = {
        "machine": doomed(),
        "cluster": a_cluster(),
        "pool": a_pool(),
        "infra": found(infra_machine()),
        "control_plane": found(HOSTED),
        "connected": True,
        "nodes": (a_node(cordoned=True),),
        "drain": DrainView(),
        "volumes": VolumeView(),
    }
    return Scope(**{**dying, **changes})


def doomed(*hooks: str, **more: Any) -> Any:
    meta = {"annotations": dict.fromkeys(hooks, "")}
    return a_machine(**{"deleting": NOW, "status": running(), "meta": meta, **more})


GONE = found(None, "TestMachine", "p-0")


def test_hooks_come_in_their_order_and_the_start_is_noted() -> None:
    both = plan(a_scope(machine=doomed(PRE_DRAIN, PRE_TERMINATE)), NOW)
    assert brief(both, "Deleting") == ("True", "WaitingForPreDrainHook")
    assert PRE_DRAIN in said(both, "Deleting").message
    assert both.status.deletion.wait_for_pre_drain_hook_start_time == NOW  # type: ignore[union-attr]
    second = plan(a_scope(machine=doomed(PRE_TERMINATE)), NOW)
    assert brief(second, "Deleting") == ("True", "WaitingForPreTerminateHook")
    assert second.status.deletion.wait_for_pre_terminate_hook_start_time == NOW  # type: ignore[union-attr]
    assert not deletes(both) and not deletes(second)


def test_the_start_of_a_wait_stays() -> None:
    machine = doomed(PRE_DRAIN)
    first = plan(a_scope(machine=machine), NOW)
    again = plan(a_scope(machine=after(machine, first)), NOW + timedelta(minutes=1))
    assert again.status.deletion == first.status.deletion  # type: ignore[union-attr]
    assert not again.events


def test_drain_and_volumes_stand_between_the_hooks() -> None:
    names = [step.__name__ for step in deletion._STEPS]
    assert names == [
        "_pre_drain_hook", "drain", "volume_detach", "_pre_terminate_hook", "_infrastructure", "_bootstrap", "_node",
    ]  # fmt: skip


def test_the_pre_terminate_hook_holds_even_where_the_node_stays() -> None:
    seen = a_scope(machine=doomed(PRE_DRAIN, PRE_TERMINATE), cluster=a_cluster(deleting=True))
    assert brief(plan(seen, NOW), "Deleting") == ("True", "WaitingForPreTerminateHook")


def test_infrastructure_then_config_then_node_and_finalizer() -> None:
    config = provider("TestConfig", "b")
    machine = doomed(spec={"bootstrap": MachineBootstrap(config_ref=ref("TestConfig", "b"))})
    seen = a_scope(machine=machine, bootstrap=found(config))
    first = plan(seen, NOW)
    assert deletes(first) == ["p-0"] and brief(first, "Deleting") == ("True", "WaitingForInfrastructureDeletion")
    second = plan(replace(seen, infra=GONE), NOW)
    assert deletes(second) == ["b"] and brief(second, "Deleting") == ("True", "WaitingForBootstrapDeletion")
    third = plan(replace(seen, infra=GONE, bootstrap=found(None, "TestConfig", "b")), NOW)
    assert deletes(third, "Node") == ["p-0"] and third.finalized
    [write] = third.writes
    assert write.target.cluster == ClusterKey("default", "c") and write.target.uid == "node-p-0"


def test_an_infrastructure_that_is_going_is_not_deleted_again() -> None:
    made = plan(a_scope(infra=found(infra_machine(deleting=True))), NOW)
    assert not made.writes and not made.finalized and made.requeue_after == timedelta(minutes=15, seconds=1)


def test_a_settled_wait_is_silent() -> None:
    seen = a_scope(infra=found(infra_machine(deleting=True)))
    machine = after(seen.machine, plan(seen, NOW))
    again = plan(replace(seen, machine=machine), NOW + timedelta(minutes=1))
    assert after(machine, again, NOW + timedelta(minutes=1)) == machine
    assert not again.writes and not again.events


def plane(**status: Any) -> Any:
    return found(provider("TestControlPlane", "c", status=status))


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        pytest.param({}, True, id="externally managed control plane"),
        pytest.param({"machine": a_machine(deleting=NOW), "nodes": ()}, False, id="no Node was ever known"),
        pytest.param({"machine": a_machine(deleting=NOW)}, True, id="a Node found by provider ID only"),
        pytest.param({"control_plane": plane()}, False, id="no control plane Machines"),
        pytest.param({"control_plane": plane(), "control_plane_machines": 1}, True, id="one control plane Machine"),
        pytest.param({"cluster": a_cluster(deleting=True)}, False, id="the Cluster is going"),
        pytest.param({"cluster": None}, False, id="the Cluster has gone"),
        pytest.param({"control_plane": found(provider("TestControlPlane", "c", deleting=True))}, False, id="the control plane is going"),
    ],
)  # fmt: skip
def test_whether_the_node_may_be_deleted(changes: Any, allowed: bool) -> None:
    made = plan(a_scope(infra=GONE, **changes), NOW)
    assert (deletes(made, "Node") == ["p-0"]) == allowed
    assert made.finalized


def within(seconds: int | None, elapsed: int) -> Any:
    limit = MachineDeletion(node_deletion_timeout_seconds=seconds)
    return doomed(deleting=NOW - timedelta(seconds=elapsed), spec={"deletion": limit})


@pytest.mark.parametrize(
    ("timeout", "elapsed", "finalized", "left"),
    [
        pytest.param(10, 4, False, timedelta(seconds=6), id="waits out the timeout"),
        pytest.param(10, 10, True, None, id="then gives up"),
        pytest.param(0, 10_000, False, None, id="0 waits for ever"),
        pytest.param(None, 10_000, False, None, id="nothing waits for ever"),
    ],
)
def test_a_node_that_cannot_be_reached(timeout: Any, elapsed: int, finalized: bool, left: Any) -> None:
    made = plan(a_scope(machine=within(timeout, elapsed), infra=GONE, connected=False, nodes=()), NOW)
    assert made.finalized == finalized
    if not finalized:
        assert made.requeue_after == (left or (timedelta(minutes=15, seconds=1) if elapsed < 900 else None))
        assert "connection" in said(made, "Deleting").message


def test_the_timeout_ends_failing_attempts_but_not_the_first() -> None:
    machine = within(10, 11)
    first = plan(a_scope(machine=machine, infra=GONE), NOW)
    assert deletes(first, "Node") == ["p-0"] and first.finalized
    second = plan(a_scope(machine=after(machine, first), infra=GONE), NOW)
    assert second.finalized and not second.writes


def test_why_a_node_cannot_be_deleted_is_told() -> None:
    made = plan(a_scope(machine=within(10, 4), infra=GONE), NOW)
    assert made.finalized and made.hindsight is not None
    [write] = made.writes
    status, events = made.hindsight({write.target: Forbidden("no right to delete nodes")})
    text = "Failed to delete Node p-0: no right to delete nodes"
    assert brief(replace(made, status=status), "Deleting") == ("True", "DeletingNode")
    assert said(replace(made, status=status), "Deleting").message == text
    assert [(event.reason, event.message, event.type) for event in events][:1] == [
        ("FailedDeleteNode", text, "Warning")
    ]
    [old] = [c for c in status.deprecated.v1beta1.conditions if c.type == "NodeHealthy"]  # type: ignore[union-attr]
    assert (old.status, old.severity, old.reason) == ("False", "Warning", "DeletionFailed")


def test_of_two_nodes_with_the_provider_id_only_the_known_one_goes() -> None:
    made = plan(a_scope(infra=GONE, nodes=(a_node(0, name="twin"), a_node(0))), NOW)
    assert deletes(made, "Node") == ["p-0"]


def test_a_long_deletion_says_so() -> None:
    machine = doomed(deleting=NOW - timedelta(minutes=16))
    made = plan(a_scope(machine=machine), NOW)
    text = "* Deleting: Machine deletion in progress since more than 15m, stage: WaitingForInfrastructureDeletion"
    assert said(made, "Ready").message == text


def test_what_has_gone_already_does_not_count_against_ready() -> None:
    made = plan(a_scope(infra=GONE, nodes=(), connected=True), NOW)
    assert brief(made, "NodeHealthy") == ("False", "NodeDeleted")
    assert brief(made, "Ready") == ("False", "NotReady")

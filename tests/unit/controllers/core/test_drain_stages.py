"""Drain as a stage of a Machine's deletion: when it is due, who is evicted, what is told, when it is looked at again."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from capi.api.core.v1beta2 import MachineDeletion, MachineDeletionStatus
from capi.controllers.core.machine.drain.pods import Behavior, PodVerdict
from capi.controllers.core.machine.drain.progress import message, next_look, progress
from capi.controllers.core.machine.drain.steps import drain_due
from capi.controllers.core.machine.plan import plan
from capi.kube.errors import ApiError, CapiError, Cause, Forbidden, TooManyRequests, TransportError
from capi.runtime.plan import Evict, Failures, Plan, target
from tests.unit.controllers.builders import NOW, a_cluster, a_node, found, infra_machine, running
from tests.unit.controllers.core.drains import a_pod, a_rule, a_scope, ago, doomed, picks, with_view
from tests.unit.controllers.core.passes import after, brief, deletes, patches, said

EXCLUDE = {"machine.cluster.x-k8s.io/exclude-node-draining": ""}
PRE_DRAIN = {"pre-drain.delete.hook.machine.cluster.x-k8s.io/x": ""}
A, B, C, D = (a_pod(name) for name in "abcd")
BUDGET = TooManyRequests(
    "Cannot evict pod as it would violate the pod's disruption budget.",
    causes=[Cause("DisruptionBudget", "The disruption budget web needs 2 healthy pods and has 2 currently")],
)


def began(**times: Any) -> Any:
    """A Machine whose deletion has noted these times."""
    return doomed(status=running(deletion=MachineDeletionStatus(**times)))


def limited(seconds: int | None, *, drained_for: int) -> Any:
    status = running(deletion=MachineDeletionStatus(node_drain_start_time=ago(seconds=drained_for)))
    return doomed(status=status, spec={"deletion": MachineDeletion(node_drain_timeout_seconds=seconds)})


def evicted(made: Plan) -> list[str]:
    return [write.target.name for write in made.writes if isinstance(write, Evict)]


def in_hindsight(made: Plan, **failed: CapiError) -> Plan:
    """The Plan with the status and the events it has after these writes failed."""
    failures: Failures = {w.target: failed[w.target.name] for w in made.writes if w.target.name in failed}
    assert made.hindsight is not None and len(failures) == len(failed)
    told = made.hindsight(failures)
    return replace(made, status=told.status, events=told.events)


@pytest.mark.parametrize(
    ("changes", "due"),
    [
        pytest.param({}, True, id="a Machine that goes"),
        pytest.param({"machine": doomed(meta={"annotations": EXCLUDE})}, False, id="excluded by annotation"),
        pytest.param({"machine": doomed(meta={"annotations": PRE_DRAIN})}, False, id="a pre-drain hook holds it"),
        pytest.param({"infra": found(None, "TestMachine", "p-0")}, False, id="the instance has gone"),
        pytest.param({"infra": found(infra_machine(deleting=True))}, False, id="the instance goes"),
        pytest.param({"machine": began(wait_for_pre_terminate_hook_start_time=NOW)}, False, id="pre-terminate begun"),
        pytest.param({"machine": limited(60, drained_for=60)}, False, id="the timeout is over"),
        pytest.param({"machine": limited(60, drained_for=59)}, True, id="the timeout runs"),
        pytest.param({"machine": limited(0, drained_for=9999)}, True, id="a timeout of 0 never ends it"),
        pytest.param({"machine": limited(None, drained_for=9999)}, True, id="no timeout neither"),
        pytest.param({"cluster": a_cluster(deleting=True)}, False, id="the Cluster goes"),
    ],
)
def test_when_a_node_is_drained(changes: Any, due: bool) -> None:
    seen = a_scope(A, **changes)
    assert drain_due(seen, NOW) == due
    assert evicted(plan(seen, NOW)) == ["a"] * due


def test_a_pre_drain_hook_comes_first_and_the_drain_follows() -> None:
    held = plan(a_scope(A, machine=doomed(meta={"annotations": PRE_DRAIN})), NOW)
    assert brief(held, "Deleting") == ("True", "WaitingForPreDrainHook") and not held.writes
    assert held.status.deletion.wait_for_pre_drain_hook_start_time == NOW  # type: ignore[union-attr]
    machine = doomed(status=running(deletion=held.status.deletion))  # type: ignore[union-attr]
    free = plan(a_scope(A, machine=machine), NOW + timedelta(seconds=5))
    assert evicted(free) == ["a"]
    assert free.status.deletion == MachineDeletionStatus(  # type: ignore[union-attr]
        wait_for_pre_drain_hook_start_time=NOW, node_drain_start_time=NOW + timedelta(seconds=5)
    )


def test_the_node_is_cordoned_before_anybody_looks_at_its_pods() -> None:
    made = plan(a_scope(nodes=(a_node(),), drain=None), NOW)
    assert patches(made, "Node")["p-0"].body == {"spec": {"unschedulable": True}}
    assert made.status is None and made.requeue_after == timedelta() and len(made.writes) == 1


def test_a_node_that_cannot_be_cordoned_is_told() -> None:
    made = in_hindsight(plan(a_scope(nodes=(a_node(),), drain=None), NOW), **{"p-0": Forbidden("not you")})
    assert said(made, "Deleting").message == "Failed to cordon Node p-0: not you"
    assert ("FailedDrainNode", "Warning") in [(event.reason, event.type) for event in made.events]


def test_without_a_connection_a_drain_waits_until_its_timeout() -> None:
    seen = a_scope(machine=limited(60, drained_for=20), connected=False, nodes=(), drain=None, volumes=None)
    made = plan(seen, NOW)
    assert brief(made, "Deleting") == ("True", "DrainingNode") and not made.writes
    assert "connection to the workload cluster" in said(made, "Deleting").message
    assert made.requeue_after == timedelta(seconds=40)


def test_a_node_that_has_gone_needs_no_drain() -> None:
    made = plan(a_scope(nodes=(), drain=None, volumes=None), NOW)
    assert brief(made, "Deleting") == ("True", "WaitingForInfrastructureDeletion")


def test_an_empty_node_is_passed_and_the_start_noted_with_the_next_stage() -> None:
    made = plan(a_scope(), NOW)
    assert deletes(made) == ["p-0"] and brief(made, "Deleting") == ("True", "WaitingForInfrastructureDeletion")
    assert made.status.deletion == MachineDeletionStatus(  # type: ignore[union-attr]
        node_drain_start_time=NOW, wait_for_node_volume_detach_start_time=NOW
    )


def test_pods_that_leave_or_stay_hold_nothing_up_but_those_that_have_to_go_do() -> None:
    seen = with_view(a_scope(A, a_pod("d", owner=("DaemonSet", "ds"))), daemon_sets=frozenset({"ds"}))
    assert evicted(plan(seen, NOW)) == ["a"]
    only_daemons = with_view(seen, pods=[a_pod("d", owner=("DaemonSet", "ds"))])
    assert brief(plan(only_daemons, NOW), "Deleting") == ("True", "WaitingForInfrastructureDeletion")


def test_the_lowest_order_leaves_first_and_higher_ones_wait_for_it() -> None:
    late = a_rule("late", order=10, pods=[{"selector": picks(app="late")}])
    job = a_rule("job", "WaitCompleted", pods=[{"selector": picks(app="job")}])
    after_all = a_pod("z", labels={"app": "late"})
    runs = a_pod("j", labels={"app": "job"})
    seen = with_view(a_scope(A, after_all, runs), rules=[job, late])
    made = plan(seen, NOW)
    assert evicted(made) == ["a"]
    assert said(made, "Deleting").message.splitlines() == [
        "Drain not completed yet (started at 2026-01-01T12:00:00Z):",
        "* Pod apps/a: deletionTimestamp set, but still not removed from the Node",
        "* Pod apps/j: waiting for completion",
        "After above Pods have been removed from the Node, the following Pods will be evicted: apps/z",
    ]
    assert evicted(plan(with_view(seen, pods=[a_pod("a", ends=NOW), after_all]), NOW)) == []
    assert evicted(plan(with_view(seen, pods=[after_all, runs]), NOW)) == [], "the job counts as order 0"
    assert evicted(plan(with_view(seen, pods=[after_all]), NOW)) == ["z"]


def test_what_leaves_before_order_0_leaves_before_jobs_are_waited_for() -> None:
    first = a_rule("first", order=-5, pods=[{"selector": picks(app="first")}])
    seen = with_view(
        a_scope(
            a_pod("f", labels={"app": "first"}), a_pod("j", labels={"cluster.x-k8s.io/drain": "wait-completed"}), A
        ),
        rules=[first],
    )
    made = plan(seen, NOW)
    assert evicted(made) == ["f"]
    assert said(made, "Deleting").message.splitlines()[2:] == [
        "After above Pods have been removed from the Node, the following Pods will be evicted: apps/a",
        "After above Pods have been removed from the Node, the following Pods will be waited for to complete: apps/j",
    ]


def test_pods_of_a_node_that_does_not_answer_get_a_second() -> None:
    made = plan(a_scope(A, nodes=(a_node(cordoned=True, ready="Unknown"),), volumes=None), NOW)
    assert [write.grace_seconds for write in made.writes if isinstance(write, Evict)] == [1]
    [write] = plan(a_scope(A), NOW).writes
    assert isinstance(write, Evict) and write.grace_seconds is None and write.target == target(A, write.target.cluster)


def test_what_evictions_were_refused_for_is_told_by_reason() -> None:
    terminating = Forbidden("no new content", causes=[Cause("NamespaceTerminating", "namespace is being terminated")])
    made = plan(a_scope(A, B, C, D), NOW)
    told = in_hindsight(made, a=BUDGET, b=BUDGET, c=ApiError("two budgets"), d=terminating)
    assert said(told, "Deleting").message.splitlines()[1:] == [
        "* Pods apps/a, apps/b: cannot evict pod as it would violate the pod's disruption budget."
        " The disruption budget web needs 2 healthy pods and has 2 currently",
        "* Pod apps/d: failed to evict Pod, its Namespace is terminating: deleted with it",
        "* Pod apps/c: failed to evict Pod, two budgets",
    ]
    assert brief(told, "Deleting") == ("True", "DrainingNode")


def test_a_message_names_few_and_counts_the_rest() -> None:
    many = [a_pod(f"p{number}") for number in range(9)]
    made = plan(a_scope(*many), NOW)
    assert "* Pods apps/p0, apps/p1, apps/p2, ... (6 more): deletionTimestamp set" in said(made, "Deleting").message
    failed = {pod.name: ApiError(f"trouble {pod.name}") for pod in many}
    lines = said(in_hindsight(made, **failed), "Deleting").message.splitlines()
    assert len(lines) == 7 and lines[-1] == "* 4 Pods with other issues"


def test_facts_that_could_not_be_read_stop_the_drain_and_are_told_once() -> None:
    broken = TransportError("daemonsets: no answer")
    seen = with_view(a_scope(A), error=broken)
    made = plan(seen, NOW)
    assert evicted(made) == [] and made.error is broken
    assert brief(made, "Deleting") == ("True", "DrainingNode")
    assert said(made, "Deleting").message == "daemonsets: no answer"
    assert ("FailedDrainNode", "Warning") in [(event.reason, event.type) for event in made.events]
    again = plan(replace(seen, machine=after(seen.machine, made)), NOW + timedelta(seconds=9))
    assert again.events == () and again.error is broken


def test_a_rule_that_cannot_be_applied_stops_the_drain() -> None:
    seen = with_view(a_scope(A), rules=[a_rule("new", "Melt")])
    made = plan(seen, NOW)
    assert evicted(made) == [] and made.error is not None and "MachineDrainRule new" in said(made, "Deleting").message


def test_the_end_of_a_drain_is_an_event_and_so_is_nothing_else() -> None:
    seen = a_scope(A)
    draining = replace(seen, machine=after(seen.machine, plan(seen, NOW)))
    done = plan(with_view(draining, pods=[]), NOW + timedelta(seconds=3))
    assert [event.reason for event in done.events] == ["SuccessfulDrainNode"]
    given_up = replace(draining, machine=with_annotation(draining.machine))
    assert list(plan(given_up, NOW).events) == []


def with_annotation(machine: Any) -> Any:
    machine.metadata.annotations.update(EXCLUDE)
    return machine


@pytest.mark.parametrize(
    ("started", "asked", "wait"),
    [
        pytest.param(0, None, 1, id="just begun"),
        pytest.param(40, None, 10, id="for a while"),
        pytest.param(9999, None, 20, id="for long"),
        pytest.param(9999, 8, 2, id="something has just happened"),
    ],
)
def test_a_drain_is_looked_at_often_while_something_happens(started: int, asked: int | None, wait: int) -> None:
    ends = [] if asked is None else [a_pod("b", ends=NOW + timedelta(seconds=30 - asked), grace=30)]
    judged = progress([PodVerdict(pod, Behavior.DRAIN) for pod in ends])
    assert next_look(judged, ago(seconds=started), NOW) == timedelta(seconds=wait)


def test_the_timeout_wakes_a_drain_when_it_is_over() -> None:
    made = plan(a_scope(A, machine=limited(603, drained_for=600)), NOW)
    assert made.requeue_after == timedelta(seconds=3)


LATE = {"deleting": ago(minutes=20)}


@pytest.mark.parametrize(
    ("pods", "failed", "text"),
    [
        pytest.param([A], {"a": BUDGET}, "PodDisruptionBudgets", id="a budget"),
        pytest.param([a_pod("a", ends=NOW)], {}, "Pods not terminating", id="a Pod that does not end"),
        pytest.param([A], {"a": ApiError("x")}, "Pod eviction errors", id="errors"),
        pytest.param(
            [a_pod("j", labels={"cluster.x-k8s.io/drain": "wait-completed"})], {}, "Pods not completed yet", id="a job"
        ),
        pytest.param(
            [A, B, a_pod("c", ends=NOW)],
            {"a": BUDGET, "b": ApiError("x")},
            "PodDisruptionBudgets, Pods not terminating, Pod eviction errors",
            id="all of it",
        ),
    ],
)
def test_ready_says_what_a_long_drain_is_likely_due_to(pods: Any, failed: Any, text: str) -> None:
    slow = running(deletion=MachineDeletionStatus(node_drain_start_time=ago(minutes=6)))
    made = plan(a_scope(*pods, machine=doomed(deleting=ago(minutes=16), status=slow)), NOW)
    ready = said(in_hindsight(made, **failed) if failed else made, "Ready").message
    assert f"Machine deletion in progress since more than 15m, stage: DrainingNode, delay likely due to {text}" in ready


def test_a_drain_that_is_not_long_gives_no_causes() -> None:
    quick = running(deletion=MachineDeletionStatus(node_drain_start_time=ago(minutes=4)))
    made = in_hindsight(plan(a_scope(A, machine=doomed(deleting=ago(minutes=16), status=quick)), NOW), a=BUDGET)
    assert "since more than 15m, stage: DrainingNode" in said(made, "Ready").message
    assert "delay" not in said(made, "Ready").message


def test_a_settled_drain_is_silent() -> None:
    seen = a_scope(A)
    first = in_hindsight(plan(seen, NOW), a=BUDGET)
    machine = after(seen.machine, first)
    later = NOW + timedelta(minutes=1)
    again = in_hindsight(plan(replace(seen, machine=machine), later), a=BUDGET)
    assert after(machine, again, later) == machine and again.events == ()


def test_nobody_is_named_in_a_drain_of_nobody() -> None:
    assert progress([]).complete
    assert message(progress([]), {}, NOW) == "Drain not completed yet (started at 2026-01-01T12:00:00Z):"

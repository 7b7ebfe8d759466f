"""MachineHealthCheck: who is well, who is not, and what is asked for those who are not."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from capi.api.builtin import Node
from capi.api.core import annotations, labels
from capi.api.core.conditions import CONTROL_PLANE_INITIALIZED, INFRASTRUCTURE_READY
from capi.api.core.v1beta2 import (
    LabelSelector,
    Machine,
    MachineHealthCheck,
    MachineHealthCheckChecks,
    MachineHealthCheckRemediation,
    MachineHealthCheckSpec,
    RemediationTemplateRef,
    RemediationTrigger,
    UnhealthyMachineCondition,
    UnhealthyNodeCondition,
)
from capi.controllers.core.machinehealthcheck import reconciler
from capi.controllers.core.machinehealthcheck.gate import Gate, gate_of
from capi.controllers.core.machinehealthcheck.plan import plan
from capi.controllers.core.machinehealthcheck.scope import Scope, Target
from capi.controllers.core.machinehealthcheck.verdict import Health, judge
from capi.controllers.core.objects import Found
from capi.kube.conditions import Condition
from capi.kube.errors import UnknownKind
from capi.kube.objects import ObjectMeta
from capi.kube.types import Object
from capi.runtime.plan import Apply, ClusterKey, Create, Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import Workload
from tests.unit.controllers.builders import (
    LONG_AGO,
    NOW,
    NS,
    a_cluster,
    a_machine,
    a_node,
    condition,
    found,
    provider,
    ref,
    resource,
    running,
)
from tests.unit.controllers.core.passes import after, brief, deletes, said
from tests.unit.controllers.core.test_waking import Cache

POOL = {labels.POOL_NAME: "p"}
NODE_UNKNOWN = UnhealthyNodeCondition(type="Ready", status="Unknown", timeout_seconds=300)
TEMPLATE = RemediationTemplateRef(api_version="infrastructure.cluster.x-k8s.io/v1beta2", kind="FixTemplate", name="t")


def a_check(*, trigger: RemediationTrigger | None = None, template: bool = False, **checks: Any) -> MachineHealthCheck:
    remediation = MachineHealthCheckRemediation(trigger_if=trigger, template_ref=TEMPLATE if template else None)
    return MachineHealthCheck(
        metadata=ObjectMeta(name="mhc", namespace=NS, uid="mhc", resource_version="1", generation=1),
        spec=MachineHealthCheckSpec(
            cluster_name="c",
            selector=LabelSelector(match_labels=POOL),
            checks=MachineHealthCheckChecks(**{"unhealthy_node_conditions": (NODE_UNKNOWN,), **checks}),
            remediation=remediation,
        ),
    )


def ready_cluster(since: datetime = LONG_AGO, *, infra: str = "True", plane: str = "True") -> Any:
    both = ((INFRASTRUCTURE_READY, infra), (CONTROL_PLANE_INITIALIZED, plane))
    return a_cluster(conditions=tuple(condition(type_, status, since=since) for type_, status in both))


def a_target(index: int = 0, *, ready: str = "True", held: float = 3600, node: Any = "own", **machine: Any) -> Target:
    """A Machine whose Node has had its Ready condition for so many seconds; `node` None: the Node is gone."""
    own = a_node(index, ready=ready, since=NOW - timedelta(seconds=held))
    machine.setdefault("status", running(index))
    return Target(machine=a_machine(index, **machine), node=own if node == "own" else node)


def joining(created: float, infra_ready: float | None = 3600, **more: Any) -> Target:
    """A Machine without a Node, made so many seconds ago, whose infrastructure has been ready for so many."""
    since = None if infra_ready is None else ago(infra_ready)
    return Target(machine=a_machine(meta={"creation_timestamp": ago(created)}, **more), provisioned_since=since)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def a_scope(*targets: Target, check: MachineHealthCheck | None = None, **changes: Any) -> Scope:
    scope = {"check": check or a_check(), "cluster": ready_cluster(), "connected": True, "targets": targets}
    return Scope(**{**scope, **changes})


def marks(plan_: Plan, name: str = "p-0") -> dict[str, tuple[str, str, str]]:
    """Conditions that a plan puts on a Machine: status, reason, message by type."""
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in wire_conditions(plan_, name)}


def wire_conditions(plan_: Plan, name: str) -> Sequence[Object]:
    for write in plan_.writes:
        if isinstance(write, Apply) and write.subresource == "status" and write.target.name == name:
            assert write.must_exist
            assert write.target.resource == Machine.resource
            found_: Sequence[Object] = write.body["status"]["conditions"]
            return found_
    return ()


def with_conditions(target: Target, *conditions: Condition, name: str = "p-0") -> Target:
    machine = a_machine(int(name[-1]), status=running(), conditions=conditions)
    return Target(machine=machine, node=target.node, request=target.request)


FAILED = condition("HealthCheckSucceeded", "False", "UnhealthyNode", "Health check failed: x")


def test_the_check_belongs_to_its_cluster_and_other_owners_stay() -> None:
    made = plan(a_scope(), NOW)
    [own] = [w for w in made.writes if isinstance(w, Apply) and w.target.name == "mhc"]
    assert own.must_exist
    assert own.body["metadata"]["labels"] == {labels.CLUSTER_NAME: "c"}
    assert [(r["kind"], r.get("controller")) for r in own.body["metadata"]["ownerReferences"]] == [("Cluster", None)]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, True),
        ({"meta": {"labels": {labels.POOL_NAME: "other"}}}, False),
        ({"spec": {"cluster_name": "d"}}, False),
        ({"meta": {"annotations": {annotations.PAUSED: ""}, "labels": POOL}}, False),
        ({"meta": {"annotations": {annotations.SKIP_REMEDIATION: ""}, "labels": POOL}}, False),
    ],
)
def test_who_is_a_target(changes: dict[str, Any], wanted: bool) -> None:
    assert reconciler.selects(a_check(), a_machine(**changes)) is wanted


def test_an_empty_selector_selects_nothing() -> None:
    check = a_check()
    check = MachineHealthCheck(
        metadata=check.metadata, spec=MachineHealthCheckSpec(cluster_name="c", selector=LabelSelector())
    )
    assert not reconciler.selects(check, a_machine())


def test_a_machine_whose_node_is_well_is_healthy() -> None:
    made = plan(a_scope(a_target()), NOW)
    assert marks(made) == {"HealthCheckSucceeded": ("True", "HealthCheckSucceeded", "")}
    assert brief(made, "RemediationAllowed") == ("True", "RemediationAllowed")
    assert (made.status.expected_machines, made.status.current_healthy, made.status.targets) == (1, 1, ("p-0",))  # type: ignore[union-attr]
    assert made.requeue_after is None


def test_a_node_that_has_gone_makes_its_machine_unhealthy() -> None:
    made = plan(a_scope(a_target(node=None)), NOW)
    assert marks(made)["HealthCheckSucceeded"] == (
        "False", "NodeDeleted", "Health check failed: Node p-0 has been deleted"
    )  # fmt: skip
    assert marks(made)["OwnerRemediated"][:2] == ("False", "WaitingForRemediation")


def test_nothing_is_known_of_nodes_without_a_connection() -> None:
    seen = a_scope(a_target(node=None), connected=False)
    assert judge(seen, seen.targets[0], NOW).health is Health.PENDING
    blind = plan(seen, NOW)
    assert marks(blind) == {}
    assert blind.status is None and blind.events == (), "what was counted last stays, and no limit is reached"


def test_a_cluster_that_was_never_connected_keeps_no_clock_from_running() -> None:
    seen = a_scope(joining(1200), connected=False)
    assert plan(seen, NOW).status is not None
    assert marks(plan(seen, NOW))["HealthCheckSucceeded"][1] == "NodeStartupTimeout"


@pytest.mark.parametrize(
    ("target", "timeout", "health", "left"),
    [
        (joining(400), 600, Health.PENDING, 201),
        (joining(1200), 600, Health.UNHEALTHY, None),
        (joining(1200), None, Health.UNHEALTHY, None),
        (joining(400), None, Health.PENDING, 201),
        (joining(1200), 0, Health.PENDING, None),
        (joining(1200, infra_ready=50), 600, Health.PENDING, 551),
        (joining(1200, infra_ready=None), 600, Health.PENDING, None),
    ],
)
def test_a_node_has_some_time_to_appear(
    target: Target, timeout: int | None, health: Health, left: float | None
) -> None:
    seen = a_scope(target, check=a_check(node_startup_timeout_seconds=timeout))
    verdict = judge(seen, target, NOW)
    assert verdict.health is health
    assert plan(seen, NOW).requeue_after == (timedelta(seconds=left) if left is not None else None)
    if health is Health.UNHEALTHY:
        assert (verdict.reason, verdict.message) == (
            "NodeStartupTimeout", "Health check failed: Node failed to report startup in 10m0s"
        )  # fmt: skip


@pytest.mark.parametrize("late", ["infrastructure", "control plane"])
def test_the_clock_of_the_startup_starts_when_the_cluster_is_ready(late: str) -> None:
    recent = condition(
        CONTROL_PLANE_INITIALIZED if late == "control plane" else INFRASTRUCTURE_READY, "True", since=ago(50)
    )
    others = [c for c in ready_cluster().status.conditions if c.type != recent.type]
    seen = a_scope(
        joining(1200), cluster=a_cluster(conditions=(*others, recent)), check=a_check(node_startup_timeout_seconds=600)
    )
    assert plan(seen, NOW).requeue_after == timedelta(seconds=551)


def test_a_node_condition_counts_when_it_has_lasted() -> None:
    early = plan(a_scope(a_target(ready="Unknown", held=200)), NOW)
    assert marks(early) == {}
    assert early.requeue_after == timedelta(seconds=101)
    late = plan(a_scope(a_target(ready="Unknown", held=400)), NOW)
    assert marks(late)["HealthCheckSucceeded"] == (
        "False", "UnhealthyNode",
        "Health check failed: condition Ready on Node is reporting status Unknown for more than 5m0s",
    )  # fmt: skip


def test_a_machine_condition_counts_when_it_has_lasted() -> None:
    listed = UnhealthyMachineCondition(type="NodeHealthy", status="False", timeout_seconds=300)
    check = a_check(unhealthy_machine_conditions=(listed,))

    def seen(held: float) -> Scope:
        target = with_conditions(a_target(), condition("NodeHealthy", "False", since=ago(held)))
        return a_scope(target, check=check)

    assert plan(seen(200), NOW).requeue_after == timedelta(seconds=101)
    assert marks(plan(seen(400), NOW))["HealthCheckSucceeded"] == (
        "False", "UnhealthyMachine",
        "Health check failed: condition NodeHealthy on Machine is reporting status False for more than 5m0s",
    )  # fmt: skip


def test_machine_and_node_together_are_one_condition_with_both_messages() -> None:
    listed = UnhealthyMachineCondition(type="NodeHealthy", status="False", timeout_seconds=300)
    target = with_conditions(a_target(ready="Unknown", held=400), condition("NodeHealthy", "False", since=ago(400)))
    status, reason, message = marks(plan(a_scope(target, check=a_check(unhealthy_machine_conditions=(listed,))), NOW))[
        "HealthCheckSucceeded"
    ]
    assert (status, reason) == ("False", "UnhealthyMachine")
    assert message.splitlines() == [
        "Health check failed:",
        "  * condition NodeHealthy on Machine is reporting status False for more than 5m0s",
        "  * condition Ready on Node is reporting status Unknown for more than 5m0s",
    ]


def test_a_machine_marked_by_hand_is_unhealthy_even_before_the_control_plane_is_up() -> None:
    target = a_target(meta={"annotations": {annotations.REMEDIATE_MACHINE: ""}})
    made = plan(a_scope(target, cluster=ready_cluster(infra="False", plane="False")), NOW)
    assert marks(made)["HealthCheckSucceeded"][:2] == ("False", "HasRemediateAnnotation")
    assert marks(made)["OwnerRemediated"][:2] == ("False", "WaitingForRemediation")


@pytest.mark.parametrize(
    "cluster", [ready_cluster(infra="False"), ready_cluster(plane="False"), a_cluster(conditions=())]
)
def test_before_the_cluster_is_ready_nobody_is_unhealthy_and_nobody_is_called_healthy(cluster: Any) -> None:
    made = plan(a_scope(a_target(), a_target(1, node=None), cluster=cluster), NOW)
    assert marks(made, "p-0") == marks(made, "p-1") == {}
    assert made.status.current_healthy == 0  # type: ignore[union-attr]
    assert brief(made, "RemediationAllowed") == ("True", "RemediationAllowed")


def test_a_control_plane_machine_is_judged_before_the_control_plane_is_initialized() -> None:
    target = a_target(node=None, meta={"labels": {**POOL, labels.CONTROL_PLANE: ""}})
    assert marks(plan(a_scope(target, cluster=ready_cluster(plane="False")), NOW))["HealthCheckSucceeded"][0] == "False"


def test_the_cluster_wakes_its_checks_when_it_becomes_ready() -> None:
    assert reconciler.cluster_matters(ready_cluster(infra="False"), ready_cluster())
    assert reconciler.cluster_matters(ready_cluster(plane="False"), ready_cluster())
    assert not reconciler.cluster_matters(ready_cluster(), ready_cluster())


@pytest.mark.parametrize(
    ("limit", "total", "unhealthy", "wanted"),
    [
        (None, 3, 3, (True, 0)),
        (1, 3, 2, (False, 0)),
        (2, 3, 2, (True, 0)),
        (2, 5, 0, (True, 2)),
        ("50%", 5, 3, (False, 0)),
        ("60%", 5, 3, (True, 0)),
        ("100%", 0, 0, (True, 0)),
    ],
)
def test_the_limit(limit: int | str | None, total: int, unhealthy: int, wanted: tuple[bool, int]) -> None:
    check = a_check(trigger=RemediationTrigger(unhealthy_less_than_or_equal_to=limit))
    assert gate_of(check, total, unhealthy)[:2] == wanted


@pytest.mark.parametrize(
    ("text", "unhealthy", "wanted"), [("[1-3]", 1, (True, 2)), ("[3-5]", 2, (False, 0)), ("[3-5]", 6, (False, 0))]
)
def test_the_range_beats_the_other_limit(text: str, unhealthy: int, wanted: tuple[bool, int]) -> None:
    trigger = RemediationTrigger(unhealthy_in_range=text, unhealthy_less_than_or_equal_to=0)
    assert gate_of(a_check(trigger=trigger), 10, unhealthy)[:2] == wanted


@pytest.mark.parametrize(
    ("trigger", "named"),
    [
        (RemediationTrigger(unhealthy_less_than_or_equal_to="abcdef"), '"abcdef"'),
        (RemediationTrigger(unhealthy_in_range="[5-3]"), '"[5-3]"'),
    ],
)
def test_a_limit_nobody_understands_stops_remediation_and_says_so(trigger: RemediationTrigger, named: str) -> None:
    made = plan(a_scope(a_target(node=None), check=a_check(trigger=trigger)), NOW)
    assert brief(made, "RemediationAllowed") == ("Unknown", "InternalError")
    assert named in said(made, "RemediationAllowed").message
    assert set(marks(made)) == {"HealthCheckSucceeded"}


def blocked() -> Scope:
    trigger = RemediationTrigger(unhealthy_less_than_or_equal_to=1)
    return a_scope(a_target(0, node=None), a_target(1, node=None), a_target(2), check=a_check(trigger=trigger))


def test_too_many_unhealthy_machines_stop_remediation_but_not_the_telling() -> None:
    made = plan(blocked(), NOW)
    assert brief(made, "RemediationAllowed") == ("False", "TooManyUnhealthy")
    assert "2 of 3" in said(made, "RemediationAllowed").message
    assert made.status.remediations_allowed == 0  # type: ignore[union-attr]
    assert set(marks(made, "p-0")) == {"HealthCheckSucceeded"}
    assert marks(made, "p-2")["HealthCheckSucceeded"][0] == "True"
    assert [e.reason for e in made.events].count("RemediationRestricted") == 1


def test_events_are_not_repeated() -> None:
    first = plan(blocked(), NOW)
    told = [
        with_conditions(each, FAILED, name=each.machine.name) if each.node is None else each
        for each in blocked().targets
    ]
    seen = replace(blocked(), check=after(blocked().check, first), targets=told)
    assert [e.reason for e in plan(seen, NOW).events].count("RemediationRestricted") == 0
    marked = with_conditions(a_target(node=None), FAILED)
    assert plan(a_scope(marked), NOW).events == []


def test_no_warning_when_nobody_is_unhealthy() -> None:
    trigger = RemediationTrigger(unhealthy_less_than_or_equal_to=0)
    made = plan(a_scope(joining(10), check=a_check(trigger=trigger)), NOW)
    assert brief(made, "RemediationAllowed") == ("False", "TooManyUnhealthy")
    assert made.events == []


def test_the_clocks_of_others_run_on_while_remediation_is_stopped() -> None:
    trigger = RemediationTrigger(unhealthy_less_than_or_equal_to=0)
    made = plan(
        a_scope(a_target(0, node=None), a_target(1, ready="Unknown", held=200), check=a_check(trigger=trigger)), NOW
    )
    assert made.requeue_after == timedelta(seconds=101)


def test_a_mark_that_says_more_is_kept() -> None:
    deferred = condition("OwnerRemediated", "False", "RemediationDeferred", "later")
    made = plan(a_scope(with_conditions(a_target(node=None), FAILED, deferred)), NOW)
    assert marks(made)["OwnerRemediated"] == ("False", "RemediationDeferred", "later")


def test_a_mark_from_an_earlier_remediation_is_set_anew() -> None:
    made = plan(a_scope(with_conditions(a_target(node=None), condition("OwnerRemediated", "True", "Done"))), NOW)
    assert marks(made)["OwnerRemediated"][:2] == ("False", "WaitingForRemediation")


def test_a_machine_on_its_way_out_is_not_marked_for_remediation_and_counts_as_unhealthy() -> None:
    made = plan(a_scope(a_target(node=None, deleting=True), a_target(1, deleting=True)), NOW)
    assert set(marks(made)) == {"HealthCheckSucceeded"}
    assert marks(made, "p-1") == {}
    assert made.status.current_healthy == 0  # type: ignore[union-attr]


def test_a_machine_that_is_well_again_loses_its_mark() -> None:
    waiting = condition("OwnerRemediated", "False", "WaitingForRemediation")
    made = plan(a_scope(with_conditions(a_target(), FAILED, waiting)), NOW)
    assert set(marks(made)) == {"HealthCheckSucceeded"}
    assert marks(made)["HealthCheckSucceeded"][0] == "True"


def test_a_new_generation_alone_is_no_news() -> None:
    old = Condition(
        type="HealthCheckSucceeded",
        status="True",
        reason="HealthCheckSucceeded",
        last_transition_time=LONG_AGO,
        observed_generation=1,
    )
    machine = a_machine(status=running(), conditions=(old,), meta={"generation": 7})
    [wire] = wire_conditions(plan(a_scope(Target(machine=machine, node=a_node())), NOW), "p-0")
    assert wire["observedGeneration"] == 1


def external(*targets: Target, template: bool = True, **changes: Any) -> Scope:
    obj = provider("FixTemplate", "t", spec={"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"hard": True}}})
    there = found(obj) if template else Found(ref("FixTemplate", "t"))
    kind = resource("Fix") if template else None
    return a_scope(*targets, check=a_check(template=True), template=there, request_kind=kind, **changes)


def with_request(target: Target) -> Target:
    return Target(machine=target.machine, node=target.node, request=provider("Fix", target.machine.name))


def requests(plan_: Plan) -> dict[str, Create]:
    return {w.target.name: w for w in plan_.writes if isinstance(w, Create)}


def test_a_template_asks_for_external_remediation_with_one_request_owned_by_the_machine() -> None:
    made = plan(external(a_target(node=None)), NOW)
    [request] = requests(made).values()
    assert (request.target.name, request.target.resource.kind) == ("p-0", "Fix")
    assert request.body["spec"] == {"hard": True}
    meta = request.body["metadata"]
    assert meta["labels"] == {"a": "b", labels.CLUSTER_NAME: "c"}
    assert meta["annotations"][annotations.CLONED_FROM_NAME] == "t"
    assert meta["annotations"][annotations.CLONED_FROM_GROUP_KIND] == "FixTemplate.infrastructure.cluster.x-k8s.io"
    assert [(r["kind"], r["name"]) for r in meta["ownerReferences"]] == [("Machine", "p-0")]
    assert marks(made)["ExternallyRemediated"][:2] == ("False", "WaitingForRemediation")
    assert "OwnerRemediated" not in marks(made)
    assert requests(plan(external(with_request(a_target(node=None))), NOW)) == {}


def test_the_request_of_a_machine_that_is_well_again_is_deleted() -> None:
    made = plan(external(with_request(a_target())), NOW)
    assert deletes(made, "Fix") == ["p-0"]
    assert marks(made)["HealthCheckSucceeded"][0] == "True"


def another(name: str, status: str) -> MachineHealthCheck:
    """A further check, which takes a Ready condition of this status for unhealthy."""
    watched = UnhealthyNodeCondition(type="Ready", status=status, timeout_seconds=10)
    made = a_check(unhealthy_node_conditions=(watched,))
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, name=name, uid=name))


@pytest.mark.parametrize("name", ["a", "z"])
def test_the_request_of_a_machine_that_another_check_finds_unhealthy_stays(name: str) -> None:
    target = replace(with_request(a_target(ready="False")), others=[another(name, "False")])
    made = plan(external(target), NOW)
    assert deletes(made, "Fix") == []
    assert marks(made) == {}
    assert made.status is not None and made.status.current_healthy == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "says"), [("a", "what the first said"), ("z", "Health check failed: condition Ready")]
)
def test_the_first_of_the_checks_that_find_a_machine_unhealthy_says_why(name: str, says: str) -> None:
    said = condition("HealthCheckSucceeded", "False", message="what the first said")
    machine = a_machine(status=running(), conditions=(said,))
    target = replace(a_target(ready="Unknown"), machine=machine, others=[another(name, "Unknown")])
    found = marks(plan(a_scope(target), NOW))
    assert found["HealthCheckSucceeded"][2].startswith(says)
    assert found["OwnerRemediated"][:2] == ("False", "WaitingForRemediation"), "each asks by its own limit"


def test_what_another_check_thinks_of_a_pending_machine_does_not_matter_yet() -> None:
    target = replace(a_target(ready="Unknown", held=20), others=[another("a", "False")])
    made = plan(a_scope(target), NOW)
    assert marks(made) == {}
    assert made.requeue_after is not None


def test_a_healthy_machine_without_a_request_is_marked_too() -> None:
    assert marks(plan(external(a_target()), NOW))["HealthCheckSucceeded"][0] == "True"


def test_one_request_does_not_keep_the_others_from_theirs() -> None:
    made = plan(external(with_request(a_target(0, node=None)), a_target(1, node=None)), NOW)
    assert list(requests(made)) == ["p-1"]
    assert marks(made, "p-0")["HealthCheckSucceeded"][0] == marks(made, "p-1")["HealthCheckSucceeded"][0] == "False"


@pytest.mark.parametrize("error", [None, UnknownKind("no such kind")])
def test_a_template_that_is_missing_is_said_on_machine_and_check(error: UnknownKind | None) -> None:
    there = Found(ref("FixTemplate", "t"), error=error)
    made = plan(a_scope(a_target(node=None), check=a_check(template=True), template=there), NOW)
    assert marks(made)["ExternallyRemediated"][:2] == ("False", "RemediationTemplateNotFound")
    assert requests(made) == {}
    assert made.status is not None
    old = {c.type: (c.status, c.reason) for c in made.status.deprecated.v1beta1.conditions}  # type: ignore[attr-defined]
    assert old["ExternalRemediationTemplateAvailable"] == ("False", "ExternalRemediationTemplateNotFound")


def test_a_check_without_its_cluster_says_so_and_does_nothing() -> None:
    made = plan(a_scope(a_target(node=None), cluster=None), NOW)
    assert (made.writes, [e.reason for e in made.events]) == ((), ["ClusterNotFound"])
    assert made.status is not None
    told = msgspec.structs.replace(a_check(), status=made.status)
    assert plan(a_scope(check=told, cluster=None), NOW).events == (), "told once"


def test_what_is_woken_by_a_node() -> None:
    ready, unknown = a_node(), a_node(ready="Unknown")
    assert reconciler.node_matters(ready, unknown)
    beat: Node = a_node(resource_version="8")
    assert not reconciler.node_matters(ready, beat)


def test_gates_are_values() -> None:
    assert gate_of(a_check(), 2, 1) == Gate(True, 1, "unhealthyLessThanOrEqualTo: 100%")


def test_a_node_that_two_machines_claim_wakes_nobody() -> None:
    check = a_check()
    one = Cache(check, a_machine(0, status=running(0)))
    wake = next(w for w in reconciler.MachineHealthCheckReconciler().watches if isinstance(w, Workload))
    assert wake.keys is not None
    cluster = ClusterKey(NS, "c")
    assert list(wake.keys(a_node(0), cluster, cast(Reader, one))) == [check.key]
    two = Cache(check, a_machine(0, status=running(0)), a_machine(1, status=running(0)))
    assert list(wake.keys(a_node(0), cluster, cast(Reader, two))) == []
    assert list(wake.keys(a_node(0), ClusterKey(NS, "d"), cast(Reader, one))) == []

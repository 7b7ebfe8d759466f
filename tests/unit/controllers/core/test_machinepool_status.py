"""MachinePool: phase, counters, conditions, and what is reported of dangling Machines."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from capi.api.core import annotations
from capi.api.core.v1beta2 import (
    MachineBootstrap,
    MachinePoolStatus,
    StatusVersion,
)
from capi.controllers import owners
from capi.controllers.core.machinepool.plan import plan
from capi.kube import conditions as kube_conditions
from tests.unit.controllers.builders import (
    NOW,
    a_machine,
    a_node,
    a_pool,
    condition,
    found,
    infra_machine,
    infra_pool,
    node_info,
    running,
)
from tests.unit.controllers.core.passes import after, applies, brief, deletes, said
from tests.unit.controllers.core.pools import READY, a_scope, before, plain, status_of, v1


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


def test_counters_follow_the_machines_while_the_infrastructure_cannot_be_read() -> None:
    known = MachinePoolStatus(replicas=2, ready_replicas=2, conditions=(condition("MachinesReady", "True"),))
    sick = a_machine(1, conditions=(condition("Ready", "False"),))
    gone: dict[str, Any] = {
        "infra": found(None, "TestMachinePool", "p"),
        "infra_machines": [],
        "pool": a_pool(status=known),
    }
    status = status_of(a_scope(**gone, machines=[a_machine(0, conditions=READY), sick]))
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (2, 1, 1)
    status = status_of(a_scope(**gone, machines=[]))
    assert (status.replicas, status.ready_replicas, status.versions) == (2, 0, ())


@pytest.mark.parametrize("known", [(), (condition("MachinesReady", "True"),)])
def test_a_pool_whose_infrastructure_has_gone_at_its_end_counts_nothing(known: Any) -> None:
    full = MachinePoolStatus(
        replicas=2, ready_replicas=2, available_replicas=2, up_to_date_replicas=2, conditions=known
    )
    gone = found(None, "TestMachinePool", "p")
    status = status_of(a_scope(pool=a_pool(deleting=True, status=full), infra=gone, infra_machines=[], machines=[]))
    assert (status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas) == (
        0,
        0,
        0,
        0,
    )


def test_machines_of_others_are_not_counted() -> None:
    other = a_machine(1, owner=owners.reference(a_pool("q"), controller=True), conditions=READY)
    elsewhere = a_machine(2, owner=None, conditions=READY, spec={"cluster_name": "d"})
    loose = a_machine(3, owner=None, conditions=READY)
    machines = [a_machine(0, conditions=READY), other, elsewhere, loose]
    assert status_of(a_scope(machines=machines)).ready_replicas == 2


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


def lost(since: Any, **more: Any) -> Any:
    reason = condition("InfrastructureReady", "False", "ObjectDeleted", "TestMachine p-1 has been deleted", since)
    sick = condition("Ready", "False", "NotReady", "* InfrastructureReady: TestMachine p-1 has been deleted")
    return a_machine(1, conditions=(reason, sick), **more)


@pytest.mark.parametrize(
    ("age", "told", "again"),
    [
        pytest.param(10, False, timedelta(seconds=50), id="the provider has time"),
        pytest.param(60, True, None, id="it had"),
    ],
)
def test_a_dangling_machine_is_left_to_the_provider_and_reported(age: int, told: bool, again: Any) -> None:
    machines = [a_machine(0, conditions=READY), lost(NOW - timedelta(seconds=age))]
    made = plan(a_scope(infra_machines=[infra_machine(0)], machines=machines), NOW)
    assert not deletes(made) and not applies(made, "Machine").get("p-1")
    assert [event.reason for event in made.events] == (["DanglingMachines"] if told else [])
    assert all("p-1" in event.message and event.type == "Warning" for event in made.events)
    assert made.requeue_after == again
    assert "TestMachine p-1 has been deleted" in said(made, "MachinesReady").message


def test_a_machine_that_goes_with_its_infrastructure_does_not_dangle() -> None:
    machines = [a_machine(0, conditions=READY), lost(NOW - timedelta(hours=1), deleting=True)]
    made = plan(a_scope(infra_machines=[infra_machine(0)], machines=machines), NOW)
    assert not made.events and made.requeue_after is None


def test_a_pool_that_is_not_as_wanted_repeats_no_event() -> None:
    seen = a_scope(nodes={"x://p/0": a_node(0), "x://p/1": a_node(1, ready="False")})
    first = plan(seen, NOW)
    later = plan(replace(seen, pool=after(seen.pool, first)), NOW + timedelta(minutes=1))
    assert first.events == later.events == () and later.requeue_after is None


def test_old_conditions_keep_their_times() -> None:
    seen = a_scope()
    pool = after(seen.pool, plan(seen, NOW))
    again = plan(replace(seen, pool=pool), NOW + timedelta(hours=1)).status
    assert {c.last_transition_time for c in again.deprecated.v1beta1.conditions} == {NOW}  # type: ignore[union-attr]
    assert kube_conditions.is_true(pool.status.conditions, "Available")

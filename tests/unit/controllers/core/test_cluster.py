"""Cluster: initialization, conditions, counters, connection, deletion."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from capi.api.core import labels
from capi.api.core.v1beta2 import (
    AvailabilityGate,
    ClusterInitialization,
    ClusterStatus,
    MachinePoolStatus,
    ReplicaCounters,
    StatusVersion,
)
from capi.controllers.core.cluster.plan import plan
from capi.controllers.core.cluster.scope import Scope
from capi.kube.objects import ManagedFieldsEntry
from tests.unit.controllers.builders import NOW, a_cluster, a_machine, a_pool, condition, found, provider, with_status
from tests.unit.controllers.core.passes import after, applies, brief, deletes, said

INFRA = provider("TestCluster", "c", status={"initialization": {"provisioned": True}})
PLANE = provider(
    "TestControlPlane",
    "c",
    spec={"replicas": 3, "version": "v1.35.0"},
    status={
        "initialization": {"controlPlaneInitialized": True},
        "replicas": 3, "readyReplicas": 3, "availableReplicas": 2, "upToDateReplicas": 3, "version": "v1.35.0",
    },
)  # fmt: skip


def a_scope(**changes: Any) -> Scope:
    healthy: dict[str, Any] = {
        "cluster": a_cluster(),
        "infra": found(INFRA),
        "control_plane": found(PLANE),
        "connected": True,
    }
    return Scope(**{**healthy, **changes})


def pool(ready: int = 2, **more: Any) -> Any:
    status = MachinePoolStatus(
        replicas=2,
        ready_replicas=ready,
        available_replicas=ready,
        up_to_date_replicas=2,
        versions=(StatusVersion(version="v1.35.0", replicas=2),),
    )
    return a_pool(**{"status": status, **more})


def start_of(made: Any) -> Any:
    return made.status.initialization


def test_a_healthy_cluster() -> None:
    made = plan(a_scope(pools=[pool()]), NOW)
    assert {c.type: (c.status, c.reason) for c in made.status.conditions} == {  # type: ignore[union-attr]
        "Available": ("True", "Available"),
        "RemoteConnectionProbe": ("True", "ProbeSucceeded"),
        "InfrastructureReady": ("True", "Ready"),
        "ControlPlaneInitialized": ("True", "Initialized"),
        "ControlPlaneAvailable": ("True", "Available"),
        "WorkersAvailable": ("True", "NoWorkers"),
        "ControlPlaneMachinesReady": ("True", "NoReplicas"),
        "ControlPlaneMachinesUpToDate": ("True", "NoReplicas"),
        "WorkerMachinesReady": ("True", "NoReplicas"),
        "WorkerMachinesUpToDate": ("True", "NoReplicas"),
        "RollingOut": ("False", "NotRollingOut"),
        "ScalingUp": ("False", "NotScalingUp"),
        "ScalingDown": ("False", "NotScalingDown"),
        "Remediating": ("False", "NotRemediating"),
        "Deleting": ("False", "NotDeleting"),
    }
    assert made.status.phase == "Provisioned"  # type: ignore[union-attr]


def test_a_settled_cluster_is_silent() -> None:
    seen = a_scope(pools=[pool()])
    made = plan(seen, NOW)
    cluster, later = after(seen.cluster, made), NOW + timedelta(hours=1)
    again = plan(replace(seen, cluster=cluster), later)
    assert after(cluster, again, later) == cluster
    assert again.writes == made.writes and not again.events and again.requeue_after is None


def test_infrastructure_and_control_plane_belong_to_the_cluster_without_being_controlled() -> None:
    made = plan(a_scope(), NOW)
    for kind in ("TestCluster", "TestControlPlane"):
        metadata = applies(made, kind)["c"].body["metadata"]
        assert metadata["labels"] == {labels.CLUSTER_NAME: "c"}
        [owner] = metadata["ownerReferences"]
        assert (owner["uid"], owner.get("controller")) == ("cluster-c", None)


@pytest.mark.parametrize(
    ("changes", "provisioned", "initialized"),
    [
        pytest.param({}, True, True, id="both"),
        pytest.param({"infra": found(None, "TestCluster", "c")}, None, True, id="no infrastructure yet"),
        pytest.param({"infra": found(provider("TestCluster", "c", status={"ready": True}))}, True, True, id="v1beta1 contract"),
        pytest.param({"control_plane": found(provider("TestControlPlane", "c", status={"initialized": True}))}, True, True, id="v1beta1 control plane"),
        pytest.param({"control_plane": found(provider("TestControlPlane", "c"))}, True, None, id="control plane not initialized"),
        pytest.param({"infra": found(None)}, True, True, id="no infrastructure wanted"),
    ],
)  # fmt: skip
def test_initialization(changes: Any, provisioned: Any, initialized: Any) -> None:
    start = start_of(plan(a_scope(cluster=a_cluster(ready=False), **changes), NOW))
    assert (start.infrastructure_provisioned, start.control_plane_initialized) == (provisioned, initialized)


def test_initialization_is_never_taken_back() -> None:
    seen = a_scope(infra=found(None, "TestCluster", "c"), control_plane=found(None, "TestControlPlane", "c"))
    made = plan(seen, NOW)
    assert start_of(made) == ClusterInitialization(infrastructure_provisioned=True, control_plane_initialized=True)
    assert brief(made, "InfrastructureReady") == ("False", "ObjectDeleted")
    assert made.error is None


def test_a_missing_control_plane_is_called_missing() -> None:
    seen = a_scope(cluster=a_cluster(ready=False), control_plane=found(None, "TestControlPlane", "c"))
    assert brief(plan(seen, NOW), "ControlPlaneInitialized") == ("False", "ObjectDoesNotExist")


def test_events_tell_of_each_step_once() -> None:
    seen = a_scope(cluster=a_cluster(ready=False))
    made = plan(seen, NOW)
    assert [e.reason for e in made.events] == ["InfrastructureReady", "ControlPlaneInitialized", "Provisioned"]


# Endpoint -------------------------------------------------------------------------------------------------------------


def endpoint(seen: Scope) -> Any:
    written = applies(plan(seen, NOW), "Cluster")
    return written["c"].body["spec"]["controlPlaneEndpoint"] if written else None


AT = {"controlPlaneEndpoint": {"host": "h", "port": 1}}


def test_the_endpoint_is_copied_from_infrastructure_then_control_plane() -> None:
    bare = a_cluster(control_plane_endpoint=None)
    infra = found(provider("TestCluster", "c", spec=AT, status={"ready": True}))
    plane = found(provider("TestControlPlane", "c", spec={"controlPlaneEndpoint": {"host": "cp", "port": 2}}))
    assert endpoint(a_scope(cluster=bare, infra=infra, control_plane=plane)) == {"host": "h", "port": 1}
    assert endpoint(a_scope(cluster=bare, control_plane=plane)) == {"host": "cp", "port": 2}
    assert endpoint(a_scope(cluster=bare)) is None


def test_the_user_s_endpoint_is_left_alone_and_a_copied_one_stays_ours() -> None:
    seen = a_scope(infra=found(provider("TestCluster", "c", spec=AT, status={"ready": True})))
    assert endpoint(seen) is None
    fields = {"f:spec": {"f:controlPlaneEndpoint": {"f:host": {}, "f:port": {}}}}
    entry = ManagedFieldsEntry(manager="capi-cluster", operation="Apply", fields_v1=fields)
    ours = msgspec.structs.replace(
        seen.cluster, metadata=msgspec.structs.replace(seen.cluster.metadata, managed_fields=(entry,))
    )
    assert endpoint(replace(seen, cluster=ours)) == {"host": "10.0.0.1", "port": 6443}


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({"infra": found(provider("TestCluster", "c"))}, "Provisioning"),
        ({}, "Provisioned"),
        ({"cluster": a_cluster(ready=False, control_plane_endpoint=None)}, "Provisioning"),
        ({"cluster": a_cluster(ready=False, control_plane_endpoint=None), "infra": found(None), "control_plane": found(None)}, "Pending"),
        ({"cluster": a_cluster(deleting=True)}, "Deleting"),
    ],
)  # fmt: skip
def test_phases(changes: Any, phase: str) -> None:
    seen = a_scope(**{"cluster": a_cluster(ready=False), **changes})
    assert plan(seen, NOW).status.phase == phase  # type: ignore[union-attr]


# Connection -----------------------------------------------------------------------------------------------------------

UP = (condition("RemoteConnectionProbe", "True"),)
DOWN = (condition("RemoteConnectionProbe", "False", "ProbeFailed", "since then"),)


@pytest.mark.parametrize(
    ("before", "lost_for", "status", "message", "recheck"),
    [
        pytest.param((), 0, "False", "not established yet", None, id="never connected"),
        pytest.param(UP, 49, "True", "", timedelta(seconds=1), id="within the grace"),
        pytest.param(UP, 50, "False", "2026-01-01T11:59:10Z", None, id="after it, with the time"),
        pytest.param(DOWN, 500, "False", "since then", None, id="and then silent"),
    ],
)
def test_the_probe(before: Any, lost_for: int, status: str, message: str, recheck: Any) -> None:
    seen = a_scope(cluster=a_cluster(conditions=before), connected=False, lost_since=NOW - timedelta(seconds=lost_for))
    made = plan(seen, NOW)
    probe = said(made, "RemoteConnectionProbe")
    assert probe.status == status and message in probe.message
    assert made.requeue_after == recheck


@pytest.mark.parametrize(
    ("before", "lost_for", "first"),
    [
        pytest.param((), 0, "Remote connection not established yet", id="never connected"),
        pytest.param(UP, 60, "Remote connection probe failed, probe last succeeded at 2026-01-01T11:59:00Z", id="lost"),
        pytest.param(DOWN, 500, "since then", id="lost for long"),
    ],
)
def test_the_probe_says_what_stands_in_the_way(before: Any, lost_for: int, first: str) -> None:
    seen = a_scope(
        cluster=a_cluster(conditions=before),
        connected=False,
        lost_since=NOW - timedelta(seconds=lost_for),
        trouble="users[0].user.exec: is not allowed here",
    )
    made = plan(seen, NOW)
    assert said(made, "RemoteConnectionProbe").message == f"{first}\n* users[0].user.exec: is not allowed here"
    again = plan(replace(seen, cluster=after(seen.cluster, made)), NOW)
    assert said(again, "RemoteConnectionProbe") == said(made, "RemoteConnectionProbe"), "and then is silent"
    better = plan(replace(seen, cluster=after(seen.cluster, made), trouble=""), NOW)
    assert said(better, "RemoteConnectionProbe").message == first


# Counters -------------------------------------------------------------------------------------------------------------


def test_pools_count_as_workers_but_not_in_workers_available() -> None:
    made = plan(a_scope(pools=[pool(ready=1)]), NOW)
    assert made.status.workers == ReplicaCounters(  # type: ignore[union-attr]
        desired_replicas=2,
        replicas=2,
        ready_replicas=1,
        available_replicas=1,
        up_to_date_replicas=2,
        versions=(StatusVersion(version="v1.35.0", replicas=2),),
    )
    assert brief(made, "WorkersAvailable") == ("True", "NoWorkers")


def test_a_new_pool_counts_with_what_it_wants() -> None:
    workers = plan(a_scope(pools=[pool(), a_pool("q", replicas=None), a_pool("r", replicas=3)]), NOW).status.workers  # type: ignore[union-attr]
    assert (workers.desired_replicas, workers.replicas) == (5, 2)


def loose(index: int, **more: Any) -> Any:
    return a_machine(index, owner=None, meta={"labels": more.pop("labels", {})}, **more)


def test_machines_outside_pools_count_by_their_conditions() -> None:
    ready = (condition("Ready", "True"), condition("Available", "True"))
    workers = plan(a_scope(unpooled=[loose(0, conditions=ready), loose(1)]), NOW)
    counted = workers.status.workers  # type: ignore[union-attr]
    assert (counted.desired_replicas, counted.ready_replicas, counted.available_replicas) == (2, 1, 1)
    assert brief(workers, "WorkerMachinesReady") == ("Unknown", "ReadyUnknown")


def test_the_control_plane_counts_as_it_says() -> None:
    counted = plan(a_scope(), NOW).status.control_plane  # type: ignore[union-attr]
    assert (counted.desired_replicas, counted.replicas, counted.available_replicas) == (3, 3, 2)


@pytest.mark.parametrize(("value", "available"), [("True", "True"), ("False", "False")])
def test_availability_gates(value: str, available: str) -> None:
    cluster = a_cluster(
        availability_gates=(AvailabilityGate(condition_type="Gate"),), conditions=(condition("Gate", value),)
    )
    assert said(plan(a_scope(cluster=cluster), NOW), "Available").status == available


def test_what_is_missing_is_in_the_summary() -> None:
    cluster = with_status(a_cluster(), ClusterStatus())
    seen = a_scope(cluster=cluster, infra=found(None, "TestCluster", "c"))
    assert said(plan(seen, NOW), "Available").message == "* InfrastructureReady: TestCluster c does not exist"


# Deletion -------------------------------------------------------------------------------------------------------------


def dying(**changes: Any) -> Scope:
    return a_scope(cluster=a_cluster(deleting=True), **changes)


def test_workers_control_plane_infrastructure_finalizer() -> None:
    going = [a_machine(0, deleting=True), a_machine(1, deleting=True)]
    seen = dying(pools=[a_pool()], pooled=going, unpooled=[loose(5)])
    first = plan(seen, NOW)
    assert deletes(first) == ["p", "p-5"]
    assert said(first, "Deleting").message == "* MachinePools: p\n* 2 Machines of MachinePools\n* Machines: p-5"
    second = plan(replace(seen, pools=[], unpooled=[]), NOW)
    assert not second.writes and brief(second, "Deleting") == ("True", "WaitingForWorkersDeletion")
    third = plan(dying(), NOW)
    assert deletes(third) == ["c"] and brief(third, "Deleting") == ("True", "WaitingForControlPlaneDeletion")
    fourth = plan(dying(control_plane=found(None, "TestControlPlane", "c")), NOW)
    assert deletes(fourth) == ["c"] and brief(fourth, "Deleting") == ("True", "WaitingForInfrastructureDeletion")
    gone = {"control_plane": found(None, "TestControlPlane", "c"), "infra": found(None, "TestCluster", "c")}
    assert plan(dying(**gone), NOW).finalized
    assert not any(made.finalized or made.requeue_after for made in (first, second, third, fourth))


def test_machines_whose_pools_have_gone_without_them_go_too() -> None:
    left = [a_machine(0), a_machine(1, deleting=True)]
    assert deletes(plan(dying(pools=[a_pool(deleting=True)], pooled=left), NOW)) == [], "their pool sees to them"
    made = plan(dying(pooled=left), NOW)
    assert deletes(made) == ["p-0"]
    assert said(made, "Deleting").message == "* 2 Machines of MachinePools"


@pytest.mark.parametrize(("with_object", "deleted"), [(True, []), (False, ["p-9"])])
def test_control_plane_machines_go_with_their_owner_or_by_the_cluster(with_object: bool, deleted: Any) -> None:
    machine = loose(9, labels={labels.CONTROL_PLANE: ""})
    plane = found(None, "TestControlPlane", "c") if with_object else found(None)
    made = plan(dying(unpooled=[machine], control_plane=plane), NOW)
    assert deletes(made) == deleted
    assert brief(made, "Deleting") == ("True", "WaitingForControlPlaneDeletion")


def test_what_is_going_is_not_deleted_again_and_the_wait_is_silent() -> None:
    seen = dying(pools=[a_pool(deleting=True)])
    cluster = after(seen.cluster, plan(seen, NOW))
    again = plan(replace(seen, cluster=cluster), NOW + timedelta(minutes=5))
    assert not again.writes and not again.events and again.requeue_after is None
    assert after(cluster, again, NOW + timedelta(minutes=5)) == cluster

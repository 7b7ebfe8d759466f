"""Cluster: the conditions of the old API, and the present failure."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from capi.controllers.core.cluster.plan import plan
from tests.unit.controllers.builders import NOW, a_cluster, a_machine, found, provider
from tests.unit.controllers.core.passes import after
from tests.unit.controllers.core.test_cluster import a_scope

NO_INFRA, NO_PLANE = found(None, "TestCluster", "c"), found(None, "TestControlPlane", "c")
SICK = {"conditions": [{"type": "Ready", "status": "False", "reason": "Mine", "message": "m"}]}


def old(**changes: Any) -> dict[str, tuple[str, str, str]]:
    """Status, severity and reason by type."""
    block = plan(a_scope(**changes), NOW).status.deprecated.v1beta1  # type: ignore[union-attr]
    return {c.type: (c.status, c.severity, c.reason) for c in block.conditions}


def test_a_healthy_cluster_is_ready_in_the_old_words_too() -> None:
    true = ("True", "", "")
    types = ("Ready", "InfrastructureReady", "ControlPlaneReady", "ControlPlaneInitialized")
    assert old() == dict.fromkeys(types, true)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"cluster": a_cluster(ready=False), "infra": NO_INFRA, "control_plane": NO_PLANE},
            {
                "InfrastructureReady": ("False", "Info", "WaitingForInfrastructure"),
                "ControlPlaneReady": ("False", "Info", "WaitingForControlPlane"),
                "ControlPlaneInitialized": ("False", "Info", "WaitingForControlPlaneProviderInitialized"),
                "Ready": ("False", "Info", "WaitingForInfrastructure"),
            },
            id="nothing yet",
        ),
        pytest.param(
            {"infra": NO_INFRA},
            {"InfrastructureReady": ("False", "Error", "Deleted"), "Ready": ("False", "Error", "Deleted")},
            id="infrastructure that went",
        ),
        pytest.param(
            {"control_plane": found(provider("TestControlPlane", "c", status=SICK))},
            {
                "ControlPlaneReady": ("False", "Info", "Mine"),
                "ControlPlaneInitialized": ("True", "", ""),
                "Ready": ("False", "Info", "Mine"),
            },
            id="the control plane's own reason",
        ),
    ],
)
def test_what_is_missing_has_its_old_reason(changes: Any, expected: Any) -> None:
    assert expected.items() <= old(**changes).items()


def test_without_a_control_plane_object_its_first_node_counts() -> None:
    alone = {"cluster": a_cluster(ready=False, control_plane_ref=None), "control_plane": found(None)}
    said = old(**alone)
    assert "ControlPlaneReady" not in said
    assert said["ControlPlaneInitialized"] == ("False", "Info", "MissingNodeRef")
    worker = a_machine(0, meta={"labels": {}})
    assert old(**alone, unpooled=[worker])["ControlPlaneInitialized"][0] == "False"


def test_times_move_with_the_status_only() -> None:
    seen = a_scope()
    cluster, later = after(seen.cluster, plan(seen, NOW)), NOW + timedelta(hours=1)
    made = plan(replace(seen, cluster=cluster, infra=NO_INFRA), later)
    times = {c.type: c.last_transition_time for c in made.status.deprecated.v1beta1.conditions}  # type: ignore[union-attr]
    assert times == {
        "Ready": later,
        "InfrastructureReady": later,
        "ControlPlaneReady": NOW,
        "ControlPlaneInitialized": NOW,
    }


def test_a_failure_lasts_as_long_as_its_cause() -> None:
    failing = {"failureReason": "CreateError", "failureMessage": "quota"}
    seen = a_scope(infra=found(provider("TestCluster", "c", status=failing)))
    made = plan(seen, NOW)
    block = made.status.deprecated.v1beta1  # type: ignore[union-attr]
    assert block.failure_reason == "CreateError" and "quota" in block.failure_message
    healed = plan(a_scope(cluster=after(seen.cluster, made)), NOW).status.deprecated.v1beta1  # type: ignore[union-attr]
    assert (healed.failure_reason, healed.failure_message) == ("", "")

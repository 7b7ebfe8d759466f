"""Volumes: what has to be detached before the instance of a Machine goes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from capi.api.builtin import PersistentVolume, VolumeAttachment
from capi.api.core.v1beta2 import MachineDeletion, MachineDeletionStatus
from capi.controllers.core.machine.drain.steps import volumes_due
from capi.controllers.core.machine.drain.view import DrainView, VolumeView
from capi.controllers.core.machine.plan import plan
from capi.kube.errors import TransportError
from capi.kube.objects import from_wire
from tests.unit.controllers.builders import NOW, a_cluster, a_node, found, infra_machine, running
from tests.unit.controllers.core.drains import a_pod, a_rule, a_scope, ago, doomed
from tests.unit.controllers.core.passes import after, brief, said

EXCLUDE = {"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}
NO_DRAIN = {"machine.cluster.x-k8s.io/exclude-node-draining": ""}
PRE_DRAIN = {"pre-drain.delete.hook.machine.cluster.x-k8s.io/x": ""}
IN_STATUS = "kubernetes.io/csi/csi.example.com^"


def a_volume(name: str, claim: str = "", *, kind: str = "PersistentVolumeClaim", csi: bool = True) -> PersistentVolume:
    spec: dict[str, Any] = {}
    if csi:
        spec["csi"] = {"driver": "csi.example.com", "volumeHandle": f"handle-{name}"}
    if claim:
        spec["claimRef"] = {"kind": kind, "namespace": "apps", "name": claim}
    return from_wire(PersistentVolume, {"metadata": {"name": name}, "spec": spec})


def attachment(volume: str, *, node: str = "p-0", attached: bool = True) -> VolumeAttachment:
    spec = {"attacher": "csi.example.com", "nodeName": node, "source": {"persistentVolumeName": volume}}
    raw = {"metadata": {"name": f"a-{volume}"}, "spec": spec, "status": {"attached": attached}}
    return from_wire(VolumeAttachment, raw)


def waiting(seen: Any) -> list[str]:
    """The lines of what is waited for; none when the stage is passed."""
    made = plan(seen, NOW)
    condition = said(made, "Deleting")
    if condition.reason != "WaitingForVolumeDetach":
        return []
    head, *lines = condition.message.splitlines()
    assert head == "Waiting for Node volumes to be detached (started at 2026-01-01T12:00:00Z)" and not made.writes
    return lines


def attached(*attachments: VolumeAttachment, volumes: Any = (), names: Any = (), **changes: Any) -> Any:
    view = VolumeView(attachments=attachments, volumes=volumes)
    return a_scope(**{"volumes": view, "nodes": (a_node(cordoned=True, volumes=names),), **changes})


@pytest.mark.parametrize(
    ("seen", "lines"),
    [
        pytest.param(attached(), [], id="nothing"),
        pytest.param(
            attached(attachment("v"), volumes=[a_volume("v", "data")]),
            ["* PersistentVolumeClaims: apps/data"],
            id="by its attachment",
        ),
        pytest.param(
            attached(volumes=[a_volume("v", "data")], names=[f"{IN_STATUS}handle-v"]),
            ["* PersistentVolumeClaims: apps/data"],
            id="by the Node's status",
        ),
        pytest.param(
            attached(attachment("v"), volumes=[a_volume("v", "data")], names=[f"{IN_STATUS}handle-v"]),
            ["* PersistentVolumeClaims: apps/data"],
            id="by both, once",
        ),
        pytest.param(attached(attachment("v", attached=False), volumes=[a_volume("v", "data")]), [], id="not attached"),
        pytest.param(attached(attachment("v", node="p-1"), volumes=[a_volume("v", "data")]), [], id="to another Node"),
        pytest.param(
            attached(attachment("v"), attachment("w"), volumes=[a_volume("v"), a_volume("w", "x", kind="Other")]),
            ["* PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: v, w"],
            id="nobody claims it",
        ),
        pytest.param(
            attached(names=["kubernetes.io/other/disk"]),
            ["* Node with .status.volumesAttached entries not matching a PersistentVolume: kubernetes.io/other/disk"],
            id="an unknown name in the status",
        ),
        pytest.param(
            attached(attachment("gone")),
            [
                "* VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume: gone"
            ],
            id="a volume that does not exist",
        ),
        pytest.param(
            attached(*(attachment(v) for v in "abcde"), volumes=[a_volume(v, v, csi=False) for v in "abcde"]),
            ["* PersistentVolumeClaims: apps/a, apps/b, apps/c, ... (2 more)"],
            id="many",
        ),
    ],
)  # fmt: skip
def test_what_is_attached_is_waited_for_by_its_claim(seen: Any, lines: list[str]) -> None:
    assert waiting(seen) == lines


@pytest.mark.parametrize(
    ("pod", "lines"),
    [
        pytest.param(a_pod("a", owner=("DaemonSet", "ds"), claims=("data",)), [], id="a daemon's"),
        pytest.param(
            a_pod("a", labels={"cluster.x-k8s.io/drain": "skip"}, claims=("data",)), [], id="of a Pod that stays"
        ),
        pytest.param(
            a_pod("a", phase="Succeeded", labels={"cluster.x-k8s.io/drain": "wait-completed"}, claims=("data",)),
            ["* PersistentVolumeClaims: apps/data"],
            id="of a job that has ended",
        ),
        pytest.param(
            a_pod("a", labels={"cluster.x-k8s.io/drain": "skip"}, claims=("data",), namespace="other"),
            ["* PersistentVolumeClaims: apps/data"],
            id="of that name in another namespace",
        ),
    ],
)
def test_claims_of_pods_that_the_drain_leaves_alone_are_not_waited_for(pod: Any, lines: list[str]) -> None:
    view = DrainView(pods=[pod], daemon_sets=frozenset({"ds"}))
    assert waiting(attached(attachment("v"), volumes=[a_volume("v", "data")], drain=view)) == lines


def test_without_a_drain_the_pods_that_would_stay_still_count() -> None:
    seen = attached(
        attachment("v"),
        volumes=[a_volume("v", "data")],
        machine=doomed(meta={"annotations": NO_DRAIN}),
        drain=DrainView(pods=[a_pod("a", claims=("data",)), a_pod("b")], rules=[a_rule("all", "Skip")]),
    )
    assert waiting(seen) == []


def limited(seconds: int | None, *, waited: int) -> Any:
    status = running(deletion=MachineDeletionStatus(wait_for_node_volume_detach_start_time=ago(seconds=waited)))
    return doomed(status=status, spec={"deletion": MachineDeletion(node_volume_detach_timeout_seconds=seconds)})


BEGUN = running(deletion=MachineDeletionStatus(wait_for_pre_terminate_hook_start_time=NOW))


@pytest.mark.parametrize(
    ("changes", "due"),
    [
        pytest.param({}, True, id="a Machine that goes"),
        pytest.param({"machine": doomed(meta={"annotations": EXCLUDE})}, False, id="excluded by annotation"),
        pytest.param({"machine": doomed(meta={"annotations": PRE_DRAIN})}, False, id="a pre-drain hook holds it"),
        pytest.param({"machine": doomed(status=BEGUN)}, False, id="pre-terminate begun"),
        pytest.param({"infra": found(None, "TestMachine", "p-0")}, False, id="the instance has gone"),
        pytest.param({"infra": found(infra_machine(deleting=True))}, False, id="the instance goes"),
        pytest.param({"machine": limited(60, waited=60)}, False, id="the timeout is over"),
        pytest.param({"machine": limited(60, waited=59)}, True, id="the timeout runs"),
        pytest.param({"machine": limited(0, waited=9999)}, True, id="a timeout of 0 never ends it"),
        pytest.param({"cluster": a_cluster(deleting=True)}, False, id="the Cluster goes"),
    ],
)
def test_when_volumes_are_waited_for(changes: Any, due: bool) -> None:
    seen = attached(attachment("v"), volumes=[a_volume("v", "data")], **changes)
    assert volumes_due(seen, NOW) == due
    assert (brief(plan(seen, NOW), "Deleting")[1] == "WaitingForVolumeDetach") == due


def test_nothing_is_detached_from_a_node_that_does_not_answer_or_has_gone() -> None:
    silent = a_node(cordoned=True, ready="Unknown", volumes=["x"])
    for nodes in ((silent,), ()):
        made = plan(a_scope(nodes=nodes, drain=DrainView(), volumes=None), NOW)
        assert brief(made, "Deleting") == ("True", "WaitingForInfrastructureDeletion")


def test_without_a_connection_nobody_knows_and_the_timeout_ends_it() -> None:
    machine = limited(60, waited=20)
    machine.metadata.annotations.update(NO_DRAIN)
    made = plan(a_scope(machine=machine, connected=False, nodes=(), drain=None, volumes=None), NOW)
    assert brief(made, "Deleting") == ("True", "WaitingForVolumeDetach")
    assert "connection to the workload cluster" in said(made, "Deleting").message
    assert made.requeue_after == timedelta(seconds=40)


def test_volumes_that_cannot_be_read_are_waited_for_and_told_once() -> None:
    broken = TransportError("persistentvolumes: no answer")
    seen = a_scope(volumes=VolumeView(error=broken))
    made = plan(seen, NOW)
    assert brief(made, "Deleting") == ("True", "WaitingForVolumeDetach") and made.error is broken and not made.writes
    assert "FailedWaitForVolumeDetach" in [event.reason for event in made.events]
    assert plan(replace(seen, machine=after(seen.machine, made)), NOW).events == ()


def test_the_wait_is_looked_at_again_and_its_end_is_an_event() -> None:
    seen = attached(attachment("v"), volumes=[a_volume("v", "data")])
    first = plan(seen, NOW)
    assert first.requeue_after == timedelta(seconds=1)
    wait = replace(seen, machine=after(seen.machine, first))
    assert plan(wait, NOW + timedelta(minutes=5)).requeue_after == timedelta(seconds=20)
    assert first.status.deletion.wait_for_node_volume_detach_start_time == NOW  # type: ignore[union-attr]
    done = plan(replace(wait, volumes=VolumeView()), NOW)
    assert [event.reason for event in done.events] == ["NodeVolumesDetached"]

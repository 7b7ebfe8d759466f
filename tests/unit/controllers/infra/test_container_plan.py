"""What the pass of a DevMachine wants that is a container."""

from datetime import timedelta
from typing import Any

import pytest

from capi.api.builtin import Node
from capi.api.infra.v1beta2 import DevMachine, DevMachineStatus
from capi.backends.docker import steps
from capi.backends.docker.steps import Phase
from capi.backends.port import Address, BackendUnavailable, Instance, InstanceGone, Stage
from capi.controllers.infra.machine import plan as planning
from capi.controllers.infra.machine.scope import Scope
from capi.kube.conditions import Condition
from capi.kube.errors import BackendError, TerminalError
from capi.kube.objects import from_wire, to_wire
from capi.runtime.plan import Apply, Patch, Plan
from tests.unit.controllers.infra.builders import NOW, a_cluster, a_machine

ID = "docker:////prod-cp0"
FOUR = (Address("Hostname", "prod-cp0"), Address("InternalIP", "172.18.0.2"), Address("ExternalIP", "172.18.0.2"))


def a_devmachine(*conditions: Condition, spec: dict[str, Any] | None = None, **more: Any) -> DevMachine:
    metadata = {"name": "cp0", "namespace": "ns", "uid": "u", **more.pop("metadata", {})}
    status = {"conditions": [to_wire(c) for c in conditions], **more}
    return from_wire(
        DevMachine, {"metadata": metadata, "spec": {"backend": {"docker": {}}, **(spec or {})}, "status": status}
    )


def a_scope(infra: DevMachine | None = None, **parts: Any) -> Scope:
    machine = a_machine("cp0", bootstrap={"dataSecretName": "data"}, version="v1.34.0")
    given: dict[str, Any] = {"machine": machine, "cluster": a_cluster(), "id": ID}
    return Scope(infra=infra or a_devmachine(), **{**given, **parts})


def at(phase: Phase, message: str = "busy", **more: Any) -> Instance:
    """As the Docker backend says it."""
    return Instance(
        id=ID, name="cp0", cluster=a_scope().cluster_key, stage=steps.stage(phase),
        steps=steps.conditions(phase, message, reason=more.pop("reason", "")), **more,
    )  # fmt: skip


def reported(phase: Phase, **more: Any) -> DevMachine:
    """Of which that was said before."""
    provisioned = {"initialization": {"provisioned": True}} if phase >= Phase.BOOTSTRAPPING else {}
    return a_devmachine(*steps.conditions(phase, "busy"), **provisioned, **more)


def progress(seen: Scope, instance: Instance) -> Plan:
    return planning.progress(seen, planning.instance_spec(seen, NOW), instance, NOW)


def status(planned: Plan) -> DevMachineStatus:
    assert isinstance(planned.status, DevMachineStatus)
    return planned.status


def states(planned: Plan) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in status(planned).conditions}


def provisioned(planned: Plan) -> bool:
    initialization = status(planned).initialization
    return bool(initialization is not None and initialization.provisioned)


WORKER = a_machine("cp0", bootstrap={})


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        pytest.param(
            {"cluster": a_cluster(provisioned=False)}, "WaitingForClusterInfrastructureReady", id="infrastructure"
        ),
        pytest.param(
            {"machine": WORKER, "cluster": a_cluster(initialized=False)},
            "WaitingForControlPlaneInitialized",
            id="a control plane to join",
        ),
        pytest.param({"machine": WORKER}, "WaitingForBootstrapData", id="bootstrap data"),
    ],
)
def test_a_container_waits_and_says_for_what(parts: dict[str, Any], reason: str) -> None:
    seen = a_scope(**parts)
    gate = planning.gate(seen)
    assert gate is not None
    planned = planning.waiting(seen, gate)
    assert states(planned) == {
        "Ready": ("False", "NotReady"),
        "ContainerProvisioned": ("False", reason),
        **dict.fromkeys(
            ("CGroupsReady", "PreLoadedImagesReady", "BootstrapCompleted"), ("False", "WaitingForContainer")
        ),
    }
    assert not provisioned(planned)


def test_without_a_machine_nothing_happens() -> None:
    assert planning.ownerless(a_scope(machine=None))
    assert not planning.ownerless(a_scope())


def test_the_backend_is_told_what_the_machine_says() -> None:
    docker = {
        "customImage": "mine:1",
        "preLoadImages": ["x", "y"],
        "extraMounts": [{"hostPath": "/a", "containerPath": "/b", "readOnly": True}],
        "bootstrapTimeout": "10s",
    }
    machine = a_machine("m0", version="v1.34.0", failureDomain="fd4", bootstrap={"dataSecretName": "data"})
    seen = a_scope(a_devmachine(spec={"backend": {"docker": docker}}), machine=machine)
    spec = planning.instance_spec(seen, NOW)
    assert (spec.name, spec.host, spec.version, spec.failure_domain) == ("cp0", "m0", "v1.34.0", "fd4")
    assert (spec.container.image, spec.container.preload) == ("mine:1", ("x", "y"))
    [mount] = spec.container.mounts
    assert (mount.host_path, mount.container_path, mount.read_only) == ("/a", "/b", True)
    assert spec.container.bootstrap_timeout == timedelta(seconds=10)
    assert planning.instance_spec(a_scope(), NOW).container.bootstrap_timeout == timedelta(minutes=5)


def test_a_timeout_that_is_no_duration_is_named() -> None:
    seen = a_scope(a_devmachine(spec={"backend": {"docker": {"bootstrapTimeout": "soon"}}}))
    with pytest.raises(TerminalError, match="bootstrapTimeout"):
        planning.instance_spec(seen, NOW)


def test_a_container_has_no_version_of_its_own() -> None:
    nothing = a_machine("cp0", bootstrap={"dataSecretName": "data"})
    assert planning.instance_spec(a_scope(machine=nothing), NOW).version == ""


def test_it_is_provisioned_with_id_addresses_and_domain_while_its_bootstrap_still_runs() -> None:
    machine = a_machine("cp0", version="v1.34.0", failureDomain="fd4", bootstrap={"dataSecretName": "data"})
    planned = progress(a_scope(machine=machine), at(Phase.BOOTSTRAPPING, "kubeadm (2 of 5)", addresses=FOUR))
    assert provisioned(planned)
    [write] = planned.writes
    assert isinstance(write, Apply)
    assert write.body == {"spec": {"providerID": ID}}
    assert [(a.type, a.address) for a in status(planned).addresses] == [(a.type, a.address) for a in FOUR]
    assert status(planned).failure_domain == "fd4"
    assert states(planned)["BootstrapCompleted"] == ("False", "NotCompleted")
    assert "* BootstrapCompleted: kubeadm (2 of 5)" in status(planned).conditions[0].message


@pytest.mark.parametrize("phase", [Phase.CREATING, Phase.BOOTING, Phase.PRELOADING])
def test_it_is_not_before_its_images_are_there(phase: Phase) -> None:
    planned = progress(a_scope(), at(phase))
    assert not provisioned(planned)
    assert planned.writes == []
    assert status(planned).addresses == ()


def test_it_is_ready_when_its_bootstrap_is_over() -> None:
    assert {state for state, _ in states(progress(a_scope(), at(Phase.DONE, addresses=FOUR))).values()} == {"True"}


def test_a_bootstrap_that_failed_shows_its_words_and_is_not_repeated() -> None:
    planned = progress(
        a_scope(reported(Phase.BOOTSTRAPPING)), at(Phase.BOOTSTRAPPING, "exit 1: no route", reason="Failed")
    )
    assert states(planned)["BootstrapCompleted"] == ("False", "Failed")
    assert "exit 1: no route" in status(planned).conditions[0].message
    assert (planned.error, planned.requeue_after) == (None, None)
    assert provisioned(planned)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(a_scope(reported(Phase.DONE)), id="it said so before"),
        pytest.param(a_scope(machine=from_wire(type(WORKER), {
            "metadata": {"name": "cp0", "namespace": "ns"}, "spec": to_wire(WORKER.spec),
            "status": {"nodeRef": {"name": "prod-cp0"}},
        })), id="its Node is there"),
    ],
)  # fmt: skip
def test_what_has_become_a_node_is_told_apart(seen: Scope) -> None:
    assert planning.bootstrapped(seen)
    assert planning.instance_spec(seen, NOW).bootstrapped
    assert not planning.bootstrapped(a_scope(reported(Phase.BOOTSTRAPPING)))


def test_a_restored_object_with_its_id_finds_what_was_made() -> None:
    restored = a_devmachine(spec={"providerID": ID}, initialization={"provisioned": True})
    assert planning.instance_spec(a_scope(restored), NOW).made
    assert not planning.instance_spec(a_scope(), NOW).made


def test_a_container_that_stopped_is_told_with_an_event_and_stays_provisioned() -> None:
    text = "Container prod-cp0 is not running any more: exited"
    stopped = Instance(
        id=ID, name="cp0", cluster=a_scope().cluster_key, stage=Stage.STOPPED, steps=steps.stopped(text, bootstrapped=True)
    )  # fmt: skip
    planned = progress(a_scope(reported(Phase.DONE), node=a_node()), stopped)
    assert states(planned)["ContainerProvisioned"] == ("False", "NotProvisioned")
    assert states(planned)["Ready"] == ("False", "NotReady")
    assert states(planned)["BootstrapCompleted"] == ("True", "Completed")
    assert provisioned(planned)
    assert [(e.reason, e.message) for e in planned.events] == [("InstanceStopped", text)]
    assert not [w for w in planned.writes if isinstance(w, Patch)]


def test_a_container_that_is_gone_stays_gone() -> None:
    planned = planning.failed(a_scope(reported(Phase.DONE)), InstanceGone("Container prod-cp0 was removed"))
    assert states(planned)["ContainerProvisioned"] == ("False", "InstanceGone")
    assert planned.error is None


def test_an_engine_that_is_away_makes_it_unknown_and_nothing_else() -> None:
    planned = planning.failed(a_scope(reported(Phase.DONE)), BackendUnavailable("start the engine"))
    assert states(planned)["ContainerProvisioned"] == ("Unknown", "BackendUnavailable")
    assert states(planned)["Ready"] == ("Unknown", "ReadyUnknown")
    assert states(planned)["BootstrapCompleted"] == ("True", "Completed")
    assert planned.error is not None


GOING = {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}}


def test_a_removal_is_told_before_it_begins_once() -> None:
    announced = planning.announced(a_scope(reported(Phase.DONE, **GOING)))
    assert announced is not None
    assert states(announced)["ContainerProvisioned"] == ("False", "Deleting")
    assert announced.requeue_after == timedelta()
    again = a_devmachine(*status(announced).conditions, **GOING)
    assert planning.announced(a_scope(again)) is None


def test_a_removal_of_what_was_never_begun_or_is_simulated_is_not_worth_a_word() -> None:
    assert planning.announced(a_scope(a_devmachine(**GOING))) is None
    assert planning.announced(a_scope(reported(Phase.DONE, **GOING), simulated=True)) is None


def test_a_removal_that_fails_says_why_and_is_tried_again() -> None:
    planned = planning.not_removed(a_scope(reported(Phase.DONE, **GOING)), BackendError("device busy", reason="X"))
    assert states(planned)["ContainerProvisioned"] == ("False", "Deleting")
    assert "Removing the container failed: device busy" in status(planned).conditions[0].message
    assert planned.error is not None
    assert not planned.finalized


def a_node(provider_id: str = "", taints: tuple[str, ...] = (), addresses: tuple[tuple[str, str], ...] = ()) -> Node:
    """Taints by their keys; all of them forbid scheduling."""
    return from_wire(
        Node,
        {
            "metadata": {"name": "prod-cp0", "resourceVersion": "7"},
            "spec": {
                **({"providerID": provider_id} if provider_id else {}),
                "taints": [{"key": key, "effect": "NoSchedule"} for key in taints],
            },
            "status": {"addresses": [{"type": type_, "address": address} for type_, address in addresses]},
        },
    )


CLOUD = "node.cloudprovider.kubernetes.io/uninitialized"


def patches(node: Node | None, addresses: tuple[Address, ...] = FOUR) -> list[Patch]:
    seen = a_scope(reported(Phase.DONE, spec={"providerID": ID}), node=node)
    return [w for w in progress(seen, at(Phase.DONE, addresses=addresses)).writes if isinstance(w, Patch)]


def test_a_node_that_is_not_there_yet_is_waited_for_without_error_or_timer() -> None:
    seen = a_scope(reported(Phase.DONE, spec={"providerID": ID}))
    planned = progress(seen, at(Phase.DONE, addresses=FOUR))
    assert (list(planned.writes), planned.error, planned.requeue_after) == ([], None, None)


def test_a_node_without_provider_id_gets_it() -> None:
    [patch] = patches(a_node())
    assert patch.body == {"metadata": {"resourceVersion": "7"}, "spec": {"providerID": ID}}
    assert patches(a_node(ID)) == []


def test_a_node_that_waits_for_a_cloud_gets_its_missing_addresses_in_order_and_loses_the_taint() -> None:
    dual = (*FOUR, Address("InternalIP", "fc00::2"), Address("ExternalIP", "fc00::2"))
    node = a_node(ID, (CLOUD, "dedicated"), (("InternalIP", "172.18.0.2"), ("Hostname", "prod-cp0")))
    of_status, of_spec = patches(node, dual)
    assert of_status.subresource == "status"
    assert of_status.body["status"]["addresses"] == [
        {"type": "InternalIP", "address": "172.18.0.2"},
        {"type": "Hostname", "address": "prod-cp0"},
        {"type": "InternalIP", "address": "fc00::2"},
    ]
    assert of_spec.body["spec"] == {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}


def test_the_last_taint_leaves_no_empty_list() -> None:
    [patch] = patches(a_node(ID, (CLOUD,), (("InternalIP", "172.18.0.2"),)))
    assert patch.body["spec"] == {"taints": None}

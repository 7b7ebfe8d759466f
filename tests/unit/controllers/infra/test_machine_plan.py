"""What a DevMachine's pass wants."""

from datetime import timedelta
from typing import Any

import pytest

from capi.api.infra.v1beta2 import DevMachine, DevMachineStatus
from capi.backends.port import Address, BackendUnavailable, Delay, Instance, InstanceGone, Stage
from capi.controllers.infra.machine import plan as planning
from capi.controllers.infra.machine.scope import Scope
from capi.kube.errors import TerminalError
from capi.kube.objects import from_wire
from capi.runtime.plan import Apply, ClusterKey, Plan
from tests.unit.controllers.infra.builders import NOW, a_cluster, a_machine, a_machine_pool, an_infra

CLUSTER = ClusterKey("ns", "prod")


def a_fresh(name: str = "a", *, spec: dict[str, Any] | None = None, **metadata: Any) -> DevMachine:
    """A DevMachine on which nothing was done yet."""
    made = an_infra(name, age=timedelta(), **metadata)
    return from_wire(
        DevMachine,
        {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": made.metadata.uid,
                "labels": made.metadata.labels,
                "annotations": made.metadata.annotations,
                "creationTimestamp": "2026-01-01T12:00:00Z",
            },
            "spec": {"backend": {"inMemory": {}}} if spec is None else spec,
        },
    )


def a_scope(infra: DevMachine | None = None, **parts: Any) -> Scope:
    infra = infra or a_fresh()
    given: dict[str, Any] = {
        "machine_pool": a_machine_pool(),
        "cluster": a_cluster(),
        "pool": "prod-workers",
        "simulated": True,
        "as_vm": True,
        "id": infra.spec.provider_id or f"in-memory:///ns/prod/{infra.name}",
    }
    return Scope(infra=infra, **{**given, **parts})


def an_instance(stage: Stage, **more: Any) -> Instance:
    return Instance(id="in-memory:///ns/prod/a", name="a", cluster=CLUSTER, stage=stage, **more)


def states(planned: Plan) -> dict[str, tuple[str, str]]:
    assert isinstance(planned.status, DevMachineStatus)
    return {c.type: (c.status, c.reason) for c in planned.status.conditions}


def progress(seen: Scope, instance: Instance) -> Plan:
    return planning.progress(seen, planning.instance_spec(seen, NOW), instance, NOW)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        pytest.param({}, None, id="all there"),
        pytest.param(
            {"cluster": a_cluster(provisioned=False)}, "WaitingForClusterInfrastructureReady", id="infrastructure"
        ),
        pytest.param(
            {"machine_pool": a_machine_pool(secret=None)}, "WaitingForBootstrapData", id="bootstrap data of its pool"
        ),
        pytest.param(
            {"machine_pool": None, "machine": a_machine("a", bootstrap={}), "cluster": a_cluster(initialized=False)},
            "WaitingForControlPlaneInitialized",
            id="a control plane to bootstrap from",
        ),
    ],
)
def test_what_a_machine_waits_for(parts: dict[str, Any], why: str | None) -> None:
    gate = planning.gate(a_scope(**parts))
    assert (gate.reason if gate else None) == why


def test_a_pool_machine_starts_before_its_machine_exists_and_one_on_its_own_waits_for_its_owner() -> None:
    assert not planning.ownerless(a_scope())
    assert planning.ownerless(a_scope(a_fresh(labels={}), machine_pool=None, pool=""))


def test_the_backend_is_told_what_the_pool_recorded_not_what_its_template_says_now() -> None:
    recorded = a_fresh(annotations={"devmachine.infrastructure.cluster.x-k8s.io/version": "v1.30.0"})
    spec = planning.instance_spec(a_scope(recorded), NOW)
    assert (spec.version, spec.id, spec.cluster) == ("v1.30.0", "in-memory:///ns/prod/a", CLUSTER)
    assert planning.instance_spec(a_scope(), NOW).version == "v1.35.4"
    assert planning.instance_spec(a_scope(machine_pool=None), NOW).version == "v1.35.0"


def test_durations_are_read_from_the_spec() -> None:
    simulated = {"inMemory": {"vm": {"provisioning": {"startupDuration": "10s", "startupJitter": "0.5"}}}}
    spec = planning.instance_spec(a_scope(a_fresh(spec={"backend": simulated})), NOW)
    assert spec.simulation.vm == Delay(timedelta(seconds=10), 0.5)
    assert spec.simulation.node == Delay()


@pytest.mark.parametrize(
    ("provisioning", "field"),
    [
        ({"startupDuration": "soon"}, "vm.provisioning.startupDuration"),
        ({"startupDuration": "1s", "startupJitter": "much"}, "vm.provisioning.startupJitter"),
        ({"startupDuration": "1s", "startupJitter": "nan"}, "vm.provisioning"),
        ({"startupDuration": "-1s"}, "vm.provisioning"),
    ],
)
def test_bad_durations_name_the_field_and_are_not_retried(provisioning: dict[str, str], field: str) -> None:
    seen = a_scope(a_fresh(spec={"backend": {"inMemory": {"vm": {"provisioning": provisioning}}}}))
    with pytest.raises(TerminalError, match=field) as caught:
        planning.instance_spec(seen, NOW)
    planned = planning.invalid(seen, caught.value)
    assert states(planned)["VMProvisioned"] == ("False", "InternalError")
    assert (planned.requeue_after, planned.error) == (None, None)


def test_a_short_boot_is_waited_for_in_silence_and_a_long_one_is_reported() -> None:
    short = progress(a_scope(), an_instance(Stage.STARTING, next_change=NOW + timedelta(seconds=1)))
    assert (short.status, short.requeue_after) == (None, timedelta(seconds=1))
    long = progress(a_scope(), an_instance(Stage.STARTING, next_change=NOW + timedelta(seconds=10)))
    assert states(long)["VMProvisioned"] == ("False", "WaitingForStartupTimeout")
    assert states(long)["NodeProvisioned"] == ("False", "WaitingForVMProvisioned")
    assert long.requeue_after == timedelta(seconds=10)


def test_a_running_machine_is_provisioned_and_has_addresses() -> None:
    planned = progress(
        a_scope(), an_instance(Stage.RUNNING, addresses=(Address("InternalIP", "10.1.2.3"),), next_change=NOW)
    )
    assert states(planned) == {
        "VMProvisioned": ("True", "Provisioned"),
        "NodeProvisioned": ("False", "WaitingForStartupTimeout"),
        "Ready": ("False", "NotReady"),
    }
    assert isinstance(planned.status, DevMachineStatus)
    assert planned.status.initialization is not None and planned.status.initialization.provisioned
    assert [a.address for a in planned.status.addresses] == ["10.1.2.3"]


def test_a_machine_that_joined_is_ready() -> None:
    planned = progress(a_scope(), an_instance(Stage.JOINED))
    assert {status for status, _ in states(planned).values()} == {"True"}
    assert planned.requeue_after is None


def test_a_machine_whose_cluster_has_no_api_waits_without_a_timer() -> None:
    planned = progress(a_scope(), an_instance(Stage.RUNNING, waiting_for_control_plane=True))
    assert states(planned)["NodeProvisioned"] == ("False", "WaitingForControlPlaneInitialized")
    assert planned.requeue_after is None


def test_a_joined_machine_says_nothing_while_its_clusters_api_restarts() -> None:
    joined = progress(a_scope(), an_instance(Stage.JOINED)).status
    assert isinstance(joined, DevMachineStatus)
    infra = DevMachine(metadata=a_fresh().metadata, spec=a_fresh().spec, status=joined)
    assert progress(a_scope(infra), an_instance(Stage.RUNNING, waiting_for_control_plane=True)) == Plan()


def test_only_a_machine_on_its_own_gets_its_provider_id_written_by_this_controller() -> None:
    alone = progress(a_scope(machine=a_machine("a")), an_instance(Stage.RUNNING))
    [write] = alone.writes
    assert isinstance(write, Apply)
    assert write.body == {"spec": {"providerID": "in-memory:///ns/prod/a"}}
    assert not progress(a_scope(an_infra("a")), an_instance(Stage.RUNNING)).writes


def test_a_lost_machine_stays_lost_and_is_not_retried() -> None:
    seen = a_scope(an_infra("a"))
    planned = planning.failed(seen, InstanceGone("gone"))
    assert states(planned)["VMProvisioned"] == ("False", "InstanceGone")
    assert planned.error is None
    assert isinstance(planned.status, DevMachineStatus)
    assert planned.status.initialization is not None and planned.status.initialization.provisioned
    remembered = an_infra("a", vm={"type": "VMProvisioned", "status": "False", "reason": "InstanceGone"})
    assert planning.instance_spec(a_scope(remembered), NOW).simulation.lost


def test_a_backend_that_does_not_answer_is_retried_and_does_not_unprovision_the_machine() -> None:
    planned = planning.failed(a_scope(an_infra("a")), BackendUnavailable("no answer"))
    assert states(planned)["VMProvisioned"] == ("True", "Provisioned")
    assert states(planned)["NodeProvisioned"] == ("False", "BackendUnavailable")
    assert planned.error is not None


def test_failure_domains_are_spread_by_name_and_stay() -> None:
    pool = a_machine_pool(failureDomains=["fd1", "fd2", "fd3"])
    drawn = {
        planning.instance_spec(a_scope(a_fresh(name), machine_pool=pool), NOW).failure_domain for name in "abcdefgh"
    }
    assert drawn == {"fd1", "fd2", "fd3"}
